//! Thumb instructions, of two or four bytes. Arm Architecture Reference Manual for A-profile, F3.1 (T32 encoding index).

use super::a32::{coprocessor_operation, vector_transfer};
use super::effect::{
    Effect, LR, MEMORY, PC, SP, bits, indexed, low_half, moves, multiple, register, signed, writes,
};

/// The instruction's size in bytes, by its first half.
pub(super) fn size(first: u16) -> u64 {
    if first >> 11 >= 0b1_1101 { 4 } else { 2 }
}

/// What a two-byte instruction does.
pub(super) fn decode_short(half: u16) -> Effect {
    // No compiler writes `movs r0, r0`; files that were emptied are full of it.
    if half == 0 {
        return Effect::Trap;
    }
    let word = u32::from(half);
    let low = |shift: u32| bits(word, shift, 3).to_le_bytes()[0];
    match bits(word, 11, 5) {
        0b0_0011 => add_three(word),
        0b0_0000..=0b0_0010 | 0b0_1001 => writes(if bits(word, 11, 5) == 0b0_1001 { low(8) } else { low(0) }),
        0b0_0100 => writes(low(8)),
        0b0_0101 => Effect::Nothing,
        0b0_0110 => moves(low(8), low(8), i64::from(bits(word, 0, 8))),
        0b0_0111 => moves(low(8), low(8), -i64::from(bits(word, 0, 8))),
        0b0_1000 => register_operation(word),
        // Words by register and offset.
        0b0_1100 | 0b0_1101 => {
            let distance = 4 * i64::from(bits(word, 6, 5));
            indexed(bits(word, 11, 1) == 1, 1 << low(0), low(3), distance, true, false)
        }
        0b0_1010 if bits(word, 9, 2) < 3 => Effect::Nothing,
        0b0_1010 | 0b0_1011 | 0b0_1111 | 0b1_0001 => writes(low(0)),
        0b0_1110 | 0b1_0000 => Effect::Nothing,
        0b1_0010 | 0b1_0011 => {
            let distance = 4 * i64::from(bits(word, 0, 8));
            indexed(bits(word, 11, 1) == 1, 1 << low(8), SP, distance, true, false)
        }
        0b1_0100 => writes(low(8)),
        0b1_0101 => moves(low(8), SP, 4 * i64::from(bits(word, 0, 8))),
        0b1_0110 | 0b1_0111 => miscellaneous(word),
        // `ldm` does not write a base that it loads.
        0b1_1000 | 0b1_1001 => {
            let (is_load, set) = (bits(word, 11, 1) == 1, low_half(bits(word, 0, 8)));
            multiple(is_load, set, low(8), true, false, !is_load || set & (1 << low(8)) == 0)
        }
        0b1_1010 | 0b1_1011 => match bits(word, 8, 4) {
            14 => Effect::Trap,
            15 => Effect::Nothing,
            _ => Effect::Branch,
        },
        _ => Effect::Jump(2 * signed(bits(word, 0, 11), 11) + 4),
    }
}

fn add_three(word: u32) -> Effect {
    let (to, from) = (bits(word, 0, 3).to_le_bytes()[0], bits(word, 3, 3).to_le_bytes()[0]);
    let immediate = i64::from(bits(word, 6, 3));
    match bits(word, 9, 2) {
        0b10 => moves(to, from, immediate),
        0b11 => moves(to, from, -immediate),
        _ => writes(to),
    }
}

fn register_operation(word: u32) -> Effect {
    if bits(word, 10, 1) == 0 {
        // `tst`, `cmp`, `cmn` have no result.
        let has_result = ![8, 10, 11].contains(&bits(word, 6, 4));
        return if has_result { writes(bits(word, 0, 3).to_le_bytes()[0]) } else { Effect::Nothing };
    }
    let to = (bits(word, 7, 1) << 3 | bits(word, 0, 3)).to_le_bytes()[0];
    let from = register(word, 3);
    match bits(word, 8, 2) {
        0b00 => writes(to),
        0b01 => Effect::Nothing,
        0b10 => moves(to, from, 0),
        _ if bits(word, 7, 1) == 1 => Effect::Call,
        _ => Effect::JumpRegister(from),
    }
}

