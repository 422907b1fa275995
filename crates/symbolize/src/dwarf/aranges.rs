//! `.debug_aranges` (DWARF 5 section 6.1.2): the addresses of units, without a look at the units.
//!
//! Compilers may leave the section out, for some units or for all, so it never proves that no unit has an address. What
//! it says of an address is taken at its word: the unit is asked then, and answers for itself.

use super::reader::Reader;
use super::spans::Span;
use crate::malformed::Malformed;

const SECTION: &str = ".debug_aranges";

/// What the section lists.
#[derive(Default)]
pub(crate) struct Aranges {
    /// Section offsets of unit headers, ascending.
    pub(crate) units: Vec<u64>,
    /// Their addresses; owners are indices into `units`.
    pub(crate) spans: Vec<Span>,
}

/// The addresses of one unit.
struct Set {
    unit: u64,
    /// Index range of its spans.
    spans: std::ops::Range<usize>,
}

/// Reads the whole section. A broken set is told and passed over.
pub(crate) fn read(
    section: &[u8],
    big_endian: bool,
    is_live: impl Fn(u64, u64) -> bool,
    mut tell: impl FnMut(Malformed),
) -> Aranges {
    let mut reader = Reader::new(section, 0, big_endian);
    let mut spans: Vec<Span> = Vec::new();
    let mut sets: Vec<Set> = Vec::new();
    while reader.remaining() >= 4 {
        let start = reader;
        let whole = reader.initial_length().and_then(|(length, offset_size)| {
            let body =
                Reader::between(section, reader.offset(), reader.offset().checked_add(length)?, big_endian);
            reader.skip(length)?;
            Some((body, offset_size))
        });
        let Some((mut body, offset_size)) = whole else {
            tell(start.malformed(SECTION, "a set of addresses whose length fits into the section"));
            break;
        };
        let before = spans.len();
        match read_set(&mut body, start.offset(), offset_size, &is_live, &mut spans) {
            Some(unit) => sets.push(Set { unit, spans: before..spans.len() }),
            None => {
                tell(start.malformed(SECTION, "a set of version 2 with addresses of 4 or 8 bytes"));
                spans.truncate(before);
            }
        }
    }
    number(sets, spans)
}

/// Reads a set after its length, and gives the offset of its unit.
fn read_set(
    reader: &mut Reader<'_>,
    start: u64,
    offset_size: u8,
    is_live: &impl Fn(u64, u64) -> bool,
    spans: &mut Vec<Span>,
) -> Option<u64> {
    // Some producers of DWARF 5 write its version here too, though the format never changed.
    if !matches!(reader.u16()?, 2..=5) {
        return None;
    }
    let unit = reader.uint(offset_size)?;
    let (address_size, segment_size) = (reader.u8()?, reader.u8()?);
    if !matches!(address_size, 4 | 8) || segment_size != 0 {
        return None;
    }
    // The first pair is aligned to the size of a pair, counted from the start of the set.
    let pair = u64::from(address_size) * 2;
    reader.skip((reader.offset() - start).next_multiple_of(pair) - (reader.offset() - start))?;
    let max_address = if address_size == 4 { u64::from(u32::MAX) } else { u64::MAX };
    while let Some((address, length)) = reader.uint(address_size).zip(reader.uint(address_size)) {
        // A pair of zeros ends the set; a set that goes on behind it has seen a linker drop code.
        if length != 0 && is_live(address, max_address) {
            let end = address.saturating_add(length);
            match spans.last_mut() {
                Some(last) if last.end == address && last.start < address => last.end = end,
                _ => spans.push(Span { start: address, end, owner: 0 }),
            }
        }
    }
    Some(unit)
}

/// Gives each span its unit's number.
fn number(sets: Vec<Set>, mut spans: Vec<Span>) -> Aranges {
    let mut units: Vec<u64> = sets.iter().map(|set| set.unit).collect();
    units.sort_unstable();
    units.dedup();
    for set in sets {
        let owner =
            units.binary_search(&set.unit).ok().and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        for span in spans.get_mut(set.spans).unwrap_or_default() {
            span.owner = owner;
        }
    }
    Aranges { units, spans }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(unit: u32, pairs: &[(u64, u64)]) -> Vec<u8> {
        let mut body = vec![2, 0];
        body.extend(unit.to_le_bytes());
        body.extend([8, 0, 0, 0, 0, 0]);
        for (address, length) in pairs.iter().chain([&(0, 0)]) {
            body.extend(address.to_le_bytes());
            body.extend(length.to_le_bytes());
        }
        let mut set = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
        set.extend(body);
        set
    }

    fn listed(section: &[u8]) -> (Vec<(u64, u64, u64)>, usize) {
        let mut told = 0;
        let aranges = read(section, false, |start, _| start != 0, |_| told += 1);
        let spans = aranges.spans.iter();
        (spans.map(|span| (span.start, span.end, aranges.units[span.owner as usize])).collect(), told)
    }

    #[test]
    fn sets_in_any_order_name_their_units() {
        let section = [set(0x200, &[(0x1000, 0x10), (0x1010, 8)]), set(0x100, &[(0x2000, 4)])].concat();
        assert_eq!(listed(&section), (vec![(0x1000, 0x1018, 0x200), (0x2000, 0x2004, 0x100)], 0));
    }

    #[test]
    fn dropped_code_does_not_end_a_set() {
        let section = set(0x40, &[(0, 0x10), (0, 0), (0x1000, 0x10), (0x3000, 0)]);
        assert_eq!(listed(&section), (vec![(0x1000, 0x1010, 0x40)], 0));
    }

    #[test]
    fn a_broken_set_is_told_and_the_next_one_counts() {
        let mut broken = set(0x40, &[(0x1000, 0x10)]);
        broken[4] = 9;
        let section = [broken, set(0x80, &[(0x2000, 0x10)]), vec![0xff; 7]].concat();
        assert_eq!(listed(&section), (vec![(0x2000, 0x2010, 0x80)], 2));
    }
}
