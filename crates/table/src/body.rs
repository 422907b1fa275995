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
/// The chunk starts within inlined calls.
pub(crate) const HAS_STACK: u8 = 32;

/// The deepest nesting of inlined calls.
pub(crate) const MAX_DEPTH: usize = 255;

/// Entries of the index that are found by one step of its search.
pub(crate) const GROUP: usize = 8;
/// The most opcodes in a chunk.
pub(crate) const MAX_OPS: usize = 1 << 14;
/// In a name's record: the language has no number.
pub(crate) const NO_LANGUAGE: u8 = 63;
