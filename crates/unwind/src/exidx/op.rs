//! The instructions that undo a frame. EHABI section 10.3, table 4; return address authentication as added in 2021Q1.

use backtrail_core::{Family, Register};
use core::fmt;

/// General registers as a set: bit n is register n.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegisterSet(pub u16);

impl RegisterSet {
    /// The registers, lowest first: the order in which they lie in memory.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        (0..16).filter(move |number| self.0 & (1 << number) != 0).map(Register)
    }

    /// Whether `register` is one of them.
    pub fn contains(self, register: Register) -> bool {
        register.0 < 16 && self.0 & (1 << register.0) != 0
    }
}

impl fmt::Display for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (position, register) in self.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            let name = Family::Arm.register_name(register).unwrap_or("?");
            write!(f, "{comma}{name}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How floating-point registers lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VfpForm {
    /// As the old instruction `FSTMFDX` stores them: one word of format follows.
    Fstmfdx,
    /// As `VPUSH` (`FSTMFDD`) stores them.
    Vpush,
}

/// One instruction. `vsp` is the virtual stack pointer: the stack pointer at first, the caller's in the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// `vsp` moves up by this many bytes.
    Add(u32),
    /// `vsp` moves down by this many bytes.
    Subtract(u32),
    /// Registers are loaded from `vsp` on, lowest first; `vsp` moves up behind them.
    Pop(RegisterSet),
    /// `vsp` becomes the value that a register has now.
    SetVsp(Register),
    /// `count` double registers from `first` on.
    PopVfp {
        /// The number of the lowest one.
        first: u8,
        /// How many.
        count: u8,
        /// Their form.
        form: VfpForm,
    },
    /// `count` Intel Wireless MMX data registers from `first` on, eight bytes each.
    PopWmmx {
        /// The number of the lowest one.
        first: u8,
        /// How many.
        count: u8,
    },
    /// Intel Wireless MMX control registers `wCGR0` to `wCGR3`, as bits; four bytes each.
    PopWmmxControl(u8),
    /// The authentication code of the return address, one word.
    PopAuthenticationCode,
    /// The current `vsp` is what the return address was signed with.
    AuthenticateWithVsp,
    /// The end.
    Finish,
    /// There is no way back from here.
    Refuse,
    /// A code that no version of the ABI gives a meaning.
    Spare(u8),
    /// The bytes end in the middle of an instruction.
    Truncated,
}

impl Op {
    /// How many bytes of the stack a pop takes; 0 for the others.
    pub fn popped_bytes(self) -> u32 {
        match self {
            Self::Pop(set) => 4 * set.0.count_ones(),
            Self::PopVfp { count, form: VfpForm::Vpush, .. } | Self::PopWmmx { count, .. } => {
                8 * u32::from(count)
            }
            Self::PopVfp { count, form: VfpForm::Fstmfdx, .. } => 8 * u32::from(count) + 4,
            Self::PopWmmxControl(set) => 4 * set.count_ones(),
            Self::PopAuthenticationCode => 4,
            _ => 0,
        }
    }
}

/// As an assembler listing would have it.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Add(bytes) => write!(f, "vsp = vsp + {bytes}"),
            Self::Subtract(bytes) => write!(f, "vsp = vsp - {bytes}"),
            Self::Pop(set) => write!(f, "pop {set}"),
            Self::SetVsp(register) => {
                write!(f, "vsp = {}", Family::Arm.register_name(register).unwrap_or("?"))
            }
            Self::PopVfp { first, count, form } => {
                write_numbered(f, "d", first, count)?;
                if form == VfpForm::Fstmfdx { f.write_str(" fstmfdx") } else { Ok(()) }
            }
            Self::PopWmmx { first, count } => write_numbered(f, "wR", first, count),
            Self::PopWmmxControl(set) => {
                f.write_str("pop {")?;
                for (position, number) in (0..4).filter(|number| set & (1 << number) != 0).enumerate() {
                    write!(f, "{}wCGR{number}", if position == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            Self::PopAuthenticationCode => f.write_str("pop {ra_auth_code}"),
            Self::AuthenticateWithVsp => f.write_str("use vsp as modifier of the return address"),
            Self::Finish => f.write_str("finish"),
            Self::Refuse => f.write_str("refuse to unwind"),
            Self::Spare(byte) => write!(f, "spare ({byte:#04x})"),
            Self::Truncated => f.write_str("cut off"),
        }
    }
}

fn write_numbered(f: &mut fmt::Formatter<'_>, prefix: &str, first: u8, count: u8) -> fmt::Result {
    f.write_str("pop {")?;
    for number in first..first.saturating_add(count) {
        write!(f, "{}{prefix}{number}", if number == first { "" } else { ", " })?;
    }
    f.write_str("}")
}

/// The instruction bytes of one entry: up to three in the first word, the others in whole words, most significant byte
/// first. Iterating decodes; the iterator ends with the bytes, also when no `finish` was among them.
#[derive(Clone, Copy, Debug)]
pub struct Code<'d> {
    /// The bytes still to come of the word at hand, the next one on top.
    word: u32,
    left: u8,
    words: &'d [u8],
}

