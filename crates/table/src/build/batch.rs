//! One worker's functions, packed.

use super::steps::{Inline, Location, RawFunction, RawInline, RawRange, RawRow, Resolver, Step, Steps};
use crate::bytes::{Cursor, put_signed, put_uleb};
use crate::types::{CallSite, FileId, NameId};
use backtrail_core::{AddrRange, Svma};

/// The functions and lines of one unit, on their way into a [`Builder`](crate::Builder).
///
/// For each function: [`begin_function`](Self::begin_function), then [`inline`](Self::inline) for each inlined call in
/// the order of the tree, callers before what they call, then [`row`](Self::row) for each line row, then
/// [`end_function`](Self::end_function). Rows of code that belongs to no function stand between
/// [`begin_lines`](Self::begin_lines) or [`begin_symbol`](Self::begin_symbol) and `end_function` in the same way.
///
/// Where functions of a unit overlap, the one that starts last has the address, among those that start together the
/// one that was added last; the same holds for the inlined calls of a function. A call's callers are those that were
/// added around it, whatever their ranges say. An address that two units have a function for belongs to the unit with
/// the lower number.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Of each function what holds from each address on, as if it had all of its ranges.
    pub(crate) bytes: Vec<u8>,
    pub(crate) ranges: Vec<RawRange>,
    /// Where each function's bytes start.
    pub(crate) functions: Vec<u32>,
    /// Of each, whether it is a function, not lines alone.
    are_functions: Vec<bool>,
    /// The function that was begun last.
    open: RawFunction,
    resolver: Resolver,
}

/// A function, read again.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) is_function: bool,
    pub(crate) name: NameId,
    /// Where a symbol starts that names code without a function.
    pub(crate) symbol: Option<u64>,
    /// The calls that have addresses.
    pub(crate) inlines: Vec<Inline>,
    pub(crate) steps: Steps,
    ranges: Vec<(u64, u64)>,
    events: Vec<Event>,
}

/// A place where something changes, or a row starts that changes nothing.
#[derive(Clone, Copy)]
struct Event {
    step: Step,
    is_change: bool,
    /// Rows that start here.
    rows: u64,
}

/// The first byte of a function that is told by a symbol; of others it is 1, of lines alone 0.
const OF_SYMBOL: u8 = 2;

// In the first byte of an event.
const NEW_CALL: u8 = 1;
const NEW_FILE: u8 = 2;
const NEW_LINE: u8 = 4;
const NEW_COLUMN: u8 = 8;
const HAS_ROW: u8 = 16;
/// The number of rows is told.
const HAS_ROWS: u8 = 32;
const NEW: u8 = NEW_CALL | NEW_FILE | NEW_LINE | NEW_COLUMN;

impl Batch {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a function. Empty ranges are left out.
    pub fn begin_function(&mut self, name: NameId, ranges: &[AddrRange<Svma>]) {
        self.begin(true, name, None, ranges);
    }

    /// Starts code that has lines, and of which a symbol alone says what it is called: a function whose start is that of
    /// the symbol, which may lie below the ranges where debug info has another function there.
    pub fn begin_symbol(&mut self, name: NameId, start: Svma, ranges: &[AddrRange<Svma>]) {
        self.begin(true, name, Some(start.get()), ranges);
    }

    /// Starts code that has lines and belongs to no function. Where it overlaps with a function of any unit, the
    /// function has the address; where with other such code, the unit with the lower number.
    pub fn begin_lines(&mut self, ranges: &[AddrRange<Svma>]) {
        self.begin(false, NameId::default(), None, ranges);
    }

