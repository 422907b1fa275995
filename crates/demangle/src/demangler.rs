//! From a name to its readable form, whatever the scheme.

use crate::detect::{scheme_marked, unescaped};
use crate::error::{Error, ErrorKind, Failed};
use crate::limited::{self, Limited};
use crate::{Options, Scheme, Underscore, d, itanium, msvc, objc, rust, suffix, swift};
use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::{self, Write as _};

/// Makes many names readable, one after the other, in buffers that are kept.
#[derive(Debug, Default)]
pub struct Demangler {
    text: String,
    itanium: itanium::Scratch,
    swift: swift::Scratch,
}

impl Demangler {
    /// A demangler with empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Demangler::default()
    }

    /// The readable form of `name`; the text is valid until the next call.
    ///
    /// # Errors
    ///
    /// The name is of no known scheme, breaks its scheme's grammar, or is too complex.
    pub fn demangle(&mut self, name: &str, options: &Options) -> Result<&str, Error> {
        if options.scheme.is_some() || options.underscore != Underscore::Either {
            return self.demangle_restricted(name, options);
        }
        self.demangle_any(name, options)
    }

    /// Reads the name if it is of the right scheme and has the right underscores.
    fn demangle_restricted(&mut self, name: &str, options: &Options) -> Result<&str, Error> {
        let not_mangled = Error::new(ErrorKind::NotMangled, 0);
        let body = match options.underscore {
            Underscore::Present => name.strip_prefix('_').ok_or(not_mangled)?,
            Underscore::Either | Underscore::Absent => name,
        };
        if options.underscore != Underscore::Either && has_extra_underscore(body) {
            return Err(not_mangled);
        }
        let has_mark = suffix::has_mark(body);
        let result = match (scheme_marked(body, has_mark), options.scheme) {
            (Some(found), Some(wanted)) if found == wanted => {
                self.demangle_as(found, body, has_mark, options)
            }
            // Rust's legacy names are C++ names, if one wants them to be.
            (Some(Scheme::Rust), Some(Scheme::Itanium)) if rust::is_legacy(body) => {
                self.demangle_as(Scheme::Itanium, body, has_mark, options)
            }
            (Some(_), Some(_)) => return Err(not_mangled),
            _ => self.demangle_any(body, options),
        };
        result.map_err(|error| error.moved(name.len() - body.len()))
    }

    fn demangle_any(&mut self, name: &str, options: &Options) -> Result<&str, Error> {
        let has_mark = suffix::has_mark(name);
        match scheme_marked(name, has_mark) {
            Some(scheme) => self.demangle_as(scheme, name, has_mark, options),
            None => self.demangle_type(name, options),
        }
    }

    fn demangle_as(
        &mut self,
        scheme: Scheme,
        name: &str,
        has_mark: bool,
        options: &Options,
    ) -> Result<&str, Error> {
        // An `@` is a letter like any other in Microsoft's names.
        let may_have_version = has_mark && scheme != Scheme::Msvc;
        let (body, version) = if may_have_version { suffix::split_version(name) } else { (name, "") };
        let body = unescaped(body);
        self.text.clear();
        let result = self.read(scheme, body, options).and_then(|()| {
            if version.is_empty() {
                return Ok(());
            }
            let room = options.max_len.saturating_sub(self.text.len());
            Limited::new(&mut self.text, room).write_str(version).map_err(Failed::from)
        });
        let escape_len = name.len() - unescaped(name).len();
        match result {
            Err(Failed::Invalid(offset)) => return Err(Error::new(ErrorKind::Invalid, escape_len + offset)),
            Err(Failed::TooComplex(offset)) => {
                return Err(Error::new(ErrorKind::TooComplex, escape_len + offset));
            }
            Err(Failed::Unsupported) => return Err(Error::new(ErrorKind::Unsupported, 0)),
            Err(Failed::Full) => limited::cut(&mut self.text, options.max_len),
            Ok(()) => {}
        }
        Ok(&self.text)
    }

    /// A C++ type, if the options ask for that.
    fn demangle_type(&mut self, name: &str, options: &Options) -> Result<&str, Error> {
        self.text.clear();
        if options.types && itanium::demangle_type(name, options, &mut self.itanium, &mut self.text).is_ok() {
            return Ok(&self.text);
        }
        Err(Error::new(ErrorKind::NotMangled, 0))
    }

    /// Gives the name to the module of its scheme.
    fn read(&mut self, scheme: Scheme, name: &str, options: &Options) -> Result<(), Failed> {
        match scheme {
            Scheme::Itanium => itanium::demangle(name, options, &mut self.itanium, &mut self.text),
            Scheme::Swift => swift::demangle(name, options, &mut self.swift, &mut self.text),
            Scheme::Rust => rust::demangle(name, options, &mut Limited::new(&mut self.text, options.max_len)),
            Scheme::ObjC => objc::demangle(name, &mut Limited::new(&mut self.text, options.max_len)),
            Scheme::D => d::demangle(name, options, &mut Limited::new(&mut self.text, options.max_len)),
            Scheme::Msvc => msvc::demangle(name, options, &mut Limited::new(&mut self.text, options.max_len)),
        }
    }

    /// As [`demangle`](Self::demangle), written to `out` in one piece; nothing is written on an error.
    ///
    /// # Errors
    ///
    /// As [`demangle`](Self::demangle), or `out` refused the text.
    pub fn demangle_to(
        &mut self,
        name: &str,
        options: &Options,
        out: &mut dyn fmt::Write,
    ) -> Result<(), Error> {
        let text = self.demangle(name, options)?;
        out.write_str(text).map_err(|_| Error::new(ErrorKind::Output, 0))
    }
}

