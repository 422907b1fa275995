//! A function as the table tells it: from each address on, the call that the code belongs to and its location.

use super::spans::{Span, flatten};
use crate::body::MAX_DEPTH;
use crate::types::{CallSite, NameId};

/// The code of the function itself.
pub(crate) const OWN: u32 = u32::MAX;

/// A place in the source, the file by the number that the builder gave plus one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Location {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A range of a function by the function's index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) function: u32,
}

/// A function as it was added.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawFunction {
    pub(crate) is_function: bool,
    pub(crate) name: NameId,
    /// Where a symbol starts that names code without a function.
    pub(crate) symbol: Option<u64>,
    pub(crate) first_range: usize,
    pub(crate) inlines: Vec<RawInline>,
    pub(crate) inline_ranges: Vec<(u64, u64)>,
    pub(crate) rows: Vec<RawRow>,
}

/// An inlined call as it was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawInline {
    pub(crate) depth: u32,
    pub(crate) call: Inline,
    /// Index behind the call's last range.
    pub(crate) ranges_end: u32,
}

/// A line row as it was added, the file by its number plus one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRow {
    pub(crate) address: u64,
    pub(crate) at: Location,
}

/// An inlined call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inline {
    pub(crate) name: NameId,
    pub(crate) call: CallSite,
}

/// What holds from an address on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) address: u64,
    /// The innermost call, by its index; [`OWN`] for none.
    pub(crate) call: u32,
    pub(crate) at: Location,
}

impl Default for Step {
    fn default() -> Self {
        Self { address: 0, call: OWN, at: Location::default() }
    }
}

/// The steps of one function.
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
}

impl Steps {
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.piece_ends.clear();
        self.parents.clear();
        (self.too_deep, self.rows) = (0, 0);
    }
}

/// Finds the steps of functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolver {
    /// The ranges of the function, joined where they touch.
    pub(crate) joined: Vec<(u64, u64)>,
    /// Steps, each with the number of rows that start at it; some stand only for their rows. Calls by their places.
    pub(crate) steps: Vec<(Step, u32)>,
    /// Index behind each joined range's last step.
    pub(crate) ends: Vec<usize>,
    /// Where each call stands among those that have addresses.
    pub(crate) places: Vec<CallNumber>,
    /// The number of calls that have addresses.
    pub(crate) used: u32,
    /// Calls that are nested too deep.
    pub(crate) too_deep: u64,
    parents: Vec<u32>,
    spans: Vec<Span>,
    scratch: Vec<Span>,
    stack: Vec<u32>,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallNumber {
    /// Whether it, or a call in it, has addresses.
    pub(crate) is_used: bool,
    pub(crate) number: u32,
    /// Number of the call around plus one; 0 for the function itself.
    pub(crate) parent: u32,
}

impl Resolver {
    /// Resolves a function with its own ranges as they were added.
    pub(crate) fn resolve(&mut self, function: &mut RawFunction, ranges: &[RawRange]) {
        self.too_deep = 0;
        self.steps.clear();
        self.ends.clear();
        self.nest(function);
        self.join(ranges);
        if !function.rows.is_sorted_by_key(|row| row.address) {
            function.rows.sort_by_key(|row| row.address);
        }
        let joined = std::mem::take(&mut self.joined);
        for range in &joined {
            self.range(*range, function);
            self.ends.push(self.steps.len());
        }
        self.joined = joined;
        self.number();
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

    fn range(&mut self, (start, end): (u64, u64), function: &RawFunction) {
        let rows = function.rows.as_slice();
        let mut row = rows.partition_point(|row| row.address <= start);
        let first = row.checked_sub(1).and_then(|index| rows.get(index)).filter(|row| row.address >= start);
        let mut at = first.map(|row| row.at).unwrap_or_default();
        let mut row_count = u32::from(first.is_some());
        let mut span = self.spans.partition_point(|span| span.end <= start);
        let mut address = start;
        let mut last = None;
        while address < end {
            while self.spans.get(span).is_some_and(|span| span.end <= address) {
                span += 1;
            }
            let (call, call_change) = match self.spans.get(span) {
                Some(span) if span.start <= address => (span.owner, span.end),
                Some(span) => (OWN, span.start),
                None => (OWN, end),
            };
            if row_count > 0 || last != Some((call, at)) {
                self.steps.push((Step { address, call, at }, row_count));
                last = Some((call, at));
            }
            let row_change = rows.get(row).map_or(end, |row| row.address);
            address = end.min(call_change).min(row_change);
            row_count = 0;
            while let Some(next) = rows.get(row).filter(|next| next.address <= address && address < end) {
                at = next.at;
                row += 1;
                row_count += 1;
            }
        }
    }

    /// Leaves the calls out that have no address, nor any call in them.
    fn number(&mut self) {
        self.places.clear();
        self.places.resize(self.parents.len(), CallNumber::default());
        for (step, _) in &self.steps {
            let mut call = step.call;
            while let Some(place) = self.places.get_mut(call as usize).filter(|place| !place.is_used) {
                place.is_used = true;
                call = self.parents.get(call as usize).copied().unwrap_or(OWN);
            }
        }
        self.used = 0;
        for (index, parent) in self.parents.iter().enumerate() {
            // Callers come first.
            let parent = self.places.get(*parent as usize).map_or(0, |place| place.number + 1);
            if let Some(place) = self.places.get_mut(index).filter(|place| place.is_used) {
                (place.number, place.parent) = (self.used, parent);
                self.used += 1;
            }
        }
        for (step, _) in &mut self.steps {
            step.call = self.places.get(step.call as usize).map_or(OWN, |place| place.number);
        }
    }
}
