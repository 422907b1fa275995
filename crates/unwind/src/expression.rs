//! DWARF expressions (DWARF 5, section 2.5), as far as call frame information uses them: everything that computes an
//! address or a value; nothing that refers to debug info.

use crate::cfi::Cursor;
use crate::row::Malformed;
use backtrail_core::{Avma, Bias, ReadMemory, Register, Registers, Svma, Unreadable};
use core::fmt;

/// Why an expression has no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ExpressionError {
    /// An operation that call frame information may not use, or that does not exist.
    Operation(u8),
    /// The expression's bytes end within an operation.
    Truncated,
    /// An operation finds too few values.
    StackUnderflow,
    /// More values than there is room for.
    StackOverflow,
    /// A division by zero.
    DivisionByZero,
    /// A branch to outside of the expression.
    Branch,
    /// Too many operations.
    TooLong,
    /// A register that is not known.
    MissingRegister(Register),
    /// Memory that cannot be read.
    Unreadable(Unreadable),
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(opcode) => {
                write!(f, "operation {opcode:#04x} has no meaning in call frame information")
            }
            Self::Truncated => f.write_str("the expression ends within an operation"),
            Self::StackUnderflow => f.write_str("an operation finds too few values"),
            Self::StackOverflow => write!(f, "more than {STACK} values"),
            Self::DivisionByZero => f.write_str("a division by zero"),
            Self::Branch => f.write_str("a branch to outside of the expression"),
            Self::TooLong => write!(f, "more than {MAX_OPERATIONS} operations"),
            Self::MissingRegister(register) => write!(f, "register {} is not known", register.0),
            Self::Unreadable(unreadable) => unreadable.fmt(f),
        }
    }
}

/// Values on the stack at most. What compilers write needs five.
const STACK: usize = 32;
/// Operations run at most: branches can go backwards.
const MAX_OPERATIONS: u32 = 1000;

/// What an expression may ask for.
#[derive(Debug)]
pub(crate) struct Context<'a, M: ?Sized> {
    pub(crate) registers: &'a Registers,
    pub(crate) memory: &'a M,
    /// From the addresses in the expression to the target's.
    pub(crate) bias: Bias,
    /// The frame's CFA: on the stack at the start, and `DW_OP_call_frame_cfa`. Not known while it is computed.
    pub(crate) cfa: Option<u64>,
}

/// What operations yield: a value, or why there is none.
type Outcome<T> = Result<T, ExpressionError>;

struct Machine<'a, 'd, M: ?Sized> {
    context: &'a Context<'a, M>,
    code: Cursor<'d>,
    stack: [u64; STACK],
    depth: usize,
    size: u8,
}

/// The expression's value: the top of the stack at its end. Allocates nothing, and always ends.
pub(crate) fn evaluate<M: ReadMemory + ?Sized>(bytes: &[u8], context: &Context<'_, M>) -> Outcome<u64> {
    let size = context.registers.family().word_size();
    let code = Cursor::new(Svma::new(0), bytes);
    let mut machine = Machine { context, code, stack: [0; STACK], depth: 0, size };
    if let Some(cfa) = context.cfa {
        machine.push(cfa)?;
    }
    for _ in 0..MAX_OPERATIONS {
        if machine.code.is_empty() {
            return machine.pop();
        }
        machine.step()?;
    }
    Err(ExpressionError::TooLong)
}

