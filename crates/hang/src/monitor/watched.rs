//! What the monitor wants to know of the thread that it watches.

use super::Beat;
use backtrail_core::{FrameAddress, Trust};
use std::fmt;
use std::time::Duration;

/// The watched thread, from the monitor's side.
pub trait Watched {
    /// What it said last.
    fn beat(&self) -> Beat;

    /// What it has used up so far; `None` where that cannot be told.
    fn usage(&mut self) -> Option<Usage>;

    /// Whether it is stopped by a debugger or a signal, so that it cannot get on. Asked when a hang is about to begin and
    /// while it lasts.
    fn is_stopped(&mut self) -> bool;

    /// Whether it sleeps now, and wants no processor. Asked while a hang lasts.
    fn is_waiting(&mut self) -> bool {
        false
    }

    /// Captures its stack into `sample`, which is empty.
    fn capture(&mut self, sample: &mut Sample) -> Result<(), Missed>;
}

/// A stack as captured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// The frames, innermost first.
    pub frames: Vec<(FrameAddress, Trust)>,
    /// Whether the outermost is where the thread began.
    pub is_complete: bool,
}

impl Sample {
    /// Takes all frames out.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.is_complete = false;
    }
}

/// What a thread has used up since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Time on a processor.
    pub cpu: Duration,
    /// Time in which it could have run and had no processor, where the system tells.
    pub queued: Option<Duration>,
}

impl Usage {
    /// What was used since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let queued = self.queued.zip(before.queued).map(|(now, before)| now.saturating_sub(before));
        Self { cpu: self.cpu.saturating_sub(before.cpu), queued }
    }

    /// Both together.
    pub(super) fn plus(self, other: Self) -> Self {
        let queued = self.queued.zip(other.queued).map(|(one, other)| one.saturating_add(other));
        Self { cpu: self.cpu.saturating_add(other.cpu), queued }
    }
}

/// Why there is no stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Missed {
    /// The thread did not answer in time: it sleeps deep in the kernel, or has no processor.
    TimedOut,
    /// The thread has ended.
    Gone,
    /// Something else, in words.
    Failed(&'static str),
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the thread did not answer in time",
            Self::Gone => "the thread has ended",
            Self::Failed(why) => why,
        })
    }
}
