//! What is wrong with a table, and where.

use std::borrow::Cow;
use std::fmt;

/// The kinds of trouble, for callers that treat them differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes do not start as a table does.
    NotATable,
    /// A table of a version that this reader does not know.
    UnsupportedVersion,
    /// The file ends before something that it says it has.
    Truncated,
    /// The bytes contradict the format.
    Malformed,
    /// A section's bytes are not those that were written.
    Checksum,
    /// What was to be written has no room in the format.
    LimitExceeded,
    /// The output could not be written.
    Io,
}

impl ErrorKind {
    fn phrase(self) -> &'static str {
        match self {
            Self::NotATable => "not a symbol table file",
            Self::UnsupportedVersion => "not a version that is read here",
            Self::Truncated => "the file ends too early",
            Self::Malformed => "malformed symbol table file",
            Self::Checksum => "damaged symbol table file",
            Self::LimitExceeded => "limit reached",
            Self::Io => "cannot write",
        }
    }
}

/// What is wrong, at which byte of the file, and what was expected there. Its text is one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    kind: ErrorKind,
    offset: Option<u64>,
    detail: Cow<'static, str>,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, offset: u64, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, offset: Some(offset), detail: detail.into() }
    }

    pub(crate) fn nowhere(kind: ErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, offset: None, detail: detail.into() }
    }

    pub(crate) fn malformed(offset: u64, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Malformed, offset, detail)
    }

    pub(crate) fn io(error: &std::io::Error) -> Self {
        Self::nowhere(ErrorKind::Io, error.to_string())
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where in the file, counted in bytes from its start, where there is one place.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.phrase())?;
        if let Some(offset) = self.offset {
            write!(f, ", at byte {offset:#x}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

impl std::error::Error for Error {}
