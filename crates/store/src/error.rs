//! What could not be read, and where.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backtrail_core::FileOffset;

/// One thing that could not be read. From a scan it is a note beside the result; the rest was read all the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    place: String,
    fault: Fault,
}

/// What sort of thing an [`Error`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused: no such file, no permission, a read that failed.
    Io,
    /// Neither a regular file nor a directory; never opened.
    NotAFile,
    /// The zip's own structure is broken.
    Zip,
    /// A zip member is encrypted.
    Encrypted,
    /// Compressed data is broken, or not what its headers state.
    Compression,
    /// An object file's headers are broken.
    Object,
    /// A container or a compression method that backtrail does not read.
    NotRead,
    /// One of [`Limits`](crate::Limits) ended the reading.
    Limit,
    /// The file is not what it was when it was scanned.
    Changed,
}

/// An error whose place the caller knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) offset: Option<FileOffset>,
    pub(crate) what: String,
}

impl Error {
    /// An error of the file, or `file!member`, that is shown as `place`; `what` is what was expected, or found instead.
    pub fn new(kind: ErrorKind, place: impl fmt::Display, what: impl Into<String>) -> Self {
        Fault::new(kind, what).at(place)
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.fault.kind
    }

    /// The file, or `file!member` for what lies in a zip, fit to be shown.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What was expected, or found instead.
    pub fn what(&self) -> &str {
        &self.fault.what
    }

    /// Position in the innermost file or member that [`place`](Self::place) names.
    pub fn offset(&self) -> Option<FileOffset> {
        self.fault.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(offset) = self.fault.offset {
            write!(f, "at offset {:#x}: ", offset.get())?;
        }
        f.write_str(&self.fault.what)
    }
}

impl std::error::Error for Error {}

impl Fault {
    pub(crate) fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, offset: None, what: what.into() }
    }

    pub(crate) fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(FileOffset::new(offset));
        self
    }

    pub(crate) fn at(self, place: impl fmt::Display) -> Error {
        Error { place: place.to_string(), fault: self }
    }

    pub(crate) fn object(error: &backtrail_object::Error) -> Self {
        use backtrail_object::ErrorKind as Cause;
        let kind = match error.kind() {
            Cause::Io => ErrorKind::Io,
            Cause::LimitExceeded => ErrorKind::Limit,
            _ => ErrorKind::Object,
        };
        Self { kind, offset: error.offset(), what: error.detail().to_owned() }
    }

    pub(crate) fn io(what: &str, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{what}: {error}"))
    }
}

/// What is wrong with the object file that is shown as `place`.
pub fn object_error(place: impl fmt::Display, error: &backtrail_object::Error) -> Error {
    Fault::object(error).at(place)
}

/// A name out of a file or from the disk, with what would confuse a terminal or a reader escaped.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(confuses) {
            let mut chars = part.chars();
            match chars.next_back() {
                Some(last) if confuses(last) => write!(f, "{}{}", chars.as_str(), last.escape_unicode())?,
                _ => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// A path, shown in the same way, with bytes that are no UTF-8 as `\xff`.
pub(crate) struct ShownPath<'a>(pub(crate) &'a Path);

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            write!(f, "{}", Shown(chunk.valid()))?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Control characters, and those that turn the direction of writing or join without being seen.
fn confuses(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_place_and_offset() {
        let error = Fault::new(ErrorKind::Zip, "expected a local header").offset(30).at("a.zip!b");
        assert_eq!(error.to_string(), "a.zip!b: at offset 0x1e: expected a local header");
        assert_eq!(Error::new(ErrorKind::Io, "x", "gone").to_string(), "x: gone");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff\x1b/\xc3\xa9.so"));
        assert_eq!(ShownPath(path).to_string(), "/a\\xff\\u{1b}/é.so");
        assert_eq!(Shown("../a\u{1b}[2J\nb\u{202e}c é").to_string(), "../a\\u{1b}[2J\\u{a}b\\u{202e}c é");
    }
}
