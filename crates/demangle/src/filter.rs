//! Any text with names in it.

use crate::{Demangler, Options, suffix};
use core::fmt;

impl Demangler {
    /// Writes `text` with each mangled name in it replaced by its readable form, as `c++filt` and `swift demangle` do
    /// with what they read; everything else is written as it is.
    ///
    /// A name is what letters, digits, `_`, `$` and `.` make up; a symbol version (`@GLIBC_2.2`) stays behind it. A dot
    /// that ends a sentence is no part of a name.
    ///
    /// # Errors
    ///
    /// `out` refused the text.
    pub fn replace_names(&mut self, text: &str, options: &Options, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut rest = text;
        while let Some(start) = rest.find(starts_name) {
            let (before, from_name) = rest.split_at_checked(start).unwrap_or((rest, ""));
            out.write_str(before)?;
            let len = name_len(from_name);
            let (name, behind) = from_name.split_at_checked(len).unwrap_or((from_name, ""));
            match self.demangle(name, options) {
                Ok(readable) => out.write_str(readable)?,
                Err(_) => out.write_str(name)?,
            }
            rest = behind;
        }
        out.write_str(rest)
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
        letter.is_ascii_alphanumeric()
            || matches!(letter, '_' | '$' | '.')
            || is_microsoft && matches!(letter, '@' | '?' | '<' | '>')
    };
    let rest = text.get(prefix..).unwrap_or_default();
    let len = prefix + rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    let name = text.get(..len).unwrap_or_default();
    // At least what was found to start it.
    name.trim_end_matches('.').len().max(1)
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(replaced(text, &options), expected);
        }
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
