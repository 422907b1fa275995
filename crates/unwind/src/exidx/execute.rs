//! Running the instructions on registers and memory.
//!
//! A row cannot say all that they can (a stack pointer that is loaded, a second base register), so this is the way
//! that walking uses. It allocates nothing.

use super::op::{Code, Op};
use backtrail_core::{Avma, Family, ReadMemory, Register, Registers, Unreadable};
use core::fmt;

const SP: Register = Register(13);
const LR: Register = Register(14);
const PC: Register = Register(15);
/// Registers that a call does not preserve (AAPCS32 section 6.1.1): the caller's values are gone unless popped. The
/// link register is one of them: what it held after the call came back is not told.
const CALL_CLOBBERED: [Register; 6] = [Register(0), Register(1), Register(2), Register(3), Register(12), LR];

/// The caller, as the instructions gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Executed {
    /// The caller's registers; the program counter has its Thumb bit.
    pub registers: Registers,
    /// The stack pointer before the call.
    pub cfa: Avma,
    /// Whether the return address was still in the link register: right for a leaf function only, which a frame that
    /// called another cannot be.
    pub return_address_in_link_register: bool,
}

/// Why the instructions gave no caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// They say "refuse to unwind": there is no caller to be found.
    Refused,
    /// The ABI gives this byte no meaning.
    Spare(u8),
    /// They end within an instruction.
    Truncated,
    /// They use a register whose value is not known.
    UnknownRegister(Register),
    /// They pop from memory that cannot be read.
    Unreadable(Unreadable),
    /// They run off the 32-bit address space.
    OutOfRange,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the table refuses to unwind"),
            Self::Spare(byte) => write!(f, "{byte:#04x} is no unwind instruction"),
            Self::Truncated => f.write_str("the unwind instructions are cut off"),
            Self::UnknownRegister(register) => {
                write!(f, "{} is not known", Family::Arm.register_name(*register).unwrap_or("a register"))
            }
            Self::Unreadable(unreadable) => unreadable.fmt(f),
            Self::OutOfRange => f.write_str("the stack pointer leaves the address space"),
        }
    }
}

impl core::error::Error for Stopped {}

/// Steps to the caller of the frame that has `registers`.
///
/// An entry has at most 1,023 bytes of instructions, so the work is bounded.
///
/// # Errors
/// See [`Stopped`].
pub fn execute(
    code: Code<'_>,
    registers: &Registers,
    memory: &(impl ReadMemory + ?Sized),
) -> Result<Executed, Stopped> {
    let mut machine = Machine { registers: *registers, vsp: value(registers, SP)?, popped: 0 };
    for op in code {
        if op == Op::Finish {
            break;
        }
        machine.run(op, memory)?;
    }
    machine.finish(registers)
}

struct Machine {
    registers: Registers,
    vsp: u32,
    /// The registers that were loaded, as bits.
    popped: u16,
}

impl Machine {
    fn run(&mut self, op: Op, memory: &(impl ReadMemory + ?Sized)) -> Result<(), Stopped> {
        match op {
            Op::Add(bytes) => self.add(bytes),
            Op::Subtract(bytes) => {
                self.vsp = self.vsp.checked_sub(bytes).ok_or(Stopped::OutOfRange)?;
                Ok(())
            }
            Op::SetVsp(register) => {
                self.vsp = value(&self.registers, register)?;
                Ok(())
            }
            Op::Pop(set) => {
                let mut at = self.vsp;
                for register in set.iter() {
                    let loaded = memory.read_u32(Avma::new(at.into())).map_err(Stopped::Unreadable)?;
                    self.registers.set(register, loaded.into());
                    at = at.checked_add(4).ok_or(Stopped::OutOfRange)?;
                }
                self.popped |= set.0;
                // A stack pointer that is popped is the new one, whatever lies behind it.
                self.vsp = if set.contains(SP) { value(&self.registers, SP)? } else { at };
                Ok(())
            }
            Op::PopVfp { .. } | Op::PopWmmx { .. } | Op::PopWmmxControl(_) | Op::PopAuthenticationCode => {
                self.add(op.popped_bytes())
            }
            Op::AuthenticateWithVsp | Op::Finish => Ok(()),
            Op::Refuse => Err(Stopped::Refused),
            Op::Spare(byte) => Err(Stopped::Spare(byte)),
            Op::Truncated => Err(Stopped::Truncated),
        }
    }

    fn add(&mut self, bytes: u32) -> Result<(), Stopped> {
        self.vsp = self.vsp.checked_add(bytes).ok_or(Stopped::OutOfRange)?;
        Ok(())
    }

    fn finish(mut self, before: &Registers) -> Result<Executed, Stopped> {
        let is_popped = |register: Register| self.popped & (1 << register.0) != 0;
        let is_in_link_register = !is_popped(PC) && !is_popped(LR);
        let return_address = match (is_popped(PC), is_in_link_register) {
            (true, _) => value(&self.registers, PC)?,
            (false, false) => value(&self.registers, LR)?,
            (false, true) => value(before, LR)?,
        };
        for register in CALL_CLOBBERED {
            // A popped link register is the return address, unless that was popped too: then it is the caller's.
            if !is_popped(register) || (register == LR && !is_popped(PC)) {
                self.registers.clear(register);
            }
        }
        self.registers.set(PC, return_address.into());
        self.registers.set(SP, self.vsp.into());
        Ok(Executed {
            registers: self.registers,
            cfa: Avma::new(self.vsp.into()),
            return_address_in_link_register: is_in_link_register,
        })
    }
}

fn value(registers: &Registers, register: Register) -> Result<u32, Stopped> {
    let known = registers.get(register).and_then(|value| u32::try_from(value).ok());
    known.ok_or(Stopped::UnknownRegister(register))
}
