//! Which addresses of a unit go into the table, and where.

use crate::dwarf::Claim;

/// Where the code of a unit is kept.
pub(super) enum Target<'t> {
    /// At its own addresses, as far as lookups ask the unit for them.
    Claimed(&'t Claim),
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
        !matches!(self, Self::Claimed(Claim::Functions | Claim::None))
    }

    /// Calls `each` with the parts of a range that are kept, and the shift of each.
    pub(super) fn clip(&self, start: u64, end: u64, each: &mut impl FnMut(u64, u64, u64)) {
        match self {
            Self::Claimed(Claim::None) => {}
            Self::Claimed(Claim::Functions) => each(start, end, 0),
            Self::Claimed(Claim::Ranges(ranges)) => {
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
}
