//! Numbers in bytes: little-endian, and LEB128 as DWARF has it.

use crate::body::mask;

/// Appends an unsigned LEB128 number.
#[inline]
pub(crate) fn put_uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number, zigzag coded: 0, -1, 1, -2, …
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_uleb(out, zigzag(value));
}

#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Appends a number in so many bytes.
#[inline]
pub(crate) fn put_fixed(out: &mut Vec<u8>, value: u64, width: usize) {
    // All eight and then fewer is a store of known size.
    let end = out.len() + width;
    out.extend_from_slice(&value.to_le_bytes());
    out.truncate(end);
}

/// The number of `width` bytes at a place. Eight have to be there.
#[inline(always)]
pub(crate) fn fixed(data: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = data.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes) & mask(width))
}

/// Reads on through bytes; what is not there is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'d> {
    pub(crate) data: &'d [u8],
    pub(crate) at: usize,
}

impl<'d> Cursor<'d> {
    pub(crate) fn new(data: &'d [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub(crate) fn at(data: &'d [u8], at: usize) -> Self {
        Self { data, at }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.data.len()
    }

    #[inline(always)]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let byte = *self.data.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// An unsigned LEB128 number of at most 64 bits.
    #[inline(always)]
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        // Most of the others have two bytes.
        let second = *self.data.get(self.at)?;
        if second < 0x80 {
            self.at += 1;
            return Some(u64::from(first & 0x7f) | u64::from(second) << 7);
        }
        self.uleb_rest(first)
    }

    fn uleb_rest(&mut self, first: u8) -> Option<u64> {
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    /// A number of `width` bytes. Eight have to be there.
    #[inline(always)]
    pub(crate) fn fixed(&mut self, width: usize) -> Option<u64> {
        let value = fixed(self.data, self.at, width)?;
        self.at += width;
        Some(value)
    }

    #[inline]
    pub(crate) fn uleb32(&mut self) -> Option<u32> {
        self.uleb().and_then(|value| u32::try_from(value).ok())
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.uleb().map(unzigzag)
    }

    #[inline]
    pub(crate) fn take(&mut self, size: usize) -> Option<&'d [u8]> {
        let end = self.at.checked_add(size)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        let numbers = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), 1 << 63, u64::MAX];
        let mut out = Vec::new();
        for number in numbers {
            put_uleb(&mut out, number);
            put_signed(&mut out, number.cast_signed());
        }
        let mut cursor = Cursor::new(&out);
        for number in numbers {
            assert_eq!(cursor.uleb(), Some(number));
            assert_eq!(cursor.signed(), Some(number.cast_signed()));
        }
        assert!(cursor.is_empty());
    }

    #[test]
    fn more_than_64_bits_are_no_number() {
        assert_eq!(Cursor::new(&[0xff; 11]).uleb(), None);
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).uleb(), None);
        assert_eq!(Cursor::new(&[0x80]).uleb(), None);
    }
}
