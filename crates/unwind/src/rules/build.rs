//! Compiling: every row of every table, in the order of methods that a [`Module`] has.

use super::packed::{Packed, wanted_slots};
use super::{GAP, Rules, SPECIAL};
use crate::Module;
use crate::cfi::Frames;
use crate::compact::{Compact, CompactFound};
use crate::module::Tables;
use crate::row::{Cfa, Expression, Miss, Row, Rule};
use crate::runtime::{RuntimeFrame, RuntimeFunction, RuntimeTable};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Family, Register, Svma, Trust};

/// Rows for a stretch of code should be this many on average: a search among them stays in one cache line.
const ROWS_PER_STRETCH: usize = 4;

pub(super) fn compile(module: &Module<'_>) -> Rules {
    let base = module.tables().first().map_or(Svma::new(0), |tables| tables.sections.image_base);
    let mut builder = Builder::new(module.family(), base);
    let mut rows = Vec::new();
    for tables in module.tables() {
        for table in tables_in_order(tables) {
            let new = builder.read(table, tables);
            rows = merge(rows, new);
        }
    }
    builder.finish(&rows)
}

/// A stretch of code with one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
    rule: u32,
}

#[derive(Clone, Copy)]
enum Table<'t, 'd> {
    Compact(&'t Compact<'d>),
    Frames(&'t Frames<'d>),
    Exidx(&'t crate::exidx::Exidx<'d>),
    Runtime(&'t dyn RuntimeTable),
}

fn tables_in_order<'t, 'd>(tables: &'t Tables<'d>) -> impl Iterator<Item = Table<'t, 'd>> {
    let compact = tables.compact.as_ref().map(Table::Compact);
    let debug_frame = tables.debug_frame.as_ref().map(Table::Frames);
    let eh_frame = tables.eh_frame.as_ref().map(Table::Frames);
    let exidx = tables.exidx.as_ref().map(Table::Exidx);
    let runtime = tables.sections.runtime.map(Table::Runtime);
    [runtime, compact, debug_frame, eh_frame, exidx].into_iter().flatten()
}

struct Builder {
    family: Family,
    base: Svma,
    interner: Interner,
    wide: Vec<Row>,
    expressions: Vec<u8>,
    known: BTreeMap<Vec<u8>, u32>,
    special: Vec<RuntimeFrame>,
}

impl Builder {
    fn new(family: Family, base: Svma) -> Self {
        Self {
            family,
            base,
            interner: Interner::new(),
            wide: Vec::new(),
            expressions: Vec::new(),
            known: BTreeMap::new(),
            special: Vec::new(),
        }
    }

    /// One table's spans, by address and without overlap.
    fn read(&mut self, table: Table<'_, '_>, tables: &Tables<'_>) -> Vec<Span> {
        let mut spans = Vec::new();
        match table {
            Table::Frames(frames) => {
                for fde in frames.sorted_fdes() {
                    self.read_fde(frames, &fde, &mut spans);
                }
            }
            Table::Compact(compact) => {
                for start in compact.starts() {
                    self.read_compact(compact, start, tables, &mut spans);
                }
            }
            Table::Runtime(runtime) => runtime.each(&mut |frame| self.read_runtime(&frame, &mut spans)),
            Table::Exidx(exidx) => {
                let starts: Vec<Svma> = exidx.starts().collect();
                let ends = starts.iter().skip(1).copied();
                for (start, end) in starts.iter().copied().zip(ends) {
                    match exidx.find(start) {
                        Ok(found) => self.push(found.covered, &found.row, found.trust, None, &mut spans),
                        // No gap: there is no caller.
                        Err(Miss::CannotUnwind) => {
                            let row = Row::new(Cfa::RegisterOffset(self.family.sp(), 0), Rule::Undefined);
                            self.push(AddrRange::new(start, end), &row, Trust::Exidx, None, &mut spans);
                        }
                        Err(Miss::NotCovered | Miss::NoRow | Miss::Malformed(_)) => {}
                    }
                }
            }
        }
        disjoint(&mut spans);
        spans
    }

    fn read_fde(&mut self, frames: &Frames<'_>, fde: &crate::cfi::Fde, spans: &mut Vec<Span>) {
        // A broken program: the rows before the fault are good.
        let _ = frames.each_row(fde, |range, row| self.push(range, row, Trust::Cfi, Some(frames), spans));
    }

    fn read_runtime(&mut self, frame: &RuntimeFrame, spans: &mut Vec<Span>) {
        if frame.kind == RuntimeFunction::Plain {
            if let Some(found) = frame.found(self.family) {
                self.push(found.covered, &found.row, found.trust, None, spans);
            }
            return;
        }
        let rva = |at: Svma| u32::try_from(at.offset_from(self.base)?).ok();
        if let (Some(start), Some(end)) = (rva(frame.covered.start()), rva(frame.covered.end())) {
            self.special.push(*frame);
            spans.push(Span { start, end, rule: SPECIAL });
        }
    }

