//! Function starts of ELF files: the search table of `.eh_frame_hdr` (LSB, "Exception Frame Header"), and ARM's exception
//! index (EHABI, section 6). Stripped files keep them.

use backtrail_core::{AddrRange, Family, Svma};
use object::Endianness;
use object::endian::Endian;

use super::tables::Tables;
use crate::error::Result;
use crate::object::Object;
use crate::section::FileRange;

/// Where functions start, ascending: where their unwind information does.
pub(crate) fn read(object: &Object<'_>, tables: &Tables) -> Result<Vec<Svma>> {
    let mut starts = Vec::new();
    if let Some((address, file)) = find(object, ".eh_frame_hdr") {
        let bytes = object.view.bytes(file.start().get(), file.size(), ".eh_frame_hdr")?;
        let header = Table { bytes, address: address.start(), tables };
        starts = header.search_table().ok_or_else(|| {
            let detail =
                ".eh_frame_hdr: expected version 1 and a table of functions in encodings that are in use";
            object.view.malformed(file.start().get(), detail)
        })?;
    }
    if object.arch().family() == Family::Arm
        && let Some((address, file)) = find(object, ".ARM.exidx")
    {
        let bytes = object.view.bytes(file.start().get(), file.size(), ".ARM.exidx")?;
        let index = Table { bytes, address: address.start(), tables }.exception_index();
        let code = code_ranges(object);
        // Linkers end the index with an entry for the address behind the code.
        let is_start = |start: &Svma| code.is_empty() || code.iter().any(|range| range.contains(*start));
        starts.extend(index.into_iter().filter(is_start));
    }
    starts.sort_unstable();
    starts.dedup();
    Ok(starts)
}

fn code_ranges(object: &Object<'_>) -> Vec<AddrRange<Svma>> {
    let sections = object.headers.sections.iter().filter(|section| section.is_code);
    let segments = object.headers.segments.iter().filter(|segment| segment.executable);
    sections.map(|section| section.address).chain(segments.map(|segment| segment.address)).collect()
}

fn find(object: &Object<'_>, name: &str) -> Option<(AddrRange<Svma>, FileRange)> {
    let section = object.headers.sections.iter().find(|section| section.name == name)?;
    section.file.map(|file| (section.address, file))
}

struct Table<'d, 't> {
    bytes: &'d [u8],
    address: Svma,
    tables: &'t Tables,
}

/// How a pointer is written: the low half says how wide, the high half what it counts from. LSB, "DWARF Exception
/// Header Encoding".
#[derive(Clone, Copy)]
struct Encoding(u8);

impl Encoding {
    const OMIT: u8 = 0xff;

    fn size(self, is_64: bool) -> Option<usize> {
        match self.0 & 0x07 {
            _ if self.0 == Self::OMIT => None,
            0x00 => Some(if is_64 { 8 } else { 4 }),
            0x02 => Some(2),
            0x03 => Some(4),
            0x04 => Some(8),
            _ => None,
        }
    }

    fn is_signed(self) -> bool {
        self.0 & 0x08 != 0
    }
}

impl Table<'_, '_> {
    fn search_table(&self) -> Option<Vec<Svma>> {
        let [version, frame_encoding, count_encoding, table_encoding, ..] = *self.bytes else { return None };
        if version != 1 {
            return None;
        }
        let is_64 = self.tables.header.is_64;
        if count_encoding == Encoding::OMIT || table_encoding == Encoding::OMIT {
            return Some(Vec::new());
        }
        let count_at = 4 + Encoding(frame_encoding).size(is_64)?;
        let count = self.pointer(count_at, Encoding(count_encoding))?.get();
        let table_at = count_at + Encoding(count_encoding).size(is_64)?;
        let encoding = Encoding(table_encoding);
        let row = 2 * encoding.size(is_64)?;
        let there = self.bytes.len().saturating_sub(table_at) / row;
        let count = usize::try_from(count).map_or(there, |count| count.min(there));
        (0..count).map(|index| self.pointer(table_at + index * row, encoding)).collect()
    }

    fn pointer(&self, at: usize, encoding: Encoding) -> Option<Svma> {
        let raw = self.bytes.get(at..)?.get(..encoding.size(self.tables.header.is_64)?)?;
        let value = number(raw, encoding.is_signed(), self.tables.header.endian)?;
        let base = match encoding.0 & 0x70 {
            0x00 => 0,
            0x10 => self.address.get().wrapping_add(at as u64),
            0x30 => self.address.get(),
            _ => return None,
        };
        Some(Svma::new(self.cut(base.wrapping_add(value))))
    }

    /// Entries of two words: the first is the distance to a function in its lower 31 bits.
    fn exception_index(&self) -> Vec<Svma> {
        let (rows, _) = self.bytes.as_chunks::<8>();
        let start = |(index, row): (usize, &[u8; 8])| {
            let word = number(row.first_chunk::<4>()?, false, self.tables.header.endian)?;
            let distance = ((word << 33).cast_signed() >> 33).cast_unsigned();
            let address = self.address.get().wrapping_add(index as u64 * 8).wrapping_add(distance);
            Some(Svma::new(self.cut(address) & !1))
        };
        rows.iter().enumerate().filter_map(start).collect()
    }

    fn cut(&self, address: u64) -> u64 {
        if self.tables.header.is_64 { address } else { address & u64::from(u32::MAX) }
    }
}

/// 2, 4 or 8 bytes as a number, sign-extended to 64 bits where it is signed.
fn number(bytes: &[u8], is_signed: bool, endian: Endianness) -> Option<u64> {
    let value = match *bytes {
        [a, b] => endian.read_u16([a, b]).into(),
        [a, b, c, d] => endian.read_u32([a, b, c, d]).into(),
        _ => endian.read_u64(*bytes.first_chunk()?),
    };
    let unused = u64::BITS.saturating_sub(8 * u32::try_from(bytes.len()).ok()?);
    Some(if is_signed { ((value << unused).cast_signed() >> unused).cast_unsigned() } else { value })
}

#[cfg(test)]
mod tests;
