//! Any text with names in it.

use crate::{Demangler, Options, suffix};
use core::fmt;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'t> {
    /// What cannot be a name.
    Text(&'t str),
    /// What could be one, mangled or not.
    Word(&'t str),
}

/// Parts a text into words, which could be names, and what is between them; together they are the text.
///
/// A word is what letters, digits, `_`, `$` and `.` make up; a symbol version (`@GLIBC_2.2`) stays behind it. A dot
/// that ends a sentence is no part of a word.
#[must_use]
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { rest: text }
}

/// What [`pieces`] gives.
#[derive(Debug, Clone)]
pub struct Pieces<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let start = self.rest.find(starts_name).unwrap_or(self.rest.len());
        let len = if start == 0 { name_len(self.rest) } else { start };
        let (piece, rest) = self.rest.split_at_checked(len).filter(|(piece, _)| !piece.is_empty())?;
        self.rest = rest;
        Some(if start == 0 { Piece::Word(piece) } else { Piece::Text(piece) })
    }
}

impl Demangler {
    /// Writes `text` with each mangled name in it replaced by its readable form, as `c++filt` and `swift demangle` do
    /// with what they read; everything else is written as it is. What can be a name, [`pieces`] says.
    ///
    /// # Errors
    ///
    /// `out` refused the text.
    pub fn replace_names(&mut self, text: &str, options: &Options, out: &mut dyn fmt::Write) -> fmt::Result {
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.write_str(text)?,
                Piece::Word(word) => out.write_str(self.demangle(word, options).unwrap_or(word))?,
            }
        }
        Ok(())
    }
}

fn starts_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '@' | '?')
}

/// How much of the text, which starts like a name, is one.
fn name_len(text: &str) -> usize {
    // Microsoft's names have more letters; so has the prefix of what Swift's macros make.
    let prefix = if text.starts_with(suffix::SWIFT_MACRO) { suffix::SWIFT_MACRO.len() } else { 0 };
    let is_microsoft = text.starts_with('?');
    let is_part = |letter: char| {
        // Compilers leave letters of other scripts as they are.
        letter.is_alphanumeric()
            || matches!(letter, '_' | '$' | '.')
            || is_microsoft && matches!(letter, '@' | '?' | '<' | '>')
    };
    let rest = text.get(prefix..).unwrap_or_default();
    let len = prefix + rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    let name = text.get(..len).unwrap_or_default();
    // At least what was found to start it.
    let least = text.chars().next().map_or(0, char::len_utf8);
    name.trim_end_matches('.').len().max(least)
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};
    use crate::{Demangler, Options};
    use alloc::string::String;

    fn replaced(text: &str, options: &Options) -> String {
        let mut out = String::new();
        Demangler::new().replace_names(text, options, &mut out).unwrap();
        out
    }

    #[test]
    fn names_in_text() {
        let options = Options::default();
        for (text, expected) in [
            ("", ""),
            ("nothing here, _Zqq or $", "nothing here, _Zqq or $"),
            ("0x10 <_Z1fv+16> call _Z1gi@plt", "0x10 <f()+16> call g(int)@plt"),
            ("in _Z1fv. Then (_Z1gi), \u{201c}_Z1hv\u{201d}", "in f(). Then (g(int)), \u{201c}h()\u{201d}"),
            ("_Z1fv.cold.1: _Z1gi@@V_1.2;", "f() (.cold.1): g(int)@@V_1.2;"),
            ("U _RNvC6_123foo3bar\n\tT __Z1fv\r\n", "U 123foo::bar\n\tT f()\r\n"),
            ("_Z1fv _Z1fv\u{0}_Z1fv", "f() f()\u{0}f()"),
            ("a@b.c _Z @ ? ...", "a@b.c _Z @ ? ..."),
            ("_Z2\u{e9}v \u{e9}_Z1fv", "\u{e9}() \u{e9}f()"),
        ] {
            assert_eq!(replaced(text, &options), expected);
        }
    }

    #[test]
    fn pieces_are_the_text() {
        for text in ["", "a", " ", "_Z1fv, \u{1f600}x.y. @?$", "..", "?f@@YAXXZ?", "\u{e9}"] {
            let parts = pieces(text).map(|piece| match piece {
                Piece::Text(part) | Piece::Word(part) => part,
            });
            assert_eq!(parts.collect::<String>(), text);
        }
        assert!(pieces("f(_Z1gv).").eq([
            Piece::Word("f"),
            Piece::Text("("),
            Piece::Word("_Z1gv"),
            Piece::Text(")."),
        ]));
    }

    #[test]
    fn types_if_asked_for() {
        let options = Options { types: true, ..Options::default() };
        assert_eq!(
            replaced("St6vectorIiSaIiEE, PKc; _Z1fv", &options),
            "std::vector<int, std::allocator<int>>, char const*; f()"
        );
        assert_eq!(replaced("hello", &options), "hello");
    }
}
