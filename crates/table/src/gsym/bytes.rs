//! Numbers in a GSYM file, in either byte order.

use crate::bytes::Cursor;
pub(super) use crate::bytes::put_uleb;

/// Reads on through bytes; what is not there is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'d> {
    data: &'d [u8],
    at: usize,
    is_big: bool,
}

impl<'d> Bytes<'d> {
    pub(super) fn new(data: &'d [u8], at: u64, is_big: bool) -> Self {
        Self { data, at: usize::try_from(at).unwrap_or(usize::MAX).min(data.len()), is_big }
    }

    /// The position, in bytes from the start of the data.
    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    /// Bytes that are left.
    pub(super) fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    pub(super) fn take(&mut self, size: u64) -> Option<&'d [u8]> {
        let end = self.at.checked_add(usize::try_from(size).ok()?)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// The next `size` bytes alone.
    pub(super) fn part(&mut self, size: u64) -> Option<Self> {
        let start = self.at;
        self.take(size)?;
        Some(Self { data: self.data.get(..self.at)?, at: start, is_big: self.is_big })
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A number of up to eight bytes.
    pub(super) fn uint(&mut self, size: u8) -> Option<u64> {
        let is_big = self.is_big;
        let bytes = self.take(size.into())?;
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if is_big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.uint(4).and_then(|value| u32::try_from(value).ok())
    }

    /// An unsigned LEB128 number of at most 64 bits.
    pub(super) fn uleb(&mut self) -> Option<u64> {
        let mut cursor = Cursor::at(self.data, self.at);
        let value = cursor.uleb()?;
        self.at = cursor.at;
        Some(value)
    }

    /// A signed LEB128 number of at most 64 bits.
    pub(super) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0i64;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= i64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                let is_negative = byte & 0x40 != 0 && shift + 7 < 64;
                return Some(if is_negative { value | -1 << (shift + 7) } else { value });
            }
        }
        None
    }
}

/// Appends a signed LEB128 number.
pub(super) fn put_sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = value as u8 & 0x7f;
        value >>= 7;
        if value == -i64::from(byte >> 6) {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        let numbers = [0, 1, -1, 63, 64, -64, -65, 8191, 1 << 40, i64::MAX, i64::MIN];
        let mut out = Vec::new();
        for number in numbers {
            put_sleb(&mut out, number);
            put_uleb(&mut out, number.cast_unsigned());
        }
        let mut bytes = Bytes::new(&out, 0, false);
        for number in numbers {
            assert_eq!(bytes.sleb(), Some(number));
            assert_eq!(bytes.uleb(), Some(number.cast_unsigned()));
        }
        assert_eq!(bytes.remaining(), 0);
        assert_eq!(Bytes::new(&[0xff; 12], 0, false).uleb(), None);
        assert_eq!(Bytes::new(&[0xff; 12], 0, false).sleb(), None);
    }

    #[test]
    fn both_byte_orders() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(Bytes::new(&data, 0, false).u32(), Some(0x0403_0201));
        assert_eq!(Bytes::new(&data, 0, true).uint(8), Some(0x0102_0304_0506_0708));
        assert_eq!(Bytes::new(&data, 6, true).u32(), None);
        assert_eq!(Bytes::new(&data, u64::MAX, true).u8(), None);
    }
}
