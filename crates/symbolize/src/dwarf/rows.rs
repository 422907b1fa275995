//! All rows of a unit's line program, for conversions.

use super::files::FileTable;
use super::line_program::{Event, Location, Machine};
use super::lines::{Program, define_file};
use super::spans::{self, Span};
use super::view::View;
use crate::malformed::Malformed;

/// The rows of one unit.
#[derive(Default)]
pub(crate) struct Rows {
    /// Of each sequence that is kept one after the other, sorted by address in itself.
    rows: Vec<(u64, Location)>,
    /// Where sequences lie, disjoint and sorted. Owners are indices into `sequences`.
    spans: Vec<Span>,
    /// Index ranges of `rows`.
    sequences: Vec<(u32, u32)>,
    pub(crate) files: FileTable,
    /// Sequences of code that was dropped.
    pub(crate) dead: u64,
}

const SECTION: &str = ".debug_line";

impl Rows {
    /// Runs the line program of a unit, in the place of what was there. Where it is broken, the sequences before count,
    /// and the error is told.
    pub(crate) fn read(&mut self, view: View<'_, '_>) -> Option<Malformed> {
        self.rows.clear();
        self.spans.clear();
        self.sequences.clear();
        self.dead = 0;
        self.files = FileTable::default();
        let offset = view.line_offset()?;
        let malformed = |expected| Some(Malformed { section: SECTION, offset, expected });
        let Some(program) = Program::open(view, offset) else {
            return malformed("a line program header of version 2, 3, 4 or 5");
        };
        self.files = program.files;
        let max_address = view.unit.header.encoding.max_address();
        let mut machine = Machine::new(&program.opcodes, program.reader);
        let complete = self.run(&mut machine, |first| view.main.code.is_live(first, max_address));
        self.files.files.extend(machine.defined_files.iter().filter_map(|entry| define_file(*entry)));
        self.number();
        if complete.is_none() { malformed("a line program that runs to its end") } else { None }
    }

    fn run(&mut self, machine: &mut Machine<'_>, is_live: impl Fn(u64) -> bool) -> Option<()> {
        let mut first = 0;
        let complete = machine.run(&mut |event, address, location| match event {
            Event::Row => self.rows.push((address, location)),
            _ => {
                self.close(first, address, &is_live);
                first = self.rows.len();
            }
        });
        // A sequence that does not end is none.
        self.rows.truncate(first);
        complete
    }

    /// Ends the sequence whose rows start at an index.
    fn close(&mut self, first: usize, end: u64, is_live: impl Fn(u64) -> bool) {
        let rows = self.rows.get_mut(first..).unwrap_or_default();
        let Some(&(first_address, _)) = rows.first() else { return };
        if !rows.is_sorted_by_key(|(address, _)| *address) {
            rows.sort_by_key(|(address, _)| *address);
        }
        let start = rows.first().map_or(0, |(address, _)| *address);
        let sequence = u32::try_from(first).ok().zip(u32::try_from(self.rows.len()).ok());
        match sequence {
            Some(sequence) if start < end && is_live(first_address) => {
                self.spans.push(Span { start, end, owner: self.sequences.len() as u32 });
                self.sequences.push(sequence);
            }
            _ => {
                self.dead += 1;
                self.rows.truncate(first);
            }
        }
    }

    /// Numbers the sequences by start and end, so that where they overlap the same one counts as in lookups.
    fn number(&mut self) {
        if !self.spans.is_sorted_by_key(|span| (span.start, span.end)) {
            self.spans.sort_by_key(|span| (span.start, span.end));
            let sorted =
                self.spans.iter().filter_map(|span| self.sequences.get(span.owner as usize).copied());
            self.sequences = sorted.collect();
            for (owner, span) in (0u32..).zip(self.spans.iter_mut()) {
                span.owner = owner;
            }
        }
        self.spans = spans::flatten(std::mem::take(&mut self.spans));
    }

    /// Where there are rows: sorted and disjoint.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Calls `each` with the address and location of what holds from `start` to `end`, ascending; `None` where there is
    /// no row. Of rows at one address only the last one counts.
    pub(crate) fn between(&self, start: u64, end: u64, each: &mut impl FnMut(u64, Option<Location>)) {
        let first = self.spans.partition_point(|span| span.end <= start);
        let mut at = start;
        for span in self.spans.iter().skip(first).take_while(|span| span.start < end) {
            let from = span.start.max(start);
            if from > at {
                each(at, None);
            }
            self.of_sequence(span.owner, from, span.end.min(end), each);
            at = span.end.min(end);
        }
        if at < end {
            each(at, None);
        }
    }

    fn of_sequence(&self, sequence: u32, start: u64, end: u64, each: &mut impl FnMut(u64, Option<Location>)) {
        let rows = self.sequences.get(sequence as usize);
        let rows = rows.and_then(|(first, end)| self.rows.get(*first as usize..*end as usize));
        let rows = rows.unwrap_or_default();
        let behind = rows.partition_point(|(address, _)| *address <= start);
        let Some((_, location)) = behind.checked_sub(1).and_then(|index| rows.get(index)) else { return };
        each(start, Some(*location));
        let mut rest = rows.get(behind..).unwrap_or_default().iter().peekable();
        while let Some((address, location)) = rest.next().filter(|(address, _)| *address < end) {
            if rest.peek().is_none_or(|(next, _)| next != address) {
                each(*address, Some(*location));
            }
        }
    }

    /// Whether a row starts between two addresses.
    pub(crate) fn starts_between(&self, start: u64, end: u64) -> bool {
        let mut starts = false;
        let first = self.spans.partition_point(|span| span.end <= start);
        for span in self.spans.iter().skip(first).take_while(|span| span.start < end) {
            let rows = self.sequences.get(span.owner as usize);
            let rows = rows.and_then(|(first, end)| self.rows.get(*first as usize..*end as usize));
            let rows = rows.unwrap_or_default();
            let from = rows.partition_point(|(address, _)| *address < span.start.max(start));
            starts |= rows.get(from).is_some_and(|(address, _)| *address < span.end.min(end));
        }
        starts
    }
}
