//! Instructions of A64, as far as frames are concerned. Arm Architecture Reference Manual, C4.1 (encoding index).

/// Numbers of the registers that frames are made with.
pub(super) const FP: u8 = 29;
pub(super) const LR: u8 = 30;
/// The stack pointer, where an instruction's field means that and not the zero register.
pub(super) const SP: u8 = 31;

/// What an instruction does to the stack pointer, the frame pointer, the link register, and to registers on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Nothing.
    Nothing,
    /// `to = from + bytes`, both of them the stack or the frame pointer.
    Add {
        /// The register that is set.
        to: u8,
        /// The register that is read.
        from: u8,
        /// The distance.
        bytes: i64,
    },
    /// One or two 64-bit registers (or others, which do not matter) to or from the stack.
    Transfer(Transfer),
    /// A register that matters gets a value that is not known.
    Clobber(u8),
    /// `bl`, `blr`.
    Call,
    /// `ret` by the link register.
    Return,
    /// `b`, this many bytes ahead.
    Jump(i64),
    /// `br` by this register.
    JumpRegister(u8),
    /// A conditional branch, which may fall through.
    Branch,
    /// Control does not come past this.
    Trap,
}

/// A load or store by the stack or frame pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Transfer {
    pub(super) is_load: bool,
    /// 64-bit general registers, in the order of memory; `None` for others.
    pub(super) registers: [Option<u8>; 2],
    pub(super) base: u8,
    /// From the base, as it is before the instruction, to the first register.
    pub(super) offset: i64,
    /// What the instruction adds to the base.
    pub(super) writeback: i64,
}

fn bits(word: u32, shift: u32, count: u32) -> u32 {
    word >> shift & ((1 << count) - 1)
}

fn register(word: u32, shift: u32) -> u8 {
    word_low_byte(bits(word, shift, 5))
}

