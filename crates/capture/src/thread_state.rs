//! What threads are at.

use std::fmt;

/// What a thread was doing. The letters are those of proc(5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ThreadState {
    /// `R`: on a processor, or ready for one.
    Running,
    /// `S`: waiting, and a signal would wake it.
    Sleeping,
    /// `D`: waiting, and nothing but what it waits for wakes it.
    Uninterruptible,
    /// `I`: a kernel thread without work.
    Idle,
    /// `T`: stopped by a signal.
    Stopped,
    /// `t`: stopped by a debugger.
    Tracing,
    /// `Z`: ended, and not yet asked for by its parent; or the first thread of a process whose others go on.
    Zombie,
    /// `X`, `x`: just ending.
    Dead,
    /// A letter that is none of these.
    Other(char),
}

impl ThreadState {
    /// What the letter means.
    pub fn from_letter(letter: u8) -> Self {
        match letter {
            b'R' => Self::Running,
            b'S' => Self::Sleeping,
            b'D' => Self::Uninterruptible,
            b'I' => Self::Idle,
            b'T' => Self::Stopped,
            b't' => Self::Tracing,
            b'Z' => Self::Zombie,
            b'X' | b'x' => Self::Dead,
            other => Self::Other(char::from(other)),
        }
    }

    /// Whether there is nothing left of it but its name and times.
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Zombie | Self::Dead)
    }
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Uninterruptible => "uninterruptible sleep",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
            Self::Tracing => "stopped by a debugger",
            Self::Zombie => "zombie",
            Self::Dead => "dead",
            Self::Other(letter) => return write!(f, "state {letter}"),
        })
    }
}
