//! From a name to its readable form, whatever the scheme.

use crate::error::{Error, ErrorKind, Failed};
use crate::limited::{self, Limited};
use crate::scheme::{Scheme, scheme, unescaped};
use crate::{Options, objc, rust, suffix, swift};
use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

/// Makes many names readable, one after the other, in buffers that are kept.
#[derive(Debug, Default)]
pub struct Demangler {
    text: String,
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
        let scheme = scheme(name).ok_or(Error::new(ErrorKind::NotMangled, 0))?;
        let (body, version) = suffix::split_version(name);
        self.text.clear();
        let mut out = Limited::new(&mut self.text, options.max_len);
        let body_start = name.len() - unescaped(name).len();
        let mut result = read(scheme, unescaped(body), options, &mut self.swift, &mut out);
        if result.is_ok() {
            result = fmt::Write::write_str(&mut out, version).map_err(Failed::from);
        }
        let is_full = out.is_full();
        match result {
            Err(Failed::Invalid(offset)) => Err(Error::new(ErrorKind::Invalid, body_start + offset)),
            Err(Failed::TooComplex(offset)) => Err(Error::new(ErrorKind::TooComplex, body_start + offset)),
            Ok(()) | Err(Failed::Full) => {
                if is_full {
                    limited::cut(&mut self.text, options.max_len);
                }
                Ok(&self.text)
            }
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

/// Gives the name to the module of its scheme.
fn read<W: fmt::Write>(
    scheme: Scheme,
    name: &str,
    options: &Options,
    swift: &mut swift::Scratch,
    out: &mut Limited<W>,
) -> Result<(), Failed> {
    match scheme {
        Scheme::Rust => rust::demangle(name, out),
        Scheme::ObjC => objc::demangle(name, out),
        Scheme::Swift => swift::demangle(name, options, swift, out),
        Scheme::Itanium => Err(Failed::Invalid(0)),
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
