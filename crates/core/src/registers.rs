//! The registers that unwinding needs, numbered as DWARF numbers them.

use crate::{Avma, Family};
use core::fmt;

/// A register of one [`Family`], by the number that the family's DWARF supplement gives it.
///
/// - x86: System V ABI i386 table 2.14 (eax 0, ecx 1, edx 2, ebx 3, esp 4, ebp 5, esi 6, edi 7, eip 8). Apple's
///   `__eh_frame` for i386 swaps esp and ebp; readers of it translate.
/// - `x86_64`: System V ABI figure 3.36 (rax 0, rdx 1, rcx 2, rbx 3, rsi 4, rdi 5, rbp 6, rsp 7, r8 to r15, rip 16).
/// - arm: AADWARF32 (r0 to r15).
/// - aarch64: AADWARF64 (x0 to x30, sp 31, pc 32).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Register(pub u8);

const X86: [&str; 9] = ["eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"];
const X86_64: [&str; 17] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", "rip",
];
const ARM: [&str; 16] =
    ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc"];
const AARCH64: [&str; 33] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
    "sp", "pc",
];
/// Other words for the same registers, as reports, kernels and debuggers write them.
const ALIASES: [(Family, &str, u8); 11] = [
    (Family::Arm, "fp", 11),
    (Family::Arm, "ip", 12),
    (Family::Arm, "r13", 13),
    (Family::Arm, "r14", 14),
    (Family::Arm, "r15", 15),
    (Family::Aarch64, "fp", 29),
    (Family::Aarch64, "lr", 30),
    (Family::Aarch64, "x31", 31),
    (Family::Arm, "sl", 10),
    (Family::X86, "ip", 8),
    (Family::X86_64, "ip", 16),
];

impl Family {
    /// The registers' names in the order of their DWARF numbers.
    pub const fn register_names(self) -> &'static [&'static str] {
        match self {
            Self::X86 => &X86,
            Self::X86_64 => &X86_64,
            Self::Arm => &ARM,
            Self::Aarch64 => &AARCH64,
            Self::Other => &[],
        }
    }

    /// The register with this name, in any case.
    pub fn register(self, name: &str) -> Option<Register> {
        let index = self.register_names().iter().position(|known| known.eq_ignore_ascii_case(name));
        let number = index.and_then(|index| u8::try_from(index).ok());
        let alias =
            || ALIASES.iter().find(|(family, alias, _)| *family == self && alias.eq_ignore_ascii_case(name));
        number.or_else(|| alias().map(|(_, _, number)| *number)).map(Register)
    }

    /// The register's name; `None` for a number that this family's [`Registers`] have no place for.
    pub fn register_name(self, register: Register) -> Option<&'static str> {
        self.register_names().get(usize::from(register.0)).copied()
    }

    /// The program counter.
    #[inline]
    pub const fn pc(self) -> Register {
        match self {
            Self::X86 => Register(8),
            Self::X86_64 => Register(16),
            Self::Arm => Register(15),
            Self::Aarch64 | Self::Other => Register(32),
        }
    }

    /// The stack pointer.
    #[inline]
    pub const fn sp(self) -> Register {
        match self {
            Self::X86 => Register(4),
            Self::X86_64 => Register(7),
            Self::Arm => Register(13),
            Self::Aarch64 | Self::Other => Register(31),
        }
    }

    /// The frame pointer: on 32-bit ARM `r11`, that of ARM code (Thumb code and Apple use `r7`).
    #[inline]
    pub const fn fp(self) -> Register {
        match self {
            Self::X86 => Register(5),
            Self::X86_64 => Register(6),
            Self::Arm => Register(11),
            Self::Aarch64 | Self::Other => Register(29),
        }
    }

    /// The link register, where the family has one.
    #[inline]
    pub const fn lr(self) -> Option<Register> {
        match self {
            Self::Arm => Some(Register(14)),
            Self::Aarch64 => Some(Register(30)),
            Self::X86 | Self::X86_64 | Self::Other => None,
        }
    }

    /// Bytes in a general register and in a saved register's place on the stack.
    #[inline]
    pub const fn word_size(self) -> u8 {
        match self {
            Self::X86 | Self::Arm => 4,
            Self::X86_64 | Self::Aarch64 | Self::Other => 8,
        }
    }
}

