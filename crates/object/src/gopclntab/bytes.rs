//! Numbers and texts at offsets of a table; `None` where its bytes end before.

/// Bytes with their byte order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    pub(super) data: &'a [u8],
    pub(super) is_big: bool,
}

impl<'a> Bytes<'a> {
    /// The unsigned number of `size` bytes, at most 8.
    pub(super) fn number(self, offset: u64, size: u8) -> Option<u64> {
        let bytes = self.from(offset)?.get(..usize::from(size))?;
        let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.is_big { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) })
    }

    /// The bytes up to the next zero.
    pub(super) fn text(self, offset: u64) -> Option<&'a [u8]> {
        let bytes = self.from(offset)?;
        bytes.get(..bytes.iter().position(|byte| *byte == 0)?)
    }

    pub(super) fn from(self, offset: u64) -> Option<&'a [u8]> {
        self.data.get(usize::try_from(offset).ok()?..)
    }
}

/// Takes an unsigned number of seven bits a byte (LEB128) off the front.
pub(super) fn take_uleb(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        number |= low.checked_shl(shift).filter(|high| high >> shift == low)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_end_where_the_bytes_do() {
        let bytes = |is_big| Bytes { data: b"\x01\x02ab\0c", is_big };
        assert_eq!(bytes(false).number(0, 2), Some(0x0201));
        assert_eq!(bytes(true).number(0, 2), Some(0x0102));
        assert_eq!(bytes(true).number(5, 2), None);
        assert_eq!(bytes(true).text(2), Some(&b"ab"[..]));
        assert_eq!(bytes(true).text(5), None);
        assert_eq!(bytes(true).text(u64::MAX), None);
    }

    #[test]
    fn numbers_of_seven_bits_a_byte_are_taken_off_the_front() {
        let mut bytes = &[0xe5, 0x8e, 0x26, 7, 0x80][..];
        assert_eq!(take_uleb(&mut bytes), Some(624_485));
        assert_eq!(take_uleb(&mut bytes), Some(7));
        assert_eq!(take_uleb(&mut bytes), None);
        assert_eq!(take_uleb(&mut &[0xff; 11][..]), None);
    }
}
