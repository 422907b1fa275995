//! Just enough of x86's instructions to follow the stack pointer through straight code: every instruction's length,
//! and what the few that prologues and epilogues are made of do. Of all others only whether they leave the stack and
//! frame pointers alone. Intel SDM volume 2, chapter 2 and appendix A.

use super::call::operand_size;

/// What one instruction does to the stack and frame pointers. Registers are numbered as the processor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Pushes a register, or (`None`) anything else.
    Push(Option<u8>),
    Pop(u8),
    /// Loads a register from memory, as epilogues do where the frame was not pushed.
    Load(u8),
    /// Loads the frame pointer from memory, so far above the stack pointer if that is told.
    LoadFp(Option<i32>),
    /// Adds to the stack pointer.
    MoveSp(i32),
    /// The frame pointer becomes the stack pointer plus this.
    SetFp(i32),
    /// The stack pointer becomes the frame pointer plus this.
    SetSpFromFp(i32),
    /// `leave`: the stack pointer becomes the frame pointer, which is popped.
    Leave,
    Return,
    /// The callee's arguments go with the return address; also how trampolines leave.
    ReturnAndDrop,
    /// An unconditional jump, out of sight.
    Jump,
    /// The stack pointer is rounded down by some amount.
    AlignSp,
    /// Writes to the top of the stack: what lies there may be a return address of the code's own making.
    Store,
    /// Neither pointer changes, and the next instruction comes next.
    Neutral,
}

const SP: u8 = 4;
const FP: u8 = 5;

struct Prefixes {
    length: usize,
    rex: u8,
    is_narrow: bool,
}

fn prefixes(code: &[u8], is_64: bool) -> Prefixes {
    let legacy =
        |byte: &&u8| matches!(byte, 0x66 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65);
    let count = code.iter().take(8).take_while(legacy).count();
    let is_narrow = code.iter().take(count).any(|byte| *byte == 0x66);
    let rex = code.get(count).copied().filter(|byte| is_64 && byte & 0xf0 == 0x40);
    Prefixes { length: count + usize::from(rex.is_some()), rex: rex.unwrap_or(0), is_narrow }
}

/// The instruction's length and effect; `None` for one that is not known, is cut off, or does what no prologue or
/// epilogue does.
pub(crate) fn decode(code: &[u8], is_64: bool) -> Option<(usize, Effect)> {
    let prefixes = prefixes(code, is_64);
    let rest = code.get(prefixes.length..)?;
    let (&opcode, operands) = rest.split_first()?;
    let (length, effect) = match opcode {
        0x0f => two_bytes(operands)?,
        0xc4 | 0xc5 | 0x62 if is_64 => vector(opcode, operands)?,
        _ => one_byte(opcode, operands, &prefixes, is_64)?,
    };
    let length = prefixes.length + 1 + length;
    (code.len() >= length).then_some((length, effect))
}

fn one_byte(opcode: u8, operands: &[u8], prefixes: &Prefixes, is_64: bool) -> Option<(usize, Effect)> {
    let immediate = if prefixes.is_narrow { 2 } else { 4 };
    let extended = |low: u8| low | if prefixes.rex & 1 != 0 { 8 } else { 0 };
    Some(match opcode {
        0x50..=0x57 => (0, Effect::Push(Some(extended(opcode & 7)))),
        0x58..=0x5f => (0, Effect::Pop(extended(opcode & 7))),
        0x68 => (immediate, Effect::Push(None)),
        0x6a => (1, Effect::Push(None)),
        0xc3 => (0, Effect::Return),
        0xc2 => (2, Effect::ReturnAndDrop),
        0xc9 => (0, Effect::Leave),
        0xe9 => (4, Effect::Jump),
        0xeb => (1, Effect::Jump),
        // Conditional jumps: the way straight on.
        0x70..=0x7f => (1, Effect::Neutral),
        0x90 | 0x98 | 0x99 | 0xa4 | 0xa5 | 0xaa | 0xab => (0, Effect::Neutral),
        // `inc` and `dec` of 32-bit code.
        0x40..=0x4f if !is_64 && !matches!(opcode & 7, SP | FP) => (0, Effect::Neutral),
        0xa8 => (1, Effect::Neutral),
        0xa9 => (immediate, Effect::Neutral),
        0xb0..=0xb7 => (1, Effect::Neutral),
        0xb8..=0xbf if prefixes.rex & 8 != 0 => (8, Effect::Neutral),
        0xb8..=0xbf if matches!(extended(opcode & 7), SP | FP) => return None,
        0xb8..=0xbf => (immediate, Effect::Neutral),
        // Arithmetic with the accumulator.
        0x00..=0x3f if opcode & 7 == 4 => (1, Effect::Neutral),
        0x00..=0x3f if opcode & 7 == 5 => (immediate, Effect::Neutral),
        _ => with_modrm(opcode, operands, prefixes, is_64)?,
    })
}

