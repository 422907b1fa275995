//! DWARF expressions as operations, in the words of `readelf`. DWARF 5, section 7.7.1.

use backtrail_core::{Family, Register};
use std::fmt::Write;

/// What follows an operation's code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    None,
    Address,
    Unsigned(usize),
    Signed(usize),
    Uleb,
    Sleb,
}

/// The operations with one operand or none, but for the numbered ones.
const OPERATIONS: [(u8, &str, Operand); 47] = [
    (0x03, "addr", Operand::Address),
    (0x06, "deref", Operand::None),
    (0x08, "const1u", Operand::Unsigned(1)),
    (0x09, "const1s", Operand::Signed(1)),
    (0x0a, "const2u", Operand::Unsigned(2)),
    (0x0b, "const2s", Operand::Signed(2)),
    (0x0c, "const4u", Operand::Unsigned(4)),
    (0x0d, "const4s", Operand::Signed(4)),
    (0x0e, "const8u", Operand::Unsigned(8)),
    (0x0f, "const8s", Operand::Signed(8)),
    (0x10, "constu", Operand::Uleb),
    (0x11, "consts", Operand::Sleb),
    (0x12, "dup", Operand::None),
    (0x13, "drop", Operand::None),
    (0x14, "over", Operand::None),
    (0x15, "pick", Operand::Unsigned(1)),
    (0x16, "swap", Operand::None),
    (0x17, "rot", Operand::None),
    (0x18, "xderef", Operand::None),
    (0x19, "abs", Operand::None),
    (0x1a, "and", Operand::None),
    (0x1b, "div", Operand::None),
    (0x1c, "minus", Operand::None),
    (0x1d, "mod", Operand::None),
    (0x1e, "mul", Operand::None),
    (0x1f, "neg", Operand::None),
    (0x20, "not", Operand::None),
    (0x21, "or", Operand::None),
    (0x22, "plus", Operand::None),
    (0x23, "plus_uconst", Operand::Uleb),
    (0x24, "shl", Operand::None),
    (0x25, "shr", Operand::None),
    (0x26, "shra", Operand::None),
    (0x27, "xor", Operand::None),
    (0x28, "bra", Operand::Signed(2)),
    (0x29, "eq", Operand::None),
    (0x2a, "ge", Operand::None),
    (0x2b, "gt", Operand::None),
    (0x2c, "le", Operand::None),
    (0x2d, "lt", Operand::None),
    (0x2e, "ne", Operand::None),
    (0x2f, "skip", Operand::Signed(2)),
    (0x91, "fbreg", Operand::Sleb),
    (0x94, "deref_size", Operand::Unsigned(1)),
    (0x96, "nop", Operand::None),
    (0x9c, "call_frame_cfa", Operand::None),
    (0x9f, "stack_value", Operand::None),
];

/// `DW_OP_breg7 (rsp): 8; DW_OP_lit15; DW_OP_and`. What has no meaning ends the list as bytes in hexadecimal.
pub(super) fn listing(family: Family, bytes: &[u8]) -> String {
    let mut list = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        match operation(family, rest) {
            Some((text, behind)) if behind.len() < rest.len() => {
                list.push(text);
                rest = behind;
            }
            _ => {
                list.push(rest.iter().fold("unknown".to_owned(), |mut text, byte| {
                    let _ = write!(text, " {byte:02x}");
                    text
                }));
                break;
            }
        }
    }
    list.join("; ")
}

/// The first operation, and what follows it.
fn operation(family: Family, bytes: &[u8]) -> Option<(String, &[u8])> {
    let (&code, rest) = bytes.split_first()?;
    let named = |number: u64| {
        let register = u8::try_from(number).ok().map(Register);
        let name = register.and_then(|register| family.register_name(register));
        name.map(|name| format!(" ({name})")).unwrap_or_default()
    };
    match code {
        0x30..=0x4f => Some((format!("DW_OP_lit{}", code - 0x30), rest)),
        0x50..=0x6f => Some((format!("DW_OP_reg{}{}", code - 0x50, named(u64::from(code - 0x50))), rest)),
        0x70..=0x8f => {
            let (offset, rest) = sleb(rest)?;
            let number = code - 0x70;
            Some((format!("DW_OP_breg{number}{}: {offset}", named(number.into())), rest))
        }
        0x90 => {
            let (number, rest) = uleb(rest)?;
            Some((format!("DW_OP_regx: {number}{}", named(number)), rest))
        }
        0x92 => {
            let (number, rest) = uleb(rest)?;
            let (offset, rest) = sleb(rest)?;
            Some((format!("DW_OP_bregx: {number}{} {offset}", named(number)), rest))
        }
        _ => {
            let (_, name, kind) = OPERATIONS.iter().find(|(known, ..)| *known == code)?;
            let (operand, rest) = operand(*kind, family, rest)?;
            let colon = if operand.is_empty() { "" } else { ": " };
            Some((format!("DW_OP_{name}{colon}{operand}"), rest))
        }
    }
}

