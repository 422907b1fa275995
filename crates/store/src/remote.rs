//! Files that are not on this machine: what servers are asked for, and what came of it.

use std::fmt;
use std::path::PathBuf;

use backtrail_core::ImageId;

use crate::error::Error;

/// Which file of an image is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum RemoteKind {
    /// The file with its debug info.
    DebugInfo,
    /// The binary, with its code.
    Executable,
}

/// One file of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteFile {
    /// The image's identity.
    pub id: ImageId,
    /// Which of its files.
    pub kind: RemoteKind,
}

/// Servers that have files by their identity. Whatever is behind it is asked for identities alone: no address, path or name
/// of a report ever gets there.
pub trait RemoteFiles: fmt::Debug + Send + Sync {
    /// Fetches files, several at a time, and answers in the order of `wanted` where on this machine each lies now. What was
    /// asked before is not asked again.
    fn fetch(&self, wanted: &[RemoteFile]) -> Vec<Result<PathBuf, RemoteError>>;

    /// Whether they may have files of this identity; others need not be asked for. By default those of a build id.
    fn may_have(&self, id: &ImageId) -> bool {
        matches!(id, ImageId::BuildId(_))
    }

    /// What went wrong with the servers themselves, each thing once.
    fn problems(&self) -> Vec<String>;
}

/// Why a file could not be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteError {
    kind: RemoteErrorKind,
    what: String,
}

/// What sort of thing a [`RemoteError`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RemoteErrorKind {
    /// No server has the file.
    NotThere,
    /// A server could not be asked, or did not answer as expected.
    Server,
    /// What came is not the file that was asked for, or only a part of it.
    WrongFile,
    /// The file is larger than the limits allow.
    Limit,
    /// It could not be written on this machine.
    Io,
}

impl RemoteError {
    /// For whoever has files from elsewhere; `what` says whose fault it is, and what was expected.
    pub fn new(kind: RemoteErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    pub(crate) fn unreadable(error: &Error) -> Self {
        Self::new(RemoteErrorKind::Io, error.to_string())
    }

    /// What sort of error this is.
    pub fn kind(&self) -> RemoteErrorKind {
        self.kind
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for RemoteError {}