/// A ModRM operand: its register field, and the register or the form of memory.
struct Operand {
    register: u8,
    /// The register, where the operand is one.
    target: Option<u8>,
    length: usize,
}

fn operand(operands: &[u8], rex: u8) -> Option<Operand> {
    let (&modrm, rest) = operands.split_first()?;
    let register = (modrm >> 3 & 7) | if rex & 4 != 0 { 8 } else { 0 };
    let target = (modrm & 7) | if rex & 1 != 0 { 8 } else { 0 };
    Some(Operand {
        register,
        target: (modrm >> 6 == 3).then_some(target),
        length: 1 + operand_size(modrm, rest)?,
    })
}

fn with_modrm(opcode: u8, operands: &[u8], prefixes: &Prefixes, is_64: bool) -> Option<(usize, Effect)> {
    let operand = operand(operands, prefixes.rex)?;
    let length = operand.length + immediate_size(opcode, operand.register, prefixes);
    let value = operands.get(operand.length..length);
    let effect = match opcode {
        0x81 | 0x83 if operand.target == Some(SP) => adjust(operand.register & 7, value?)?,
        0x89 if operand.target == Some(FP) && operand.register == SP => Effect::SetFp(0),
        0x8b if operand.target == Some(SP) && operand.register == FP => Effect::SetFp(0),
        0x89 if operand.target == Some(SP) && operand.register == FP => Effect::SetSpFromFp(0),
        0x8b if operand.target == Some(FP) && operand.register == SP => Effect::SetSpFromFp(0),
        0x8b if operand.target.is_none() && operand.register == FP && (!is_64 || prefixes.rex & 8 != 0) => {
            Effect::LoadFp(above_stack_pointer(operands))
        }
        0x89 | 0xc7 if is_top_of_stack(operands) => Effect::Store,
        0x8d if matches!(operand.register, SP | FP) => lea(operand.register, operands, prefixes.rex)?,
        0xff => match operand.register & 7 {
            6 => Effect::Push(None),
            4 => Effect::Jump,
            0 | 1 if operand.target != Some(SP) && operand.target != Some(FP) => Effect::Neutral,
            _ => return None,
        },
        // Those that write their ModRM operand, and those that write the register field.
        0x00..=0x3f if opcode & 7 < 2 => neutral(operand.target)?,
        0x00..=0x3f if opcode & 7 < 4 => neutral(Some(operand.register).filter(|_| opcode & 0x38 != 0x38))?,
        0x38..=0x3f | 0x84 | 0x85 => Effect::Neutral,
        0x63 if is_64 => neutral(Some(operand.register))?,
        0x8b if operand.target.is_none() => {
            neutral(Some(operand.register))?;
            Effect::Load(operand.register)
        }
        0x69 | 0x6b | 0x8a | 0x8b | 0x8d => neutral(Some(operand.register))?,
        0x80 | 0x81 | 0x83 if operand.register & 7 == 7 => Effect::Neutral,
        0x80 | 0x81 | 0x83 | 0x88 | 0x89 | 0xc0 | 0xc1 | 0xc6 | 0xc7 | 0xd0..=0xd3 | 0xf6 | 0xf7 => {
            neutral(operand.target)?
        }
        0xd8..=0xdf => Effect::Neutral,
        _ => return None,
    };
    Some((length, effect))
}

/// How far above the stack pointer a memory operand is, where it counts from there alone.
fn above_stack_pointer(operands: &[u8]) -> Option<i32> {
    let (&modrm, [0x24, rest @ ..]) = operands.split_first()? else { return None };
    match (modrm & 7, modrm >> 6) {
        (4, 0) => Some(0),
        (4, 1) => Some(rest.first()?.cast_signed().into()),
        (4, 2) => Some(i32::from_le_bytes(*rest.first_chunk()?)),
        _ => None,
    }
}

/// Whether a memory operand is the top of the stack.
fn is_top_of_stack(operands: &[u8]) -> bool {
    matches!(operands, [modrm, sib, ..] if modrm >> 6 == 0 && modrm & 7 == 4 && *sib == 0x24)
}

