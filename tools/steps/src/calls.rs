//! The calls that a program has made and not returned from, kept by watching each instruction.

use crate::machine::Machine;
use backtrail_core::{Register, Registers};
use std::collections::HashSet;

/// A frame further out, as it will be when control comes back to it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Above this the stack pointer shows that control has come back.
    slot: u64,
    /// Where it comes back to.
    pub(crate) address: u64,
    /// Whether that is an instruction that a signal interrupted, not the one behind a call.
    pub(crate) is_exact: bool,
    /// The registers that must then have their values again.
    pub(crate) saved: Vec<u64>,
}

/// What an instruction did to the calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    None,
    Called,
    Returned,
    /// Frames were left without returning to them: `longjmp`, or the return from a signal.
    Leapt,
}

pub(crate) struct Calls {
    machine: Machine,
    open: Vec<Call>,
    /// Where calls came back to, or were to: return address and stack pointer. `longjmp` goes to one of them.
    seen: HashSet<(u64, u64)>,
}

impl Calls {
    pub(crate) fn new(machine: Machine) -> Self {
        Self { machine, open: Vec::new(), seen: HashSet::new() }
    }

    /// Innermost first.
    pub(crate) fn open(&self) -> impl DoubleEndedIterator<Item = &Call> + ExactSizeIterator {
        self.open.iter().rev()
    }

    /// Takes note of one instruction: the state before and after it.
    pub(crate) fn watch(
        &mut self,
        code: &[u8],
        before: &Registers,
        after: &Registers,
        top: Option<u64>,
    ) -> Change {
        let change = self.left(after);
        if let Some(address) = self.machine.called(code, before, after, top) {
            let slot = if self.machine.family.lr().is_some() { before.sp() } else { after.sp() };
            let slot = slot.unwrap_or_default().get();
            self.seen.insert((address, slot));
            self.open.push(Call { slot, address, is_exact: false, saved: self.saved(before) });
            return Change::Called;
        }
        change
    }

    /// Takes note of a signal: `interrupted` is the state that it found, `handler` that at the handler's start.
    pub(crate) fn signal(&mut self, interrupted: &Registers, handler: &Registers, top: Option<u64>) {
        let address = interrupted.pc().unwrap_or_default().get();
        let slot = interrupted.sp().unwrap_or_default().get().saturating_sub(1);
        self.open.push(Call { slot, address, is_exact: true, saved: self.saved(interrupted) });
        let address = self.machine.address_at_entry(handler, top).unwrap_or_default();
        let slot = handler.sp().unwrap_or_default().get();
        self.open.push(Call { slot, address, is_exact: false, saved: self.saved(handler) });
    }

    /// Whether the innermost call gives a register another value than it had, as `__x86.get_pc_thunk.bx` gives `ebx`
    /// the address that it returns to.
    pub(crate) fn has_changed_register(&self, known: &Registers) -> bool {
        let Some(last) = self.open.last() else { return false };
        let mut values = self.machine.callee_saved.iter().map(|number| known.get(Register(*number)));
        values.any(|value| value == Some(last.address))
    }

    fn saved(&self, registers: &Registers) -> Vec<u64> {
        let value = |number: &u8| registers.get(Register(*number)).unwrap_or_default();
        self.machine.callee_saved.iter().map(value).collect()
    }

    /// Drops the calls that are over.
    fn left(&mut self, after: &Registers) -> Change {
        let (pc, sp) = (after.pc().unwrap_or_default().get(), after.sp().unwrap_or_default().get());
        let has_link = self.machine.family.lr().is_some();
        // With a link register a function may not touch the stack at all.
        let is_leap = has_link
            && self.seen.contains(&(pc, sp))
            && self.open.last().is_some_and(|last| last.slot <= sp && last.address != pc);
        let mut change = Change::None;
        while let Some(last) = self.open.last() {
            let is_there = pc == last.address;
            if last.slot < sp || (last.slot == sp && ((has_link && is_there) || is_leap)) {
                change = if is_there { Change::Returned } else { Change::Leapt };
                self.open.pop();
            } else {
                break;
            }
        }
        change
    }
}
