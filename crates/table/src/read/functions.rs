//! All that a table holds, one after the other.

use crate::body::{self, MAX_DEPTH};
use crate::error::Result;
use crate::read::answer::{locate, site_of};
use crate::read::chunk::{Chunk, Step};
use crate::read::names::{self, Home, Location, Name};
use crate::read::{File, Symbol, Table, Text};
use crate::types::Language;
use backtrail_core::{AddrRange, Svma};
use std::collections::HashMap;

/// The chunks of an index, one after the other.
#[derive(Clone, Debug)]
struct Chunks<'t> {
    table: &'t Table<'t>,
    number: usize,
}

impl<'t> Chunks<'t> {
    fn new(table: &'t Table<'t>, number: usize) -> Self {
        Self { table, number }
    }

    /// The next chunk; `None` behind the last one.
    fn next(&mut self) -> Option<Result<(usize, Chunk<'t>)>> {
        if self.number >= self.table.index.len() {
            return None;
        }
        let number = self.number;
        self.number += 1;
        let entry = self.table.index.get(number);
        let chunk = entry.and_then(|entry| self.table.chunk(entry)).map(|chunk| (number, chunk));
        Some(chunk.ok_or_else(|| self.table.broken_chunk(number)))
    }
}

/// Every function of a table.
#[derive(Clone, Debug)]
pub struct Functions<'t> {
    chunks: Chunks<'t>,
    /// Bytes of bodies that may still be read: each of them belongs to one function.
    budget: usize,
}

impl<'t> Functions<'t> {
    pub(crate) fn new(table: &'t Table<'t>) -> Self {
        Self { chunks: Chunks::new(table, 0), budget: table.bodies.len() }
    }
}

impl<'t> Iterator for Functions<'t> {
    type Item = Result<Function<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, chunk) = match self.chunks.next()? {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            let is_first = chunk.flags & (body::CONTINUES | body::PART) == 0;
            if chunk.flags & body::KIND != body::SYMBOL && is_first {
                let mut reading = Reading::new(self.chunks.table, &mut self.budget);
                let function = reading.function(number, &chunk);
                return Some(function.ok_or_else(|| self.chunks.table.broken_chunk(number)));
            }
        }
    }
}

/// A function that is being read.
struct Reading<'a, 't> {
    table: &'t Table<'t>,
    budget: &'a mut usize,
    ranges: Vec<AddrRange<Svma>>,
    rows: Vec<Row>,
    last: Location,
    calls: Vec<ReadCall<'t>>,
    /// Calls by caller, name and site.
    numbers: HashMap<(Option<usize>, u32, Location), usize>,
    /// The numbers of calls of the chunk, by how it refers to them.
    known: Vec<(u32, usize)>,
}

struct ReadCall<'t> {
    parent: Option<usize>,
    depth: usize,
    name: Name<'t>,
    site: Location,
    ranges: Vec<AddrRange<Svma>>,
}

impl<'a, 't> Reading<'a, 't> {
    fn new(table: &'t Table<'t>, budget: &'a mut usize) -> Self {
        Self {
            table,
            budget,
            ranges: Vec::new(),
            rows: Vec::new(),
            last: Location::default(),
            calls: Vec::new(),
            numbers: HashMap::new(),
            known: Vec::new(),
        }
    }

