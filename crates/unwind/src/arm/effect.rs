//! What instructions of both sets do, as far as frames are concerned.

pub(super) const SP: u8 = 13;
pub(super) const LR: u8 = 14;
pub(super) const PC: u8 = 15;
/// A register that no instruction names: jumps through memory.
pub(super) const MEMORY: u8 = 16;

/// The effect of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Nothing that matters.
    Nothing,
    /// `to = from + bytes`
    Move {
        /// The register that is set.
        to: u8,
        /// The register that is read.
        from: u8,
        /// The distance.
        bytes: i64,
    },
    /// Registers to or from memory.
    Transfer(Transfer),
    /// Registers get values that are not known, one bit each.
    Clobber(u16),
    /// `bl`, `blx`.
    Call,
    /// `b`, to this many bytes from the instruction.
    Jump(i64),
    /// `bx` and the like, by this register; also switches.
    JumpRegister(u8),
    /// A conditional branch or return, which may fall through.
    Branch,
    /// Control does not come past this.
    Trap,
    /// Thumb's `it`: so many of the next instructions are conditional.
    If(u8),
}

/// Registers to or from memory, four bytes each, the lowest number at the lowest address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Transfer {
    pub(super) is_load: bool,
    pub(super) set: u16,
    pub(super) base: u8,
    /// From the base, as it is before the instruction, to the first register.
    pub(super) offset: i64,
    /// What the instruction adds to the base.
    pub(super) writeback: i64,
}

impl Effect {
    /// The same where the processor may skip the instruction.
    pub(super) fn conditional(self) -> Self {
        match self {
            Self::Move { to, .. } => Self::Clobber(1 << to),
            Self::Transfer(Transfer { is_load: true, set, .. }) if set & (1 << PC) != 0 => Self::Branch,
            Self::Transfer(Transfer { is_load, set, base, writeback, .. }) => {
                let loaded = if is_load { set } else { 0 };
                Self::Clobber(loaded | if writeback == 0 { 0 } else { 1 << base })
            }
            Self::Jump(_) | Self::JumpRegister(_) | Self::Trap => Self::Branch,
            other => other,
        }
    }
}

/// `count` bits of `word` from `shift` on.
pub(super) fn bits(word: u32, shift: u32, count: u32) -> u32 {
    word >> shift & ((1 << count) - 1)
}

/// A register's number of four bits.
pub(super) fn register(word: u32, shift: u32) -> u8 {
    bits(word, shift, 4).to_le_bytes()[0]
}

/// The lowest `count` bits as a signed number.
pub(super) fn signed(value: u32, count: u32) -> i64 {
    i64::from((value << (32 - count)).cast_signed() >> (32 - count))
}

/// The lower half of a word.
pub(super) fn low_half(word: u32) -> u16 {
    let [a, b, ..] = word.to_le_bytes();
    u16::from_le_bytes([a, b])
}

/// A register written with an unknown value; as the program counter, a jump through memory.
pub(super) fn writes(to: u8) -> Effect {
    if to == PC { Effect::JumpRegister(MEMORY) } else { Effect::Clobber(1 << to) }
}

/// `to = from + bytes`, where the target may be the program counter.
pub(super) fn moves(to: u8, from: u8, bytes: i64) -> Effect {
    match (to, bytes) {
        (PC, 0) => Effect::JumpRegister(from),
        (PC, _) => Effect::JumpRegister(MEMORY),
        // A place in the code.
        _ if from == PC => writes(to),
        _ => Effect::Move { to, from, bytes },
    }
}

/// A load or store of one or more words with the index modes that both sets have.
pub(super) fn indexed(
    is_load: bool,
    set: u16,
    base: u8,
    distance: i64,
    is_pre: bool,
    is_written: bool,
) -> Effect {
    let offset = if is_pre { distance } else { 0 };
    // After-indexed forms always write their base.
    let writeback = if is_written || !is_pre { distance } else { 0 };
    Effect::Transfer(Transfer { is_load, set, base, offset, writeback })
}

/// `ldm` and `stm` in their four forms.
pub(super) fn multiple(
    is_load: bool,
    set: u16,
    base: u8,
    is_up: bool,
    is_before: bool,
    is_written: bool,
) -> Effect {
    let size = 4 * i64::from(set.count_ones());
    let offset = match (is_up, is_before) {
        (true, false) => 0,
        (true, true) => 4,
        (false, false) => 4 - size,
        (false, true) => -size,
    };
    let writeback = match (is_written, is_up) {
        (false, _) => 0,
        (true, true) => size,
        (true, false) => -size,
    };
    Effect::Transfer(Transfer { is_load, set, base, offset, writeback })
}
