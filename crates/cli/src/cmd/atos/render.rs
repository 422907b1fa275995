//! The form of atos' answers.
//!
//! atos has no Linux build to compare with. The forms are those of its manual page, of Apple's "Adding identifiable
//! symbol names to a crash report", and of outputs recorded on macOS 26.5.2 that several projects keep as test data.

use crate::io::text::Text;
use backtrail::demangle::{Options, SwiftStyle, demangle};
use backtrail::{Function, Symbol, SymbolInfo};
use std::borrow::Cow;
use std::io;

/// What is shown of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    /// The image's name.
    pub(crate) image: &'a str,
    pub(crate) inlines: bool,
    pub(crate) full_path: bool,
    pub(crate) delimiter: &'a str,
}

impl Form<'_> {
    /// One answer. `typed` is the address as the user gave it, `address` its value, `is_inside` tells whether the
    /// image has it.
    pub(crate) fn answer(
        &self,
        out: &mut Text<'_>,
        located: &SymbolInfo,
        (typed, address): (&str, u64),
        is_inside: bool,
    ) -> io::Result<()> {
        match (located.functions.as_slice(), &located.symbol) {
            ([], None) if !is_inside => out.line(typed)?,
            ([], None) => self.nameless(out, located, address)?,
            ([], Some(symbol)) => {
                out.line(format_args!("{} (in {}) + {}", symbol_name(symbol), self.image, symbol.offset))?;
            }
            (functions, _) => self.functions(out, functions, located.function_offset)?,
        }
        if self.inlines { out.end() } else { Ok(()) }
    }

    /// The address with eight digits or sixteen, and how far into a function it lies if that is known.
    fn nameless(&self, out: &mut Text<'_>, located: &SymbolInfo, address: u64) -> io::Result<()> {
        let digits = if address > u64::from(u32::MAX) { 16 } else { 8 };
        out.put(format_args!("0x{address:0digits$x} (in {})", self.image))?;
        match located.function_offset {
            Some(offset) => out.line(format_args!(" + {offset}")),
            None => out.end(),
        }
    }

    /// The function that the code belongs to; if asked for, those that were inlined there before it.
    fn functions(&self, out: &mut Text<'_>, functions: &[Function], offset: Option<u64>) -> io::Result<()> {
        let first = if self.inlines { 0 } else { functions.len() - 1 };
        for (position, function) in functions.iter().skip(first).enumerate() {
            if position > 0 {
                // Whoever called chose it, line ends and all.
                out.put_lines(self.delimiter.as_bytes())?;
            }
            out.put(format_args!("{} (in {})", function_name(function), self.image))?;
            match (&function.file, offset) {
                (Some(file), _) => {
                    let name = if self.full_path { file } else { file_name(file) };
                    out.put(format_args!(" ({name}:{})", function.line.unwrap_or(0)))?;
                }
                (None, Some(offset)) => out.put(format_args!(" + {offset}"))?,
                (None, None) => {}
            }
        }
        out.end()
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn function_name(function: &Function) -> Cow<'_, str> {
    match &function.linkage_name {
        Some(name) if is_swift(name) => short(name),
        _ => Cow::Borrowed(&function.name),
    }
}

fn symbol_name(symbol: &Symbol) -> Cow<'_, str> {
    match &symbol.linkage_name {
        Some(name) if is_swift(name) => short(name),
        _ => Cow::Borrowed(&symbol.name),
    }
}

fn is_swift(name: &str) -> bool {
    ["$s", "$S", "_$s", "_$S", "_T"].iter().any(|prefix| name.starts_with(prefix))
}

/// Swift names in the short form: `View.makeView(view:inputs:)`.
fn short(name: &str) -> Cow<'_, str> {
    let mut options = Options::default();
    options.swift = SwiftStyle::Simplified;
    demangle(name, &options)
}
