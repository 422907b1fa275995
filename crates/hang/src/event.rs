//! What a watch has to say: its events, and why there is no watch.

use crate::Hang;
use backtrail_stacks::own::OsError;
use std::{fmt, io};

/// What a watch tells, on its own thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'h> {
    /// The thread hangs; this is its first stack. What is done about it delays the next.
    Began(&'h Hang),
    /// The thread got on, or ended, or is no longer watched.
    Ended(&'h Hang),
    /// Something does not work, in one sentence: the file cannot be written.
    Problem(&'h str),
}

/// Why a thread cannot be watched.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchError {
    /// Its stack cannot be captured.
    Capture(OsError),
    /// The watch's own thread cannot be started.
    Spawn(io::Error),
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Spawn(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for WatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Capture(error) => Some(error),
            Self::Spawn(error) => Some(error),
        }
    }
}