fn word_low_byte(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

/// The lowest `count` bits as a signed number.
fn signed(value: u32, count: u32) -> i64 {
    i64::from((value << (32 - count)).cast_signed() >> (32 - count))
}

fn matters(register: u8) -> bool {
    register == FP || register == LR
}

fn writes(register: u8) -> Effect {
    if matters(register) { Effect::Clobber(register) } else { Effect::Nothing }
}

/// What the instruction does.
pub(super) fn decode(word: u32) -> Effect {
    match bits(word, 25, 4) {
        // Reserved: `udf` is one.
        0b0000 => Effect::Trap,
        // Bytes that are no code.
        0b1111 if word == u32::MAX => Effect::Trap,
        0b1000 | 0b1001 => immediate(word),
        0b1010 | 0b1011 => branch(word),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => transfer(word),
        0b0101 | 0b1101 => register_operation(word),
        _ => Effect::Nothing,
    }
}

/// Swift's asynchronous functions mark their frame pointer by bit 60 before they save it, and clear it after.
const MARK_ASYNC_FRAME: u32 = 0xb244_03bd;
const UNMARK_ASYNC_FRAME: u32 = 0x9243_fbbd;

fn immediate(word: u32) -> Effect {
    let (to, from) = (register(word, 0), register(word, 5));
    match bits(word, 23, 6) {
        // Add and subtract; bit 29 sets flags, and register 31 is then no stack pointer.
        0b10_0010 => {
            let sets_flags = bits(word, 29, 1) == 1;
            if to == SP && sets_flags {
                return Effect::Nothing;
            }
            if to != SP && !matters(to) {
                return Effect::Nothing;
            }
            let is_64 = bits(word, 31, 1) == 1;
            if !is_64 || !(from == SP || from == FP) || to == LR {
                return Effect::Clobber(to);
            }
            let shift = if bits(word, 22, 1) == 1 { 12 } else { 0 };
            let bytes = i64::from(bits(word, 10, 12)) << shift;
            let is_subtraction = bits(word, 30, 1) == 1;
            Effect::Add { to, from, bytes: if is_subtraction { -bytes } else { bytes } }
        }
        // Logical; all but `ands` can set the stack pointer.
        0b10_0100 => match word {
            MARK_ASYNC_FRAME | UNMARK_ASYNC_FRAME => Effect::Nothing,
            _ if to == SP && bits(word, 29, 2) != 3 => Effect::Clobber(SP),
            _ => writes(to),
        },
        _ => writes(to),
    }
}

fn register_operation(word: u32) -> Effect {
    let to = register(word, 0);
    // Add and subtract with an extended register: the one form that can set the stack pointer.
    let is_extended = bits(word, 24, 5) == 0b0_1011 && bits(word, 21, 1) == 1;
    if is_extended && to == SP && bits(word, 29, 1) == 0 {
        return Effect::Clobber(SP);
    }
    writes(to)
}

fn branch(word: u32) -> Effect {
    if bits(word, 26, 5) == 0b0_0101 {
        return match bits(word, 31, 1) {
            0 => Effect::Jump(4 * signed(bits(word, 0, 26), 26)),
            _ => Effect::Call,
        };
    }
    match bits(word, 25, 7) {
        0b110_1011 => match (bits(word, 21, 4), register(word, 5)) {
            (0 | 8, by) => Effect::JumpRegister(by),
            (1 | 9, _) => Effect::Call,
            // `retaa` and `retab` have 31 in that field.
            (2, LR | 31) => Effect::Return,
            (2, by) => Effect::JumpRegister(by),
            _ => Effect::Trap,
        },
        0b110_1010 if bits(word, 24, 1) == 0 => match (bits(word, 21, 3), bits(word, 0, 2)) {
            // `svc`, `hvc`, `smc` come back; `brk` and `hlt` do not.
            (0, 1..) => Effect::Nothing,
            _ => Effect::Trap,
        },
        0b110_1010 if bits(word, 20, 5) == 0b1_0011 => writes(register(word, 0)),
        0b110_1010 => Effect::Nothing,
        _ => Effect::Branch,
    }
}

fn transfer(word: u32) -> Effect {
    let (kind, mode) = (bits(word, 27, 3), bits(word, 23, 2));
    let is_vector = bits(word, 26, 1) == 1;
    match kind {
        0b101 => pair(word, mode, is_vector),
        0b111 => single(word, is_vector),
        // Literals and exclusives.
        _ if is_vector => Effect::Nothing,
        0b011 => writes(register(word, 0)),
        _ if bits(word, 22, 1) == 1 => writes(register(word, 0)),
        _ => Effect::Nothing,
    }
}

fn pair(word: u32, mode: u32, is_vector: bool) -> Effect {
    let size = match (bits(word, 30, 2), is_vector) {
        (0, _) | (1, false) => 4,
        (1, true) | (2, false) => 8,
        _ => 16,
    };
    let distance = size * signed(bits(word, 15, 7), 7);
    let (offset, writeback) = match mode {
        0b01 => (0, distance),
        0b11 => (distance, distance),
        _ => (distance, 0),
    };
    let registers = [register(word, 0), register(word, 10)];
    let is_general = !is_vector && size == 8;
    finish(word, bits(word, 22, 1) == 1, registers.map(|number| (number, is_general)), offset, writeback)
}

fn single(word: u32, is_vector: bool) -> Effect {
    let (size, operation) = (bits(word, 30, 2), bits(word, 22, 2));
    let is_general = !is_vector && size == 3;
    let is_load = operation != 0;
    let to = (register(word, 0), is_general && operation <= 1);
    // Of 16-byte vectors the size field is zero and the operation's upper bit set.
    let scale = if is_vector && operation >= 2 { 4 } else { size };
    if bits(word, 24, 1) == 1 {
        let offset = i64::from(bits(word, 10, 12)) << scale;
        return finish(word, is_load, [to, (SP, false)], offset, 0);
    }
    let distance = signed(bits(word, 12, 9), 9);
    match (bits(word, 21, 1), bits(word, 10, 2)) {
        (0, 0b01) => finish(word, is_load, [to, (SP, false)], 0, distance),
        (0, 0b11) => finish(word, is_load, [to, (SP, false)], distance, distance),
        (0, _) => finish(word, is_load, [to, (SP, false)], distance, 0),
        // A register as the distance, and atomic operations.
        _ if is_vector || !is_load => Effect::Nothing,
        _ => writes(to.0),
    }
}

/// A transfer where its base matters or moves; else what it loads.
fn finish(word: u32, is_load: bool, registers: [(u8, bool); 2], offset: i64, writeback: i64) -> Effect {
    let base = register(word, 5);
    if base == SP || base == FP {
        let registers = registers.map(|(number, is_general)| is_general.then_some(number));
        return Effect::Transfer(Transfer { is_load, registers, base, offset, writeback });
    }
    let loaded = registers.into_iter().find(|(number, is_general)| *is_general && matters(*number));
    match loaded {
        Some((number, _)) if is_load => Effect::Clobber(number),
        _ => Effect::Nothing,
    }
}
