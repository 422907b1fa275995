//! A bounds-checked cursor over one section's bytes.

use crate::malformed::Malformed;

/// A section's bytes in gimli's words.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// How numbers are laid out in one unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Encoding {
    /// DWARF version of the unit, 2 to 5.
    pub(crate) version: u16,
    /// Bytes in an address: 4 or 8 (2 and 1 are read, too).
    pub(crate) address_size: u8,
    /// Bytes in an offset: 4 in 32-bit DWARF, 8 in 64-bit DWARF.
    pub(crate) offset_size: u8,
}

impl Encoding {
    /// The same in gimli's words.
    pub(crate) fn to_gimli(self) -> gimli::Encoding {
        let format = if self.offset_size == 8 { gimli::Format::Dwarf64 } else { gimli::Format::Dwarf32 };
        gimli::Encoding { address_size: self.address_size, format, version: self.version }
    }

    /// The highest address of the address size, which linkers write for code that they dropped.
    pub(crate) fn max_address(self) -> u64 {
        match self.address_size {
            1 => u64::from(u8::MAX),
            2 => u64::from(u16::MAX),
            4 => u64::from(u32::MAX),
            _ => u64::MAX,
        }
    }
}

/// Reads forward through a part of a section. Each read gives `None` when the bytes do not suffice, and leaves the
/// cursor where it was before that read.
///
/// Going on changes one number, so that what is read next waits for nothing else.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The section up to the end of the part.
    data: &'a [u8],
    /// Section offset of the next byte; never beyond the end.
    at: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    /// From `start` to the end of `section`; empty where `start` lies outside.
    pub(crate) fn new(section: &'a [u8], start: u64, big_endian: bool) -> Self {
        let at = usize::try_from(start).map_or(section.len(), |start| start.min(section.len()));
        Self { data: section, at, big_endian }
    }

    /// From `start` to `end` (both section offsets), cut to what is there.
    pub(crate) fn between(section: &'a [u8], start: u64, end: u64, big_endian: bool) -> Self {
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(section.len());
        Self::new(section.get(..end).unwrap_or_default(), start, big_endian)
    }

    /// Section offset of the next byte.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Bytes left.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    /// The bytes left.
    #[inline]
    pub(crate) fn bytes_left(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.data.len()
    }

    /// Goes back to where the reader was before, by section offset.
    #[inline]
    pub(crate) fn go_back(&mut self, offset: u64) {
        self.at = self.at.min(offset as usize);
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.data.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(*bytes)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A number of `size` bytes (1, 2, 3, 4 or 8).
    #[inline]
    pub(crate) fn uint(&mut self, size: u8) -> Option<u64> {
        match size {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            3 => {
                let [a, b, c] = self.array()?;
                let [low, mid, high] = if self.big_endian { [c, b, a] } else { [a, b, c] };
                Some(u64::from(low) | u64::from(mid) << 8 | u64::from(high) << 16)
            }
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => None,
        }
    }

    /// An unsigned LEB128 number. Bits beyond the 64th are dropped, as binutils and LLVM do for padded numbers.
    #[inline]
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let first = *self.data.get(self.at)?;
        if first < 0x80 {
            self.at += 1;
            return Some(u64::from(first));
        }
        if let Some(&second) = self.data.get(self.at + 1)
            && second < 0x80
        {
            self.at += 2;
            return Some(u64::from(first & 0x7f) | u64::from(second) << 7);
        }
        let (value, at) = uleb_slow(self.data, self.at)?;
        self.at = at;
        Some(value)
    }

    /// A signed LEB128 number.
    #[inline]
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let first = *self.data.get(self.at)?;
        if first < 0x80 {
            self.at += 1;
            return Some(i64::from((first << 1).cast_signed() >> 1));
        }
        let (value, at) = sleb_slow(self.data, self.at)?;
        self.at = at;
        Some(value)
    }

    /// Passes over a LEB128 number of either kind.
    #[inline]
    pub(crate) fn skip_leb(&mut self) -> Option<()> {
        let mut at = self.at;
        while *self.data.get(at)? >= 0x80 {
            at += 1;
        }
        self.at = at + 1;
        Some(())
    }

    /// The bytes left, where there are at least so many and the lowest one of a number comes first.
    #[inline]
    pub(crate) fn little_endian(&self, least: usize) -> Option<&'a [u8]> {
        if self.big_endian || self.remaining() < least { None } else { self.data.get(self.at..) }
    }

    #[inline]
    pub(crate) fn skip(&mut self, count: u64) -> Option<()> {
        if count > self.remaining() as u64 {
            return None;
        }
        self.at += count as usize;
        Some(())
    }

    /// Passes over bytes, over a block that its length of one byte stands before where all bits of `block` are set, and
    /// over bytes. There has to be a byte where the length would stand, so that both ways are one.
    #[inline]
    pub(crate) fn skip_around(&mut self, before: u16, block: u8, after: u16) -> Option<()> {
        let place = self.at + usize::from(before);
        let length = *self.data.get(place)? & block;
        let next = place + usize::from(block & 1) + usize::from(length) + usize::from(after);
        if length >= 0x80 || next > self.data.len() {
            return None;
        }
        self.at = next;
        Some(())
    }

    /// A string without its closing zero.
    #[inline]
    pub(crate) fn cstr(&mut self) -> Option<&'a [u8]> {
        let text = std::ffi::CStr::from_bytes_until_nul(self.bytes_left()).ok()?.to_bytes();
        self.at += text.len() + 1;
        Some(text)
    }

    /// A unit's length together with the offset size that it announces (64-bit DWARF starts with 0xffffffff).
    pub(crate) fn initial_length(&mut self) -> Option<(u64, u8)> {
        let before = *self;
        let length = match self.u32()? {
            u32::MAX => self.u64().map(|length| (length, 8)),
            length if length >= 0xffff_fff0 => None,
            length => Some((u64::from(length), 4)),
        };
        if length.is_none() {
            *self = before;
        }
        length
    }

    /// An error about the next byte.
    pub(crate) fn malformed(&self, section: &'static str, expected: &'static str) -> Malformed {
        Malformed { section, offset: self.offset(), expected }
    }
}

