//! What is wrong with an input.

use std::borrow::Cow;
use std::fmt;

use backtrail_core::FileOffset;

/// The kinds of trouble, for callers that treat them differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes are not what was asked for: no library, no program, no fingerprint, no link map.
    WrongInput,
    /// The bytes contradict their format.
    Malformed,
    /// The format allows this; it is not read.
    Unsupported,
    /// Reading on would pass one of the limits.
    LimitExceeded,
    /// Two inputs do not belong together.
    Mismatch,
}

/// What is wrong, where, and what was expected. Its text is one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    kind: ErrorKind,
    offset: Option<FileOffset>,
    detail: Cow<'static, str>,
    source: Option<backtrail_object::Error>,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, offset: None, detail: detail.into(), source: None }
    }

    pub(crate) fn at(kind: ErrorKind, offset: u64, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { offset: Some(FileOffset::new(offset)), ..Self::new(kind, detail) }
    }

    /// Of a part of a file that starts at `start`, with its name.
    pub(crate) fn in_part(self, name: &str, start: u64) -> Self {
        let offset = self.offset.map_or(start, |offset| start.saturating_add(offset.get()));
        let source = self.source;
        Self { source, ..Self::at(self.kind, offset, format!("{name}: {}", self.detail)) }
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where in the file, where there is one place.
    pub fn offset(&self) -> Option<FileOffset> {
        self.offset
    }
}

impl From<backtrail_object::Error> for Error {
    fn from(error: backtrail_object::Error) -> Self {
        let kind = match error.kind() {
            backtrail_object::ErrorKind::NotAnObject => ErrorKind::WrongInput,
            backtrail_object::ErrorKind::Unsupported => ErrorKind::Unsupported,
            backtrail_object::ErrorKind::LimitExceeded => ErrorKind::LimitExceeded,
            _ => ErrorKind::Malformed,
        };
        Self { kind, offset: error.offset(), detail: error.to_string().into(), source: Some(error) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(offset), None) = (self.offset, &self.source) {
            write!(f, "at byte {offset}: ")?;
        }
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
