//! Why nothing can be watched.

use backtrail_stacks::StacksError;
use backtrail_sys::linux::OsError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why nothing can be watched.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchError {
    /// The program cannot be started.
    Start {
        /// What was to be started.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The process cannot be followed: it is not there, belongs to another user, or is followed by a debugger.
    Attach {
        /// Its id.
        pid: u32,
        /// What the system says.
        source: OsError,
    },
    /// The directory for crash files cannot be made.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The core that came in could not be read.
    Core(io::Error),
    /// The process could not be captured.
    Stacks(StacksError),
    /// The socket to a crash handler cannot be read or written.
    Handler(io::Error),
    /// Waiting for what happens failed.
    Wait(OsError),
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { program, source } => write!(f, "{program}: {source}"),
            Self::Attach { pid, source } => write!(
                f,
                "process {pid} cannot be followed: {source} (not there, another user's, followed by a debugger already, or \
                 forbidden by kernel.yama.ptrace_scope)"
            ),
            Self::Directory { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Core(error) => write!(f, "the core cannot be read: {error}"),
            Self::Stacks(error) => error.fmt(f),
            Self::Handler(error) => write!(f, "the crash handler at standard input: {error}"),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } | Self::Directory { source, .. } => Some(source),
            Self::Core(source) | Self::Handler(source) => Some(source),
            Self::Stacks(source) => Some(source),
            Self::Attach { source, .. } | Self::Wait(source) => Some(source),
        }
    }
}

/// Why a report was not kept; the watching goes on.
#[derive(Debug)]
pub(crate) enum KeepError {
    Capture(StacksError),
    Write(PathBuf, io::Error),
    Told(String),
}

impl fmt::Display for KeepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Write(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Told(problem) => f.write_str(problem),
        }
    }
}
