//! Why a report could not be read at all. What is odd inside a readable report becomes a note instead.

use backtrail_core::FileOffset;
use std::fmt;

/// What went wrong, where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    place: Option<InputPosition>,
    message: String,
}

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is nothing in the input.
    Empty,
    /// The input is larger than the limits allow.
    TooLarge,
    /// The input is no crash report that backtrail knows.
    Unrecognized,
    /// A kind of report that backtrail knows by this name, and does not read yet.
    NotReadYet(&'static str),
    /// A report whose structure is broken before anything of use could be read.
    Malformed,
}

/// A position in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct InputPosition {
    offset: FileOffset,
    line: u64,
}

/// How WinDbg's `!analyze -v` of a Windows kernel's dump is called.
pub(crate) const WINDBG: &str = "WinDbg's analysis of a Windows kernel dump";

/// What can be done with kinds that are not read, where there is something.
const ADVICE: [(&str, &str); 7] = [
    (
        WINDBG,
        "what its lines MODULE_NAME, IMAGE_NAME and STACK_TEXT name is to be looked at first; backtrail reads minidumps of programs and Windows' event log",
    ),
    ("ELF file", "a program or library, no core: it is of use as symbols (-s)"),
    ("gzip archive", "unpack it first (gzip -d)"),
    ("zip archive", "unpack it first (unzip)"),
    ("tar archive", "unpack it first (tar -xf)"),
    ("binary property list", "plutil -convert xml1 makes it readable"),
    ("text in UTF-16", "iconv -f UTF-16 -t UTF-8 makes it readable"),
];

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, place: None, message: message.into() }
    }

    pub(crate) fn not_read_yet(name: &'static str) -> Self {
        let advice = ADVICE.iter().find(|(known, _)| *known == name).map(|(_, advice)| format!("; {advice}"));
        let advice = advice.unwrap_or_default();
        let message = format!("expected a crash report of a kind that is read, found: {name}{advice}");
        Self::new(ErrorKind::NotReadYet(name), message)
    }

    /// Adds the place; the line is counted from the input, so this is for errors only, never for a hot path.
    pub(crate) fn at(mut self, input: &[u8], position: usize) -> Self {
        let before = input.get(..position).unwrap_or(input);
        let breaks = before.iter().filter(|byte| **byte == b'\n').count();
        self.place =
            Some(InputPosition { offset: FileOffset::new(position as u64), line: breaks as u64 + 1 });
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The byte where it went wrong.
    pub fn offset(&self) -> Option<FileOffset> {
        self.place.map(|place| place.offset)
    }

    /// The line where it went wrong, counted from 1.
    pub fn line(&self) -> Option<u64> {
        self.place.map(|place| place.line)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "line {} (byte {}): ", place.line, place.offset.get())?;
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
        let error = Error::new(ErrorKind::Malformed, "expected `,` or `}`");
        assert_eq!(error.to_string(), "expected `,` or `}`");
        let error = error.at(b"one\ntwo\nthree", 9);
        assert_eq!(error.to_string(), "line 3 (byte 9): expected `,` or `}`");
        assert_eq!((error.line(), error.offset()), (Some(3), Some(FileOffset::new(9))));
    }

    #[test]
    fn a_place_past_the_end_is_the_end() {
        assert_eq!(Error::new(ErrorKind::Malformed, "x").at(b"a\nb", 99).line(), Some(2));
    }
}
