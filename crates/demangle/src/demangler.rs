//! From a name to its readable form, whatever the scheme.

use crate::error::{Error, ErrorKind, Failed};
use crate::limited::{self, Limited};
use crate::scheme::{Scheme, scheme_marked, unescaped};
use crate::{Options, d, itanium, msvc, objc, rust, suffix, swift};
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
        let has_mark = suffix::has_mark(name);
        let Some(scheme) = scheme_marked(name, has_mark) else { return self.demangle_type(name, options) };
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