// Those of several bytes take the reader's fields, so that the reader itself may stay in registers.

#[inline(never)]
fn uleb_slow(data: &[u8], start: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut shift = 0u32;
    for (at, &byte) in data.iter().enumerate().skip(start) {
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

#[inline(never)]
fn sleb_slow(data: &[u8], start: usize) -> Option<(i64, usize)> {
    let mut value = 0i64;
    let mut shift = 0u32;
    for (at, &byte) in data.iter().enumerate().skip(start) {
        if shift < 64 {
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        if byte < 0x80 {
            if shift < 64 && byte & 0x40 != 0 {
                value |= -1 << shift;
            }
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_of_any_length_reads_and_never_overshoots() {
        let mut reader = Reader::new(&[0x7f, 0xe5, 0x8e, 0x26, 0x80, 0x80, 0x00, 0x7f, 0x80, 0x7f], 0, false);
        assert_eq!(reader.uleb(), Some(127));
        assert_eq!(reader.uleb(), Some(624_485));
        assert_eq!(reader.uleb(), Some(0));
        assert_eq!(reader.sleb(), Some(-1));
        assert_eq!(reader.sleb(), Some(-128));
        assert_eq!(reader.uleb(), None);
        let long = [0xff; 30];
        assert_eq!(Reader::new(&long, 0, false).uleb(), None);
        let mut padded = [0x80; 30];
        padded[29] = 1;
        let mut reader = Reader::new(&padded, 0, false);
        assert_eq!(reader.uleb(), Some(0));
        assert_eq!(reader.offset(), 30);
    }

    #[test]
    fn both_endiannesses_and_offsets() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let mut little = Reader::new(&bytes, 1, false);
        assert_eq!(little.uint(3), Some(0x04_0302));
        assert_eq!(little.offset(), 4);
        let mut big = Reader::new(&bytes, 1, true);
        assert_eq!(big.uint(3), Some(0x02_0304));
        assert_eq!(big.u64(), None);
        assert_eq!(big.u32(), Some(0x0506_0708));
        assert!(Reader::new(&bytes, 10, false).is_empty());
        assert_eq!(Reader::between(&bytes, 2, 4, false).remaining(), 2);
    }

    #[test]
    fn initial_lengths_of_both_formats() {
        let short = [0x10, 0, 0, 0];
        assert_eq!(Reader::new(&short, 0, false).initial_length(), Some((16, 4)));
        let long = [0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Reader::new(&long, 0, false).initial_length(), Some((16, 8)));
        let reserved = [0xf5, 0xff, 0xff, 0xff];
        assert_eq!(Reader::new(&reserved, 0, false).initial_length(), None);
    }
}
