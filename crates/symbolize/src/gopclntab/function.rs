//! One function of the table.

use super::layout::Version;
use super::values::Values;
use super::{GoTable, Reader};
use crate::dwarf::{FilePath, Frame, Names};
use std::ops::Range;

// Fields by their numbers in Go's sources.
const NAME: u64 = 1;
const FILES: u64 = 5;
const LINES: u64 = 6;
const TABLE_COUNT: u64 = 7;
const UNIT: u64 = 8;

/// The table that tells which inlined call an address belongs to, among those of a function (since Go 1.11).
const INLINED: u64 = 2;
/// The tree of inlined calls, among a function's further data.
const TREE: u64 = 3;

/// Calls inlined into each other. Go's compiler inlines small functions only.
const MAX_INLINED: usize = 64;

/// A function, with what it says of each of its addresses.
pub(crate) struct Function<'a> {
    table: &'a GoTable<'a>,
    /// Where its fields are.
    fields: u64,
    addresses: Range<u64>,
    /// All values, where many addresses are asked for.
    decoded: Option<[Vec<(u64, i32)>; 3]>,
}

/// What values are about.
#[derive(Clone, Copy)]
enum About {
    File,
    Line,
    Inlined,
}

/// Addresses of a function for which the answer is the same.
pub(crate) struct Piece<'a> {
    pub(crate) addresses: Range<u64>,
    /// Innermost first.
    pub(crate) frames: Vec<Frame<'a>>,
}

impl<'a> Function<'a> {
    pub(super) fn new(table: &'a GoTable<'_>, fields: u64, addresses: Range<u64>) -> Option<Self> {
        let end = fields.checked_add(table.layout.field_offset(table.layout.first_table_field()))?;
        let is_there = end <= table.bytes.len() as u64 && addresses.start < addresses.end;
        is_there.then_some(Self { table, fields, addresses, decoded: None })
    }

    pub(crate) fn start(&self) -> u64 {
        self.addresses.start
    }

    pub(crate) fn end(&self) -> u64 {
        self.addresses.end
    }

    pub(crate) fn name(&self) -> Option<&'a [u8]> {
        self.table.text(self.table.layout.names, self.field(NAME)?)
    }

    fn field(&self, number: u64) -> Option<u64> {
        self.table.number(self.fields.checked_add(self.table.layout.field_offset(number))?, 4)
    }

    /// What there is at an address, given in bytes from the start; innermost first, the function itself last.
    pub(crate) fn frames(&self, address: u64) -> Vec<Frame<'a>> {
        let mut frames = Vec::new();
        let mut at = Some(address);
        while let Some(inlined) = at.and_then(|at| self.inlined(at))
            && frames.len() < MAX_INLINED
        {
            let call = self.call(inlined);
            frames.push(self.frame(call.and_then(|call| call.0), at, true));
            // Where the tree is not known, nor is where the call stands.
            at = call.map(|call| call.1);
        }
        frames.push(self.frame(self.name(), at, false));
        frames
    }

    fn frame(&self, plain: Option<&'a [u8]>, at: Option<u64>, inlined: bool) -> Frame<'a> {
        let names = Names { plain, ..Names::default() };
        let line = at.and_then(|at| self.value(About::Line, at));
        let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        Frame { names, file: at.and_then(|at| self.file(at)), line, column: 0, inlined }
    }

    fn file(&self, at: u64) -> Option<FilePath<'a>> {
        let unit = if self.table.layout.has_units() { self.field(UNIT)? } else { 0 };
        self.table.file(unit, self.value(About::File, at)?)
    }

    /// The number of the innermost inlined call at an address.
    fn inlined(&self, at: u64) -> Option<u64> {
        self.value(About::Inlined, at).and_then(|value| u64::try_from(value).ok())
    }

    /// What an inlined call is called, and an address that belongs to where it stands.
    fn call(&self, index: u64) -> Option<(Option<&'a [u8]>, u64)> {
        let trees = self.table.trees.as_ref()?;
        let count = self.table.number(self.tables()?.checked_sub(1)?, 1)?;
        let behind = self.tables()?.checked_add(self.field(TABLE_COUNT)?.checked_mul(4)?)?;
        let tree = (TREE < count).then(|| self.table.number(behind.checked_add(TREE * 4)?, 4)).flatten()?;
        let tree = Some(tree).filter(|tree| *tree != u64::from(u32::MAX))?;
        // Since 1.20 without the line of the call, which the address tells.
        let is_short = self.table.layout.version >= Version::Go120;
        let (size, name, parent) = if is_short { (16, 4, 8) } else { (20, 12, 16) };
        let entry = trees.bytes(tree.checked_add(index.checked_mul(size)?)?, size)?;
        let number = |at| Reader::new(entry, at, self.table.layout.big_endian).uint(4);
        let parent = number(parent).filter(|parent| *parent < self.addresses.end - self.addresses.start)?;
        Some((self.table.text(self.table.layout.names, number(name)?), parent))
    }

    /// Where the numbers of the tables are.
    fn tables(&self) -> Option<u64> {
        let layout = &self.table.layout;
        self.fields.checked_add(layout.field_offset(layout.first_table_field()))
    }

    fn value(&self, about: About, at: u64) -> Option<i32> {
        if let Some(decoded) = &self.decoded {
            let values = decoded.get(about as usize)?;
            return values.get(values.partition_point(|(end, _)| *end <= at)).map(|(_, value)| *value);
        }
        self.values(about)?.find(|(end, _)| at < *end).map(|(_, value)| value)
    }

    fn values(&self, about: About) -> Option<Values<'a>> {
        let offset = match about {
            About::File => self.field(FILES)?,
            About::Line => self.field(LINES)?,
            About::Inlined => {
                let is_there = INLINED < self.field(TABLE_COUNT)?;
                is_there.then(|| self.table.number(self.tables()?.checked_add(INLINED * 4)?, 4)).flatten()?
            }
        };
        // Zero is "no table".
        let offset = Some(offset).filter(|offset| *offset != 0)?;
        let reader = self.table.reader(self.table.layout.values.checked_add(offset)?);
        Some(Values::new(reader, self.table.layout.quantum, self.addresses.end - self.addresses.start))
    }

    /// The whole function, cut where the answer changes.
    pub(crate) fn pieces(mut self) -> Vec<Piece<'a>> {
        let all = |about| self.values(about).into_iter().flatten().collect::<Vec<_>>();
        let decoded = [About::File, About::Line, About::Inlined].map(all);
        let size = self.addresses.end - self.addresses.start;
        let mut ends: Vec<u64> = decoded.iter().flatten().map(|(end, _)| *end).chain([size]).collect();
        ends.sort_unstable();
        ends.dedup();
        self.decoded = Some(decoded);
        let mut from = 0;
        let pieces = ends.into_iter().map(|end| {
            let addresses = self.addresses.start + from..self.addresses.start + end;
            let frames = self.frames(from);
            from = end;
            Piece { addresses, frames }
        });
        pieces.collect()
    }
}
