//! Why a name was not made readable.

use core::fmt;

/// Why a name was not made readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: usize,
}

/// What kind of [`Error`] it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The name is of no scheme known here; it is most likely a plain C name.
    NotMangled,
    /// The name starts like a mangled one and breaks its scheme's grammar.
    Invalid,
    /// The name nests deeper than [`MAX_DEPTH`](crate::MAX_DEPTH), or needs more work than its length allows.
    TooComplex,
    /// The scheme is known, but this build was made without what reads it: the feature `msvc`.
    Unsupported,
    /// The `fmt::Write` that the caller gave refused the text.
    Output,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, offset: usize) -> Self {
        Error { kind, offset }
    }

    /// The same, in a name that starts so many bytes earlier.
    pub(crate) fn moved(self, bytes: usize) -> Self {
        Error { offset: self.offset + bytes, ..self }
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The byte offset in the name at which reading it failed.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::NotMangled => f.write_str("not a mangled name of a known scheme"),
            ErrorKind::Invalid => {
                write!(f, "the mangled name breaks its scheme's grammar at byte {}", self.offset)
            }
            ErrorKind::TooComplex => write!(f, "the mangled name nests too deeply at byte {}", self.offset),
            ErrorKind::Unsupported => f.write_str("this build does not read names of this scheme"),
            ErrorKind::Output => f.write_str("the output refused the readable name"),
        }
    }
}

impl core::error::Error for Error {}

/// How a scheme's module ends when it does not finish the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The name breaks the grammar, at this byte.
    Invalid(usize),
    /// The name nests too deeply, at this byte, or asks for too much work.
    TooComplex(usize),
    /// The feature that reads the scheme is off.
    #[cfg_attr(feature = "msvc", expect(dead_code, reason = "all schemes are read"))]
    Unsupported,
    /// The output limit is reached; what was written is the beginning of the right answer.
    Full,
}

impl From<fmt::Error> for Failed {
    fn from(_: fmt::Error) -> Self {
        Failed::Full
    }
}
