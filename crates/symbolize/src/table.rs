//! Answers out of a table, in the words of lookups from debug info.

use backtrail_core::{Function, Reason, Svma, Symbol};
use backtrail_demangle::{Options, demangle};
use backtrail_table::{Frame, Lookup, Table};
use std::borrow::Cow;

/// What a table knows of one address: the same that [`Symbolizer::lookup`](crate::Symbolizer::lookup) answers from the
/// files that the table was made from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableAnswer {
    /// The functions around the address, innermost first; empty without debug info for it.
    pub functions: Vec<Function>,
    /// The symbol around the address, where there is no debug info for it.
    pub symbol: Option<Symbol>,
    /// Why there is neither.
    pub reason: Option<Reason>,
    /// Where the function around the address starts. For a function in several pieces: the piece with the address.
    pub function_start: Option<Svma>,
}

impl TableAnswer {
    /// Looks an address up. As with debug info, return addresses are to be passed lowered by one.
    pub fn new(table: &Table<'_>, address: Svma) -> Self {
        match table.lookup(address) {
            Lookup::Found(found) => {
                let functions: Vec<Function> = found.frames().map(|frame| function(&frame)).collect();
                let is_named = functions.last().is_some_and(|outermost| outermost.linkage_name.is_some());
                let function_start = found.function_start().filter(|_| is_named);
                Self { functions, function_start, ..Self::default() }
            }
            Lookup::Symbol(symbol) => {
                let function_start = Some(symbol.start);
                let Some(name) = symbol.name.map(|name| name.to_text()) else {
                    return Self { reason: Some(Reason::Stripped), function_start, ..Self::default() };
                };
                let offset = address.offset_from(symbol.start).unwrap_or(0);
                let readable = demangle(&name, &Options::default()).into_owned();
                let symbol = Some(Symbol { name: readable, linkage_name: Some(name), offset });
                Self { symbol, function_start, ..Self::default() }
            }
            Lookup::None(reason) => Self { reason: Some(reason), ..Self::default() },
        }
    }
}

fn function(frame: &Frame<'_>) -> Function {
    let linkage = frame.linkage_name.map(|name| name.to_text());
    let plain = frame.name.map(|name| name.to_text());
    Function {
        name: readable(linkage.as_deref(), plain.as_deref()).into_owned(),
        linkage_name: linkage.or(plain),
        file: frame.file.map(|file| {
            let mut path = Vec::new();
            file.append_to(&mut path);
            String::from_utf8_lossy(&path).into_owned()
        }),
        line: Some(frame.line).filter(|line| *line != 0),
        column: Some(frame.column).filter(|column| *column != 0),
        inlined: frame.inlined,
    }
}

/// The readable one of a function's names; `plain` is what the source says.
pub(crate) fn readable<'n>(linkage: Option<&'n str>, plain: Option<&'n str>) -> Cow<'n, str> {
    let Some(linkage) = linkage else { return Cow::Borrowed(plain.unwrap_or_default()) };
    let readable = demangle(linkage, &Options::default());
    // Not mangled, but for instance renamed by the assembler: the source's own name is the readable one.
    if readable == linkage { Cow::Borrowed(plain.unwrap_or(linkage)) } else { readable }
}
