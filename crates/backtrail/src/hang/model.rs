//! What is told of a hang.

use crate::Symbols;
use crate::json::HangJson;
use backtrail_capture::hang as core;
use backtrail_core::{AddrRange, Arch, Avma};
use backtrail_report::{Frame, Image, Process};
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

pub use backtrail_capture::hang::{Activity, End, Excused};

/// One hang of one thread: how long, what it did, and where.
///
/// As it comes from a `Watch` or from a file it has addresses only; [`name`](Self::name) fills in names.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Hang {
    /// The process.
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
    /// All stacks as a tree: parents come before their children.
    pub nodes: Vec<Node>,
    /// The images of the process.
    pub images: Vec<Image>,
    /// How it ended; `None` where it lasts, or the process did not survive it.
    pub end: Option<End>,
    /// What is odd or missing, one sentence each.
    pub notes: Vec<String>,
}

/// One frame of the tree, called from its parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The position in [`Hang::nodes`] of the frame that called it; `None` for the outermost.
    pub parent: Option<usize>,
    /// The frame. Its index counts from the outermost frame, which is 0.
    pub frame: Frame,
    /// Samples that have it.
    pub samples: u64,
    /// Samples of which it is the innermost frame.
    pub own_samples: u64,
    /// The time that its samples stand for.
    pub time: Duration,
    /// The time that those stand for of which it is the innermost.
    pub own_time: Duration,
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
        super::name::name(self, symbols);
    }

    /// The position in [`Hang::nodes`] of the innermost frame of the heaviest stack: the one whose functions most time
    /// was spent in, from the outermost on. `None` without samples.
    pub fn heaviest(&self) -> Option<usize> {
        super::merge::heaviest(self)
    }

    /// The stack of a node, innermost frame first.
    pub fn stack(&self, node: usize) -> impl Iterator<Item = &Frame> {
        let nodes = std::iter::successors(self.nodes.get(node), |node| self.nodes.get(node.parent?));
        // Parents come first: a chain is never longer than the tree is large, even in one that was made by hand.
        nodes.take(self.nodes.len()).map(|node| &node.frame)
    }

    /// Writes it for people: what happened, the heaviest stack, the tree of all.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        super::text::write(self, out)
    }

    /// Writes each stack as `outermost;…;innermost N`, N in milliseconds: what flame graphs are made of.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_collapsed(&self, out: &mut dyn Write) -> io::Result<()> {
        super::merge::write_collapsed(self, out)
    }

    /// Writes it as one line of JSON (schema `backtrail-hang/1`).
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        crate::json::write_line(out, &self.json())
    }

    /// The JSON document, for any `serde` format.
    pub fn json(&self) -> HangJson<'_> {
        crate::json::hang(self)
    }
}

impl Hang {
    /// [`Hang::began`] by RFC 3339, in UTC.
    pub(crate) fn time(&self) -> Option<String> {
        self.began.map(super::time::rfc3339)
    }

    /// Sums the nodes' own samples up to their callers.
    pub(super) fn add_up(&mut self) {
        for node in &mut self.nodes {
            (node.samples, node.time) = (node.own_samples, node.own_time);
        }
        for position in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get(position) else { continue };
            let (samples, time) = (node.samples, node.time);
            if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(parent)) {
                parent.samples = parent.samples.saturating_add(samples);
                parent.time = parent.time.saturating_add(time);
            }
        }
    }

    /// Finds the image of every frame.
    pub(super) fn place_frames(&mut self) {
        let arch = self.process.arch.unwrap_or(Arch::Unknown);
        let mut ranges: Vec<(AddrRange<Avma>, usize)> = Vec::new();
        for (position, image) in self.images.iter().enumerate() {
            let end = image.end_address.unwrap_or(image.load_address);
            ranges.push((AddrRange::new(image.load_address, end), position));
        }
        ranges.sort_by_key(|(range, _)| range.start());
        for frame in self.nodes.iter_mut().map(|node| &mut node.frame) {
            let Some(at) = frame.address.map(|address| address.lookup(arch)) else { continue };
            let after = ranges.partition_point(|(range, _)| range.start() <= at);
            let range = after.checked_sub(1).and_then(|before| ranges.get(before));
            frame.image = range.filter(|(range, _)| range.contains(at)).map(|(_, position)| *position);
        }
    }
}

impl Node {
    pub(super) fn new(parent: Option<usize>, frame: Frame) -> Self {
        let (samples, own_samples, time, own_time) = (0, 0, Duration::ZERO, Duration::ZERO);
        Self { parent, frame, samples, own_samples, time, own_time }
    }
}

/// The text form.
impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_text(&mut text).map_err(|_| fmt::Error)?;
        f.write_str(&String::from_utf8_lossy(&text))
    }
}
