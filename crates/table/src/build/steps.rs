//! A function as the table tells it: from each address on, the call that the code belongs to and its location.

use super::batch::{RawFunction, RawRange, RawRow};
use super::spans::{Span, flatten};
use crate::body::MAX_DEPTH;

/// The code of the function itself.
pub(crate) const OWN: u32 = u32::MAX;

/// A place in the source, the file by the number that the builder gave plus one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Location {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// What holds from an address on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) address: u64,
    /// The innermost call, by its index; [`OWN`] for none.
    pub(crate) call: u32,
    pub(crate) at: Location,
}

/// The steps of one function, and room to work in.
#[derive(Default)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    /// Index behind each piece's last step.
    pub(crate) piece_ends: Vec<usize>,
    /// For each call the one around it.
    pub(crate) parents: Vec<u32>,
    /// Calls that are nested too deep.
    pub(crate) too_deep: u64,
    /// Rows that hold for one of the pieces.
    pub(crate) rows: u64,
    spans: Vec<Span>,
    joined: Vec<(u64, u64)>,
    scratch: Vec<Span>,
    stack: Vec<u32>,
}

impl Steps {
    /// Resolves a function whose own ranges are given as they were added and whose pieces as they were placed.
    pub(crate) fn resolve(&mut self, function: &mut RawFunction, ranges: &[RawRange], pieces: &[(u64, u64)]) {
        self.too_deep = 0;
        self.rows = 0;
        self.steps.clear();
        self.piece_ends.clear();
        self.nest(function);
        self.join(ranges);
        if !function.rows.is_sorted_by_key(|row| row.address) {
            function.rows.sort_by_key(|row| row.address);
        }
        for piece in pieces {
            self.piece(*piece, &function.rows);
            self.piece_ends.push(self.steps.len());
        }
    }

    /// Finds each call's caller, and who has which address.
    fn nest(&mut self, function: &RawFunction) {
        self.parents.clear();
        self.spans.clear();
        self.stack.clear();
        let mut start = 0;
        for (index, inline) in function.inlines.iter().enumerate() {
            let depth = (inline.depth.max(1) as usize - 1).min(self.stack.len());
            self.stack.truncate(depth);
            self.parents.push(self.stack.last().copied().unwrap_or(OWN));
            self.stack.push(index as u32);
            let ranges = function.inline_ranges.get(start..inline.ranges_end as usize).unwrap_or_default();
            start = inline.ranges_end as usize;
            self.too_deep += u64::from(depth >= MAX_DEPTH);
            let owner = index as u32;
            self.spans.extend(ranges.iter().map(|&(start, end)| Span { start, end, owner }));
        }
        flatten(&mut self.spans, &mut self.scratch);
        if self.too_deep > 0 {
            self.lift();
        }
    }

    /// Gives what is nested too deep to the deepest caller that the table tells.
    fn lift(&mut self) {
        let mut depths: Vec<usize> = Vec::with_capacity(self.parents.len());
        let mut owners: Vec<u32> = Vec::with_capacity(self.parents.len());
        for (index, parent) in self.parents.iter().enumerate() {
            let depth = depths.get(*parent as usize).map_or(1, |depth| depth + 1);
            let kept =
                if depth <= MAX_DEPTH { Some(index as u32) } else { owners.get(*parent as usize).copied() };
            depths.push(depth);
            owners.push(kept.unwrap_or(OWN));
        }
        for span in &mut self.spans {
            span.owner = owners.get(span.owner as usize).copied().unwrap_or(OWN);
        }
    }

    fn join(&mut self, ranges: &[RawRange]) {
        self.joined.clear();
        self.joined.extend(ranges.iter().map(|range| (range.start, range.end)));
        self.joined.sort_unstable();
        self.joined.dedup_by(|later, first| {
            let touches = later.0 <= first.1;
            first.1 = if touches { first.1.max(later.1) } else { first.1 };
            touches
        });
    }

    fn piece(&mut self, (start, end): (u64, u64), rows: &[RawRow]) {
        let around = self.joined.partition_point(|range| range.0 <= start);
        let range_start =
            around.checked_sub(1).and_then(|index| self.joined.get(index)).map_or(start, |range| range.0);
        let mut row = rows.partition_point(|row| row.address <= start);
        let first =
            row.checked_sub(1).and_then(|index| rows.get(index)).filter(|row| row.address >= range_start);
        let mut at = first.map(location).unwrap_or_default();
        self.rows += u64::from(first.is_some());
        let mut span = self.spans.partition_point(|span| span.end <= start);
        let first_step = self.steps.len();
        let mut address = start;
        while address < end {
            while self.spans.get(span).is_some_and(|span| span.end <= address) {
                span += 1;
            }
            let (call, call_change) = match self.spans.get(span) {
                Some(span) if span.start <= address => (span.owner, span.end),
                Some(span) => (OWN, span.start),
                None => (OWN, end),
            };
            let is_same = self.steps.get(first_step..).and_then(<[Step]>::last);
            if is_same.is_none_or(|last| (last.call, last.at) != (call, at)) {
                self.steps.push(Step { address, call, at });
            }
            let row_change = rows.get(row).map_or(end, |row| row.address);
            address = end.min(call_change).min(row_change);
            while let Some(next) = rows.get(row).filter(|next| next.address <= address && address < end) {
                at = location(next);
                row += 1;
                self.rows += 1;
            }
        }
    }
}

fn location(row: &RawRow) -> Location {
    let file = row.file.map_or(0, |file| file.0.saturating_add(1));
    Location { file, line: row.line, column: row.column }
}