fn miscellaneous(word: u32) -> Effect {
    match bits(word, 8, 4) {
        0b0000 => {
            let bytes = 4 * i64::from(bits(word, 0, 7));
            let bytes = if bits(word, 7, 1) == 1 { -bytes } else { bytes };
            Effect::Move { to: SP, from: SP, bytes }
        }
        0b0100 | 0b0101 => {
            let set = low_half(bits(word, 0, 8) | bits(word, 8, 1) << LR);
            multiple(false, set, SP, false, true, true)
        }
        0b1100 | 0b1101 => {
            let set = low_half(bits(word, 0, 8) | bits(word, 8, 1) << PC);
            multiple(true, set, SP, true, false, true)
        }
        0b0001 | 0b0011 | 0b1001 | 0b1011 => Effect::Branch,
        0b0010 | 0b1010 => writes(bits(word, 0, 3).to_le_bytes()[0]),
        0b1110 => Effect::Trap,
        0b1111 if bits(word, 0, 4) != 0 => {
            Effect::If((4 - bits(word, 0, 4).trailing_zeros()).to_le_bytes()[0])
        }
        _ => Effect::Nothing,
    }
}

/// What a four-byte instruction does.
pub(super) fn decode_long(first: u16, second: u16) -> Effect {
    if first == u16::MAX {
        return Effect::Trap;
    }
    let word = u32::from(first) << 16 | u32::from(second);
    let flag = |bit: u32| bits(word, bit, 1) == 1;
    let base = register(word, 16);
    match (bits(word, 27, 2), bits(word, 20, 7)) {
        (0b01, operation) if operation >> 2 & 0b11_001 == 0b00_000 => {
            // `ldm`, `stm`: the two forms that exist in Thumb.
            multiple(flag(20), low_half(word), base, flag(23), !flag(23), flag(21))
        }
        (0b01, operation) if operation >> 5 == 0 => double(word),
        (0b01, operation) if operation >> 5 == 1 => shifted_register(word),
        (0b01 | 0b11, operation) if operation >> 6 == 1 => {
            if operation >> 4 & 3 == 3 {
                Effect::Nothing
            } else {
                coprocessor(word)
            }
        }
        (0b10, _) if flag(15) => branch(word),
        (0b10, _) => immediate(word),
        (0b11, operation) if operation >> 5 == 0 => single(word),
        (0b11, _) => Effect::Clobber(1 << register(word, 8) | 1 << register(word, 12)),
        _ => Effect::Nothing,
    }
}

/// `vpush`, `vpop`; moves between register files.
fn coprocessor(word: u32) -> Effect {
    if bits(word, 25, 1) == 1 {
        return coprocessor_operation(word);
    }
    let is_move = bits(word, 21, 4) == 0b0010;
    if is_move {
        let to = 1 << register(word, 12) | 1 << register(word, 16);
        return if bits(word, 20, 1) == 1 { Effect::Clobber(to) } else { Effect::Nothing };
    }
    vector_transfer(word)
}

/// Two registers, exclusive access, table branches.
fn double(word: u32) -> Effect {
    let flag = |bit: u32| bits(word, bit, 1) == 1;
    let (base, low, high) = (register(word, 16), register(word, 12), register(word, 8));
    if !flag(24) && !flag(21) {
        let is_table_branch = bits(word, 20, 4) == 0b1101 && bits(word, 5, 3) == 0;
        if is_table_branch {
            return Effect::JumpRegister(MEMORY);
        }
        return if flag(20) { writes(low) } else { Effect::Nothing };
    }
    let distance = 4 * i64::from(bits(word, 0, 8));
    let distance = if flag(23) { distance } else { -distance };
    let set = 1 << low | 1 << high;
    if low < high {
        // They need not be neighbours, but what lies between in the set's order does.
        return indexed(flag(20), set, base, distance, flag(24), flag(21));
    }
    Effect::Clobber(set | if flag(21) { 1 << base } else { 0 })
}

