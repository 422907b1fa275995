//! What a lookup answers.

use crate::body;
use crate::read::Table;
use crate::read::chunk::{Call, Chunk, SourcePosition, Step};
use crate::read::names::{self, Home, Location};
use crate::read::text::{File, Text};
use crate::types::Language;
use backtrail_core::{Reason, Svma};
use std::fmt;

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'t> {
    /// Debug info knows it: a function, or a line without one.
    Found(FunctionAt<'t>),
    /// A symbol table knows it.
    Symbol(Symbol<'t>),
    /// Nothing does. [`Reason::Stripped`] where there is a function whose name was stripped.
    None(Reason),
}

/// The function around an address with what was inlined there.
#[derive(Clone, Copy)]
pub struct FunctionAt<'t> {
    table: &'t Table<'t>,
    chunk: Chunk<'t>,
    step: Step,
}

impl<'t> FunctionAt<'t> {
    #[inline]
    pub(crate) fn at(table: &'t Table<'t>, chunk: Chunk<'t>, offset: u64) -> Option<Self> {
        let step = chunk.find(offset)?;
        Some(Self { table, chunk, step })
    }

    /// The names of the functions, innermost first, by their numbers plus one.
    #[inline]
    pub(crate) fn names(&self) -> impl Iterator<Item = u32> {
        let Self { chunk, step, .. } = *self;
        let mut next = Some(step.call);
        std::iter::from_fn(move || {
            let Some(call) = chunk.call(next?) else {
                next = None;
                return Some(chunk.name);
            };
            next = Some(call.parent);
            Some(call.name)
        })
    }

    /// Whether there is a function, not a line alone.
    pub fn is_function(&self) -> bool {
        self.chunk.flags & body::KIND == body::FUNCTION
    }

    /// Where the function starts; for one in several pieces, the piece with the address. `None` where there is a line
    /// without a function.
    pub fn function_start(&self) -> Option<Svma> {
        if self.is_function() { Some(Svma::new(self.chunk.piece_start)) } else { None }
    }

    /// The functions, innermost first; one without names where there is a line without a function.
    #[inline]
    pub fn frames(&self) -> Frames<'t> {
        let Self { table, chunk, step } = *self;
        Frames { table, chunk, place: step.place, call: step.call, site: None, is_over: false }
    }
}

impl fmt::Debug for FunctionAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.frames()).finish()
    }
}

/// The functions at an address, innermost first.
#[derive(Clone)]
pub struct Frames<'t> {
    table: &'t Table<'t>,
    chunk: Chunk<'t>,
    /// The place in the innermost function.
    place: SourcePosition,
    /// The call that the frame to come stands for; 0 for the function itself.
    call: u32,
    /// The call that the frame before stands for: it tells the place in the frame to come.
    site: Option<Call>,
    is_over: bool,
}

impl<'t> Iterator for Frames<'t> {
    type Item = Frame<'t>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'t>> {
        if self.is_over {
            return None;
        }
        let frame = self.read();
        self.is_over |= frame.is_none();
        frame
    }
}

impl<'t> Frames<'t> {
    #[inline]
    fn read(&mut self) -> Option<Frame<'t>> {
        let call = if self.call == 0 { None } else { Some(self.chunk.call(self.call)?) };
        let name = self.table.names.get(call.map_or(self.chunk.name, |call| call.name))?;
        let at = match self.site {
            Some(site) => site_of(&site, &name.home),
            None => locate(self.place, &name.home),
        };
        self.site = call;
        self.is_over = call.is_none();
        self.call = call.map_or(0, |call| call.parent);
        Some(Frame {
            name: name.name,
            linkage_name: name.linkage_name,
            language: names::language(&self.table.facts.languages, name.language),
            name_number: call.map_or(self.chunk.name, |call| call.name).checked_sub(1),
            file: self.table.files.get(at.file),
            file_number: at.file.checked_sub(1),
            line: at.line,
            column: at.column,
            inlined: call.is_some(),
        })
    }
}

impl fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Where instructions stand in the source; `home` is that of the innermost function.
#[inline]
pub(crate) fn locate(place: SourcePosition, home: &Home) -> Location {
    match place {
        SourcePosition::Near { line, column } => Location {
            file: home.file,
            line: home.line.wrapping_add(u32::from(line)),
            column: u32::from(column),
        },
        SourcePosition::Far(location) => location,
    }
}

/// Where a call stands in the source; `home` is that of its caller.
#[inline]
pub(crate) fn site_of(call: &Call, home: &Home) -> Location {
    Location {
        file: call.file.unwrap_or(home.file),
        line: home.line.wrapping_add(call.line),
        column: call.column,
    }
}

/// One function at an address.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'t> {
    /// The readable name, where it cannot be made from the linkage name.
    pub name: Option<Text<'t>>,
    /// The name that the linker sees.
    pub linkage_name: Option<Text<'t>>,
    /// The number of these names, the same wherever they occur in the table.
    pub name_number: Option<u32>,
    /// The language that it was written in.
    pub language: Language,
    /// The source file: of the instruction in the innermost function, of the call in the others.
    pub file: Option<File<'t>>,
    /// The number of that [`file`](Table::file).
    pub file_number: Option<u32>,
    /// The line in that file, counted from 1; 0 where none is stated.
    pub line: u32,
    /// The column, counted from 1; 0 where none is stated.
    pub column: u32,
    /// Whether this function was inlined into the next one.
    pub inlined: bool,
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