impl<'d> Code<'d> {
    /// The lowest `count` bytes of `word`, then `words`.
    pub(super) fn new(word: u32, count: u8, words: &'d [u8]) -> Self {
        Self { word: word << (8 * (4 - u32::from(count.clamp(1, 3)))), left: count.clamp(1, 3), words }
    }

    /// The bytes as they come.
    pub fn bytes(self) -> impl Iterator<Item = u8> + use<'d> {
        let mut code = self;
        core::iter::from_fn(move || code.next_byte())
    }

    fn next_byte(&mut self) -> Option<u8> {
        if self.left == 0 {
            let (word, rest) = self.words.split_first_chunk::<4>()?;
            (self.word, self.left, self.words) = (u32::from_le_bytes(*word), 4, rest);
        }
        let byte = self.word.to_be_bytes()[0];
        self.word <<= 8;
        self.left -= 1;
        Some(byte)
    }

    fn second(&mut self, op: impl FnOnce(u8) -> Op) -> Op {
        self.next_byte().map_or(Op::Truncated, op)
    }

    /// `vsp += 0x204 + (number << 2)`, where the number may have any length.
    fn long_add(&mut self) -> Op {
        let mut number = 0_u32;
        for shift in (0..).step_by(7) {
            let Some(byte) = self.next_byte() else { return Op::Truncated };
            let bits = u32::from(byte & 0x7f);
            // What does not fit in 30 bits leaves the address space.
            if shift > 28 || bits.checked_shl(shift).is_none_or(|moved| moved >> shift != bits) {
                return Op::Spare(0xb2);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let bytes = number.checked_mul(4).and_then(|bytes| bytes.checked_add(0x204));
        bytes.map_or(Op::Spare(0xb2), Op::Add)
    }

    fn decode(&mut self, byte: u8) -> Op {
        match byte {
            0x00..=0x3f => Op::Add(4 * u32::from(byte & 0x3f) + 4),
            0x40..=0x7f => Op::Subtract(4 * u32::from(byte & 0x3f) + 4),
            0x80..=0x8f => self.second(|low| match u16::from_be_bytes([byte & 0x0f, low]) {
                0 => Op::Refuse,
                mask => Op::Pop(RegisterSet(mask << 4)),
            }),
            // Prefixes kept for moves between ARM registers and Intel Wireless MMX registers.
            0x9d | 0x9f => Op::Spare(byte),
            0x90..=0x9f => Op::SetVsp(Register(byte & 0x0f)),
            0xa0..=0xaf => {
                let callee_saved = (2_u16 << (byte & 7)) - 1;
                let link = if byte & 8 == 0 { 0 } else { 1 << 14 };
                Op::Pop(RegisterSet(callee_saved << 4 | link))
            }
            0xb0..=0xbf => self.decode_b(byte),
            0xc0..=0xcf => self.decode_c(byte),
            0xd0..=0xd7 => Op::PopVfp { first: 8, count: (byte & 7) + 1, form: VfpForm::Vpush },
            0xd8..=0xff => Op::Spare(byte),
        }
    }

    fn decode_b(&mut self, byte: u8) -> Op {
        match byte {
            0xb0 => Op::Finish,
            0xb1 => self.second(|low| match low {
                0x01..=0x0f => Op::Pop(RegisterSet(low.into())),
                _ => Op::Spare(byte),
            }),
            0xb2 => self.long_add(),
            0xb3 => self.second(|low| vfp(low, 0, VfpForm::Fstmfdx)),
            0xb4 => Op::PopAuthenticationCode,
            0xb5 => Op::AuthenticateWithVsp,
            0xb8..=0xbf => Op::PopVfp { first: 8, count: (byte & 7) + 1, form: VfpForm::Fstmfdx },
            _ => Op::Spare(byte),
        }
    }

    fn decode_c(&mut self, byte: u8) -> Op {
        match byte {
            0xc0..=0xc5 => Op::PopWmmx { first: 10, count: (byte & 7) + 1 },
            0xc6 => self.second(|low| match (low >> 4, (low & 0x0f) + 1) {
                (first, count) if first + count <= 16 => Op::PopWmmx { first, count },
                _ => Op::Spare(byte),
            }),
            0xc7 => self.second(|low| match low {
                0x01..=0x0f => Op::PopWmmxControl(low),
                _ => Op::Spare(byte),
            }),
            0xc8 => self.second(|low| vfp(low, 16, VfpForm::Vpush)),
            0xc9 => self.second(|low| vfp(low, 0, VfpForm::Vpush)),
            _ => Op::Spare(byte),
        }
    }
}

/// A start and a count less one in a byte's halves; there are 32 registers.
fn vfp(halves: u8, base: u8, form: VfpForm) -> Op {
    let (first, count) = (base + (halves >> 4), (halves & 0x0f) + 1);
    if first + count > 32 {
        return Op::Spare(halves);
    }
    Op::PopVfp { first, count, form }
}

impl Iterator for Code<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let byte = self.next_byte()?;
        Some(self.decode(byte))
    }
}
