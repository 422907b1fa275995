//! What became of threads since an earlier capture.

use crate::{StackDiff, ThreadLabel};
use serde::Serialize;

/// What became of a process's threads.
#[derive(Debug, Serialize)]
pub(super) struct DiffJson<'a> {
    moved: Vec<MovedJson<'a>>,
    new: Vec<LabelJson<'a>>,
    gone: Vec<LabelJson<'a>>,
    unmoved: Vec<UnmovedJson<'a>>,
}

#[derive(Debug, Serialize)]
struct LabelJson<'a> {
    id: Option<u64>,
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct MovedJson<'a> {
    #[serde(flatten)]
    thread: LabelJson<'a>,
    was_in: Option<&'a str>,
    is_in: Option<&'a str>,
    common_frames: usize,
}

#[derive(Debug, Serialize)]
struct UnmovedJson<'a> {
    #[serde(flatten)]
    thread: LabelJson<'a>,
    cpu_time: Option<f64>,
}

pub(super) fn diff(diff: &StackDiff) -> DiffJson<'_> {
    DiffJson {
        moved: diff
            .moved
            .iter()
            .map(|moved| MovedJson {
                thread: label(&moved.thread),
                was_in: moved.was_in.as_deref(),
                is_in: moved.is_in.as_deref(),
                common_frames: moved.common_frames,
            })
            .collect(),
        new: diff.new.iter().map(label).collect(),
        gone: diff.gone.iter().map(label).collect(),
        unmoved: diff
            .unmoved
            .iter()
            .map(|unmoved| UnmovedJson { thread: label(&unmoved.thread), cpu_time: unmoved.cpu_time })
            .collect(),
    }
}

fn label(label: &ThreadLabel) -> LabelJson<'_> {
    LabelJson { id: label.id, name: label.name.as_deref() }
}
