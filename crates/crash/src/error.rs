//! Why the handler could not be installed.

use crate::OsError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why the handler could not be installed.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// It is installed already: a process has one.
    Installed,
    /// The directory for crash files cannot be made, or its path has a zero.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The thread that writes the file cannot be started.
    Thread(io::Error),
    /// Another call failed.
    System(OsError),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installed => f.write_str("the process has a crash handler of backtrail already"),
            Self::Directory { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Thread(error) => write!(f, "the thread that writes crash files cannot be started: {error}"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InstallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Installed => None,
            Self::Directory { source, .. } | Self::Thread(source) => Some(source),
            Self::System(error) => Some(error),
        }
    }
}

impl From<OsError> for InstallError {
    fn from(error: OsError) -> Self {
        Self::System(error)
    }
}
