//! ARM instructions. Arm Architecture Reference Manual for A-profile, F4.1 (A32 encoding index).

use super::effect::{
    Effect, PC, Transfer, bits, indexed, low_half, moves, multiple, register, signed, writes,
};

const ALWAYS: u32 = 14;
const UNCONDITIONAL: u32 = 15;

/// What the instruction does.
pub(super) fn decode(word: u32) -> Effect {
    // No compiler writes either; files that were emptied are full of them.
    if word == 0 || word == u32::MAX {
        return Effect::Trap;
    }
    match bits(word, 28, 4) {
        // `blx` to Thumb code; else hints and SIMD.
        UNCONDITIONAL if bits(word, 25, 3) == 0b101 => Effect::Call,
        UNCONDITIONAL => Effect::Nothing,
        ALWAYS => effect(word),
        _ => effect(word).conditional(),
    }
}

fn effect(word: u32) -> Effect {
    let (base, to) = (register(word, 16), register(word, 12));
    let flag = |bit: u32| bits(word, bit, 1) == 1;
    match bits(word, 25, 3) {
        0b000 if flag(4) && flag(7) => extra_transfer(word),
        0b000 | 0b001 => data_processing(word),
        0b011 if flag(4) => media(word),
        0b010 | 0b011 => {
            if flag(22) {
                return if flag(20) { writes(to) } else { Effect::Nothing };
            }
            let distance = i64::from(bits(word, 0, 12));
            let distance = if flag(23) { distance } else { -distance };
            if flag(25) {
                // A register as the distance.
                return if flag(20) { writes(to) } else { Effect::Nothing };
            }
            indexed(flag(20), 1 << to, base, distance, flag(24), flag(21))
        }
        0b100 => multiple(flag(20), low_half(word), base, flag(23), flag(24), flag(21)),
        0b101 if flag(24) => Effect::Call,
        0b101 => Effect::Jump(4 * signed(bits(word, 0, 24), 24) + 8),
        0b110 if bits(word, 21, 4) == 0b0010 => {
            // `mrrc`, and `vmov` of two registers.
            if flag(20) { Effect::Clobber(1 << to | 1 << base) } else { Effect::Nothing }
        }
        0b110 => vector_transfer(word),
        0b111 => coprocessor_operation(word),
        _ => Effect::Nothing,
    }
}

/// `vpush` and `vpop` move their base, and that is all that matters; `vmrs` and the like come as other groups.
pub(super) fn vector_transfer(word: u32) -> Effect {
    let flag = |bit: u32| bits(word, bit, 1) == 1;
    let is_vector = bits(word, 9, 3) == 0b101;
    if !is_vector || !flag(21) {
        return Effect::Nothing;
    }
    let size = 4 * i64::from(bits(word, 0, 8));
    Effect::Transfer(Transfer {
        is_load: flag(20),
        set: 0,
        base: register(word, 16),
        offset: 0,
        writeback: if flag(23) { size } else { -size },
    })
}

/// `mrc`, `vmov` and `vmrs` to a general register; to the program counter means the flags.
pub(super) fn coprocessor_operation(word: u32) -> Effect {
    let is_read = bits(word, 24, 1) == 0 && bits(word, 20, 1) == 1 && bits(word, 4, 1) == 1;
    match register(word, 12) {
        to if is_read && to != PC => Effect::Clobber(1 << to),
        _ => Effect::Nothing,
    }
}

/// Half words, doubles, multiplication, exclusive access.
fn extra_transfer(word: u32) -> Effect {
    let (base, to) = (register(word, 16), register(word, 12));
    let flag = |bit: u32| bits(word, bit, 1) == 1;
    if bits(word, 5, 2) == 0 {
        // Multiplication has its result in the base's place, and the lower half of a long one in the other's.
        return if bits(word, 24, 4) == 0 { Effect::Clobber(1 << base | 1 << to) } else { writes(to) };
    }
    let is_double = !flag(20) && bits(word, 6, 1) == 1;
    if is_double && flag(22) && to % 2 == 0 && to < 14 {
        let distance = i64::from(bits(word, 8, 4) << 4 | bits(word, 0, 4));
        let distance = if flag(23) { distance } else { -distance };
        return indexed(bits(word, 5, 1) == 0, 3 << to, base, distance, flag(24), flag(21));
    }
    if flag(20) || is_double { writes(to) } else { Effect::Nothing }
}

fn media(word: u32) -> Effect {
    // `udf`.
    if bits(word, 20, 8) == 0x7f && bits(word, 4, 4) == 15 {
        return Effect::Trap;
    }
    Effect::Clobber(1 << register(word, 12) | 1 << register(word, 16))
}

fn data_processing(word: u32) -> Effect {
    let (from, to) = (register(word, 16), register(word, 12));
    let (operation, sets_flags) = (bits(word, 21, 4), bits(word, 20, 1) == 1);
    let is_immediate = bits(word, 25, 1) == 1;
    if (8..12).contains(&operation) {
        // Compare and test have no result; without flags the same codes mean other things.
        return if sets_flags { Effect::Nothing } else { miscellaneous(word) };
    }
    let immediate = i64::from(bits(word, 0, 8).rotate_right(2 * bits(word, 8, 4)));
    let is_plain = bits(word, 4, 8) == 0;
    match operation {
        0b0100 if is_immediate => moves(to, from, immediate),
        0b0010 if is_immediate => moves(to, from, -immediate),
        0b1101 if !is_immediate && is_plain => moves(to, register(word, 0), 0),
        _ => writes(to),
    }
}

fn miscellaneous(word: u32) -> Effect {
    if bits(word, 25, 1) == 1 {
        // `movw`, `movt`; else hints and status registers.
        let is_move = bits(word, 20, 2) == 0;
        return if is_move { writes(register(word, 12)) } else { Effect::Nothing };
    }
    match (bits(word, 21, 2), bits(word, 4, 4)) {
        (0b01, 0b0001) => Effect::JumpRegister(register(word, 0)),
        (0b01, 0b0011) => Effect::Call,
        (0b01, 0b0111) => Effect::Trap,
        (0b11, 0b0001) | (0b00, 0b0000) => writes(register(word, 12)),
        _ => Effect::Nothing,
    }
}

/// `str lr, [sp, #-4]!` in front of a jump through `lr`: the first entry of a `.plt`.
pub(super) const PLT_PUSH: u32 = 0xe52d_e004;
