//! Bytes put down field by field, for files that no tool would write.
#![expect(clippy::expect_used, reason = "a wrong fixture is a fault of the test")]

/// Bytes of a file in one byte order and one width of words.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    bytes: Vec<u8>,
    is_big: bool,
    is_64: bool,
}

impl Assembler {
    /// Nothing yet; 64-bit words, least significant byte first.
    pub fn new() -> Self {
        Self::with(true, false)
    }

    /// Nothing yet, in the given width and order.
    pub fn with(is_64: bool, is_big: bool) -> Self {
        Self { bytes: Vec::new(), is_big, is_64 }
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes(&bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes(&bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes(&bytes)
    }

    /// Four or eight bytes; what does not fit four is cut, as linkers do.
    #[expect(clippy::cast_possible_truncation, reason = "the point of it")]
    pub fn word(&mut self, value: u64) -> &mut Self {
        if self.is_64 { self.u64(value) } else { self.u32(value as u32) }
    }

    /// These bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// This text in a field of `size` bytes, padded with zeros.
    pub fn text(&mut self, text: &str, size: usize) -> &mut Self {
        assert!(text.len() <= size, "{text:?} in {size} bytes");
        self.bytes(text.as_bytes()).zeros(size - text.len())
    }

    /// An unsigned LEB128 number.
    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    pub fn uleb128(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8)
    }

    /// This many zeros.
    pub fn zeros(&mut self, count: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// Zeros up to a multiple of `alignment`.
    pub fn align(&mut self, alignment: usize) -> &mut Self {
        self.zeros(self.len().next_multiple_of(alignment) - self.len())
    }

    /// Zeros up to `offset`, which must not lie behind.
    pub fn pad_to(&mut self, offset: usize) -> &mut Self {
        assert!(offset >= self.len(), "already at {:#x}, wanted {offset:#x}", self.len());
        self.zeros(offset - self.len())
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// Strings one after the other, each ended by a zero, the first one empty; and where each starts.
#[derive(Clone, Debug)]
pub struct StringTable {
    /// The table's bytes.
    pub bytes: Vec<u8>,
}

impl Default for StringTable {
    fn default() -> Self {
        Self { bytes: vec![0] }
    }
}

impl StringTable {
    /// Adds a string and tells where it starts; the empty one is at zero.
    pub fn add(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        u32::try_from(offset).expect("a small table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_width_are_kept() {
        let big = Assembler::with(false, true).u16(0x0102).word(0x0304_0506).align(4).finish();
        assert_eq!(big, [1, 2, 3, 4, 5, 6, 0, 0]);
        let little = Assembler::new().word(1).uleb128(300).text("ab", 3).finish();
        assert_eq!(little, [1, 0, 0, 0, 0, 0, 0, 0, 0xac, 2, b'a', b'b', 0]);
    }

    #[test]
    fn strings_are_found_where_the_table_says() {
        let mut table = StringTable::default();
        assert_eq!((table.add(""), table.add("ab"), table.add("c")), (0, 1, 4));
        assert_eq!(table.bytes, b"\0ab\0c\0");
    }
}
