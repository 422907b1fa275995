//! The addresses that lookups ask each unit for, as conversions want to know them: all at once.

use super::file::DwarfFile;
use rayon::prelude::*;

/// What a unit is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Claim {
    /// Nothing: it has no code.
    #[default]
    None,
    /// These ranges, sorted and disjoint.
    Ranges(Vec<(u64, u64)>),
    /// Whatever it has a function for, where no other unit knows the address.
    Functions,
}

/// What all units of a file are asked for.
#[derive(Default)]
pub(crate) struct Claims {
    /// Of each of [`all_units`](DwarfFile::all_units).
    pub(crate) of_units: Vec<Claim>,
    /// Ranges that several units are asked for: sorted and disjoint.
    pub(crate) contested: Vec<(u64, u64)>,
}

impl DwarfFile<'_> {
    /// What each unit is asked for.
    pub(crate) fn claims(&self) -> Claims {
        let units = self.all_units();
        let mut ranges: Vec<Vec<(u64, u64)>> = vec![Vec::new(); units.len()];
        let mut claim = |unit: usize, start: u64, end: u64| {
            if let Some(ranges) = ranges.get_mut(unit) {
                ranges.push((start, end));
            }
        };
        self.stated_index().each(&mut |start, end, unit| claim(unit as usize, start, end));
        let number = |offset: u64| units.binary_search_by_key(&offset, |unit| unit.header.offset).ok();
        let (listed, offsets) = self.listed_index();
        let numbers: Vec<_> = offsets.map(number).collect();
        listed.each(&mut |start, end, unit| {
            if let Some(Some(number)) = numbers.get(unit as usize) {
                claim(*number, start, end);
            }
        });
        let ranges: Vec<_> = ranges.into_iter().map(joined).collect();
        let contested = overlaps(ranges.iter().flatten().copied().collect());
        let claim = |ranges: Vec<_>| if ranges.is_empty() { Claim::None } else { Claim::Ranges(ranges) };
        let mut claims: Vec<_> = ranges.into_iter().map(claim).collect();
        for unit in self.stated_index().unranged() {
            if let Some(claim) = claims.get_mut(*unit as usize)
                && *claim == Claim::None
            {
                *claim = Claim::Functions;
            }
        }
        Claims { of_units: claims, contested }
    }
}

/// Where at least two of some ranges are: sorted and disjoint.
fn overlaps(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.par_sort_unstable();
    let mut contested = Vec::new();
    let mut reached = 0;
    for (start, end) in ranges {
        if start < reached {
            contested.push((start, end.min(reached)));
        }
        reached = reached.max(end);
    }
    joined(contested)
}

fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_ranges_cover_is_contested() {
        assert_eq!(overlaps(vec![(0, 10), (10, 20), (30, 40)]), []);
        assert_eq!(overlaps(vec![(5, 8), (0, 10), (7, 20), (30, 40), (30, 40)]), [(5, 10), (30, 40)]);
        assert_eq!(overlaps(vec![(0, 100), (10, 20), (15, 30)]), [(10, 30)]);
    }
}
