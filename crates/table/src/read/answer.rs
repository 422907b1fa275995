//! What a lookup answers.

use crate::read::Table;
use crate::types::Language;
use backtrail_core::{Reason, Svma};
use std::fmt;

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'t> {
    /// Debug info knows it: a function, or a line without one.
    Found(Found<'t>),
    /// A symbol table knows it.
    Symbol(Symbol<'t>),
    /// Nothing does. [`Reason::Stripped`] where there is a function whose name was stripped.
    None(Reason),
}

/// The function around an address with what was inlined there.
#[derive(Clone, Copy, Debug)]
pub struct Found<'t> {
    pub(crate) table: &'t Table<'t>,
}

impl<'t> Found<'t> {
    /// Where the function starts; for one in several pieces, the piece with the address. `None` where there is a line
    /// without a function.
    pub fn function_start(&self) -> Option<Svma> {
        None
    }

    /// The functions, innermost first; one without names where there is a line without a function.
    pub fn frames(&self) -> Frames<'t> {
        Frames { table: self.table }
    }
}

/// The functions at an address, innermost first.
#[derive(Clone, Debug)]
pub struct Frames<'t> {
    table: &'t Table<'t>,
}

impl<'t> Iterator for Frames<'t> {
    type Item = Frame<'t>;

    fn next(&mut self) -> Option<Frame<'t>> {
        let _ = self.table;
        None
    }
}

/// One function at an address.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'t> {
    /// The readable name, where it cannot be made from the linkage name.
    pub name: Option<Text<'t>>,
    /// The name that the linker sees.
    pub linkage_name: Option<Text<'t>>,
    /// The language that it was written in.
    pub language: Language,
    /// The source file: of the instruction in the innermost function, of the call in the others.
    pub file: Option<File<'t>>,
    /// The line in that file, counted from 1; 0 where none is stated.
    pub line: u32,
    /// The column, counted from 1; 0 where none is stated.
    pub column: u32,
    /// Whether this function was inlined into the next one.
    pub inlined: bool,
}

/// A string of a table. Names are packed, so reading one means unpacking it into a buffer of the caller's.
#[derive(Clone, Copy)]
pub struct Text<'t> {
    pub(crate) bytes: &'t [u8],
}

impl Text<'_> {
    /// Appends the bytes, which are UTF-8 in honest files.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes);
    }

    /// The string on its own; what is not UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes);
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

/// A source file. Its path is the directory directly followed by the name.
#[derive(Clone, Copy, Debug)]
pub struct File<'t> {
    /// The directory with its last separator; empty where the path has none.
    pub directory: Text<'t>,
    /// The name in that directory.
    pub name: Text<'t>,
}

impl File<'_> {
    /// Appends the whole path.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        self.directory.append_to(out);
        self.name.append_to(out);
    }
}

/// What a symbol table knows of an address.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'t> {
    /// The linkage name, as the symbol table has it; `None` for a function whose name was stripped.
    pub name: Option<Text<'t>>,
    /// Where the symbol starts.
    pub start: Svma,
    /// The addresses for which this symbol is the answer; may start above `start`.
    pub range: backtrail_core::AddrRange<Svma>,
}
