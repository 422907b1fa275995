//! What differs between architectures, for somebody who watches a program run.

use backtrail_core::{Family, Register, Registers};

/// An architecture as gdb's protocol and its calls go.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) family: Family,
    /// DWARF's numbers of the registers, in the order of the `g` packet.
    order: &'static [u8],
    /// What a function has to give back as it was.
    pub(crate) callee_saved: &'static [u8],
    /// The most bytes that an instruction has.
    pub(crate) longest: u64,
}

const AARCH64: [u8; 33] = {
    let mut order = [0; 33];
    let mut number = 0;
    while number < 33 {
        order[number as usize] = number;
        number += 1;
    }
    order
};

impl Machine {
    pub(crate) fn new(family: Family) -> Option<Self> {
        let (order, callee_saved, longest): (&'static [u8], &'static [u8], u64) = match family {
            Family::X86 => (&[0, 1, 2, 3, 4, 5, 6, 7, 8], &[3, 5, 6, 7], 8),
            Family::X86_64 => {
                (&[0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], &[3, 6, 12, 13, 14, 15], 9)
            }
            Family::Arm => {
                (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], &[4, 5, 6, 7, 8, 9, 10, 11], 4)
            }
            Family::Aarch64 => (&AARCH64, &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29], 4),
            _ => return None,
        };
        Some(Self { family, order, callee_saved, longest })
    }

    /// The registers of a `g` packet. On 32-bit ARM the program counter gets the status register's Thumb bit.
    pub(crate) fn registers(&self, packet: &[u8]) -> Registers {
        let mut registers = Registers::new(self.family);
        let size = usize::from(self.family.word_size());
        for (number, bytes) in self.order.iter().zip(packet.chunks_exact(size)) {
            registers.set(Register(*number), number_of(bytes));
        }
        if self.family == Family::Arm {
            // The status register comes next; where the old coprocessor's eight registers come first, behind those.
            let at = if packet.len() >= 168 { 164 } else { 64 };
            let status = packet.get(at..at + 4).map_or(0, number_of);
            let pc = registers.pc().unwrap_or_default().get();
            registers.set(self.family.pc(), pc | (status >> 5 & 1));
        }
        registers
    }

    /// The return address, where the instruction at `before`'s program counter is a call and `after` is the state
    /// behind it. `top` is the word that `after`'s stack pointer points to.
    pub(crate) fn called(
        &self,
        code: &[u8],
        before: &Registers,
        after: &Registers,
        top: Option<u64>,
    ) -> Option<u64> {
        let (from, to) = (before.pc()?.get(), after.pc()?.get());
        match self.family {
            Family::X86 | Family::X86_64 => {
                let word = u64::from(self.family.word_size());
                let pushed = after.sp()?.get() == before.sp()?.get().wrapping_sub(word);
                let length = top?.wrapping_sub(from);
                let fits = (2..=self.longest).contains(&length) && pushed && is_x86_call(code);
                fits.then_some(top).flatten()
            }
            Family::Arm => {
                let thumb = from & 1;
                let size = arm_call_size(code, thumb != 0)?;
                let behind = ((from & !1) + size) | thumb;
                (after.lr()?.get() == behind && to & !1 != behind & !1).then_some(behind)
            }
            _ => {
                let word = u32::from_le_bytes(*code.first_chunk()?);
                let is_call = word >> 26 == 0x25 || word & 0xfeff_f800 == 0xd63f_0000;
                (is_call && after.lr()?.get() == from + 4 && to != from + 4).then_some(from + 4)
            }
        }
    }

    /// Where the handler's return address is once the kernel has called it: on top of the stack or in the link
    /// register.
    pub(crate) fn address_at_entry(&self, registers: &Registers, top: Option<u64>) -> Option<u64> {
        match registers.lr() {
            Some(lr) => Some(lr.get()),
            None => top,
        }
    }
}

pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn is_x86_call(code: &[u8]) -> bool {
    let is_prefix = |byte: &u8| matches!(byte, 0x40..=0x4f | 0x3e | 0x2e | 0xf2 | 0x64..=0x67);
    let start = code.iter().position(|byte| !is_prefix(byte)).unwrap_or(0);
    match code.get(start..).unwrap_or_default() {
        [0xe8, ..] => true,
        [0xff, operand, ..] => operand & 0x38 == 0x10,
        _ => false,
    }
}

fn arm_call_size(code: &[u8], thumb: bool) -> Option<u64> {
    if !thumb {
        let word = u32::from_le_bytes(*code.first_chunk()?);
        let is_branch = word >> 25 & 7 == 5 && (word >> 24 & 1 == 1 || word >> 28 == 15);
        return (is_branch || word & 0x0fff_fff0 == 0x012f_ff30).then_some(4);
    }
    let half = |at: usize| Some(u16::from_le_bytes(*code.get(at..)?.first_chunk()?));
    let first = half(0)?;
    if first & 0xff87 == 0x4780 {
        return Some(2);
    }
    (first >> 11 == 0b11110 && half(2)? & 0xc000 == 0xc000).then_some(4)
}
