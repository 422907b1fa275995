//! One worker's functions, packed.

use crate::bytes::{Cursor, put_signed, put_uleb};
use crate::types::{CallSite, FileId, FunctionHead, Language, StringId};
use backtrail_core::{AddrRange, Svma};

/// The functions and lines of one unit, on their way into a [`Builder`](crate::Builder).
///
/// For each function: [`begin_function`](Self::begin_function), then [`inline`](Self::inline) for each inlined call in
/// the order of the tree, callers before what they call, then [`row`](Self::row) for each line row, then
/// [`end_function`](Self::end_function). Rows of code that belongs to no function stand between
/// [`begin_lines`](Self::begin_lines) and `end_function` in the same way.
///
/// Where functions of a unit overlap, the one that starts last has the address, among those that start together the
/// one that was added last; the same holds for the inlined calls of a function. A call's callers are those that were
/// added around it, whatever their ranges say. An address that two units have a function for belongs to the unit with
/// the lower number.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ranges: Vec<RawRange>,
    /// Where each function's bytes start.
    pub(crate) functions: Vec<u32>,
    /// What the addresses of the open function are told relative to.
    base: u64,
    last: LastRow,
}

/// A range of a function by the function's index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) function: u32,
}

/// What the next row is told relative to.
#[derive(Clone, Copy, Debug, Default)]
struct LastRow {
    address: u64,
    file: u32,
    line: u32,
    column: u32,
}

pub(crate) const KIND: u8 = 3;
const END: u8 = 0;
const ROW: u8 = 1;
const INLINE: u8 = 2;
const NEW_FILE: u8 = 4;
const NEW_COLUMN: u8 = 8;
const HAS_NAME: u8 = 4;
const HAS_LINKAGE_NAME: u8 = 8;
const HAS_FILE: u8 = 16;
/// In a function's first byte: it is one, not lines alone.
const IS_FUNCTION: u8 = 1;

impl Batch {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a function. Empty ranges are left out.
    pub fn begin_function(&mut self, head: FunctionHead, ranges: &[AddrRange<Svma>]) {
        self.begin(ranges);
        self.head(IS_FUNCTION, head);
    }

    /// Starts code that has lines and belongs to no function. Where it overlaps with a function of any unit, the
    /// function has the address; where with other such code, the unit with the lower number.
    pub fn begin_lines(&mut self, ranges: &[AddrRange<Svma>]) {
        self.begin(ranges);
        self.head(0, FunctionHead::default());
    }

    fn begin(&mut self, ranges: &[AddrRange<Svma>]) {
        let function = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
        self.functions.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            self.ranges.push(RawRange { start: range.start().get(), end: range.end().get(), function });
        }
        let address = ranges.first().map_or(0, |range| range.start().get());
        self.base = address;
        self.last = LastRow { address, ..LastRow::default() };
        put_uleb(&mut self.bytes, address);
    }

    fn head(&mut self, kind: u8, head: FunctionHead) {
        let flag = |name: Option<StringId>, flag: u8| if name.is_some() { flag } else { 0 };
        self.bytes.push(kind | flag(head.name, HAS_NAME) | flag(head.linkage_name, HAS_LINKAGE_NAME));
        for name in [head.name, head.linkage_name].into_iter().flatten() {
            put_uleb(&mut self.bytes, u64::from(name.0));
        }
        put_uleb(&mut self.bytes, u64::from(head.language.0));
    }

    /// Adds an inlined call. `depth` is 1 for what was inlined into the function itself, 2 for what was inlined into
    /// that, and so on; never more than one above the call before.
    pub fn inline(&mut self, depth: u32, head: FunctionHead, call: CallSite, ranges: &[AddrRange<Svma>]) {
        let has_file = if call.file.is_some() { HAS_FILE } else { 0 };
        self.head(INLINE | has_file, head);
        if let Some(file) = call.file {
            put_uleb(&mut self.bytes, u64::from(file.0));
        }
        for number in [depth, call.line, call.column] {
            put_uleb(&mut self.bytes, u64::from(number));
        }
        put_uleb(&mut self.bytes, ranges.len() as u64);
        let mut last = self.base;
        for range in ranges {
            put_signed(&mut self.bytes, range.start().get().wrapping_sub(last).cast_signed());
            put_uleb(&mut self.bytes, range.size());
            last = range.end().get();
        }
    }

    /// Adds a line row. It holds up to the next row or the end of the function's range that it is in; from the start of
    /// a range to its first row there is no location. Of rows with the same address the last one counts. A row without
    /// a file and with line 0 says that from here on there is no location.
    pub fn row(&mut self, address: Svma, file: Option<FileId>, line: u32, column: u32) {
        let file = file.map_or(0, |file| file.0.wrapping_add(1));
        let last = std::mem::replace(&mut self.last, LastRow { address: address.get(), file, line, column });
        let (new_file, new_column) = (file != last.file, column != last.column);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.bytes.push(ROW | flag(new_file, NEW_FILE) | flag(new_column, NEW_COLUMN));
        put_signed(&mut self.bytes, address.get().wrapping_sub(last.address).cast_signed());
        put_signed(&mut self.bytes, i64::from(line) - i64::from(last.line));
        if new_file {
            put_uleb(&mut self.bytes, u64::from(file));
        }
        if new_column {
            put_uleb(&mut self.bytes, u64::from(column));
        }
    }

    /// Ends the function.
    pub fn end_function(&mut self) {
        self.bytes.push(END);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Bytes that the batch takes in memory.
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.ranges.as_slice()) + size_of_val(self.functions.as_slice())
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ranges.shrink_to_fit();
        self.functions.shrink_to_fit();
    }
}

