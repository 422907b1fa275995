//! What threads are at.

use std::fmt;

/// What a thread is at. Linux's letters are those of proc(5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum State {
    /// `R`: running, or ready to.
    Running,
    /// `S`: waits for something and takes signals.
    Sleeping,
    /// `D`: waits in the kernel, where no signal reaches it.
    InKernel,
    /// `T`: stopped by a signal.
    Stopped,
    /// `t`: stopped by a debugger.
    Traced,
    /// `Z`, `X`: has ended.
    Ended,
    /// Another letter.
    Other(u8),
}

impl State {
    /// A few words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::InKernel => "waiting in the kernel",
            Self::Stopped => "stopped",
            Self::Traced => "stopped by a debugger",
            Self::Ended => "ended",
            Self::Other(_) => "in another state",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
