//! From a table to the words that GSYM and Breakpad writers take.

use super::{PlainFunction, PlainInline, PlainPath, PlainRow};
use crate::error::Result;
use crate::read::{Function, Table, Text};
use backtrail_core::{AddrRange, Svma};
use std::borrow::Cow;
use std::collections::HashMap;

/// A writer of another format.
pub trait Sink {
    /// Keeps a source file and gives the number by which rows and calls name it.
    ///
    /// # Errors
    /// When the format has no room for more.
    fn file(&mut self, path: PlainPath<'_>) -> Result<u32>;

    /// Takes a function.
    ///
    /// # Errors
    /// When the format has no room for it.
    fn function(&mut self, function: &PlainFunction<'_>) -> Result<()>;

    /// Takes a symbol: a name for addresses of which nothing else is known.
    ///
    /// # Errors
    /// When the format has no room for it.
    fn symbol(&mut self, range: AddrRange<Svma>, name: &[u8]) -> Result<()>;
}

/// What an export came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// Functions.
    pub functions: u64,
    /// Symbols without debug info.
    pub symbols: u64,
    /// Functions and symbols left out because the table has no name for them; lines without functions among them.
    pub nameless: u64,
}

/// Makes the name to write from the readable one and the linkage name, of which a table may have either or both; empty
/// means none.
pub type Naming<'n> = dyn Fn(Option<&[u8]>, Option<&[u8]>) -> Vec<u8> + 'n;

/// Gives everything in a table to a writer.
///
/// # Errors
/// When the table is broken or the writer has no room.
pub fn export(table: &Table<'_>, sink: &mut dyn Sink, name: &Naming<'_>) -> Result<Exported> {
    let mut export = Export { table, sink, name, files: HashMap::new(), exported: Exported::default() };
    for function in table.functions() {
        export.function(&function?)?;
    }
    for symbol in table.symbols() {
        let symbol = symbol?;
        let name = (export.name)(None, symbol.name.map(|name| name.as_bytes()));
        if name.is_empty() {
            export.exported.nameless += 1;
            continue;
        }
        export.sink.symbol(symbol.range, &name)?;
        export.exported.symbols += 1;
    }
    Ok(export.exported)
}

struct Export<'s, 'n> {
    table: &'s Table<'s>,
    sink: &'s mut dyn Sink,
    name: &'s Naming<'n>,
    /// The sink's numbers of the table's files.
    files: HashMap<u32, u32>,
    exported: Exported,
}

impl Export<'_, '_> {
    fn function(&mut self, function: &Function<'_>) -> Result<()> {
        let name = self.name(function.name, function.linkage_name);
        if name.is_empty() {
            self.exported.nameless += 1;
            return Ok(());
        }
        let mut plain = PlainFunction {
            name: Cow::Owned(name),
            ranges: function.ranges.clone(),
            rows: Vec::with_capacity(function.rows.len()),
            inlines: Vec::with_capacity(function.inlines.len()),
        };
        for row in &function.rows {
            let file = self.file(row.file)?;
            plain.rows.push(PlainRow { address: row.address, file, line: row.line });
        }
        for inline in &function.inlines {
            plain.inlines.push(PlainInline {
                depth: inline.depth,
                name: Cow::Owned(self.name(inline.name, inline.linkage_name)),
                call_file: self.file(inline.call_file)?,
                call_line: inline.call_line,
                ranges: inline.ranges.clone(),
            });
        }
        self.exported.functions += 1;
        self.sink.function(&plain)
    }

    fn name(&self, name: Option<Text<'_>>, linkage: Option<Text<'_>>) -> Vec<u8> {
        (self.name)(name.map(|name| name.as_bytes()), linkage.map(|name| name.as_bytes()))
    }

    fn file(&mut self, index: Option<u32>) -> Result<Option<u32>> {
        let Some(index) = index else { return Ok(None) };
        if let Some(number) = self.files.get(&index) {
            return Ok(Some(*number));
        }
        let Some(file) = self.table.file(index) else { return Ok(None) };
        // The table's directories end in their separator; alone it is the root.
        let directory = match file.directory().as_bytes() {
            [path @ .., b'/'] if !path.is_empty() => path,
            path => path,
        };
        let number = self.sink.file(PlainPath { directory, name: file.name().as_bytes() })?;
        self.files.insert(index, number);
        Ok(Some(number))
    }
}
