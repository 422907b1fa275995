//! What a watch has to say: its events, and why there is no watch.

use crate::Hang;
use std::fmt;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchError(pub(crate) String);

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WatchError {}