/// Whether a name has one underscore more than its scheme writes: `__Z1fv`, `_$s4main`. A block's `___Z` has none.
fn has_extra_underscore(name: &str) -> bool {
    name.starts_with("_$") || (name.starts_with("__") && !name.starts_with("___Z"))
}

/// The readable form of `name`, or `name` itself when it is not mangled or not valid.
#[must_use]
pub fn demangle<'n>(name: &'n str, options: &Options) -> Cow<'n, str> {
    let mut demangler = Demangler::new();
    match demangler.demangle(name, options) {
        Ok(_) => Cow::Owned(demangler.text),
        Err(_) => Cow::Borrowed(name),
    }
}

/// Writes the readable form of `name` to `out` in one piece; nothing is written on an error.
///
/// # Errors
///
/// The name is of no known scheme, breaks its scheme's grammar or is too complex, or `out` refused the text.
pub fn demangle_to(name: &str, options: &Options, out: &mut dyn fmt::Write) -> Result<(), Error> {
    Demangler::new().demangle_to(name, options, out)
}

#[cfg(test)]
mod tests {
    use crate::{Options, Scheme, SwiftStyle, Underscore, demangle};

    #[test]
    fn underscores() {
        let f = "f()";
        for (name, either, present, absent) in [
            ("_Z1fv", f, "_Z1fv", f),
            ("__Z1fv", f, f, "__Z1fv"),
            ("___Z1fv", "___Z1fv", "___Z1fv", "___Z1fv"),
            ("_$s1a1fyyF", "a.f() -> ()", "a.f() -> ()", "_$s1a1fyyF"),
            ("$s1a1fyyF", "a.f() -> ()", "$s1a1fyyF", "a.f() -> ()"),
            ("__RNvC6_123foo3bar", "123foo::bar", "123foo::bar", "__RNvC6_123foo3bar"),
        ] {
            for (underscore, expected) in
                [(Underscore::Either, either), (Underscore::Present, present), (Underscore::Absent, absent)]
            {
                let options = Options { underscore, ..Options::default() };
                assert_eq!(demangle(name, &options), expected, "{underscore:?}");
            }
        }
    }

    #[test]
    fn one_scheme_only() {
        let options = Options { scheme: Some(Scheme::Rust), ..Options::default() };
        assert_eq!(demangle("_Z1fv", &options), "_Z1fv");
        assert_eq!(demangle("_RNvC6_123foo3bar", &options), "123foo::bar");
        let legacy = "_ZN1a1b17h0a1b2c3d4e5f6071E";
        assert_eq!(demangle(legacy, &options), "a::b");
        let options = Options { scheme: Some(Scheme::Itanium), ..Options::default() };
        assert_eq!(demangle(legacy, &options), "a::b::h0a1b2c3d4e5f6071");
        assert_eq!(demangle("_RNvC6_123foo3bar", &options), "_RNvC6_123foo3bar");
    }

    #[test]
    fn sugar() {
        let options = |sugar| Options { sugar, swift: SwiftStyle::Simplified, ..Options::default() };
        let name = "$s1a1fyySaySiSgGF";
        assert_eq!(demangle(name, &options(true)), "f(_:)");
        let full = |sugar| Options { sugar, ..Options::default() };
        assert_eq!(demangle(name, &full(true)), "a.f([Swift.Int?]) -> ()");
        assert_eq!(demangle(name, &full(false)), "a.f(Swift.Array<Swift.Optional<Swift.Int>>) -> ()");
    }
}
