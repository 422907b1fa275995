//! Encodings: 32 bits for one frame layout. `mach-o/compact_unwind_encoding.h`.

use backtrail_core::{Family, Register};
use core::fmt;

/// One encoding of one architecture.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Encoding {
    raw: u32,
    family: Family,
}

/// At most six general registers, in the order in which they lie in memory, lowest first.
pub(super) type Saved = [Option<Register>; 6];

/// What an encoding says. Sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing is known of these functions.
    Nothing,
    /// x86: a frame with `ebp` or `rbp`. Five places from `first` bytes below the frame pointer upwards, some unused.
    Frame {
        /// The distance from the frame pointer down to the first place.
        first: u32,
        /// The registers in the places.
        saved: [Option<Register>; 6],
    },
    /// x86: a frame of a size that the encoding states, return address included.
    Stack {
        /// The whole frame.
        size: u32,
        /// The registers below the return address.
        saved: [Option<Register>; 6],
    },
    /// x86: a frame of a size that the function's `sub esp, imm32` states.
    StackIndirect {
        /// Where in the function the immediate lies.
        at: u32,
        /// What the pushes before it, and the return address, add.
        adjust: u32,
        /// The registers below the return address.
        saved: [Option<Register>; 6],
    },
    /// arm64: `x29` and `x30` on top of the frame, register pairs below.
    Arm64Frame {
        /// Bits 0 to 4: `x19` and `x20` to `x27` and `x28`. Bits 8 to 11: `d8` and `d9` to `d14` and `d15`.
        pairs: u16,
    },
    /// arm64: a leaf function, the return address in `x30`.
    Arm64Frameless {
        /// The whole frame.
        size: u32,
        /// As for frames.
        pairs: u16,
    },
    /// armv7k: `r7` and `lr` on top of the frame, below them what was pushed.
    ArmFrame {
        /// What lies above `lr`: arguments pushed by the function itself.
        adjust: u32,
        /// Bits 0 to 2: `r4` to `r6`; bits 3 to 7: `r8` to `r12`.
        pushed: u8,
        /// How many floating-point registers lie below, in the encoding's own count; `None` for none.
        vfp: Option<u8>,
    },
    /// The FDE at this offset of `__eh_frame` says it.
    Dwarf {
        /// The offset; zero where it did not fit.
        offset: u32,
    },
    /// A mode that the architecture does not have, or registers that it does not have.
    Unknown,
}

const HAS_LSDA: u32 = 0x4000_0000;

/// The registers of both x86 families by the number that encodings use (1 to 6).
const X86_64: [Register; 6] =
    [Register(3), Register(12), Register(13), Register(14), Register(15), Register(6)];
const X86: [Register; 6] = [Register(3), Register(1), Register(2), Register(7), Register(6), Register(5)];

impl Encoding {
    /// `raw` as it stands in the file of an image of this family.
    pub const fn new(raw: u32, family: Family) -> Self {
        Self { raw, family }
    }

    /// The bits.
    pub const fn raw(self) -> u32 {
        self.raw
    }

    /// Whether the function has language-specific data.
    pub const fn has_lsda(self) -> bool {
        self.raw & HAS_LSDA != 0
    }

    /// The number of the personality routine, from one on.
    pub(super) const fn personality(self) -> Option<u32> {
        match self.raw >> 28 & 3 {
            0 => None,
            number => Some(number),
        }
    }

    fn bits(self, shift: u32, count: u32) -> u32 {
        self.raw >> shift & ((1 << count) - 1)
    }

    /// What the encoding says.
    pub fn mode(self) -> Mode {
        let mode = self.bits(24, 4);
        match (self.family, mode) {
            (_, 0) => Mode::Nothing,
            (Family::X86 | Family::X86_64, 1) => self.x86_frame().unwrap_or(Mode::Unknown),
            (Family::X86 | Family::X86_64, 2 | 3) => self.x86_stack(mode == 3).unwrap_or(Mode::Unknown),
            (Family::X86 | Family::X86_64 | Family::Arm, 4) | (Family::Aarch64, 3) => {
                Mode::Dwarf { offset: self.bits(0, 24) }
            }
            (Family::Aarch64, 2) => {
                Mode::Arm64Frameless { size: 16 * self.bits(12, 12), pairs: self.pairs() }
            }
            (Family::Aarch64, 4) => Mode::Arm64Frame { pairs: self.pairs() },
            (Family::Arm, 1 | 2) => Mode::ArmFrame {
                adjust: 4 * self.bits(22, 2),
                pushed: self.raw.to_le_bytes()[0],
                vfp: (mode == 2).then(|| self.raw.to_le_bytes()[1] & 7),
            },
            _ => Mode::Unknown,
        }
    }

    fn pairs(self) -> u16 {
        let [low, high, ..] = self.raw.to_le_bytes();
        u16::from_le_bytes([low & 0x1f, high & 0x0f])
    }

    fn word_size(self) -> u32 {
        self.family.word_size().into()
    }

    fn x86_register(self, number: u32) -> Option<Register> {
        let registers = if self.family == Family::X86 { X86 } else { X86_64 };
        registers.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }

