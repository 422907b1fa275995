//! What is told of a hang.

use crate::monitor as core;
use backtrail_core::Arch;
use backtrail_model::{Frame, ImageIndex, Process, Tree, TreeNode, Unit};
use backtrail_resolve::Symbols;
use std::time::{Duration, SystemTime};

pub use crate::monitor::{Activity, End, Excused};

/// One hang of one thread: how long, what it did, and where.
///
/// As it comes from a `Watch` or from a file it has addresses only; [`name`](Self::name) fills in names.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Hang {
    /// The process, with its images; all stacks are its only tree, in nanoseconds.
    pub process: Process,
    /// The thread's id as the kernel has it.
    pub thread_id: Option<u64>,
    /// The thread's name.
    pub thread_name: Option<String>,
    /// Which of the watch's it is, counted from 1.
    pub number: u64,
    /// When the last beat was made.
    pub began: Option<SystemTime>,
    /// How late a beat had to be.
    pub threshold: Duration,
    /// How long the thread did not beat. Time that was not its fault ([`Hang::excused`]) is left out.
    pub lasted: Duration,
    /// What was left out.
    pub excused: Excused,
    /// Time on a processor in [`Hang::measured`].
    pub cpu: Option<Duration>,
    /// Time in [`Hang::measured`] in which the thread wanted a processor and had none.
    pub queued: Option<Duration>,
    /// The part of the hang, up to all of it, that the two tell about.
    pub measured: Duration,
    /// Stacks that were captured.
    pub samples: u64,
    /// Of these, stacks that may have further outer frames.
    pub incomplete: u64,
    /// Captures that failed.
    pub missed: u64,
    /// Why the last of them did.
    pub missed_because: Option<String>,
    /// How it ended; `None` where it lasts, or the process did not survive it.
    pub end: Option<End>,
    /// What is odd or missing, one sentence each.
    pub notes: Vec<String>,
}

impl Hang {
    /// What the thread did most of the time.
    pub fn activity(&self) -> Activity {
        let usage = self.cpu.map(|cpu| core::Usage { cpu, queued: self.queued });
        Activity::of(usage, self.measured)
    }

    /// Finds names for all frames: in `symbols` by identity, else in the images' own files, where they are still those
    /// that ran. Opens files and takes its time (tens of milliseconds for a small program); not for a signal handler.
    pub fn name(&mut self, symbols: &Symbols) {
        symbols.symbolize(&mut self.process, true);
    }

    /// The frames of all stacks; callers come before what they call. Weights are nanoseconds.
    pub fn nodes(&self) -> &[TreeNode] {
        self.process.trees.first().map(|tree| tree.nodes.as_slice()).unwrap_or_default()
    }

    /// The stack of a node, innermost frame first.
    pub fn stack(&self, node: usize) -> impl Iterator<Item = &Frame> {
        self.process.trees.first().into_iter().flat_map(move |tree| tree.stack(node))
    }

    /// [`Hang::began`] by RFC 3339, in UTC.
    pub fn time(&self) -> Option<String> {
        self.began.map(crate::time::rfc3339)
    }

    /// The tree of all stacks.
    pub(crate) fn tree_mut(&mut self) -> &mut Tree {
        let trees = &mut self.process.trees;
        trees.resize_with(1, || Tree { unit: Unit::Nanoseconds, ..Tree::default() });
        #[expect(clippy::indexing_slicing, reason = "there is one")]
        &mut trees[0]
    }

    /// Finds the image of every frame.
    pub(crate) fn place_frames(&mut self) {
        let arch = self.process.arch.unwrap_or(Arch::Unknown);
        let images = std::mem::take(&mut self.process.images);
        let index = ImageIndex::new(&images);
        for frame in self.process.frames_mut() {
            let address = frame.address.map(|address| address.lookup(arch));
            frame.image = address.and_then(|address| index.find(address, None, None));
        }
        self.process.images = images;
    }
}