fn operand(kind: Operand, family: Family, bytes: &[u8]) -> Option<(String, &[u8])> {
    let number = |size: usize| {
        let (number, rest) = bytes.split_at_checked(size)?;
        Some((number.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)), rest))
    };
    Some(match kind {
        Operand::None => (String::new(), bytes),
        Operand::Address => {
            let (value, rest) = number(family.word_size().into())?;
            (format!("{value:#x}"), rest)
        }
        Operand::Unsigned(size) => {
            let (value, rest) = number(size)?;
            (value.to_string(), rest)
        }
        Operand::Signed(size) => {
            let (value, rest) = number(size)?;
            let unused = 64 - 8 * u32::try_from(size).ok()?;
            (((value << unused).cast_signed() >> unused).to_string(), rest)
        }
        Operand::Uleb => {
            let (value, rest) = uleb(bytes)?;
            (value.to_string(), rest)
        }
        Operand::Sleb => {
            let (value, rest) = sleb(bytes)?;
            (value.to_string(), rest)
        }
    })
}

/// The number's bits, how many there are, whether its sign bit is set, and what follows.
fn leb(bytes: &[u8]) -> Option<(u64, u32, bool, &[u8])> {
    let (mut value, mut shift) = (0u64, 0u32);
    for (index, byte) in bytes.iter().enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift = shift.checked_add(7)?;
        if byte & 0x80 == 0 {
            return Some((value, shift, byte & 0x40 != 0, bytes.get(index + 1..)?));
        }
    }
    None
}

pub(super) fn uleb(bytes: &[u8]) -> Option<(u64, &[u8])> {
    leb(bytes).map(|(value, _, _, rest)| (value, rest))
}

pub(super) fn sleb(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, bits, is_negative, rest) = leb(bytes)?;
    let high = if is_negative { u64::MAX.checked_shl(bits).unwrap_or(0) } else { 0 };
    Some(((value | high).cast_signed(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_read_as_readelf_has_them() {
        // A PLT's CFA: readelf 2.40 prints the same.
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        let text = "DW_OP_breg7 (rsp): 8; DW_OP_breg16 (rip): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit11; DW_OP_ge; \
                    DW_OP_lit3; DW_OP_shl; DW_OP_plus";
        assert_eq!(listing(Family::X86_64, &plt), text);
        let others: [(&[u8], &str); 12] = [
            (&[0x75, 0x7c, 0x06], "DW_OP_breg5 (ebp): -4; DW_OP_deref"),
            (&[0x0c, b'D', b'E', b'X', b'1', 0x13], "DW_OP_const4u: 827868484; DW_OP_drop"),
            (&[0x03, 0x10, 0x20, 0, 0], "DW_OP_addr: 0x2010"),
            (&[0x0b, 0xfe, 0xff, 0x08, 0xfe], "DW_OP_const2s: -2; DW_OP_const1u: 254"),
            (&[0x11, 0x80, 0x7f, 0x10, 0x80, 1], "DW_OP_consts: -128; DW_OP_constu: 128"),
            (&[0x92, 4, 0x7f, 0x90, 40], "DW_OP_bregx: 4 (esp) -1; DW_OP_regx: 40"),
            (&[0x28, 0xfd, 0xff, 0x2f, 3, 0], "DW_OP_bra: -3; DW_OP_skip: 3"),
            (
                &[0x53, 0x94, 2, 0x96, 0x9c, 0x9f],
                "DW_OP_reg3 (ebx); DW_OP_deref_size: 2; DW_OP_nop; \
              DW_OP_call_frame_cfa; DW_OP_stack_value",
            ),
            (&[0x8f, 0, 0x15, 1], "DW_OP_breg31: 0; DW_OP_pick: 1"),
            (&[0x30, 0xff, 1], "DW_OP_lit0; unknown ff 01"),
            (&[0x0e, 1, 2], "unknown 0e 01 02"),
            (&[0x10, 0x80], "unknown 10 80"),
        ];
        for (bytes, text) in others {
            assert_eq!(listing(Family::X86, bytes), text);
        }
        assert_eq!(listing(Family::X86, &[]), "");
    }
}
