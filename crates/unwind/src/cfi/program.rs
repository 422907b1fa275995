//! Call frame instructions (DWARF 5, section 6.4.2): a program that gives rows in the order of addresses.

use super::cursor::{Cursor, Result};
use super::entry::Fde;
use super::pointer::{self, Bases};
use crate::row::{Cfa, Expression, Row, Rule};
use backtrail_core::{AddrRange, Register, Svma};

/// How deep `remember_state` may nest: compilers nest once, LLVM's outliner twice. Of fixed size, so that a walk within a signal handler
/// allocates nothing.
const MAX_REMEMBERED: usize = 4;

/// What is needed to run an FDE's program.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'s, 'd> {
    pub(crate) bases: Bases<'s, 'd>,
    /// The whole section.
    pub(crate) section: Cursor<'d>,
    /// The table's number in expressions.
    pub(crate) table: u8,
    /// How many registers the family has a place for; vector registers and the like follow and are let go.
    pub(crate) registers: u8,
    /// Apple's `__eh_frame` for i386, which has esp and ebp the other way round.
    pub(crate) swaps_4_and_5: bool,
}

/// The program of one FDE, running.
pub(crate) struct Program<'s, 'd> {
    setting: Setting<'s, 'd>,
    fde: Fde,
    cursor: Cursor<'d>,
    location: u64,
    row: Row,
    initial: Row,
    remembered: [Row; MAX_REMEMBERED],
    /// How many of them are.
    depth: usize,
    return_address: Register,
    done: bool,
}

impl<'s, 'd> Program<'s, 'd> {
    /// Runs the CIE's instructions.
    pub(crate) fn new(setting: Setting<'s, 'd>, fde: Fde) -> Result<Self> {
        let row = Row::new(Cfa::RegisterOffset(Register(u8::MAX), 0), Rule::Same);
        let column = u8::try_from(fde.cie.return_address_register).unwrap_or(u8::MAX);
        let mut program = Self {
            setting,
            cursor: between(&setting.section, fde.cie.instructions)?,
            location: fde.range.start().get(),
            row,
            initial: row,
            remembered: [row; MAX_REMEMBERED],
            depth: 0,
            return_address: Register(column),
            done: false,
            fde,
        };
        while !program.cursor.is_empty() {
            let _ = program.instruction()?;
        }
        program.initial = program.row;
        program.cursor = between(&setting.section, fde.instructions)?;
        program.location = fde.range.start().get();
        Ok(program)
    }

    /// The range of the next row that covers anything. The row is [`Program::row`] until this is called again: rows are
    /// large, and most callers look at one of them only.
    pub(crate) fn next(&mut self) -> Result<Option<AddrRange<Svma>>> {
        while !self.done {
            let start = self.location;
            let end = self.advance()?.unwrap_or_else(|| {
                self.done = true;
                self.fde.range.end().get()
            });
            let end = end.min(self.fde.range.end().get());
            if end > start {
                self.finish();
                self.location = end;
                return Ok(Some(AddrRange::new(Svma::new(start), Svma::new(end))));
            }
        }
        Ok(None)
    }

    /// The row whose range was given last.
    pub(crate) fn row(&self) -> &Row {
        &self.row
    }

    /// Runs up to the next change of location; `None` at the program's end.
    fn advance(&mut self) -> Result<Option<u64>> {
        while !self.cursor.is_empty() {
            if let Some(location) = self.instruction()? {
                if location > self.location {
                    return Ok(Some(location));
                }
                if location < self.location {
                    return Err(self.cursor.fault("locations that ascend"));
                }
            }
        }
        Ok(None)
    }

    fn finish(&mut self) {
        self.row.is_signal_frame = self.fde.cie.is_signal_frame;
        self.row.return_address = match self.row.rule(self.return_address) {
            // The return address is where the call left it: still in its register.
            Rule::Same => Rule::Register(self.return_address),
            rule => rule,
        };
    }

    /// Runs one instruction; gives the new location if it changes that.
    fn instruction(&mut self) -> Result<Option<u64>> {
        let byte = self.cursor.u8()?;
        let low = u64::from(byte & 0x3f);
        match byte >> 6 {
            1 => return Ok(Some(self.after(low))),
            2 => {
                let offset = self.factored()?;
                self.set(low, Rule::Offset(offset));
            }
            3 => self.restore(low),
            _ => return self.extended(byte),
        }
        Ok(None)
    }

