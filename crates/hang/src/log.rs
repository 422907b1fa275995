//! The file that a hang is written to while it lasts.
//!
//! Lines of JSON. The first says which process, thread and hang it is; then come the images, one a line; then a line for
//! each capture, with the nodes that it adds to the tree; and where the process survives the hang, a last one that says
//! how it ended. Lines are only ever appended, so that whatever is there when the process is killed can be read: at most
//! the last line is cut.
//!
//! Keys are those of the JSON schema, and absent where there is nothing to say.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Names the shape of the file.
pub(crate) const SCHEMA: &str = "backtrail-hang-log/1";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head<'a> {
    pub(crate) schema: Cow<'a, str>,
    pub(crate) process: ProcessLine<'a>,
    pub(crate) thread: ThreadLine<'a>,
    /// When the last beat was made.
    pub(crate) time: Option<Cow<'a, str>>,
    pub(crate) number: u64,
    pub(crate) threshold_ms: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessLine<'a> {
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) pid: Option<u64>,
    pub(crate) path: Option<Cow<'a, str>>,
    pub(crate) arch: Option<Cow<'a, str>>,
    /// What tells it from a later process with the same id.
    pub(crate) incarnation: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ThreadLine<'a> {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<Cow<'a, str>>,
}

/// Any other line.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub(crate) image: Option<ImageLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lasted_ms: Option<f64>,
    /// Frames that were not there before; their positions go on from the last one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty", borrow)]
    pub(crate) nodes: Vec<NodeLine<'a>>,
    /// The innermost frame of the stack that was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<usize>,
    /// The time that the stack stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missed_because: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queued_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) measured_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suspended_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gaps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageLine<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) path: Option<Cow<'a, str>>,
    pub(crate) id: Option<Cow<'a, str>>,
    /// `UUID`, `build id`, `code hash`.
    pub(crate) id_kind: Option<Cow<'a, str>>,
    pub(crate) load_address: Cow<'a, str>,
    pub(crate) end_address: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodeLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<usize>,
    pub(crate) address: Cow<'a, str>,
    /// Whether the address is that of the instruction itself, not the one behind a call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) exact: bool,
    pub(crate) trust: Cow<'a, str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}
