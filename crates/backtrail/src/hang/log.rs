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
pub(super) const SCHEMA: &str = "backtrail-hang-log/1";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head<'a> {
    pub(super) schema: Cow<'a, str>,
    pub(super) process: ProcessLine<'a>,
    pub(super) thread: ThreadLine<'a>,
    /// When the last beat was made.
    pub(super) time: Option<Cow<'a, str>>,
    pub(super) number: u64,
    pub(super) threshold_ms: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProcessLine<'a> {
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) pid: Option<u64>,
    pub(super) path: Option<Cow<'a, str>>,
    pub(super) arch: Option<Cow<'a, str>>,
    /// What tells it from a later process with the same id.
    pub(super) incarnation: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ThreadLine<'a> {
    pub(super) id: Option<u64>,
    pub(super) name: Option<Cow<'a, str>>,
}

/// Any other line.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub(super) image: Option<ImageLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lasted_ms: Option<f64>,
    /// Frames that were not there before; their positions go on from the last one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty", borrow)]
    pub(super) nodes: Vec<NodeLine<'a>>,
    /// The innermost frame of the stack that was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<usize>,
    /// The time that the stack stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missed_because: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queued_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) measured_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) suspended_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gaps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ImageLine<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) path: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    /// `UUID`, `build id`, `code hash`.
    pub(super) id_kind: Option<Cow<'a, str>>,
    pub(super) load_address: Cow<'a, str>,
    pub(super) end_address: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<usize>,
    pub(super) address: Cow<'a, str>,
    /// Whether the address is that of the instruction itself, not the one behind a call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) exact: bool,
    pub(super) trust: Cow<'a, str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}
