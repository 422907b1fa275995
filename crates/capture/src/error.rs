//! Why a capture could not be read at all. What is odd inside a readable one becomes a note instead.

use backtrail_core::FileOffset;
use std::fmt;

/// What went wrong, where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: Option<FileOffset>,
    message: String,
}

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is something else.
    Unrecognized,
    /// The input is of a kind that is known and not read: another architecture, a kernel's dump.
    Unsupported,
    /// The structure is broken before anything of use could be read.
    Malformed,
    /// The input ends before anything of use could be read.
    Truncated,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, offset: None, message: message.into() }
    }

    pub(crate) fn at(kind: ErrorKind, offset: u64, message: impl Into<String>) -> Self {
        Self { kind, offset: Some(FileOffset::new(offset)), message: message.into() }
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The byte where it went wrong.
    pub fn offset(&self) -> Option<FileOffset> {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(offset) = self.offset {
            write!(f, "byte {:#x}: ", offset.get())?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_said_when_it_is_known() {
        let error = Error::new(ErrorKind::Unrecognized, "expected an ELF core");
        assert_eq!(error.to_string(), "expected an ELF core");
        let error = Error::at(ErrorKind::Malformed, 0x40, "expected a program header");
        assert_eq!(error.to_string(), "byte 0x40: expected a program header");
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(FileOffset::new(0x40))));
    }
}
