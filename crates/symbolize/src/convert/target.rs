//! Which addresses of a unit go into the table, and where.

use crate::dwarf::Claim;

/// Where the code of a unit is kept.
pub(super) enum Target<'t> {
    /// At its own addresses, as far as lookups ask the unit for them. Second, sorted, the ranges that they ask other
    /// units for, too.
    Claimed(&'t Claim, &'t [(u64, u64)]),
    /// At the addresses that the linker gave it: sorted, disjoint pieces of the unit's address space.
    Linked(&'t [Linked]),
}

/// Code of an object file that was linked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Linked {
    pub(super) start: u64,
    pub(super) end: u64,
    /// What to add (wrapping) to get the linked address.
    pub(super) shift: u64,
}

impl Target<'_> {
    /// Whether code without function is kept.
    pub(super) fn wants_lines(&self) -> bool {
        !matches!(self, Self::Claimed(Claim::Functions | Claim::None, _))
    }

    /// Calls `each` with the parts of a range that are kept, and the shift of each.
    pub(super) fn clip(&self, start: u64, end: u64, each: &mut impl FnMut(u64, u64, u64)) {
        match self {
            Self::Claimed(Claim::None, _) => {}
            Self::Claimed(Claim::Functions, _) => each(start, end, 0),
            Self::Claimed(Claim::Ranges(ranges), _) => {
                let first = ranges.partition_point(|range| range.1 <= start);
                for range in ranges.iter().skip(first).take_while(|range| range.0 < end) {
                    each(range.0.max(start), range.1.min(end), 0);
                }
            }
            Self::Linked(linked) => {
                let first = linked.partition_point(|linked| linked.end <= start);
                for linked in linked.iter().skip(first).take_while(|linked| linked.start < end) {
                    each(linked.start.max(start), linked.end.min(end), linked.shift);
                }
            }
        }
    }

    /// Cuts a range where another unit begins or ceases to be asked, too; each part with whether one is.
    pub(super) fn cut_contested(&self, start: u64, end: u64, each: &mut impl FnMut(u64, u64, bool)) {
        let contested = match self {
            Self::Claimed(_, contested) => *contested,
            Self::Linked(_) => &[],
        };
        let mut at = start;
        let first = contested.partition_point(|range| range.1 <= start);
        for range in contested.iter().skip(first).take_while(|range| range.0 < end) {
            if at < range.0 {
                each(at, range.0, false);
            }
            each(at.max(range.0), range.1.min(end), true);
            at = range.1.min(end);
        }
        if at < end {
            each(at, end, false);
        }
    }
}
