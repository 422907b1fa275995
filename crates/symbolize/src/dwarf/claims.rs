//! The addresses that lookups ask each unit for, as conversions want to know them: all at once.

use super::file::DwarfFile;

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

impl DwarfFile<'_> {
    /// What each of [`all_units`](Self::all_units) is asked for.
    pub(crate) fn claims(&self) -> Vec<Claim> {
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
        let mut claims: Vec<_> = ranges.into_iter().map(joined).collect();
        for unit in self.stated_index().unranged() {
            if let Some(claim) = claims.get_mut(*unit as usize)
                && *claim == Claim::None
            {
                *claim = Claim::Functions;
            }
        }
        claims
    }
}

fn joined(mut ranges: Vec<(u64, u64)>) -> Claim {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    if joined.is_empty() { Claim::None } else { Claim::Ranges(joined) }
}
