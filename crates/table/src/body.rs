//! Words of the bodies that writer and reader share.

/// What a chunk holds: the lowest two bits of its first byte.
pub(crate) const KIND: u8 = 3;
pub(crate) const FUNCTION: u8 = 0;
pub(crate) const LINES: u8 = 1;
pub(crate) const SYMBOL: u8 = 2;
/// The chunk goes on where the one before it ended, in the same piece of the same function.
pub(crate) const CONTINUES: u8 = 4;
/// The chunk starts a piece that is not its function's first.
pub(crate) const PART: u8 = 8;
/// The chunk starts a function and tells its other pieces.
pub(crate) const HAS_PARTS: u8 = 16;
/// Where the flags tell the bytes of a reference to a call, minus one.
pub(crate) const REFERENCE_SHIFT: u32 = 5;

/// Bytes behind the bodies, so that each number, of no bytes too, can be read as eight.
pub(crate) const PADDING: usize = 8;

/// The deepest nesting of inlined calls.
pub(crate) const MAX_DEPTH: usize = 255;
/// The most steps in a chunk.
pub(crate) const MAX_STEPS: usize = 64;

/// In a step, in the place of its line: the place is one of the chunk's far ones, and the next byte is its number.
pub(crate) const FAR: u8 = 255;

/// Flags of a name.
pub(crate) const HAS_LINKAGE_NAME: u8 = 1;
pub(crate) const HAS_NAME: u8 = 2;
/// Where the flags tell the number of the language.
pub(crate) const LANGUAGE_SHIFT: u32 = 2;
/// The language has no number.
pub(crate) const NO_LANGUAGE: u8 = 63;

/// No name is longer than this, so that whoever reads a table can keep its names.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// How many bytes a number has, told in two bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Width {
    /// 1, 2, 4 or 8.
    Doubling,
    /// 1, 2, 3 or 4.
    Counted,
    /// 0, 1, 2 or 4.
    Short,
    /// 0, 2, 4 or 8.
    Long,
}

impl Width {
    #[inline(always)]
    pub(crate) fn bytes(self, bits: u8) -> usize {
        let bits = usize::from(bits & 3);
        match self {
            Self::Doubling => 1 << bits,
            Self::Counted => bits + 1,
            Self::Short => (1 << bits) >> 1,
            Self::Long => (1 << bits) & !1,
        }
    }

    /// The bits for the fewest bytes that a number fits in.
    pub(crate) fn bits(self, number: u64) -> u8 {
        (0..3).find(|bits| number <= mask(self.bytes(*bits))).unwrap_or(3)
    }
}

/// The bits of a number of so many bytes. Looked up: it is asked for with each number that is read.
#[inline(always)]
pub(crate) fn mask(bytes: usize) -> u64 {
    const MASKS: [u64; 8] =
        [0, 0xff, 0xffff, 0xff_ffff, u32::MAX as u64, 0xff_ffff_ffff, 0xffff_ffff_ffff, 0xff_ffff_ffff_ffff];
    MASKS.get(bytes).copied().unwrap_or(u64::MAX)
}
