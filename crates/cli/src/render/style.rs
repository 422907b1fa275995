//! Colour on a terminal, nothing elsewhere.

use std::borrow::Cow;
use std::fmt::{self, Display};

/// Which look a piece of text gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Title,
    Heading,
    Strong,
    Faint,
    Bad,
}

impl Look {
    /// The ANSI parameters (ECMA-48 SGR).
    fn code(self) -> &'static str {
        match self {
            Self::Title => "1;31",
            Self::Heading => "1;4",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Bad => "31",
        }
    }
}

/// A text that others chose, as one line without control characters: a process may call itself, its threads and its files
/// whatever it likes, also what a terminal takes for a command.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |letter: char| {
        let escaped = letter.is_control().then(|| letter.escape_default());
        let kept = escaped.is_none().then_some(letter);
        escaped.into_iter().flatten().chain(kept)
    };
    Cow::Owned(text.chars().flat_map(shown).collect())
}

/// Whether to colour at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) coloured: bool,
}

impl Style {
    /// `text` in that look.
    pub(crate) fn paint<T: Display>(self, look: Look, text: T) -> Painted<T> {
        Painted { text, code: self.coloured.then(|| look.code()) }
    }
}

/// A text with its look.
pub(crate) struct Painted<T> {
    text: T,
    code: Option<&'static str>,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "\x1b[{code}m{}\x1b[0m", self.text),
            None => self.text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(plain("a\nb\x1b[2J\u{9b}1m\tc\r"), r"a\nb\u{1b}[2J\u{9b}1m\tc\r");
        assert!(matches!(plain("größer \\ 'x'"), Cow::Borrowed("größer \\ 'x'")));
    }
}
