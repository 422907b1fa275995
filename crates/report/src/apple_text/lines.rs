//! The lines of a text report, each with its place in the input.

use crate::text::lossy;
use std::borrow::Cow;
use std::ops::Range;

/// One line, without its line break.
#[derive(Clone, Debug)]
pub(crate) struct Line<'d> {
    /// Counted from 1, over the whole input.
    pub(crate) number: u64,
    /// Where it stands in the input.
    pub(crate) span: Range<usize>,
    pub(crate) bytes: &'d [u8],
}

impl<'d> Line<'d> {
    /// The line as text; bytes that are no UTF-8 become U+FFFD.
    pub(crate) fn text(&self) -> Cow<'d, str> {
        lossy(self.bytes)
    }
}

/// Goes through the lines of a part of the input. `\n` and `\r\n` end a line.
#[derive(Debug)]
pub(crate) struct Lines<'d> {
    input: &'d [u8],
    at: usize,
    end: usize,
    number: u64,
}

impl<'d> Lines<'d> {
    /// The lines of `part`, of which the first has that number.
    pub(crate) fn new(input: &'d [u8], part: Range<usize>, first: u64) -> Self {
        let end = part.end.min(input.len());
        Self { input, at: part.start.min(end), end, number: first }
    }
}

impl<'d> Iterator for Lines<'d> {
    type Item = Line<'d>;

    fn next(&mut self) -> Option<Line<'d>> {
        if self.at >= self.end {
            return None;
        }
        let rest = self.input.get(self.at..self.end)?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let bytes = rest.get(..length)?;
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let line = Line { number: self.number, span: self.at..self.at + bytes.len(), bytes };
        self.at += length + 1;
        self.number += 1;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_place_whatever_ends_them() {
        let input = b"skip\none\r\n\ntwo\xff";
        let lines: Vec<_> = Lines::new(input, 5..input.len(), 2).collect();
        assert_eq!(lines.iter().map(|l| l.number).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(lines.iter().map(|l| l.bytes).collect::<Vec<_>>(), [&b"one"[..], b"", b"two\xff"]);
        assert!(lines.iter().all(|l| &input[l.span.clone()] == l.bytes));
        assert_eq!(lines[2].text(), "two\u{fffd}");
        assert_eq!(Lines::new(b"", 0..9, 1).count(), 0);
    }
}