    fn function(&mut self, number: usize, first: &Chunk<'t>) -> Option<Function<'t>> {
        let name = self.table.names.get(first.name)?;
        self.piece(number, &name)?;
        for start in first.parts() {
            let start = start?;
            let (number, entry) = self.table.index.find(start)?;
            if entry.start != start {
                return None;
            }
            self.piece(number, &name)?;
        }
        Some(Function {
            is_function: first.flags & body::KIND == body::FUNCTION,
            name: name.name,
            linkage_name: name.linkage_name,
            language: names::language(&self.table.facts.languages, name.language),
            ranges: std::mem::take(&mut self.ranges),
            rows: std::mem::take(&mut self.rows),
            inlines: self.inlines(),
        })
    }

    /// Reads a piece from its first chunk on.
    fn piece(&mut self, number: usize, name: &Name<'t>) -> Option<()> {
        let mut chunks = Chunks::new(self.table, number);
        let (_, first) = chunks.next()?.ok()?;
        let mut end = first.start.checked_add(first.size)?;
        self.last = Location::default();
        self.chunk(&first, name)?;
        while let Some(Ok((_, chunk))) = chunks.next() {
            if chunk.flags & body::CONTINUES == 0
                || chunk.start != end
                || chunk.piece_start != first.piece_start
            {
                break;
            }
            end = chunk.start.checked_add(chunk.size)?;
            self.chunk(&chunk, name)?;
        }
        self.ranges.push(AddrRange::new(Svma::new(first.start), Svma::new(end)));
        Some(())
    }

    fn chunk(&mut self, chunk: &Chunk<'t>, name: &Name<'t>) -> Option<()> {
        *self.budget = self.budget.checked_sub(chunk.step_bytes())?;
        self.known.clear();
        let mut from = 0;
        for number in 0..chunk.len() {
            let next = if number + 1 < chunk.len() { chunk.offset(number + 1)? } else { chunk.size };
            let to = next.min(chunk.size);
            if from < to {
                let range = AddrRange::new(
                    Svma::new(chunk.start.checked_add(from)?),
                    Svma::new(chunk.start.checked_add(to)?),
                );
                self.step(chunk, chunk.step(number)?, name, range)?;
                from = to;
            }
        }
        Some(())
    }

    /// Takes what holds for a range.
    fn step(
        &mut self,
        chunk: &Chunk<'t>,
        step: Step,
        function: &Name<'t>,
        range: AddrRange<Svma>,
    ) -> Option<()> {
        let innermost = self.find_call(chunk, step.call, function)?;
        let mut around = innermost;
        while let Some(number) = around {
            let call = self.calls.get_mut(number)?;
            match call.ranges.last_mut() {
                Some(last) if last.end() == range.start() => {
                    *last = AddrRange::new(last.start(), range.end());
                }
                _ => call.ranges.push(range),
            }
            around = call.parent;
        }
        let home = self.home(innermost, function)?;
        let at = locate(step.place, &home);
        if at != self.last {
            let row = Row {
                address: range.start(),
                file: at.file.checked_sub(1),
                line: at.line,
                column: at.column,
            };
            self.rows.push(row);
            self.last = at;
        }
        Some(())
    }

    fn home(&self, call: Option<usize>, function: &Name<'t>) -> Option<Home> {
        Some(match call {
            Some(number) => self.calls.get(number)?.name.home,
            None => function.home,
        })
    }

    /// The number of a call of the chunk, and of those around it.
    fn find_call(&mut self, chunk: &Chunk<'t>, reference: u32, function: &Name<'t>) -> Option<Option<usize>> {
        let mut chain = Vec::new();
        let (mut reference, mut number) = (reference, None);
        while reference != 0 {
            if let Some((_, known)) = self.known.iter().find(|known| known.0 == reference) {
                number = Some(*known);
                break;
            }
            let call = chunk.call(reference)?;
            chain.push((reference, call));
            reference = call.parent;
            if chain.len() > MAX_DEPTH {
                return None;
            }
        }
        while let Some((reference, call)) = chain.pop() {
            let site = site_of(&call, &self.home(number, function)?);
            let found = self.number_of(number, call.name, site)?;
            self.known.push((reference, found));
            number = Some(found);
        }
        Some(number)
    }

    /// The number of a call. Calls of the same name with the same caller and site are one.
    fn number_of(&mut self, parent: Option<usize>, name: u32, site: Location) -> Option<usize> {
        let depth = parent.map_or(Some(0), |parent| self.calls.get(parent).map(|call| call.depth))? + 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let number = *self.numbers.entry((parent, name, site)).or_insert(self.calls.len());
        if number == self.calls.len() {
            let name = self.table.names.get(name)?;
            self.calls.push(ReadCall { parent, depth, name, site, ranges: Vec::new() });
        }
        Some(number)
    }

    /// The calls in the order of the tree.
    fn inlines(&mut self) -> Vec<Inline<'t>> {
        let calls = std::mem::take(&mut self.calls);
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); calls.len()];
        let mut open = Vec::new();
        for (number, call) in calls.iter().enumerate().rev() {
            match call.parent.and_then(|parent| children.get_mut(parent)) {
                Some(siblings) => siblings.push(number),
                None => open.push((number, 1)),
            }
        }
        let mut calls: Vec<Option<ReadCall<'t>>> = calls.into_iter().map(Some).collect();
        let mut inlines = Vec::with_capacity(calls.len());
        while let Some((number, depth)) = open.pop() {
            open.extend(children.get(number).into_iter().flatten().map(|child| (*child, depth + 1)));
            let Some(call) = calls.get_mut(number).and_then(Option::take) else { continue };
            inlines.push(self.inline(call, depth));
        }
        inlines
    }

    fn inline(&self, call: ReadCall<'t>, depth: u32) -> Inline<'t> {
        let mut ranges = call.ranges;
        ranges.sort_by_key(|range| range.start());
        Inline {
            depth,
            name: call.name.name,
            linkage_name: call.name.linkage_name,
            language: names::language(&self.table.facts.languages, call.name.language),
            call_file: call.site.file.checked_sub(1),
            call_line: call.site.line,
            call_column: call.site.column,
            ranges,
        }
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
    pub rows: Vec<Row>,
    /// The calls that were inlined into it, callers before what they call.
    pub inlines: Vec<Inline<'t>>,
}

/// A line row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The first address that it holds for.
    pub address: Svma,
    /// The number of the [`file`](Table::file); `None` where none is stated.
    pub file: Option<u32>,
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
    /// The number of the [`file`](Table::file) with the call.
    pub call_file: Option<u32>,
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
    chunks: Chunks<'t>,
}

impl<'t> Symbols<'t> {
    pub(crate) fn new(table: &'t Table<'t>) -> Self {
        Self { chunks: Chunks::new(table, 0) }
    }
}

impl<'t> Iterator for Symbols<'t> {
    type Item = Result<Symbol<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, chunk) = match self.chunks.next()? {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            if chunk.flags & body::KIND == body::SYMBOL {
                let table = self.chunks.table;
                return Some(table.symbol(&chunk).ok_or_else(|| table.broken_chunk(number)));
            }
        }
    }
}

impl Table<'_> {
    /// Every function, and lines without functions, by their lowest addresses.
    pub fn functions(&self) -> Functions<'_> {
        Functions::new(self)
    }

    /// What is known from symbol tables alone, by address.
    pub fn symbols(&self) -> Symbols<'_> {
        Symbols::new(self)
    }

    /// How many source files there are.
    pub fn file_count(&self) -> u32 {
        u32::try_from(self.files.len()).unwrap_or(u32::MAX)
    }

    /// A source file by its number, from 0 on.
    pub fn file(&self, number: u32) -> Option<File<'_>> {
        self.files.get(number.checked_add(1)?)
    }
}