    fn read_compact(
        &mut self,
        compact: &Compact<'_>,
        start: Svma,
        tables: &Tables<'_>,
        spans: &mut Vec<Span>,
    ) {
        match (compact.find(start), &tables.eh_frame) {
            (Ok(CompactFound::Row(found)), _) => {
                self.push(found.covered, &found.row, found.trust, None, spans);
            }
            (Ok(CompactFound::EhFrame(offset)), Some(frames)) => {
                if let Ok(fde) = frames.fde(offset as usize) {
                    self.read_fde(frames, &fde, spans);
                }
            }
            _ => {}
        }
    }

    fn push(
        &mut self,
        range: AddrRange<Svma>,
        row: &Row,
        trust: Trust,
        frames: Option<&Frames<'_>>,
        spans: &mut Vec<Span>,
    ) {
        let rva = |at: Svma| at.offset_from(self.base).and_then(|rva| u32::try_from(rva).ok());
        let (Some(start), Some(end)) = (rva(range.start()), rva(range.end())) else { return };
        let packed = match Packed::new(row, trust, self.family) {
            Some(packed) => Some(packed),
            None => self.widen(row, trust, frames),
        };
        let Some(packed) = packed else { return };
        let rule = self.interner.number(&packed);
        match spans.last_mut() {
            Some(last) if last.end == start && last.rule == rule => last.end = end,
            _ => spans.push(Span { start, end, rule }),
        }
    }

    /// Keeps a full row, with its expressions' bytes copied to where the compiled rules have them.
    fn widen(&mut self, row: &Row, trust: Trust, frames: Option<&Frames<'_>>) -> Option<Packed> {
        let mut row = *row;
        let mut copied = |expression: Expression| {
            let bytes = frames.and_then(|frames| frames.expression(expression))?;
            let start = match self.known.get(bytes) {
                Some(start) => *start,
                None => {
                    let start = u32::try_from(self.expressions.len()).ok()?;
                    self.expressions.extend_from_slice(bytes);
                    self.known.insert(bytes.to_vec(), start);
                    start
                }
            };
            Some(Expression { start, table: 0, ..expression })
        };
        if let Cfa::Expression(expression) = row.cfa {
            row.cfa = Cfa::Expression(copied(expression)?);
        }
        let mut moved = |rule: Rule| {
            Some(match rule {
                Rule::Expression(expression) => Rule::Expression(copied(expression)?),
                Rule::ValueExpression(expression) => Rule::ValueExpression(copied(expression)?),
                other => other,
            })
        };
        row.return_address = moved(row.return_address)?;
        for (register, rule) in row.clone().rules() {
            row.set(register, moved(rule)?);
        }
        // Few enough that looking through them costs nothing: the newest is the likeliest.
        let number = match self.wide.iter().rev().take(64).position(|known| *known == row) {
            Some(back) => self.wide.len() - 1 - back,
            None => {
                self.wide.push(row);
                self.wide.len() - 1
            }
        };
        Packed::for_wide(number, trust)
    }

