//! The instructions as a row: what they do, for all frames of the function at once.

use super::execute::Stopped;
use super::op::{Code, Op, RegisterSet};
use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

const SP: Register = Register(13);
const LR: Register = Register(14);
const PC: Register = Register(15);

/// Where a register was popped from: a base register's value plus bytes.
#[derive(Clone, Copy)]
struct Slot {
    base: Register,
    offset: i32,
}

/// The row of an entry's instructions.
///
/// # Errors
/// [`Stopped::UnknownRegister`] where the instructions do what no row says: they pop by two base registers, go on by a
/// stack pointer that they have popped, or take it from a register that they have popped before.
/// [`execute`](super::execute()) runs those too. Refusal and codes without meaning as there.
pub fn row(code: Code<'_>) -> Result<Row, Stopped> {
    let mut machine = Machine { vsp: Slot { base: SP, offset: 0 }, slots: [None; 16] };
    for op in code {
        if machine.slot(SP).is_some() && op != Op::Finish {
            return Err(Stopped::UnknownRegister(SP));
        }
        match op {
            Op::Finish => break,
            Op::Refuse => return Err(Stopped::Refused),
            Op::Spare(byte) => return Err(Stopped::Spare(byte)),
            Op::Truncated => return Err(Stopped::Truncated),
            Op::Add(bytes) => machine.advance(i64::from(bytes))?,
            Op::Subtract(bytes) => machine.advance(-i64::from(bytes))?,
            Op::SetVsp(register) => machine.set_vsp(register)?,
            Op::Pop(set) => machine.pop(set)?,
            Op::AuthenticateWithVsp => {}
            Op::PopVfp { .. } | Op::PopWmmx { .. } | Op::PopWmmxControl(_) | Op::PopAuthenticationCode => {
                machine.advance(op.popped_bytes().into())?;
            }
        }
    }
    machine.finish()
}

struct Machine {
    vsp: Slot,
    slots: [Option<Slot>; 16],
}

impl Machine {
    fn advance(&mut self, bytes: i64) -> Result<(), Stopped> {
        let offset = i32::try_from(i64::from(self.vsp.offset) + bytes);
        self.vsp.offset = offset.map_err(|_| Stopped::OutOfRange)?;
        Ok(())
    }

    fn slot(&self, register: Register) -> Option<Slot> {
        self.slots.get(usize::from(register.0)).copied().flatten()
    }

    fn set_vsp(&mut self, register: Register) -> Result<(), Stopped> {
        if register == SP {
            return Ok(());
        }
        if self.slot(register).is_some() {
            return Err(Stopped::UnknownRegister(register));
        }
        self.vsp = Slot { base: register, offset: 0 };
        Ok(())
    }

    fn pop(&mut self, set: RegisterSet) -> Result<(), Stopped> {
        for register in set.iter() {
            if let Some(slot) = self.slots.get_mut(usize::from(register.0)) {
                *slot = Some(self.vsp);
            }
            self.advance(4)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Row, Stopped> {
        let cfa = self.vsp;
        let saved = |register: Register| self.slot(register).map(|slot| self.rule(slot)).transpose();
        // `pop {…, lr}` leaves the return address to the end, `pop {…, pc}` takes it at once.
        let return_address = saved(PC)?.or(saved(LR)?).unwrap_or(Rule::Register(LR));
        let mut row = Row::new(Cfa::RegisterOffset(cfa.base, cfa.offset), return_address);
        for register in (0..PC.0).map(Register) {
            if let Some(rule) = saved(register)? {
                row.set(register, rule);
            }
        }
        // Whoever restores the registers that a call may change was not called: glibc's `__default_sa_restorer`.
        row.is_signal_frame = [Register(0), SP, PC].into_iter().all(|register| self.slot(register).is_some());
        Ok(row)
    }

    fn rule(&self, slot: Slot) -> Result<Rule, Stopped> {
        if slot.base != self.vsp.base {
            return Err(Stopped::UnknownRegister(slot.base));
        }
        slot.offset.checked_sub(self.vsp.offset).map(Rule::Offset).ok_or(Stopped::OutOfRange)
    }
}