/// How many registers the largest family has.
pub const REGISTER_COUNT: usize = 33;

/// One frame's registers; those that are not known are absent, not zero.
///
/// A fixed-size value: no operation allocates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    values: [u64; REGISTER_COUNT],
    valid: u64,
    /// The bits that a register has.
    width: u64,
    family: Family,
}

impl Registers {
    /// No register known yet.
    #[inline]
    pub const fn new(family: Family) -> Self {
        let width = if family.word_size() == 4 { 0xffff_ffff } else { u64::MAX };
        Self { values: [0; REGISTER_COUNT], valid: 0, width, family }
    }

    /// Whose registers they are.
    #[inline]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The register's value, if it is known.
    #[inline]
    pub fn get(&self, register: Register) -> Option<u64> {
        let known = self.valid & (1 << (register.0 & 63)) != 0;
        let value = self.values.get(usize::from(register.0))?;
        known.then_some(*value)
    }

    /// Sets a register. A number that the family does not have is ignored; 32-bit families keep the lower half.
    #[inline]
    pub fn set(&mut self, register: Register, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(register.0)) {
            *place = value & self.width;
            let bit = 1 << (register.0 & 63);
            // Walks set registers that are known already: no store then, on which the next `get` would wait.
            if self.valid & bit == 0 {
                self.valid |= bit;
            }
        }
    }

    /// Forgets a register.
    #[inline]
    pub fn clear(&mut self, register: Register) {
        self.valid &= !(1 << (register.0 & 63));
    }

    /// Forgets several registers, which are given as bits by number.
    #[inline]
    pub fn clear_all(&mut self, registers: u64) {
        self.valid &= !registers;
    }

    /// The program counter, with every bit it had.
    #[inline]
    pub fn pc(&self) -> Option<Avma> {
        self.get(self.family.pc()).map(Avma::new)
    }

    /// The stack pointer.
    #[inline]
    pub fn sp(&self) -> Option<Avma> {
        self.get(self.family.sp()).map(Avma::new)
    }

    /// The frame pointer.
    #[inline]
    pub fn fp(&self) -> Option<Avma> {
        self.get(self.family.fp()).map(Avma::new)
    }

    /// The link register, where the family has one.
    #[inline]
    pub fn lr(&self) -> Option<Avma> {
        self.get(self.family.lr()?).map(Avma::new)
    }

    /// All known registers, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Register, u64)> + '_ {
        (0..=u8::MAX)
            .zip(self.values)
            .map(|(number, value)| (Register(number), value))
            .filter(|(register, _)| self.get(*register).is_some())
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (register, value) in self.iter() {
            let name = self.family.register_name(register).unwrap_or("?");
            map.entry(&format_args!("{name}"), &format_args!("{value:#x}"));
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for family in [Family::X86, Family::X86_64, Family::Arm, Family::Aarch64] {
            for (number, name) in (0..).zip(family.register_names()) {
                assert_eq!(family.register(name), Some(Register(number)));
                assert_eq!(family.register_name(Register(number)), Some(*name));
            }
            assert!(family.register_name(family.pc()).is_some());
        }
        assert_eq!(Family::X86_64.register_name(Family::X86_64.sp()), Some("rsp"));
        assert_eq!(Family::X86.register_name(Family::X86.fp()), Some("ebp"));
        assert_eq!(Family::Arm.register("LR"), Family::Arm.lr());
        assert_eq!(Family::Aarch64.register("lr"), Some(Register(30)));
        assert_eq!(Family::X86.register("r8"), None);
    }

    #[test]
    fn absent_is_not_zero() {
        let mut registers = Registers::new(Family::X86);
        assert_eq!(registers.sp(), None);
        registers.set(Family::X86.sp(), 0x1_ffff_0000);
        assert_eq!(registers.sp(), Some(Avma::new(0xffff_0000)));
        registers.set(Register(70), 1);
        assert_eq!(registers.get(Register(70)), None);
        assert_eq!(registers.iter().count(), 1);
        registers.clear(Family::X86.sp());
        assert_eq!(registers.sp(), None);
        for number in 0..4 {
            registers.set(Register(number), 7);
        }
        registers.clear_all(0b1010);
        assert!(registers.iter().map(|(register, _)| register.0).eq([0, 2]));
    }
}
