//! Range lists of DWARF 5 (section 2.17.3). Those before it are read by gimli; of these there may be several for each
//! inlined call, so that reading them quickly pays.

use super::reader::Reader;
use gimli::constants as dw;

/// What entries of a list are relative to.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    pub(crate) address: u64,
    pub(crate) address_size: u8,
    /// From here on upwards addresses mean code that the linker left out: -2 and -1.
    pub(crate) first_dead: u64,
}

impl Base {
    fn mask(self) -> u64 {
        self.first_dead | 1
    }

    /// The range, unless it is empty or its code was left out.
    fn live(self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (start, end) = (start & self.mask(), end & self.mask());
        (start < self.first_dead && start < end).then_some((start, end))
    }
}

/// Calls `each` with start and end of every range of the list at the reader's position that has code, until it returns
/// `false`. `None` where the list is broken; `indexed` looks an address up in `.debug_addr`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    mut base: Base,
    indexed: impl Fn(u64) -> Option<u64>,
    each: &mut impl FnMut(u64, u64) -> bool,
) -> Option<()> {
    while !reader.is_empty() {
        let range = match gimli::DwRle(reader.u8()?) {
            dw::DW_RLE_end_of_list => return Some(()),
            dw::DW_RLE_offset_pair => {
                let (start, end) = (reader.uleb()?, reader.uleb()?);
                let from_base = |offset: u64| base.address.wrapping_add(offset);
                let is_live = base.address < base.first_dead;
                if is_live { base.live(from_base(start), from_base(end)) } else { None }
            }
            dw::DW_RLE_base_address => {
                base.address = reader.uint(base.address_size)?;
                None
            }
            dw::DW_RLE_start_length => {
                let start = reader.uint(base.address_size)?;
                base.live(start, start.wrapping_add(reader.uleb()?))
            }
            dw::DW_RLE_start_end => {
                base.live(reader.uint(base.address_size)?, reader.uint(base.address_size)?)
            }
            dw::DW_RLE_base_addressx => {
                base.address = indexed(reader.uleb()?)?;
                None
            }
            dw::DW_RLE_startx_endx => base.live(indexed(reader.uleb()?)?, indexed(reader.uleb()?)?),
            dw::DW_RLE_startx_length => {
                let start = indexed(reader.uleb()?)?;
                base.live(start, start.wrapping_add(reader.uleb()?))
            }
            _ => return None,
        };
        if let Some((start, end)) = range
            && !each(start, end)
        {
            return Some(());
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(bytes: &[u8]) -> (Vec<(u64, u64)>, bool) {
        let base = Base { address: 0x1000, address_size: 4, first_dead: 0xffff_fffe };
        let mut found = Vec::new();
        let mut each = |start, end| {
            found.push((start, end));
            true
        };
        let mut reader = Reader::new(bytes, 0, false);
        let whole = read(&mut reader, base, |index| (index < 2).then_some(0x5000 + index), &mut each);
        (found, whole.is_some())
    }

    #[test]
    fn every_kind_of_entry() {
        let list = [
            [4, 0x10, 0x20].as_slice(),
            &[7, 0, 0x20, 0, 0, 8],
            &[6, 0, 0x30, 0, 0, 4, 0x30, 0, 0],
            &[5, 0, 0x40, 0, 0, 4, 0, 1],
            &[2, 0, 1, 3, 1, 2, 1, 1, 4, 1, 2, 0, 4, 9, 10],
        ]
        .concat();
        let expected = [
            (0x1010, 0x1020),
            (0x2000, 0x2008),
            (0x3000, 0x3004),
            (0x4000, 0x4001),
            (0x5000, 0x5001),
            (0x5001, 0x5003),
            (0x5002, 0x5003),
        ];
        assert_eq!(ranges(&list), (expected.to_vec(), true));
    }

    #[test]
    fn dead_empty_and_reversed_ranges_are_left_out() {
        assert_eq!(ranges(&[5, 0xff, 0xff, 0xff, 0xff, 4, 1, 2, 0]), (vec![], true));
        assert_eq!(ranges(&[4, 5, 5, 4, 6, 5, 7, 0xfe, 0xff, 0xff, 0xff, 9, 0]), (vec![], true));
        assert_eq!(ranges(&[4, 1, 2, 3, 7, 1]), (vec![(0x1001, 0x1002)], false));
        assert_eq!(ranges(&[4, 1, 2, 99]), (vec![(0x1001, 0x1002)], false));
    }
}
