//! One function of the table.

use super::GoTable;
use super::bytes::Bytes;
use super::layout::Version;
use super::values::Values;
use backtrail_core::{AddrRange, Svma};
use std::ops::Range;

// Fields by their numbers in Go's sources.
const NAME: u64 = 1;
/// How far the stack pointer has moved since the function was entered.
const DEPTHS: u64 = 4;
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

/// One function of Go's table, with what it says of each of its addresses.
#[derive(Debug)]
pub struct GoFunction<'a> {
    table: &'a GoTable<'a>,
    /// Where its fields are.
    fields: u64,
    addresses: Range<u64>,
    /// All values, where many addresses are asked for.
    decoded: Option<[Vec<(u64, i32)>; 3]>,
}

/// A function, or one that was inlined into it, at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GoFrame<'a> {
    /// `None` where the tree of inlined calls is not known.
    pub name: Option<&'a [u8]>,
    /// The source file, as the compiler wrote it.
    pub file: Option<&'a [u8]>,
    /// Zero where it is not known.
    pub line: u32,
    /// Whether the function was inlined into the next one.
    pub is_inlined: bool,
}

/// Addresses of a function for which the answer is the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoPiece<'a> {
    /// The addresses.
    pub addresses: AddrRange<Svma>,
    /// Innermost first.
    pub frames: Vec<GoFrame<'a>>,
}

/// What values are about.
#[derive(Clone, Copy)]
enum About {
    File,
    Line,
    Inlined,
    Depth,
}

impl<'a> GoFunction<'a> {
    pub(super) fn new(table: &'a GoTable<'_>, fields: u64, addresses: Range<u64>) -> Option<Self> {
        let end = fields.checked_add(table.layout.field_offset(table.layout.first_table_field()))?;
        let is_there = end <= table.bytes.len() as u64 && addresses.start < addresses.end;
        is_there.then_some(Self { table, fields, addresses, decoded: None })
    }

    /// Where its code lies.
    pub fn addresses(&self) -> AddrRange<Svma> {
        AddrRange::new(Svma::new(self.addresses.start), Svma::new(self.addresses.end))
    }

    /// Its name, as Go spells it.
    pub fn name(&self) -> Option<&'a [u8]> {
        self.table.text(self.table.layout.names, self.field(NAME)?)
    }

    /// Whether it is the first function of a stack. Said since Go 1.17.
    pub fn is_top_frame(&self) -> bool {
        const TOP_FRAME: u64 = 1;
        self.flags() & TOP_FRAME != 0
    }

    /// Whether it changes the stack pointer in a way that [`GoFunction::depth_at`] does not tell. Said since Go 1.17.
    pub fn writes_stack_pointer(&self) -> bool {
        const WRITES_STACK_POINTER: u64 = 2;
        self.flags() & WRITES_STACK_POINTER != 0
    }

    /// The byte before the last two of the fields; zero in versions that have no such flags.
    fn flags(&self) -> u64 {
        let flags = self.tables().and_then(|tables| self.table.number(tables.checked_sub(3)?, 1));
        flags.filter(|_| self.table.layout.version > Version::Go12).unwrap_or(0)
    }

    /// By how many bytes the stack pointer has moved down since the function was entered, before the instruction at
    /// an address; and the addresses for which that holds.
    pub fn depth_at(&self, address: Svma) -> Option<(AddrRange<Svma>, i32)> {
        self.depths().find(|(range, _)| range.contains(address))
    }

    /// The same for all of its addresses, in order.
    pub fn depths(&self) -> impl Iterator<Item = (AddrRange<Svma>, i32)> + use<'a> {
        let start = self.addresses.start;
        let mut from = start;
        self.values(About::Depth).into_iter().flatten().map(move |(end, depth)| {
            let range = AddrRange::new(Svma::new(from), Svma::new(start + end));
            from = start + end;
            (range, depth)
        })
    }

    fn field(&self, number: u64) -> Option<u64> {
        self.table.number(self.fields.checked_add(self.table.layout.field_offset(number))?, 4)
    }

    /// What there is at an address of the function; innermost first, the function itself last.
    pub fn frames(&self, address: Svma) -> Vec<GoFrame<'a>> {
        address
            .get()
            .checked_sub(self.addresses.start)
            .map(|offset| self.frames_at(offset))
            .unwrap_or_default()
    }

    /// The same, given in bytes from the start.
    fn frames_at(&self, offset: u64) -> Vec<GoFrame<'a>> {
        let mut frames = Vec::new();
        let mut at = Some(offset);
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

    fn frame(&self, name: Option<&'a [u8]>, at: Option<u64>, is_inlined: bool) -> GoFrame<'a> {
        let line = at.and_then(|at| self.value(About::Line, at));
        let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        GoFrame { name, file: at.and_then(|at| self.file(at)), line, is_inlined }
    }

    fn file(&self, at: u64) -> Option<&'a [u8]> {
        let unit = if self.table.layout.has_units() { self.field(UNIT)? } else { 0 };
        self.table.file(unit, self.value(About::File, at)?)
    }

    /// The number of the innermost inlined call at an address.
    fn inlined(&self, at: u64) -> Option<u64> {
        self.value(About::Inlined, at).and_then(|value| u64::try_from(value).ok())
    }

    /// What an inlined call is called, and an address that belongs to where it stands.
    fn call(&self, index: u64) -> Option<(Option<&'a [u8]>, u64)> {
        let trees = Bytes { data: self.table.function_data?, is_big: self.table.layout.big_endian };
        let count = self.table.number(self.tables()?.checked_sub(1)?, 1)?;
        let behind = self.tables()?.checked_add(self.field(TABLE_COUNT)?.checked_mul(4)?)?;
        let tree = (TREE < count).then(|| self.table.number(behind.checked_add(TREE * 4)?, 4)).flatten()?;
        let tree = Some(tree).filter(|tree| *tree != u64::from(u32::MAX))?;
        // Since 1.20 without the line of the call, which the address tells.
        let is_short = self.table.layout.version >= Version::Go120;
        let (size, name, parent) = if is_short { (16, 4, 8) } else { (20, 12, 16) };
        let entry = trees.from(tree.checked_add(index.checked_mul(size)?)?)?;
        let entry = Bytes { data: entry.get(..usize::try_from(size).ok()?)?, ..trees };
        let number = |at| entry.number(at, 4);
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
            About::Depth => self.field(DEPTHS)?,
            About::Inlined => {
                let is_there = INLINED < self.field(TABLE_COUNT)?;
                is_there.then(|| self.table.number(self.tables()?.checked_add(INLINED * 4)?, 4)).flatten()?
            }
        };
        // Zero is "no table".
        let offset = Some(offset).filter(|offset| *offset != 0)?;
        let bytes = self.table.parts().from(self.table.layout.values.checked_add(offset)?)?;
        Some(Values::new(bytes, self.table.layout.quantum, self.addresses.end - self.addresses.start))
    }

    /// The whole function, cut where the answer changes.
    pub fn pieces(mut self) -> Vec<GoPiece<'a>> {
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
            let addresses = AddrRange::new(Svma::new(addresses.start), Svma::new(addresses.end));
            let frames = self.frames_at(from);
            from = end;
            GoPiece { addresses, frames }
        });
        pieces.collect()
    }
}