    fn extended(&mut self, opcode: u8) -> Result<Option<u64>> {
        match opcode {
            0x01 => {
                let bases = Bases { pointer_size: self.fde.cie.address_size, ..self.setting.bases };
                return pointer::pointer(&mut self.cursor, self.fde.cie.encoding, &bases)
                    .map(|to| Some(to.get()));
            }
            0x02 => return self.cursor.u8().map(|delta| Some(self.after(delta.into()))),
            0x03 => return self.cursor.u16().map(|delta| Some(self.after(delta.into()))),
            0x04 => return self.cursor.u32().map(|delta| Some(self.after(delta.into()))),
            0x1d => return self.cursor.u64().map(|delta| Some(self.after(delta))),
            0x0a => {
                let room = self.remembered.get_mut(self.depth);
                *room.ok_or_else(|| self.cursor.fault("fewer remembered states"))? = self.row;
                self.depth += 1;
            }
            0x0b => {
                // GNU as and readers agree that the CFA is restored too.
                let last =
                    self.depth.checked_sub(1).and_then(|last| Some((last, *self.remembered.get(last)?)));
                (self.depth, self.row) = last.ok_or_else(|| self.cursor.fault("a remembered state"))?;
            }
            0x0c..=0x0f | 0x12 | 0x13 => self.define_cfa(opcode)?,
            // No operation; AArch64's marks of signed return addresses, whose bits are stripped wherever they are.
            0x00 | 0x2c | 0x2d => {}
            // GNU_args_size
            0x2e => drop(self.cursor.uleb()?),
            _ => self.register_rule(opcode)?,
        }
        Ok(None)
    }

    fn define_cfa(&mut self, opcode: u8) -> Result<()> {
        self.row.cfa = match opcode {
            0x0c => Cfa::RegisterOffset(self.register()?, self.plain()?),
            0x12 => Cfa::RegisterOffset(self.register()?, self.factored_signed()?),
            0x0f => Cfa::Expression(self.expression()?),
            _ => {
                let Cfa::RegisterOffset(register, offset) = self.row.cfa else {
                    return Err(self.cursor.fault("a CFA made of a register and an offset"));
                };
                match opcode {
                    0x0d => Cfa::RegisterOffset(self.register()?, offset),
                    0x0e => Cfa::RegisterOffset(register, self.plain()?),
                    _ => Cfa::RegisterOffset(register, self.factored_signed()?),
                }
            }
        };
        Ok(())
    }

    fn register_rule(&mut self, opcode: u8) -> Result<()> {
        if !matches!(opcode, 0x05..=0x09 | 0x10 | 0x11 | 0x14..=0x16 | 0x2f) {
            return Err(self.cursor.fault("a call frame instruction that is known"));
        }
        let register = self.cursor.uleb()?;
        let rule = match opcode {
            0x06 => {
                self.restore(register);
                return Ok(());
            }
            0x05 => Rule::Offset(self.factored()?),
            0x07 => Rule::Undefined,
            0x08 => Rule::Same,
            0x09 => Rule::Register(self.register()?),
            0x10 => Rule::Expression(self.expression()?),
            0x11 => Rule::Offset(self.factored_signed()?),
            0x14 => Rule::ValueOffset(self.factored()?),
            0x15 => Rule::ValueOffset(self.factored_signed()?),
            0x16 => Rule::ValueExpression(self.expression()?),
            // GNU_negative_offset_extended
            _ => Rule::Offset(self.factored()?.wrapping_neg()),
        };
        self.set(register, rule);
        Ok(())
    }

    fn after(&self, delta: u64) -> u64 {
        let delta = delta.wrapping_mul(self.fde.cie.code_alignment);
        self.setting.bases.wrap(self.location.saturating_add(delta))
    }

    fn number(&self, number: u64) -> Register {
        let number = match number {
            4 if self.setting.swaps_4_and_5 => 5,
            5 if self.setting.swaps_4_and_5 => 4,
            other => other,
        };
        let known = u8::try_from(number).ok().filter(|number| *number < self.setting.registers);
        Register(known.unwrap_or(u8::MAX))
    }

    fn register(&mut self) -> Result<Register> {
        let number = self.cursor.uleb()?;
        Ok(self.number(number))
    }

    fn set(&mut self, number: u64, rule: Rule) {
        let register = self.number(number);
        self.row.set(register, rule);
    }

    fn restore(&mut self, number: u64) {
        let register = self.number(number);
        let rule = self.initial.rule(register);
        self.row.set(register, rule);
    }

    fn plain(&mut self) -> Result<i32> {
        let offset = self.cursor.uleb()?;
        i32::try_from(offset).map_err(|_| self.cursor.fault("an offset of 31 bits"))
    }

    fn factored(&mut self) -> Result<i32> {
        let number = self.cursor.uleb()?.cast_signed();
        self.narrow(number)
    }

    fn factored_signed(&mut self) -> Result<i32> {
        let number = self.cursor.sleb()?;
        self.narrow(number)
    }

    fn narrow(&self, number: i64) -> Result<i32> {
        let product = number.checked_mul(self.fde.cie.data_alignment);
        let offset = product.and_then(|offset| i32::try_from(offset).ok());
        offset.ok_or_else(|| self.cursor.fault("an offset of 32 bits"))
    }

    fn expression(&mut self) -> Result<Expression> {
        let length = self.cursor.uleb()?;
        let start = self.cursor.position();
        let too_long = self.cursor.fault("an expression of at most 65535 bytes");
        let length = u16::try_from(length).map_err(|_| too_long)?;
        self.cursor.bytes(length.into())?;
        let start = u32::try_from(start).map_err(|_| too_long)?;
        Ok(Expression { start, length, table: self.setting.table })
    }
}

fn between<'d>(section: &Cursor<'d>, (start, end): (usize, usize)) -> Result<Cursor<'d>> {
    let mut cursor = *section;
    cursor.seek(start)?;
    cursor.limited(end.saturating_sub(start) as u64)
}
