//! Deep stacks, kept short: the ends, how much is between, and what repeats there.

use super::{Frame, Walk, WalkEnd};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use backtrail_core::{Avma, ReadMemory};

/// A stack of which only the innermost and the outermost frames are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folded {
    /// The innermost frames.
    pub first: Vec<Frame>,
    /// How many frames follow that are not kept.
    pub omitted: u64,
    /// The outermost frames.
    pub last: Vec<Frame>,
    /// The longest part of the stack that repeats, if any does.
    pub repeat: Option<Repeat>,
    /// How the walk ended.
    pub ended: WalkEnd,
}

/// Frames that repeat with the same addresses: recursion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// The number of the first frame that belongs to it.
    pub start: u64,
    /// How many frames make one round.
    pub period: u32,
    /// How many rounds there are; the last may be incomplete and counts if so.
    pub rounds: u64,
}

impl Folded {
    /// How many frames the stack has.
    pub fn depth(&self) -> u64 {
        self.first.len() as u64 + self.omitted + self.last.len() as u64
    }
}

/// The longest round that is recognised.
const MAX_PERIOD: usize = 32;

/// Walks to the end and keeps `first` frames of the inner end and `last` of the outer one: a stack of a million
/// frames needs no more memory than that.
pub fn fold<M: ReadMemory + ?Sized>(walk: &mut Walk<'_, M>, first: usize, last: usize) -> Folded {
    let mut head = Vec::new();
    let mut tail = VecDeque::new();
    let mut omitted = 0;
    let mut rounds = Rounds::default();
    for frame in walk.by_ref() {
        rounds.see(frame.address.raw());
        if head.len() < first {
            head.push(frame);
            continue;
        }
        tail.push_back(frame);
        if tail.len() > last {
            tail.pop_front();
            omitted += 1;
        }
    }
    let ended = walk.ended().unwrap_or(WalkEnd::Limit);
    Folded { first: head, omitted, last: tail.into(), repeat: rounds.longest(), ended }
}

/// For each period, how long the frames have been repeating with it.
#[derive(Default)]
struct Rounds {
    recent: VecDeque<Avma>,
    count: u64,
    runs: [Run; MAX_PERIOD],
}

#[derive(Clone, Copy, Default)]
struct Run {
    current: u64,
    longest: u64,
    /// The number of the frame behind the longest.
    end: u64,
}

impl Rounds {
    fn see(&mut self, address: Avma) {
        self.count += 1;
        for (run, before) in self.runs.iter_mut().zip(&self.recent) {
            run.current = if *before == address { run.current + 1 } else { 0 };
            if run.current > run.longest {
                *run = Run { longest: run.current, end: self.count, ..*run };
            }
        }
        self.recent.push_front(address);
        self.recent.truncate(MAX_PERIOD);
    }

    /// The shortest period that covers the most frames, if they are at least three rounds.
    fn longest(&self) -> Option<Repeat> {
        // A run's multiples repeat as well, each one round later: the shortest covers as much and wins.
        let mut best: Option<(u32, &Run)> = None;
        for (period, run) in (1u32..).zip(&self.runs) {
            if best.is_none_or(|(shorter, known)| {
                run.longest + u64::from(period) > known.longest + u64::from(shorter)
            }) {
                best = Some((period, run));
            }
        }
        let (period, run) = best.filter(|(_, run)| run.longest > 0)?;
        let frames = run.longest + u64::from(period);
        let rounds = frames.div_ceil(period.into());
        (frames >= 3 * u64::from(period)).then_some(Repeat { start: run.end - frames, period, rounds })
    }
}
