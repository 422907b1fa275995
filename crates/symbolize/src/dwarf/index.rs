//! From an address to the units that claim it.

use super::budget::Budget;
use super::file::DwarfFile;
use super::spans::{self, Span};
use super::unit::Unit;
use super::value::Pcs;
use super::view::View;
use crate::parallel;
use gimli::constants as dw;
use std::collections::BTreeMap;

/// The units of a file by address.
#[derive(Default)]
pub(crate) struct AddressIndex {
    /// Sorted and disjoint. The owner is a unit's index, or [`SHARED`] plus an index into `shared`.
    spans: Vec<Span>,
    /// Units that claim the same addresses, lowest offset first.
    shared: Vec<Box<[u32]>>,
    /// Units that may hold code and do not say where.
    unranged: Vec<u32>,
}

const SHARED: u32 = 1 << 31;

/// Units at one address beyond this number are not asked: code belongs to one unit, and to a few where a linker folded
/// identical functions.
const MAX_SHARED: usize = 8;

/// Roots of units that a thread reads at a time; fewer are not worth a thread of their own.
const ROOTS: usize = 64;

/// What one unit adds to the index.
enum Claim {
    Spans(Vec<Span>),
    Unranged(u32),
    None,
}

impl AddressIndex {
    /// Looks at the root DIE of each unit.
    pub(crate) fn of_units<'d>(file: &DwarfFile<'d>) -> Self {
        let units = file.all_units();
        // Units may share range lists.
        let budget = Budget::new(4 * file.range_bytes() + units.len() as u64);
        let claim = |index: usize, unit: &Unit<'d>| match u32::try_from(index) {
            Ok(index) => claim_of_root(file, unit, index, &budget),
            Err(_) => Claim::None,
        };
        Self::from_claims(parallel::map(units, ROOTS, claim))
    }

    /// Looks at the functions of some units.
    pub(crate) fn of_functions(file: &DwarfFile<'_>, units: &[u32]) -> Self {
        let claim = |_, index: &u32| {
            let unit = file.all_units().get(*index as usize);
            match unit.and_then(|unit| file.view(unit)) {
                Some(view) => {
                    let spans = view.all_functions().spans().iter();
                    Claim::Spans(spans.map(|span| Span { owner: *index, ..*span }).collect())
                }
                None => Claim::None,
            }
        };
        Self::from_claims(parallel::map(units, 1, claim))
    }

    fn from_claims(claims: Vec<Claim>) -> Self {
        let mut spans = Vec::new();
        let mut unranged = Vec::new();
        for claim in claims {
            match claim {
                Claim::Spans(of_unit) => spans.extend(of_unit),
                Claim::Unranged(unit) => unranged.push(unit),
                Claim::None => {}
            }
        }
        let mut index = Self::of_spans(spans);
        index.unranged = unranged;
        index
    }

    /// From spans whose owners are units.
    pub(crate) fn of_spans(mut spans: Vec<Span>) -> Self {
        // Those of one unit rise already, for the greater part: that makes a stable sort the faster one.
        spans.sort_by_key(|span| (span.start, span.owner));
        let overlaps = spans.windows(2).any(|pair| matches!(pair, [a, b] if b.start < a.end));
        if overlaps { Self::of_overlapping(&spans) } else { Self { spans, ..Self::default() } }
    }

    /// Goes up the address space with the set of units that claim it.
    fn of_overlapping(spans: &[Span]) -> Self {
        let mut ends: Vec<_> = spans.iter().map(|span| (span.end, span.owner)).collect();
        ends.sort();
        let mut index = Self::default();
        let mut active: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut starts, mut ends) = (spans.iter().peekable(), ends.into_iter().peekable());
        let mut at = 0;
        while let Some((end, owner)) = ends.peek().copied() {
            let (next, owner, is_start) = match starts.peek() {
                Some(span) if span.start < end => (span.start, span.owner, true),
                _ => (end, owner, false),
            };
            index.push(at, next, &active);
            at = next;
            if is_start {
                starts.next();
                *active.entry(owner).or_default() += 1;
            } else {
                ends.next();
                if let Some(count) = active.get_mut(&owner) {
                    *count -= 1;
                    if *count == 0 {
                        active.remove(&owner);
                    }
                }
            }
        }
        index
    }

    fn push(&mut self, start: u64, end: u64, active: &BTreeMap<u32, u32>) {
        let mut units = active.keys().copied();
        let Some(first) = units.next().filter(|_| start < end) else { return };
        let mut owner = first;
        if active.len() > 1 {
            let list: Box<[u32]> = std::iter::once(first).chain(units).take(MAX_SHARED).collect();
            if self.shared.last() != Some(&list) {
                self.shared.push(list);
            }
            owner = SHARED + (self.shared.len() - 1) as u32;
        }
        match self.spans.last_mut() {
            Some(last) if last.end == start && last.owner == owner => last.end = end,
            _ => self.spans.push(Span { start, end, owner }),
        }
    }

    /// The units that claim an address, lowest offset first.
    pub(crate) fn find(&self, address: u64) -> &[u32] {
        let Some(span) = spans::find(&self.spans, address) else { return &[] };
        match span.owner.checked_sub(SHARED) {
            Some(list) => self.shared.get(list as usize).map_or(&[], |list| list),
            None => std::slice::from_ref(&span.owner),
        }
    }

    /// Calls `each` with start, end and unit of every claim.
    pub(crate) fn each(&self, each: &mut impl FnMut(u64, u64, u32)) {
        for span in &self.spans {
            match span.owner.checked_sub(SHARED) {
                Some(list) => {
                    let units = self.shared.get(list as usize).map_or(&[][..], |list| list);
                    units.iter().for_each(|unit| each(span.start, span.end, *unit));
                }
                None => each(span.start, span.end, span.owner),
            }
        }
    }

    /// Units that may hold code and do not say where.
    pub(crate) fn unranged(&self) -> &[u32] {
        &self.unranged
    }
}

fn claim_of_root<'d>(file: &DwarfFile<'d>, unit: &Unit<'d>, index: u32, budget: &Budget) -> Claim {
    if !unit.header.may_hold_code() {
        return Claim::None;
    }
    let body = match file.read_root_only(&unit.header) {
        Ok(Some(body)) => body,
        Ok(None) => return Claim::None,
        Err(error) => {
            file.problems.unit(unit.header.offset, error);
            return Claim::None;
        }
    };
    let pcs = Pcs::from(&body.root);
    if !pcs.is_some() {
        return if body.root.tag == dw::DW_TAG_partial_unit.0 { Claim::None } else { Claim::Unranged(index) };
    }
    let view = View { file, main: file, unit, body: &body };
    Claim::Spans(root_spans(view, &pcs, index, budget))
}

fn root_spans(view: View<'_, '_>, pcs: &Pcs, index: u32, budget: &Budget) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let max_address = view.unit.header.encoding.max_address();
    view.ranges(pcs, &mut |start, end| {
        if view.main.code.is_live(start, max_address) {
            match spans.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => spans.push(Span { start, end, owner: index }),
            }
        }
        budget.spend(1)
    });
    spans
}
