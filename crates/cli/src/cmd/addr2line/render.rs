//! GNU's form of an answer.

use super::gnu;
use crate::io::text::Text;
use backtrail::demangle::{Options, demangle};
use backtrail::{Details, Function, Svma, SymbolInfo};
use std::borrow::Cow;
use std::io;

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
    pub(crate) fn address(&self, out: &mut Text<'_>, address: Svma) -> io::Result<()> {
        if !self.addresses {
            return Ok(());
        }
        out.put(format_args!("0x{:0width$x}", address.get(), width = self.digits))?;
        if self.pretty { out.put_str(": ") } else { out.end() }
    }

    /// What lies there.
    pub(crate) fn answer(
        &self,
        out: &mut Text<'_>,
        located: &SymbolInfo,
        details: &Details,
    ) -> io::Result<()> {
        if located.is_unknown() {
            return self.unknown(out);
        }
        if let Some(symbol) = &located.symbol {
            let name = symbol.linkage_name.as_deref().unwrap_or(&symbol.name);
            self.function(out, name)?;
            return out.line(format_args!("{}:?", details.symbol_source.as_deref().unwrap_or("??")));
        }
        let shown = if self.inlines { located.functions.len() } else { 1 };
        for (position, function) in located.functions.iter().take(shown).enumerate() {
            if self.pretty && position > 0 {
                out.put_str(" (inlined by) ")?;
            }
            self.function(out, linkage_name(function))?;
            self.place(out, function, details.discriminator)?;
        }
        Ok(())
    }

    fn unknown(&self, out: &mut Text<'_>) -> io::Result<()> {
        match (self.functions, self.pretty) {
            (false, _) => out.line("??:0"),
            (true, false) => out.line("??").and_then(|()| out.line("??:0")),
            (true, true) => out.line("?? ??:0"),
        }
    }

    fn function(&self, out: &mut Text<'_>, name: &str) -> io::Result<()> {
        if !self.functions {
            return Ok(());
        }
        let name = match name {
            "" => Cow::Borrowed("??"),
            name if self.demangles => readable(name),
            name => Cow::Borrowed(name),
        };
        out.put_str(&name)?;
        if self.pretty { out.put_str(" at ") } else { out.end() }
    }

    /// GNU shows the discriminator of the address with every function of the chain, callers included.
    fn place(&self, out: &mut Text<'_>, function: &Function, discriminator: u32) -> io::Result<()> {
        let file = function.file.as_deref().unwrap_or("??");
        let name = file.rsplit('/').next().filter(|_| self.basenames);
        out.put(format_args!("{}:", name.unwrap_or(file)))?;
        match (function.line, discriminator) {
            (None, _) => out.line("?"),
            (Some(line), 0) => out.line(line),
            (Some(line), discriminator) => out.line(format_args!("{line} (discriminator {discriminator})")),
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