    fn finish(self, spans: &[Span]) -> Rules {
        let (mut starts, mut indices) =
            (Vec::with_capacity(spans.len() + 1), Vec::with_capacity(spans.len() + 1));
        let mut end = None;
        for span in spans {
            if let Some(end) = end.filter(|end| *end < span.start) {
                starts.push(end);
                indices.push(GAP);
            }
            starts.push(span.start);
            indices.push(span.rule);
            end = Some(span.end);
        }
        if let Some(end) = end {
            starts.push(end);
            indices.push(GAP);
        }
        let (stretches, shift) = stretches(&starts);
        let bases = self.bases();
        let mut special = self.special;
        special.sort_by_key(|frame| frame.covered.start());
        Rules {
            bases,
            special,
            family: self.family,
            image_base: self.base,
            starts,
            indices,
            stretches,
            shift,
            rules: self.interner.rules,
            wide: self.wide,
            expressions: self.expressions,
        }
    }
}

impl Builder {
    /// Which callee-saved registers the rules count from. In expressions every byte that may be an operation on a
    /// register counts as one.
    fn bases(&self) -> u16 {
        let family = self.family;
        let packed = self.interner.rules.iter().fold(0, |all, rule| all | rule.base_slot(family));
        let in_expression = |register: Register| {
            let operations = [0x50u8, 0x70].map(|first| first.checked_add(register.0));
            self.expressions.iter().any(|byte| operations.contains(&Some(*byte)))
        };
        let in_row = |register: Register| {
            self.wide.iter().any(|row| {
                let is_base = matches!(row.cfa, Cfa::RegisterOffset(by, _) if by == register);
                let is_source = |rule: Rule| rule == Rule::Register(register);
                is_base || is_source(row.return_address) || row.rules().any(|(_, rule)| is_source(rule))
            })
        };
        let is_saved = |register: Register| {
            self.special.iter().any(|frame| frame.kind == RuntimeFunction::Saved(register))
        };
        let is_base = |register| in_expression(register) || in_row(register) || is_saved(register);
        packed | wanted_slots(family, is_base)
    }
}

/// Of spans sorted by start, cuts each where the next begins.
fn disjoint(spans: &mut Vec<Span>) {
    spans.sort_by_key(|span| span.start);
    let mut next = u32::MAX;
    for span in spans.iter_mut().rev() {
        span.end = span.end.min(next);
        next = span.start;
    }
    spans.retain(|span| span.start < span.end);
}

/// Fills the gaps of `first` with what `second` has there.
fn merge(first: Vec<Span>, second: Vec<Span>) -> Vec<Span> {
    if first.is_empty() || second.is_empty() {
        return if first.is_empty() { second } else { first };
    }
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let mut others = second.into_iter().peekable();
    let mut free = 0;
    let end = Span { start: u32::MAX, end: u32::MAX, rule: GAP };
    for span in first.into_iter().chain([end]) {
        while let Some(other) = others.peek_mut() {
            if other.start >= span.start {
                break;
            }
            let start = other.start.max(free);
            let stop = other.end.min(span.start);
            if start < stop {
                merged.push(Span { start, end: stop, rule: other.rule });
            }
            if other.end > span.start {
                other.start = span.start;
                break;
            }
            others.next();
        }
        free = span.end;
        if span.rule != GAP {
            merged.push(span);
        }
        while others.next_if(|other| other.end <= free).is_some() {}
        if let Some(other) = others.peek_mut() {
            other.start = other.start.max(free);
        }
    }
    merged
}

/// For each stretch the first row in it or later, with one more at the end; and how wide a stretch is.
fn stretches(starts: &[u32]) -> (Vec<u32>, u32) {
    let (Some(first), Some(last)) = (starts.first(), starts.last()) else { return (Vec::new(), 31) };
    let bytes = u64::from(last - first) + 1;
    let wanted = (starts.len() / ROWS_PER_STRETCH).max(1) as u64;
    let shift = (bytes / wanted).max(1).ilog2().min(31);
    let count = usize::try_from(bytes >> shift).unwrap_or(0) + 2;
    let mut stretches = vec![u32::try_from(starts.len()).unwrap_or(u32::MAX); count];
    for (row, start) in (0u32..).zip(starts) {
        if let Some(place) = stretches.get_mut(((start - first) >> shift) as usize) {
            *place = row.min(*place);
        }
    }
    let mut next = u32::try_from(starts.len()).unwrap_or(u32::MAX);
    for place in stretches.iter_mut().rev() {
        *place = next.min(*place);
        next = *place;
    }
    (stretches, shift)
}

/// Numbers distinct rules in the order of their coming. `alloc` has no hash table; this one needs no removal.
struct Interner {
    rules: Vec<Packed>,
    slots: Vec<u32>,
}

impl Interner {
    fn new() -> Self {
        Self { rules: Vec::new(), slots: vec![GAP; 1024] }
    }

    fn number(&mut self, rule: &Packed) -> u32 {
        if self.rules.len() * 2 > self.slots.len() {
            self.grow();
        }
        let slot = self.slot(rule);
        match self.slots.get_mut(slot) {
            Some(place) if *place == GAP => {
                *place = u32::try_from(self.rules.len()).unwrap_or(GAP);
                self.rules.push(*rule);
                *place
            }
            Some(place) => *place,
            None => GAP,
        }
    }

    fn grow(&mut self) {
        self.slots = vec![GAP; self.slots.len() * 2];
        for number in 0..self.rules.len() {
            if let Some(rule) = self.rules.get(number).copied() {
                let slot = self.slot(&rule);
                if let Some(place) = self.slots.get_mut(slot) {
                    *place = u32::try_from(number).unwrap_or(GAP);
                }
            }
        }
    }

    /// Where the rule is, or may be put. The table is never full, so the search ends.
    fn slot(&self, rule: &Packed) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = rule.digest() as usize & mask;
        while let Some(number) = self.slots.get(slot).filter(|number| **number != GAP) {
            if self.rules.get(*number as usize) == Some(rule) {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }
}