impl<'d, M: ReadMemory + ?Sized> Machine<'_, 'd, M> {
    fn step(&mut self) -> Outcome<()> {
        let opcode = self.operand(Cursor::u8)?;
        match opcode {
            0x03 | 0x08..=0x11 => self.constant(opcode),
            0x12..=0x17 => self.shuffle(opcode),
            0x06 | 0x94 => self.dereference(opcode),
            0x19 | 0x1f | 0x20 | 0x23 => self.unary(opcode),
            0x1a..=0x1e | 0x21 | 0x22 | 0x24..=0x27 => self.binary(opcode),
            0x29..=0x2e => self.compare(opcode),
            0x28 | 0x2f => self.branch(opcode == 0x28),
            0x30..=0x4f => self.push(u64::from(opcode - 0x30)),
            0x50..=0x6f => self.register(u64::from(opcode - 0x50), 0),
            0x70..=0x8f => {
                let offset = self.operand(Cursor::sleb)?;
                self.register(u64::from(opcode - 0x70), offset)
            }
            0x90 => {
                let number = self.operand(Cursor::uleb)?;
                self.register(number, 0)
            }
            0x92 => {
                let number = self.operand(Cursor::uleb)?;
                let offset = self.operand(Cursor::sleb)?;
                self.register(number, offset)
            }
            // No operation; "the value on top is the value itself", which here it is anyway.
            0x96 | 0x9f => Ok(()),
            0x9c => self.context.cfa.map_or(Err(ExpressionError::Operation(opcode)), |cfa| self.push(cfa)),
            _ => Err(ExpressionError::Operation(opcode)),
        }
    }

    fn operand<T>(&mut self, read: impl FnOnce(&mut Cursor<'d>) -> Result<T, Malformed>) -> Outcome<T> {
        read(&mut self.code).map_err(|_| ExpressionError::Truncated)
    }

    fn push(&mut self, value: u64) -> Outcome<()> {
        let place = self.stack.get_mut(self.depth).ok_or(ExpressionError::StackOverflow)?;
        *place = if self.size == 4 { value & 0xffff_ffff } else { value };
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) -> Outcome<u64> {
        let value = self.peek(0)?;
        self.depth -= 1;
        Ok(value)
    }

    /// The value so many below the top.
    fn peek(&self, below: usize) -> Outcome<u64> {
        let index = self.depth.checked_sub(1).and_then(|top| top.checked_sub(below));
        let value = index.and_then(|index| self.stack.get(index));
        value.copied().ok_or(ExpressionError::StackUnderflow)
    }

    /// As a number with a sign, in the target's width.
    fn signed(&self, value: u64) -> i64 {
        if self.size == 4 { i64::from((value & 0xffff_ffff) as u32 as i32) } else { value.cast_signed() }
    }

    fn constant(&mut self, opcode: u8) -> Outcome<()> {
        let value = match opcode {
            0x03 => {
                let address = if self.size == 4 {
                    u64::from(self.operand(Cursor::u32)?)
                } else {
                    self.operand(Cursor::u64)?
                };
                address.wrapping_add(self.context.bias.get().cast_unsigned())
            }
            0x08 => self.operand(Cursor::u8)?.into(),
            0x09 => i64::from(self.operand(Cursor::u8)?.cast_signed()).cast_unsigned(),
            0x0a => self.operand(Cursor::u16)?.into(),
            0x0b => i64::from(self.operand(Cursor::u16)?.cast_signed()).cast_unsigned(),
            0x0c => self.operand(Cursor::u32)?.into(),
            0x0d => i64::from(self.operand(Cursor::u32)?.cast_signed()).cast_unsigned(),
            0x0e | 0x0f => self.operand(Cursor::u64)?,
            0x10 => self.operand(Cursor::uleb)?,
            _ => self.operand(Cursor::sleb)?.cast_unsigned(),
        };
        self.push(value)
    }

    fn shuffle(&mut self, opcode: u8) -> Outcome<()> {
        match opcode {
            0x12 => self.push(self.peek(0)?),
            0x13 => self.pop().map(drop),
            0x14 => self.push(self.peek(1)?),
            0x15 => {
                let below = self.operand(Cursor::u8)?;
                self.push(self.peek(below.into())?)
            }
            0x16 => {
                let (top, second) = (self.pop()?, self.pop()?);
                self.push(top)?;
                self.push(second)
            }
            _ => {
                let (top, second, third) = (self.pop()?, self.pop()?, self.pop()?);
                self.push(top)?;
                self.push(third)?;
                self.push(second)
            }
        }
    }

    fn dereference(&mut self, opcode: u8) -> Outcome<()> {
        let size = if opcode == 0x06 { self.size } else { self.operand(Cursor::u8)? };
        let address = Avma::new(self.pop()?);
        let mut bytes = [0; 8];
        let buf = bytes.get_mut(..usize::from(size)).filter(|buf| !buf.is_empty());
        let buf = buf.ok_or(ExpressionError::Operation(opcode))?;
        self.context.memory.read(address, buf).map_err(ExpressionError::Unreadable)?;
        self.push(u64::from_le_bytes(bytes))
    }

    fn unary(&mut self, opcode: u8) -> Outcome<()> {
        let value = self.pop()?;
        let result = match opcode {
            0x19 => self.signed(value).unsigned_abs(),
            0x1f => value.wrapping_neg(),
            0x20 => !value,
            _ => {
                let addend = self.operand(Cursor::uleb)?;
                value.wrapping_add(addend)
            }
        };
        self.push(result)
    }

    fn binary(&mut self, opcode: u8) -> Outcome<()> {
        let (right, left) = (self.pop()?, self.pop()?);
        let shift = u32::try_from(right).unwrap_or(u32::MAX);
        let result = match opcode {
            0x1a => left & right,
            0x1b => {
                let quotient = self.signed(left).checked_div(self.signed(right));
                // The one division that overflows is the lowest number by minus one.
                let overflow = if right == 0 { Err(ExpressionError::DivisionByZero) } else { Ok(left) };
                quotient.map_or(overflow, |quotient| Ok(quotient.cast_unsigned()))?
            }
            0x1c => left.wrapping_sub(right),
            0x1d => left.checked_rem(right).ok_or(ExpressionError::DivisionByZero)?,
            0x1e => left.wrapping_mul(right),
            0x21 => left | right,
            0x22 => left.wrapping_add(right),
            0x24 => left.checked_shl(shift).unwrap_or(0),
            0x25 => left.checked_shr(shift).unwrap_or(0),
            0x26 => (self.signed(left) >> shift.min(63)).cast_unsigned(),
            _ => left ^ right,
        };
        self.push(result)
    }

    fn compare(&mut self, opcode: u8) -> Outcome<()> {
        let (right, left) = (self.pop()?, self.pop()?);
        let (right, left) = (self.signed(right), self.signed(left));
        let holds = match opcode {
            0x29 => left == right,
            0x2a => left >= right,
            0x2b => left > right,
            0x2c => left <= right,
            0x2d => left < right,
            _ => left != right,
        };
        self.push(holds.into())
    }

    fn branch(&mut self, conditional: bool) -> Outcome<()> {
        let distance = self.operand(Cursor::u16)?.cast_signed();
        if conditional && self.pop()? == 0 {
            return Ok(());
        }
        let target = self.code.position().checked_add_signed(distance.into());
        let target = target.ok_or(ExpressionError::Branch)?;
        self.code.seek(target).map_err(|_| ExpressionError::Branch)
    }

    fn register(&mut self, number: u64, offset: i64) -> Outcome<()> {
        let register = Register(u8::try_from(number).unwrap_or(u8::MAX));
        let value = self.context.registers.get(register).ok_or(ExpressionError::MissingRegister(register))?;
        self.push(value.wrapping_add_signed(offset))
    }
}

#[cfg(test)]
mod tests;
