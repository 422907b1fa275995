//! Whose hang it is: what is known of process and thread before anything hangs.

use crate::Hang;
use crate::monitor as core;
use crate::time::nanoseconds;
use crate::unfinished::incarnation;
use backtrail_capture::local::{Status, ThreadId};
use backtrail_core::Arch;
use backtrail_model::{Frame, Process, TreeNode};
use std::time::{Duration, SystemTime};

/// A thread of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedThread {
    pub(crate) process: Process,
    pub(crate) incarnation: Option<String>,
    pub(crate) thread_id: Option<u64>,
    pub(crate) thread_name: Option<String>,
}

impl WatchedThread {
    pub(crate) fn new(thread_id: u64) -> Self {
        let pid = u64::from(std::process::id());
        let path = std::env::current_exe().ok().map(|path| path.display().to_string());
        let name = path.as_deref().and_then(|path| path.rsplit(['/', '\\']).next()).map(str::to_owned);
        let process = Process { name, pid: Some(pid), path, arch: Some(Arch::HOST), ..Process::default() };
        let status = u32::try_from(thread_id).ok().and_then(|id| Status::read(ThreadId::new(id)));
        Self {
            process,
            incarnation: incarnation(pid),
            thread_id: Some(thread_id),
            thread_name: status.map(|status| status.name().to_owned()),
        }
    }

    /// All that is known of a hang.
    pub(crate) fn hang(&self, hang: &core::Hang, began: SystemTime, threshold: Duration) -> Hang {
        let mut shown = Hang {
            process: self.process.clone(),
            thread_id: self.thread_id,
            thread_name: self.thread_name.clone(),
            number: hang.number,
            began: Some(began),
            threshold,
            lasted: hang.lasted,
            excused: hang.excused,
            cpu: hang.usage.map(|usage| usage.cpu),
            queued: hang.usage.and_then(|usage| usage.queued),
            measured: hang.measured,
            samples: hang.samples.taken,
            incomplete: hang.samples.incomplete,
            missed: hang.samples.missed,
            missed_because: hang.samples.last_missed.map(|missed| missed.to_string()),
            end: hang.end,
            notes: notes(hang),
            ..Hang::default()
        };
        shown.tree_mut().nodes = nodes(&hang.tree);
        shown.place_frames();
        shown
    }
}

fn nodes(tree: &core::Tree) -> Vec<TreeNode> {
    let mut nodes: Vec<TreeNode> = Vec::with_capacity(tree.nodes().len());
    for node in tree.nodes() {
        let parent = node.parent.and_then(|parent| usize::try_from(parent.0).ok());
        let caller = parent.and_then(|parent| nodes.get(parent));
        let mut frame = Frame::new(caller.map_or(0, |caller| caller.frame.index.saturating_add(1)));
        (frame.address, frame.trust) = (Some(node.address), node.trust);
        let mut shown = TreeNode::new(parent, frame);
        (shown.samples, shown.own_samples) = (node.samples, node.own_samples);
        (shown.weight, shown.own_weight) = (nanoseconds(node.time), nanoseconds(node.own_time));
        nodes.push(shown);
    }
    nodes
}

fn notes(hang: &core::Hang) -> Vec<String> {
    let mut notes = Vec::new();
    if hang.tree.cut() > 0 {
        notes.push(format!("{} stacks lost inner frames to the limit of the tree", hang.tree.cut()));
    }
    if hang.samples.skipped > 0 {
        notes.push(
            "from some time on no stacks were captured: there were as many as one hang may have".to_owned(),
        );
    }
    notes
}