    fn begin(&mut self, is_function: bool, name: NameId, symbol: Option<u64>, ranges: &[AddrRange<Svma>]) {
        let function = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
        let open = &mut self.open;
        (open.is_function, open.name, open.symbol) = (is_function, name, symbol);
        open.first_range = self.ranges.len();
        open.inlines.clear();
        open.inline_ranges.clear();
        open.rows.clear();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            self.ranges.push(RawRange { start: range.start().get(), end: range.end().get(), function });
        }
    }

    /// Adds an inlined call. `depth` is 1 for what was inlined into the function itself, 2 for what was inlined into
    /// that, and so on; never more than one above the call before.
    pub fn inline(
        &mut self,
        depth: u32,
        name: NameId,
        call: CallSite,
        ranges: impl IntoIterator<Item = AddrRange<Svma>>,
    ) {
        let open = &mut self.open;
        let ranges = ranges.into_iter().map(|range| (range.start().get(), range.end().get()));
        open.inline_ranges.extend(ranges);
        let ranges_end = u32::try_from(open.inline_ranges.len()).unwrap_or(u32::MAX);
        open.inlines.push(RawInline { depth, call: Inline { name, call }, ranges_end });
    }

    /// Adds a line row. It holds up to the next row or the end of the function's range that it is in; from the start of
    /// a range to its first row there is no location. Of rows with the same address the last one counts. A row without
    /// a file and with line 0 says that from here on there is no location.
    #[inline]
    pub fn row(&mut self, address: Svma, file: Option<FileId>, line: u32, column: u32) {
        let at = Location { file: file.map_or(0, |file| file.0.wrapping_add(1)), line, column };
        self.open.rows.push(RawRow { address: address.get(), at });
    }

    /// Ends the function.
    pub fn end_function(&mut self) {
        let Self { bytes, ranges, functions, are_functions, open, resolver } = self;
        functions.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        are_functions.push(open.is_function);
        resolver.resolve(open, ranges.get(open.first_range..).unwrap_or_default());
        bytes.push(if open.symbol.is_some() { OF_SYMBOL } else { u8::from(open.is_function) });
        open.symbol.iter().for_each(|start| put_uleb(bytes, *start));
        put_uleb(bytes, u64::from(open.name.0));
        put_uleb(bytes, resolver.too_deep);
        put_uleb(bytes, u64::from(resolver.used));
        for (inline, place) in open.inlines.iter().zip(&resolver.places).filter(|(_, place)| place.is_used) {
            put_inline(bytes, &inline.call, place.parent);
        }
        put_uleb(bytes, resolver.joined.len() as u64);
        let mut at = 0u64;
        for range in &resolver.joined {
            put_signed(bytes, range.0.wrapping_sub(at).cast_signed());
            put_uleb(bytes, range.1 - range.0);
            at = range.1;
        }
        let (mut first, mut last) = (0, Step::default());
        for (range, end) in resolver.joined.iter().zip(&resolver.ends) {
            let steps = resolver.steps.get(first..*end).unwrap_or_default();
            first = *end;
            put_uleb(bytes, steps.len() as u64);
            last.address = range.0;
            steps.iter().for_each(|(step, rows)| put_event(bytes, &mut last, step, *rows));
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Bytes that the batch takes in memory.
    pub fn size(&self) -> usize {
        let functions = size_of_val(self.functions.as_slice()) + self.are_functions.len();
        self.bytes.len() + size_of_val(self.ranges.as_slice()) + functions
    }

    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ranges.shrink_to_fit();
        self.functions.shrink_to_fit();
        self.are_functions.shrink_to_fit();
        (self.open, self.resolver) = Default::default();
    }
}

/// Tells a call, its caller as the number of one before it plus one, 0 for the function itself.
fn put_inline(bytes: &mut Vec<u8>, inline: &Inline, parent: u32) {
    let file = inline.call.file.map_or(0, |file| u64::from(file.0) + 1);
    for number in [parent, inline.call.line, inline.call.column, inline.name.0] {
        put_uleb(bytes, u64::from(number));
    }
    put_uleb(bytes, file);
}

fn put_event(bytes: &mut Vec<u8>, last: &mut Step, step: &Step, rows: u32) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let rows_flag = match rows {
        0 => 0,
        1 => HAS_ROW,
        _ => HAS_ROWS,
    };
    let flags = flag(last.call != step.call, NEW_CALL)
        | flag(last.at.file != step.at.file, NEW_FILE)
        | flag(last.at.line != step.at.line, NEW_LINE)
        | flag(last.at.column != step.at.column, NEW_COLUMN)
        | rows_flag;
    bytes.push(flags);
    put_uleb(bytes, step.address.wrapping_sub(last.address));
    if flags & NEW_CALL != 0 {
        put_signed(bytes, i64::from(step.call.wrapping_sub(last.call).cast_signed()));
    }
    if flags & NEW_FILE != 0 {
        put_uleb(bytes, u64::from(step.at.file));
    }
    if flags & NEW_LINE != 0 {
        put_signed(bytes, i64::from(step.at.line) - i64::from(last.at.line));
    }
    if flags & NEW_COLUMN != 0 {
        put_uleb(bytes, u64::from(step.at.column));
    }
    if flags & HAS_ROWS != 0 {
        put_uleb(bytes, u64::from(rows));
    }
    *last = *step;
}

impl Batch {
    /// How many functions there are, without lines alone.
    pub(crate) fn function_count(&self) -> usize {
        self.are_functions.iter().filter(|is_function| **is_function).count()
    }

