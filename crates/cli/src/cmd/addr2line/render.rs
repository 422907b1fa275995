//! GNU's form of an answer.

use super::gnu;
use backtrail::demangle::{Options, demangle};
use backtrail::{Details, Function, SymbolInfo, Svma};
use std::borrow::Cow;
use std::io::{self, Write};

/// What is shown of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) addresses: bool,
    pub(crate) functions: bool,
    pub(crate) inlines: bool,
    pub(crate) pretty: bool,
    pub(crate) basenames: bool,
    pub(crate) demangles: bool,
    /// Hexadecimal digits of an address.
    pub(crate) digits: usize,
}

impl Form {
    /// The address itself, where it is asked for.
    pub(crate) fn address(&self, out: &mut dyn Write, address: Svma) -> io::Result<()> {
        if !self.addresses {
            return Ok(());
        }
        let end = if self.pretty { ": " } else { "\n" };
        write!(out, "0x{:0width$x}{end}", address.get(), width = self.digits)
    }

    /// What lies there.
    pub(crate) fn answer(&self, out: &mut dyn Write, located: &SymbolInfo, details: &Details) -> io::Result<()> {
        if located.is_unknown() {
            return self.unknown(out);
        }
        if let Some(symbol) = &located.symbol {
            let name = symbol.linkage_name.as_deref().unwrap_or(&symbol.name);
            self.function(out, name)?;
            return writeln!(out, "{}:?", details.symbol_source.as_deref().unwrap_or("??"));
        }
        let shown = if self.inlines { located.functions.len() } else { 1 };
        for (position, function) in located.functions.iter().take(shown).enumerate() {
            if self.pretty && position > 0 {
                write!(out, " (inlined by) ")?;
            }
            self.function(out, linkage_name(function))?;
            self.place(out, function, details.discriminator)?;
        }
        Ok(())
    }

    fn unknown(&self, out: &mut dyn Write) -> io::Result<()> {
        match (self.functions, self.pretty) {
            (false, _) => writeln!(out, "??:0"),
            (true, false) => writeln!(out, "??\n??:0"),
            (true, true) => writeln!(out, "?? ??:0"),
        }
    }

    fn function(&self, out: &mut dyn Write, name: &str) -> io::Result<()> {
        if !self.functions {
            return Ok(());
        }
        let name = match name {
            "" => Cow::Borrowed("??"),
            name if self.demangles => readable(name),
            name => Cow::Borrowed(name),
        };
        write!(out, "{name}{}", if self.pretty { " at " } else { "\n" })
    }

    /// GNU shows the discriminator of the address with every function of the chain, callers included.
    fn place(&self, out: &mut dyn Write, function: &Function, discriminator: u32) -> io::Result<()> {
        let file = function.file.as_deref().unwrap_or("??");
        let name = file.rsplit('/').next().filter(|_| self.basenames);
        write!(out, "{}:", name.unwrap_or(file))?;
        match (function.line, discriminator) {
            (None, _) => writeln!(out, "?"),
            (Some(line), 0) => writeln!(out, "{line}"),
            (Some(line), discriminator) => writeln!(out, "{line} (discriminator {discriminator})"),
        }
    }
}

/// GNU's tools show what the linker sees.
fn linkage_name(function: &Function) -> &str {
    function.linkage_name.as_deref().unwrap_or(&function.name)
}

/// The readable name, spelled as GNU's demangler does it where that is a matter of taste.
fn readable(name: &str) -> Cow<'_, str> {
    // GNU knows the older form `_GLOBAL__I_` only.
    if name.starts_with("_GLOBAL__sub_") {
        return Cow::Borrowed(name);
    }
    let mut options = Options::default();
    options.local_return_types = false;
    match demangle(name, &options) {
        Cow::Owned(readable) => Cow::Owned(gnu::spelled(&readable)),
        unchanged => unchanged,
    }
}
