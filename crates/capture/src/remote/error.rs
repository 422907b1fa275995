//! Why a process could not be captured.

use std::fmt;
use std::io;

/// Why a process could not be captured at all. What went wrong with one thread is in its
/// [`ThreadInfo`](super::ThreadInfo) instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no process with this id.
    NoSuchProcess(u32),
    /// The process has ended; its parent has not asked for its exit status yet.
    Zombie {
        /// The process.
        process: u32,
        /// Its name.
        name: String,
        /// The parent.
        parent: u32,
    },
    /// The kernel's own thread.
    KernelThread {
        /// Its id.
        process: u32,
        /// Its name.
        name: String,
    },
    /// The caller's own process, which cannot stop itself.
    OwnProcess(u32),
    /// The caller may not. The text says which setting or capability is in the way.
    Denied(u32, String),
    /// What the kernel tells of it could not be read.
    Unreadable(u32, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchProcess(id) => write!(f, "there is no process {id}"),
            Self::Zombie { process, name, parent } => write!(
                f,
                "process {process} ({name}) has ended and is a zombie: its parent, process {parent}, has not asked for its \
                 exit status; it has no memory and no stacks any more"
            ),
            Self::KernelThread { process, name } => {
                write!(f, "{process} ({name}) is a thread of the kernel and has no stack outside of it")
            }
            Self::OwnProcess(id) => {
                write!(f, "process {id} is this one, which cannot stop itself; it is captured from inside")
            }
            Self::Denied(id, why) => write!(f, "process {id} may not be read: {why}"),
            Self::Unreadable(id, error) => write!(f, "process {id}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(_, error) => Some(error),
            _ => None,
        }
    }
}