    /// Whether it is a function, not lines alone.
    pub(crate) fn is_function(&self, function: u32) -> bool {
        self.are_functions.get(function as usize).is_some_and(|is_function| *is_function)
    }

    /// Reads a function that has these addresses of its ranges, sorted, none touching.
    pub(crate) fn read(&self, function: u32, pieces: &[(u64, u64)], into: &mut Function) -> Option<()> {
        let start = *self.functions.get(function as usize)?;
        let mut cursor = Cursor::at(&self.bytes, start as usize);
        into.read(&mut cursor, pieces)
    }
}

impl Function {
    fn read(&mut self, cursor: &mut Cursor<'_>, pieces: &[(u64, u64)]) -> Option<()> {
        let steps = &mut self.steps;
        steps.clear();
        let kind = cursor.u8()?;
        self.is_function = kind != 0;
        self.symbol = if kind == OF_SYMBOL { Some(cursor.uleb()?) } else { None };
        self.name = NameId(cursor.uleb32()?);
        steps.too_deep = cursor.uleb()?;
        self.inlines.clear();
        for _ in 0..cursor.uleb()? {
            steps.parents.push(cursor.uleb32()?.wrapping_sub(1));
            let (line, column, name) = (cursor.uleb32()?, cursor.uleb32()?, NameId(cursor.uleb32()?));
            let file = cursor.uleb32()?.checked_sub(1).map(FileId);
            self.inlines.push(Inline { name, call: CallSite { file, line, column } });
        }
        self.ranges.clear();
        let mut at = 0u64;
        for _ in 0..cursor.uleb()? {
            let start = at.wrapping_add(cursor.signed()?.cast_unsigned());
            at = start.wrapping_add(cursor.uleb()?);
            self.ranges.push((start, at));
        }
        if self.ranges == pieces { self.read_whole(cursor) } else { self.read_pieces(cursor, pieces) }
    }

    fn read_whole(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let steps = &mut self.steps;
        let mut last = Step::default();
        for range in &self.ranges {
            last.address = range.0;
            for number in 0..cursor.uleb()? {
                let event = read_event(cursor, last)?;
                last = event.step;
                steps.rows += event.rows;
                if event.is_change || number == 0 {
                    steps.steps.push(last);
                }
            }
            steps.piece_ends.push(steps.steps.len());
        }
        Some(())
    }

    /// Reads a function that others have some of the addresses of.
    fn read_pieces(&mut self, cursor: &mut Cursor<'_>, pieces: &[(u64, u64)]) -> Option<()> {
        let mut last = Step::default();
        let mut pieces = pieces.iter().peekable();
        for range in &self.ranges {
            last.address = range.0;
            self.events.clear();
            for _ in 0..cursor.uleb()? {
                let event = read_event(cursor, last)?;
                last = event.step;
                self.events.push(event);
            }
            while let Some(piece) = pieces.next_if(|piece| piece.0 < range.1) {
                cut(&self.events, *piece, &mut self.steps);
            }
        }
        Some(())
    }
}

/// Adds what holds in a piece of a range.
fn cut(events: &[Event], (start, end): (u64, u64), steps: &mut Steps) {
    let behind = events.partition_point(|event| event.step.address <= start);
    let (before, after) = events.split_at(behind.min(events.len()));
    if let Some(event) = before.last() {
        steps.steps.push(Step { address: start, ..event.step });
        steps.rows += u64::from(before.iter().any(|event| event.rows > 0));
    }
    for event in after.iter().take_while(|event| event.step.address < end) {
        steps.rows += event.rows;
        if event.is_change {
            steps.steps.push(event.step);
        }
    }
    steps.piece_ends.push(steps.steps.len());
}

#[inline]
fn read_event(cursor: &mut Cursor<'_>, last: Step) -> Option<Event> {
    let flags = cursor.u8()?;
    let mut step = last;
    step.address = step.address.wrapping_add(cursor.uleb()?);
    if flags & NEW_CALL != 0 {
        step.call = step.call.wrapping_add(cursor.signed()? as u32);
    }
    if flags & NEW_FILE != 0 {
        step.at.file = cursor.uleb32()?;
    }
    if flags & NEW_LINE != 0 {
        step.at.line = u32::try_from(i64::from(step.at.line) + cursor.signed()?).ok()?;
    }
    if flags & NEW_COLUMN != 0 {
        step.at.column = cursor.uleb32()?;
    }
    let rows = match flags & (HAS_ROW | HAS_ROWS) {
        0 => 0,
        HAS_ROW => 1,
        _ => cursor.uleb()?,
    };
    Some(Event { step, is_change: flags & NEW != 0, rows })
}
