//! What is wrong with a file, and where.

use std::borrow::Cow;
use std::fmt;

use backtrail_core::FileOffset;

/// The kinds of trouble, for callers that treat them differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are no object file, and none that holds object files.
    NotAnObject,
    /// The file ends before something that it says it has.
    Truncated,
    /// The bytes contradict the format.
    Malformed,
    /// The format allows this; backtrail does not read it.
    Unsupported,
    /// Reading on would pass one of the [`Limits`](crate::Limits).
    LimitExceeded,
    /// A compressed section that does not decompress to what it promised.
    Decompression,
    /// The bytes could not be fetched.
    Io,
}

impl ErrorKind {
    fn phrase(self) -> &'static str {
        match self {
            Self::NotAnObject => "not an object file",
            Self::Truncated => "the file ends too early",
            Self::Malformed => "malformed object file",
            Self::Unsupported => "not supported",
            Self::LimitExceeded => "limit reached",
            Self::Decompression => "cannot decompress",
            Self::Io => "cannot read",
        }
    }
}

/// What is wrong, at which byte, and what was expected there. Its text is one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    kind: ErrorKind,
    offset: Option<FileOffset>,
    detail: Cow<'static, str>,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, offset: u64, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, offset: Some(FileOffset::new(offset)), detail: detail.into() }
    }

    /// The same, with the section's name in front of what was expected.
    pub(crate) fn in_section(mut self, name: &str) -> Self {
        self.detail = format!("section {}: {}", name.escape_debug(), self.detail).into();
        self
    }

    /// Trouble that has no single place in the file.
    pub(crate) fn nowhere(kind: ErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, offset: None, detail: detail.into() }
    }

    pub(crate) fn malformed(offset: u64, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Malformed, offset, detail)
    }

    /// For implementations of [`ReadAt`](crate::ReadAt): the bytes at `offset` could not be fetched.
    pub fn io(offset: FileOffset, error: &std::io::Error) -> Self {
        Self { kind: ErrorKind::Io, offset: Some(offset), detail: error.to_string().into() }
    }

    /// For implementations of [`ReadAt`](crate::ReadAt): `size` bytes at `offset` leave the file.
    pub fn past_end(offset: FileOffset, size: u64) -> Self {
        Self::new(ErrorKind::Truncated, offset.get(), format!("expected {size} more bytes"))
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where in the file, where there is one place: counted from the start of the outermost file that was given.
    pub fn offset(&self) -> Option<FileOffset> {
        self.offset
    }

    /// What was expected, or found instead.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.phrase())?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_and_where() {
        let error = Error::malformed(0x40, "expected a load command of at least 8 bytes, found 4");
        assert_eq!(
            error.to_string(),
            "malformed object file at byte 0x40: expected a load command of at least 8 bytes, found 4"
        );
        let error = Error::nowhere(ErrorKind::Unsupported, "section compressed in format 7");
        assert_eq!(error.to_string(), "not supported: section compressed in format 7");
        let io = Error::io(FileOffset::new(16), &std::io::Error::other("device gone"));
        assert_eq!(io.to_string(), "cannot read at byte 0x10: device gone");
    }
}
