//! The output limit, and where a text that is too long is cut.

use alloc::string::String;
use core::fmt;

/// What a cut text ends in.
const ELLIPSIS: &str = "...";

/// How far back from the limit a readable place to cut is looked for.
const LOOK_BACK: usize = 64;

/// A writer that stops at a number of bytes.
///
/// The write that goes over the limit is written as far as it fits and answered with an error; so is every later one.
/// A scheme's printer passes that on as [`Failed::Full`](crate::error::Failed::Full), which also ends an expansion
/// that would grow without bound.
#[derive(Debug)]
pub(crate) struct Limited<W> {
    out: W,
    left: usize,
    full: bool,
    is_empty: bool,
}

impl<W: fmt::Write> Limited<W> {
    pub(crate) fn new(out: W, limit: usize) -> Self {
        Limited { out, left: limit, full: false, is_empty: true }
    }

    /// True while nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

impl<W: fmt::Write> fmt::Write for Limited<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.is_empty &= text.is_empty();
        if self.full {
            return Err(fmt::Error);
        }
        if let Some(left) = self.left.checked_sub(text.len()) {
            self.left = left;
            return self.out.write_str(text);
        }
        self.full = true;
        self.out.write_str(floor(text, self.left))?;
        Err(fmt::Error)
    }
}

/// Cuts a text that reached the limit in a readable place, so that it ends in `...` and is no longer than `limit`.
///
/// Readable: behind a separator (`, `, `<`, `(`, `::`) rather than within an identifier, if there is one nearby.
pub(crate) fn cut(text: &mut String, limit: usize) {
    let Some(room) = limit.checked_sub(ELLIPSIS.len()) else {
        text.truncate(floor(text, limit).len());
        return;
    };
    let head = floor(text, room);
    let from = floor(text, head.len().saturating_sub(LOOK_BACK)).len();
    let near = head.get(from..).unwrap_or_default();
    let end = near.rfind([' ', '<', '(', ':', ',']).map_or(head.len(), |at| from + at + 1);
    text.truncate(end);
    text.push_str(ELLIPSIS);
}

/// The longest beginning of `text` that has at most `len` bytes.
pub(crate) fn floor(text: &str, len: usize) -> &str {
    (0..=len.min(text.len())).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write as _;

    #[test]
    fn stops_at_the_limit_on_a_character() {
        let mut text = String::new();
        let mut out = Limited::new(&mut text, 4);
        assert!(out.write_str("ab").is_ok());
        assert!(out.write_str("c\u{e9}").is_err());
        assert!(out.write_str("").is_err());
        assert_eq!(text, "abc");
    }

    #[test]
    fn cuts_behind_a_separator() {
        for (text, limit, expected) in [
            ("std::vector<int, std::allo", 26, "std::vector<int, std::..."),
            ("std::vector<int, std::allo", 16, "std::vector<..."),
            ("identifier", 8, "ident..."),
            ("identifier", 2, "id"),
            ("\u{e9}\u{e9}\u{e9}", 6, "\u{e9}..."),
        ] {
            let mut cutting = String::from(text);
            cut(&mut cutting, limit);
            assert_eq!(cutting, expected);
            assert!(cutting.len() <= limit);
        }
    }
}
