//! Whose hang it is: what is known of process and thread before anything hangs.

use super::unfinished::incarnation;
use super::{Hang, Node};
use backtrail_capture::hang as core;
use backtrail_capture::local::{Status, ThreadId};
use backtrail_core::Arch;
use backtrail_report::{Frame, Image, Process};
use std::time::{Duration, SystemTime};

/// A thread of this process.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    pub(super) process: Process,
    pub(super) incarnation: Option<String>,
    pub(super) thread_id: Option<u64>,
    pub(super) thread_name: Option<String>,
    pub(super) images: Vec<Image>,
}

impl Subject {
    pub(super) fn new(thread_id: u64) -> Self {
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
            images: Vec::new(),
        }
    }

    /// All that is known of a hang.
    pub(super) fn hang(&self, hang: &core::Hang, began: SystemTime, threshold: Duration) -> Hang {
        let mut told = Hang {
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
            images: self.images.clone(),
            end: hang.end,
            notes: notes(hang),
            ..Hang::default()
        };
        told.nodes = nodes(&hang.tree);
        told.place_frames();
        told
    }
}

fn nodes(tree: &core::Tree) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(tree.nodes().len());
    for node in tree.nodes() {
        let parent = node.parent.and_then(|parent| usize::try_from(parent.0).ok());
        let caller = parent.and_then(|parent| nodes.get(parent));
        let mut frame = Frame::new(caller.map_or(0, |caller| caller.frame.index.saturating_add(1)));
        (frame.address, frame.trust) = (Some(node.address), node.trust);
        let mut told = Node::new(parent, frame);
        (told.samples, told.own_samples) = (node.samples, node.own_samples);
        (told.time, told.own_time) = (node.time, node.own_time);
        nodes.push(told);
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