fn immediate_size(opcode: u8, register: u8, prefixes: &Prefixes) -> usize {
    let wide = if prefixes.is_narrow { 2 } else { 4 };
    match opcode {
        0x69 | 0x81 | 0xc7 => wide,
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => 1,
        // `test`, the one of its group that has a number
        0xf6 if register & 7 < 2 => 1,
        0xf7 if register & 7 < 2 => wide,
        _ => 0,
    }
}

fn neutral(written: Option<u8>) -> Option<Effect> {
    (!matches!(written, Some(SP | FP))).then_some(Effect::Neutral)
}

/// `add`, `sub` and `and` of the stack pointer with a number.
fn adjust(operation: u8, value: &[u8]) -> Option<Effect> {
    let value = match value {
        [byte] => i32::from(byte.cast_signed()),
        bytes => i32::from_le_bytes(*bytes.first_chunk()?),
    };
    match operation {
        0 => Some(Effect::MoveSp(value)),
        4 => Some(Effect::AlignSp),
        5 => Some(Effect::MoveSp(value.checked_neg()?)),
        7 => Some(Effect::Neutral),
        _ => None,
    }
}

/// `lea` between the two pointers.
fn lea(to: u8, operands: &[u8], rex: u8) -> Option<Effect> {
    let (&modrm, rest) = operands.split_first()?;
    let mut base = modrm & 7;
    let mut rest = rest;
    if rex & 3 != 0 || !matches!(modrm >> 6, 1 | 2) {
        return None;
    }
    if base == 4 {
        // A SIB byte: base rsp without an index.
        let (&sib, behind) = rest.split_first()?;
        if sib != 0x24 {
            return None;
        }
        base = SP;
        rest = behind;
    }
    let offset = if modrm >> 6 == 1 {
        i32::from(rest.first()?.cast_signed())
    } else {
        i32::from_le_bytes(*rest.first_chunk()?)
    };
    match (to, base) {
        (SP, SP) => Some(Effect::MoveSp(offset)),
        (SP, FP) => Some(Effect::SetSpFromFp(offset)),
        (FP, SP) => Some(Effect::SetFp(offset)),
        // Mono fills the space before calls with it.
        (FP, FP) if offset == 0 => Some(Effect::Neutral),
        _ => None,
    }
}

fn two_bytes(operands: &[u8]) -> Option<(usize, Effect)> {
    let (&opcode, rest) = operands.split_first()?;
    let length = match opcode {
        // syscall, cpuid and the like change general registers only
        0x05 | 0x31 | 0x77 | 0xa2 | 0xc8..=0xcf => 0,
        0x0b | 0xa0 | 0xa1 | 0xa8 | 0xa9 => return None,
        0x80..=0x8f => 4,
        0x38 => 1 + operand(rest.get(1..)?, 0)?.length,
        0x3a => 2 + operand(rest.get(1..)?, 0)?.length,
        _ => operand(rest, 0)?.length + usize::from(has_byte(opcode)),
    };
    // Conditional moves and the zero- and sign-extending ones write a general register.
    let writes = matches!(opcode, 0x40..=0x4f | 0xaf | 0xb6..=0xb8 | 0xbc..=0xbf);
    let written = if writes { Some(operand(rest, 0)?.register) } else { None };
    Some((1 + length, neutral(written)?))
}

/// Which instructions of the `0f` map have an immediate byte.
fn has_byte(opcode: u8) -> bool {
    matches!(opcode, 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6)
}

/// VEX and EVEX: they write vector registers, save for a few that no prologue has.
fn vector(prefix: u8, operands: &[u8]) -> Option<(usize, Effect)> {
    let (map, skip) = match prefix {
        0xc5 => (1, 1),
        0xc4 => (operands.first()? & 0x1f, 2),
        _ => (operands.first()? & 0x07, 3),
    };
    let (&opcode, rest) = operands.get(skip..)?.split_first()?;
    if map == 1 && opcode == 0x77 {
        return Some((skip + 1, Effect::Neutral));
    }
    let byte = match map {
        1 => has_byte(opcode),
        2 => false,
        3 => true,
        _ => return None,
    };
    // General registers are written by VEX's bit operations, map 2 and 3, opcodes f0 and up.
    if map >= 2 && opcode >= 0xf0 {
        return None;
    }
    Some((skip + 1 + operand(rest, 0)?.length + usize::from(byte), Effect::Neutral))
}
