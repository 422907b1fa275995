//! The writer of everything that people read.
//!
//! What is put in comes out as one line without any character that a terminal obeys, whoever chose it. Line ends and
//! colours are methods of the writer, so that no text can bring its own.

use backtrail_render::escape::{escaped, escaped_bytes, is_printable_ascii, shortened};
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

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

/// What becomes of text that others chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escaping {
    /// Escaped, and names of many thousand characters are cut.
    Short,
    /// Escaped, and whole.
    Whole,
    /// As it is: the output of tools that the program runs as, for programs that read it.
    None,
}

/// How text is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) coloured: bool,
    pub(crate) escaping: Escaping,
}

impl Style {
    /// For people, without colours.
    pub(crate) const PLAIN: Self = Self { coloured: false, escaping: Escaping::Short };
}

/// Writes text to people.
pub(crate) struct Text<'a> {
    out: &'a mut dyn Write,
    style: Style,
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("style", &self.style).finish_non_exhaustive()
    }
}

impl<'a> Text<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, style: Style) -> Self {
        Self { out, style }
    }

    /// Adds to the line.
    pub(crate) fn put(&mut self, text: impl Display) -> io::Result<()> {
        let mut pieces = Pieces { text: self, error: None };
        match write!(pieces, "{text}") {
            Ok(()) => Ok(()),
            Err(_) => Err(pieces.error.unwrap_or_else(|| io::Error::other("the text cannot be formatted"))),
        }
    }

    /// The same, for text that is at hand; quicker.
    pub(crate) fn put_str(&mut self, text: &str) -> io::Result<()> {
        match self.style.escaping {
            Escaping::None => self.out.write_all(text.as_bytes()),
            Escaping::Whole if is_printable_ascii(text.as_bytes()) => self.out.write_all(text.as_bytes()),
            Escaping::Whole => self.out.write_all(escaped(text).as_bytes()),
            Escaping::Short => {
                let text = shortened(text);
                self.out.write_all(escaped(&text).as_bytes())
            }
        }
    }

    /// Adds bytes that need not be UTF-8.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.style.escaping {
            Escaping::None => self.out.write_all(bytes),
            Escaping::Short | Escaping::Whole => self.put_str(&escaped_bytes(bytes)),
        }
    }

    /// Adds lines that the text itself has, each escaped.
    pub(crate) fn put_lines(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => {
                    self.put_bytes(line)?;
                    self.end()?;
                }
                None => self.put_bytes(line)?,
            }
        }
        Ok(())
    }

    /// Adds to the line in that look.
    pub(crate) fn paint(&mut self, look: Look, text: impl Display) -> io::Result<()> {
        if !self.style.coloured {
            return self.put(text);
        }
        write!(self.out, "\x1b[{}m", look.code())?;
        self.put(text)?;
        self.out.write_all(b"\x1b[0m")
    }

    /// Ends the line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")
    }

    /// Parts two columns, for programs that cut lines at tabs: no text has any, escaped as it is.
    pub(crate) fn tab(&mut self) -> io::Result<()> {
        self.out.write_all(b"\t")
    }

    /// Adds to the line and ends it.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.put(text)?;
        self.end()
    }

    /// Adds to the line in that look and ends it.
    pub(crate) fn painted_line(&mut self, look: Look, text: impl Display) -> io::Result<()> {
        self.paint(look, text)?;
        self.end()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Takes what formatting gives, and keeps the error that `fmt` has no place for.
struct Pieces<'t, 'a> {
    text: &'t mut Text<'a>,
    error: Option<io::Error>,
}

impl fmt::Write for Pieces<'_, '_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.text.put_str(piece).map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(style: Style, write: impl Fn(&mut Text<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Text::new(&mut out, style)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_brings_no_lines_and_no_colours() {
        let style = Style { coloured: true, ..Style::PLAIN };
        let shown = written(style, |text| {
            text.paint(Look::Bad, format_args!("{}\n", "a\x1b[0m"))?;
            text.line(format_args!("{:<6}|", "b\u{202e}"))
        });
        assert_eq!(shown, "\x1b[31ma\\u{1b}[0m\\n\x1b[0mb\\u{202e}    |\n");
    }

    #[test]
    fn other_tools_bytes_stay_but_for_terminals() {
        let lines = |text: &mut Text<'_>| text.put_lines(b"a\xff\x1b\nb");
        let mut raw = Vec::new();
        lines(&mut Text::new(&mut raw, Style { coloured: false, escaping: Escaping::None })).unwrap();
        assert_eq!(raw, b"a\xff\x1b\nb");
        let shown = written(Style { coloured: false, escaping: Escaping::Whole }, lines);
        assert_eq!(shown, "a\\xff\\u{1b}\nb");
    }

    #[test]
    fn an_error_of_the_output_is_handed_on() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = Text::new(&mut Full, Style::PLAIN).line(format_args!("{}", 1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