/// A function as it was added.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawFunction {
    pub(crate) is_function: bool,
    pub(crate) head: FunctionHead,
    pub(crate) inlines: Vec<RawInline>,
    pub(crate) inline_ranges: Vec<(u64, u64)>,
    pub(crate) rows: Vec<RawRow>,
}

/// An inlined call as it was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInline {
    pub(crate) depth: u32,
    pub(crate) head: FunctionHead,
    pub(crate) call: CallSite,
    /// Index behind the call's last range.
    pub(crate) ranges_end: u32,
}

/// A line row as it was added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRow {
    pub(crate) address: u64,
    pub(crate) file: Option<FileId>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Batch {
    /// How many functions there are, without lines alone.
    pub(crate) fn function_count(&self) -> usize {
        (0..self.functions.len() as u32).filter(|function| self.is_function(*function)).count()
    }

    /// Whether it is a function, not lines alone.
    pub(crate) fn is_function(&self, function: u32) -> bool {
        let start = self.functions.get(function as usize);
        let mut cursor = Cursor::at(&self.bytes, start.map_or(0, |start| *start as usize));
        cursor.uleb().and_then(|_| cursor.u8()).is_some_and(|flags| flags & KIND == IS_FUNCTION)
    }

    /// The ranges of a function as they were added.
    pub(crate) fn ranges_of(&self, function: u32) -> &[RawRange] {
        let start = self.ranges.partition_point(|range| range.function < function);
        let end = self.ranges.partition_point(|range| range.function <= function);
        self.ranges.get(start..end).unwrap_or_default()
    }

    /// Unpacks a function.
    pub(crate) fn read(&self, function: u32, into: &mut RawFunction) -> Option<()> {
        into.inlines.clear();
        into.inline_ranges.clear();
        into.rows.clear();
        let start = *self.functions.get(function as usize)?;
        let mut cursor = Cursor::at(&self.bytes, start as usize);
        let mut last = LastRow { address: cursor.uleb()?, ..LastRow::default() };
        let base = last.address;
        let flags = cursor.u8()?;
        into.is_function = flags & KIND == IS_FUNCTION;
        into.head = read_head(&mut cursor, flags)?;
        loop {
            let flags = cursor.u8()?;
            match flags & KIND {
                ROW => into.rows.push(read_row(&mut cursor, flags, &mut last)?),
                INLINE => read_inline(&mut cursor, flags, base, into)?,
                _ => return Some(()),
            }
        }
    }
}

fn read_head(cursor: &mut Cursor<'_>, flags: u8) -> Option<FunctionHead> {
    let mut name = |flag: u8| {
        let id = if flags & flag != 0 { Some(cursor.uleb32()?) } else { None };
        Some(id.map(StringId))
    };
    let (name, linkage_name) = (name(HAS_NAME)?, name(HAS_LINKAGE_NAME)?);
    let language = Language(u16::try_from(cursor.uleb()?).ok()?);
    Some(FunctionHead { name, linkage_name, language })
}

fn read_row(cursor: &mut Cursor<'_>, flags: u8, last: &mut LastRow) -> Option<RawRow> {
    last.address = last.address.wrapping_add(cursor.signed()?.cast_unsigned());
    last.line = u32::try_from(i64::from(last.line) + cursor.signed()?).ok()?;
    if flags & NEW_FILE != 0 {
        last.file = cursor.uleb32()?;
    }
    if flags & NEW_COLUMN != 0 {
        last.column = cursor.uleb32()?;
    }
    let file = last.file.checked_sub(1).map(FileId);
    Some(RawRow { address: last.address, file, line: last.line, column: last.column })
}

fn read_inline(cursor: &mut Cursor<'_>, flags: u8, base: u64, into: &mut RawFunction) -> Option<()> {
    let head = read_head(cursor, flags)?;
    let file = if flags & HAS_FILE != 0 { Some(FileId(cursor.uleb32()?)) } else { None };
    let depth = cursor.uleb32()?;
    let (line, column) = (cursor.uleb32()?, cursor.uleb32()?);
    let mut last = base;
    for _ in 0..cursor.uleb()? {
        let start = last.wrapping_add(cursor.signed()?.cast_unsigned());
        last = start.checked_add(cursor.uleb()?)?;
        into.inline_ranges.push((start, last));
    }
    let ranges_end = u32::try_from(into.inline_ranges.len()).ok()?;
    into.inlines.push(RawInline { depth, head, call: CallSite { file, line, column }, ranges_end });
    Some(())
}
