//! All that a table holds, one after the other.

use crate::error::Result;
use crate::read::{File, Symbol, Table, Text};
use crate::types::Language;
use backtrail_core::{AddrRange, Svma};

/// Every function of a table.
#[derive(Clone, Debug)]
pub struct Functions<'t> {
    pub(crate) table: &'t Table<'t>,
}

impl<'t> Iterator for Functions<'t> {
    type Item = Result<Function<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.table;
        None
    }
}

/// A function with all that the table knows of it.
#[derive(Clone, Debug)]
pub struct Function<'t> {
    /// Whether it is one; `false` for lines without a function.
    pub is_function: bool,
    /// The readable name, where it cannot be made from the linkage name.
    pub name: Option<Text<'t>>,
    /// The name that the linker sees.
    pub linkage_name: Option<Text<'t>>,
    /// The language that it was written in.
    pub language: Language,
    /// The addresses for which it is the answer, sorted, not touching each other.
    pub ranges: Vec<AddrRange<Svma>>,
    /// Its line rows, sorted by address. A row holds up to the next one or the end of the range that it is in.
    pub rows: Vec<Row<'t>>,
    /// The calls that were inlined into it, callers before what they call.
    pub inlines: Vec<Inline<'t>>,
}

/// A line row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'t> {
    /// The first address that it holds for.
    pub address: Svma,
    /// The file; `None` where no location is stated.
    pub file: Option<File<'t>>,
    /// The number of the file in the table, for maps by file.
    pub file_index: Option<u32>,
    /// The line, counted from 1; 0 where none is stated.
    pub line: u32,
    /// The column, counted from 1; 0 where none is stated.
    pub column: u32,
}

/// An inlined call.
#[derive(Clone, Debug)]
pub struct Inline<'t> {
    /// 1 for what was inlined into the function itself, 2 for what was inlined into that, and so on.
    pub depth: u32,
    /// The readable name, where it cannot be made from the linkage name.
    pub name: Option<Text<'t>>,
    /// The name that the linker sees.
    pub linkage_name: Option<Text<'t>>,
    /// The language that it was written in.
    pub language: Language,
    /// The file with the call.
    pub call_file: Option<File<'t>>,
    /// The number of that file in the table, for maps by file.
    pub call_file_index: Option<u32>,
    /// The line of the call, counted from 1; 0 where none is stated.
    pub call_line: u32,
    /// The column of the call, counted from 1; 0 where none is stated.
    pub call_column: u32,
    /// The addresses that belong to the call, with those of the calls in it; sorted, not touching each other, all
    /// within the ranges of the caller.
    pub ranges: Vec<AddrRange<Svma>>,
}

/// Every piece of the address space that symbol tables know something of and functions do not.
#[derive(Clone, Debug)]
pub struct Symbols<'t> {
    pub(crate) table: &'t Table<'t>,
}

impl<'t> Iterator for Symbols<'t> {
    type Item = Result<Symbol<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.table;
        None
    }
}
