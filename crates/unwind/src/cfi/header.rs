//! `.eh_frame_hdr`: a sorted table of the FDEs' first addresses (LSB Core 5.0, section 10.6.2).

use super::cursor::{Cursor, Result};
use super::pointer::{self, Bases, OMIT};
use crate::sections::{Section, Sections};
use backtrail_core::{Arch, Svma};

/// The table, if it has the one form that is in use: pairs of `DW_EH_PE_datarel | DW_EH_PE_sdata4`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'d> {
    start: Svma,
    pairs: &'d [[u8; 8]],
    mask: u64,
}

const DATAREL_SDATA4: u8 = 0x3b;

impl<'d> Header<'d> {
    /// Reads the header; fails where there is no table to search.
    pub(crate) fn new(section: &Section<'d>, sections: &Sections<'d>) -> Result<Self> {
        let mut cursor = Cursor::new(section.start, section.data);
        let (_, count_encoding, table_encoding) = preamble(&mut cursor, section, sections)?;
        let mut bases = Bases::new(sections);
        bases.data = Some(section.start);
        if count_encoding == OMIT || table_encoding != DATAREL_SDATA4 {
            return Err(cursor.fault("a search table of pairs of 4-byte offsets"));
        }
        let count = pointer::pointer(&mut cursor, count_encoding, &bases)?.get();
        let rest = section.data.get(cursor.position()..).unwrap_or_default();
        let (all, _) = rest.as_chunks::<8>();
        let pairs = usize::try_from(count).ok().and_then(|count| all.get(..count));
        let pairs = pairs.ok_or_else(|| cursor.fault("a table that lies in the section"))?;
        Ok(Self { start: section.start, pairs, mask: bases.wrap(u64::MAX) })
    }

    /// How many FDEs it lists.
    pub(crate) fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The first address of the numbered FDE and where the FDE is stated to lie.
    pub(crate) fn pair(&self, index: usize) -> Option<(Svma, Svma)> {
        let [a0, a1, a2, a3, f0, f1, f2, f3] = *self.pairs.get(index)?;
        Some((self.resolve([a0, a1, a2, a3]), self.resolve([f0, f1, f2, f3])))
    }

    fn resolve(&self, offset: [u8; 4]) -> Svma {
        let offset = i64::from(i32::from_le_bytes(offset)).cast_unsigned();
        Svma::new(self.start.get().wrapping_add(offset) & self.mask)
    }

    /// The pairs that start at or before `at`, the last first.
    pub(crate) fn before(&self, at: Svma) -> impl Iterator<Item = (Svma, Svma)> + '_ {
        let (mut low, mut high) = (0, self.pairs.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let starts_before = self.pair(middle).is_some_and(|(start, _)| start <= at);
            if starts_before { low = middle + 1 } else { high = middle }
        }
        (0..low).rev().map_while(|index| self.pair(index))
    }
}

fn preamble(
    cursor: &mut Cursor<'_>,
    section: &Section<'_>,
    sections: &Sections<'_>,
) -> Result<(Svma, u8, u8)> {
    if cursor.u8()? != 1 {
        return Err(cursor.fault("version 1"));
    }
    let (pointer_encoding, count_encoding, table_encoding) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
    let mut bases = Bases::new(sections);
    bases.data = Some(section.start);
    let eh_frame = pointer::pointer(cursor, pointer_encoding, &bases)?;
    Ok((eh_frame, count_encoding, table_encoding))
}

/// Where `.eh_frame` starts according to its header: for files whose section headers were stripped and that only
/// have `PT_GNU_EH_FRAME`. `None` where the header is broken.
pub fn eh_frame_start(header: &Section<'_>, arch: Arch) -> Option<Svma> {
    let sections = Sections { arch: Some(arch), ..Sections::default() };
    let mut cursor = Cursor::new(header.start, header.data);
    preamble(&mut cursor, header, &sections).ok().map(|(start, _, _)| start).filter(|start| start.get() != 0)
}