    /// Five register numbers of three bits; 7 is none.
    fn x86_frame(self) -> Option<Mode> {
        let mut saved = Saved::default();
        for (place, shift) in saved.iter_mut().zip((0..15).step_by(3)) {
            let number = self.bits(shift, 3);
            if number != 0 {
                *place = Some(self.x86_register(number)?);
            }
        }
        Some(Mode::Frame { first: self.word_size() * self.bits(16, 8), saved })
    }

    fn x86_stack(self, is_indirect: bool) -> Option<Mode> {
        let saved = self.permuted(self.bits(10, 3), self.bits(0, 10))?;
        if is_indirect {
            let adjust = self.word_size() * self.bits(13, 3);
            return Some(Mode::StackIndirect { at: self.bits(16, 8), adjust, saved });
        }
        Some(Mode::Stack { size: self.word_size() * self.bits(16, 8), saved })
    }

    /// `count` of the six registers in an order that the permutation's number tells: each digit, of a base that falls
    /// by one, chooses among the registers that are left.
    fn permuted(self, count: u32, mut permutation: u32) -> Option<Saved> {
        let mut saved = Saved::default();
        let mut left: [bool; 6] = [true; 6];
        // For six registers the last has no choice, and the digits are those of five.
        let digits = count.min(5);
        for (position, place) in (0..count).zip(saved.iter_mut()) {
            let radix: u32 = (position + 1..digits).map(|later| 6 - later).product();
            let digit = if position < digits { permutation / radix } else { 0 };
            permutation = if position < digits { permutation % radix } else { 0 };
            let mut free = (1..).zip(left.iter_mut()).filter(|(_, free)| **free);
            let (number, free) = free.nth(usize::try_from(digit).ok()?)?;
            *free = false;
            *place = Some(self.x86_register(number)?);
        }
        (count <= 6).then_some(saved)
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x} ({self})", self.raw)
    }
}

/// In words: `frame: rbx at fp-8…`.
impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode() {
            Mode::Nothing => f.write_str("no unwind information"),
            Mode::Frame { saved, .. } => {
                write!(f, "frame pointer {}", self.name(self.family.fp()))?;
                self.write_saved(f, &saved)
            }
            Mode::Stack { size, saved } => {
                write!(f, "stack of {size} bytes")?;
                self.write_saved(f, &saved)
            }
            Mode::StackIndirect { at, adjust, saved } => {
                write!(f, "stack of {adjust} bytes and those that the instruction at +{at:#x} subtracts")?;
                self.write_saved(f, &saved)
            }
            Mode::Arm64Frame { pairs } => {
                f.write_str("frame pointer x29")?;
                write_pairs(f, pairs)
            }
            Mode::Arm64Frameless { size, pairs } => {
                write!(f, "frameless, {size} bytes, return address in x30")?;
                write_pairs(f, pairs)
            }
            Mode::ArmFrame { adjust, pushed, vfp } => {
                write!(f, "frame pointer r7, {adjust} bytes above")?;
                let mut separator = "; saved ";
                for register in arm_pushed(pushed) {
                    write!(f, "{separator}{}", self.name(register))?;
                    separator = ", ";
                }
                if let Some(count) = vfp {
                    write!(f, "{separator}VFP form {count}")?;
                }
                Ok(())
            }
            Mode::Dwarf { offset: 0 } => f.write_str("DWARF, to be searched for in __eh_frame"),
            Mode::Dwarf { offset } => write!(f, "DWARF at {offset:#x} of __eh_frame"),
            Mode::Unknown => f.write_str("unknown"),
        }
    }
}

impl Encoding {
    fn name(self, register: Register) -> &'static str {
        self.family.register_name(register).unwrap_or("?")
    }

    fn write_saved(self, f: &mut fmt::Formatter<'_>, saved: &Saved) -> fmt::Result {
        let mut separator = "; saved ";
        for register in saved.iter().flatten() {
            write!(f, "{separator}{}", self.name(*register))?;
            separator = ", ";
        }
        Ok(())
    }
}

fn write_pairs(f: &mut fmt::Formatter<'_>, pairs: u16) -> fmt::Result {
    let mut separator = "; saved ";
    for (prefix, first, bits) in [("x", 19, pairs & 0x1f), ("d", 8, pairs >> 8)] {
        for pair in (0..5).filter(|pair| bits & (1 << pair) != 0) {
            let low = first + 2 * pair;
            write!(f, "{separator}{prefix}{low} {prefix}{}", low + 1)?;
            separator = ", ";
        }
    }
    Ok(())
}

/// The registers that an armv7k function pushed below its frame pointer, highest in memory first.
pub(super) fn arm_pushed(pushed: u8) -> impl Iterator<Item = Register> {
    const ORDER: [(u8, Register); 8] = [
        (2, Register(6)),
        (1, Register(5)),
        (0, Register(4)),
        (7, Register(12)),
        (6, Register(11)),
        (5, Register(10)),
        (4, Register(9)),
        (3, Register(8)),
    ];
    ORDER.into_iter().filter(move |(bit, _)| pushed & (1 << bit) != 0).map(|(_, register)| register)
}
