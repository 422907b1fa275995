//! Colour on a terminal, nothing elsewhere.

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