fn shifted_register(word: u32) -> Effect {
    let to = register(word, 8);
    let is_move = bits(word, 21, 4) == 0b0010 && register(word, 16) == PC;
    let is_plain = bits(word, 12, 3) == 0 && bits(word, 4, 4) == 0;
    match (is_move && is_plain, to) {
        (true, _) => moves(to, register(word, 0), 0),
        // Compare and test.
        (_, PC) => Effect::Nothing,
        _ => writes(to),
    }
}

/// Data processing with an immediate operand.
fn immediate(word: u32) -> Effect {
    let (from, to) = (register(word, 16), register(word, 8));
    let plain = bits(word, 26, 1) << 11 | bits(word, 12, 3) << 8 | bits(word, 0, 8);
    match (bits(word, 25, 1), bits(word, 21, 4)) {
        (0, 0b1000) if to != PC => moves(to, from, expanded(plain)),
        (0, 0b1101) if to != PC => moves(to, from, -expanded(plain)),
        (1, 0b0000) => moves(to, from, i64::from(plain)),
        (1, 0b0101) => moves(to, from, -i64::from(plain)),
        _ if to == PC => Effect::Nothing,
        _ => writes(to),
    }
}

/// A constant of twelve bits: a byte, repeated or shifted.
fn expanded(plain: u32) -> i64 {
    let byte = bits(plain, 0, 8);
    i64::from(match bits(plain, 8, 4) {
        0 => byte,
        1 => byte << 16 | byte,
        2 => byte << 24 | byte << 8,
        3 => byte << 24 | byte << 16 | byte << 8 | byte,
        _ => (bits(plain, 0, 7) | 0x80).rotate_right(bits(plain, 7, 5)),
    })
}

fn branch(word: u32) -> Effect {
    match (bits(word, 14, 1), bits(word, 12, 1)) {
        (1, _) => Effect::Call,
        (0, 1) => {
            let sign = bits(word, 26, 1);
            let (j1, j2) = (bits(word, 13, 1) ^ sign ^ 1, bits(word, 11, 1) ^ sign ^ 1);
            let half = sign << 23 | j1 << 22 | j2 << 21 | bits(word, 16, 10) << 11 | bits(word, 0, 11);
            Effect::Jump(2 * signed(half, 24) + 4)
        }
        _ if bits(word, 23, 3) != 0b111 => Effect::Branch,
        // `udf.w`.
        _ if bits(word, 20, 7) == 0x7f && bits(word, 13, 1) == 1 => Effect::Trap,
        // `mrs`.
        _ if bits(word, 21, 6) == 0b11_1111 => writes(register(word, 8)),
        _ => Effect::Nothing,
    }
}

/// One register to or from memory.
fn single(word: u32) -> Effect {
    let flag = |bit: u32| bits(word, bit, 1) == 1;
    let (base, to) = (register(word, 16), register(word, 12));
    let is_word = bits(word, 21, 2) == 0b10 && !flag(24);
    if !is_word || base == PC {
        // Bytes, half words, literals. As the program counter the target means a hint.
        let is_jump = is_word && to == PC && flag(20);
        return if !flag(20) || (to == PC && !is_jump) { Effect::Nothing } else { writes(to) };
    }
    if flag(23) {
        return indexed(flag(20), 1 << to, base, i64::from(bits(word, 0, 12)), true, false);
    }
    if !flag(11) {
        return if flag(20) { writes(to) } else { Effect::Nothing };
    }
    let distance = i64::from(bits(word, 0, 8));
    let distance = if flag(9) { distance } else { -distance };
    indexed(flag(20), 1 << to, base, distance, flag(10), flag(8))
}
