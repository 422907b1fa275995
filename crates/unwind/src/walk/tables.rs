//! Stepping by an image's tables, and the checks that what comes out is a caller.

use super::{End, Failure, Here, Next, Site, Walk};
use crate::execute::{self, Caller};
use crate::exidx;
use crate::image::PlacedModule;
use crate::module::Module;
use crate::row::{CoveredRow, Expression, Miss, Row};
use crate::rules::{Packed, Rules};
use backtrail_core::{Avma, Family, FrameAddress, ReadMemory, Svma, Trust};

/// How often tables may lead to a lower stack pointer: a program that runs on several stacks (coroutines, interrupt
/// stacks) changes them a few times; a broken one would do so forever.
const MAX_SWITCHES: u8 = 16;
/// How often a return address may come from elsewhere than a fixed place in the frame: signal frames and outlined code
/// do that now and then. A table that always does may lead on without an end, since no memory runs out on the way.
const MAX_ODD: u16 = 1024;

/// Where a row's expressions have their bytes.
#[derive(Clone, Copy)]
pub(super) enum Expressions<'a> {
    Module(&'a Module<'a>),
    Rules(&'a Rules),
    /// The row has none.
    None,
}

impl<'a> Expressions<'a> {
    fn bytes(self, expression: Expression) -> Option<&'a [u8]> {
        match self {
            Self::Module(module) => module.expression(expression),
            Self::Rules(rules) => rules.expression(expression),
            Self::None => None,
        }
    }
}

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    pub(super) fn by_tables(&mut self, here: &Here, site: &Site<'a>) -> Result<Result<Next, End>, Failure> {
        let (Some(image), Some(svma)) = (site.image, site.svma) else {
            return Err(Failure::NotInImage(site.lookup));
        };
        let thumb = here.address.raw().get() & 1 != 0;
        let compiled = image.rules.filter(|_| !site.is_exact || image.module.is_none());
        let compiled = compiled.and_then(|rules| Some((rules.find(svma)?, Expressions::Rules(rules))));
        let found = match (compiled, image.module) {
            (Some(found), _) => Ok(found),
            (None, Some(module)) => {
                let found = if site.is_exact { module.find_exact(svma, thumb) } else { module.find(svma) };
                found.map(|found| (found, Expressions::Module(module)))
            }
            (None, None) => Err(Miss::NotCovered),
        };
        match found {
            Ok((mut found, expressions)) => {
                let stated = found.row.cfa;
                self.repair(&mut found, site);
                let next = self.by_row(here, image, &found, expressions);
                if matches!(next, Ok(Ok(_))) && found.row.cfa == stated {
                    self.remember(here, svma, &found);
                }
                next
            }
            Err(Miss::NotCovered) => Err(Failure::NoRules(site.lookup)),
            Err(Miss::NoRow) => self.by_exidx(here, image, svma),
            Err(Miss::CannotUnwind) => Ok(Err(End::CannotUnwind)),
            Err(Miss::Malformed(malformed)) => Err(Failure::Malformed(malformed)),
        }
    }

    /// Keeps a row for the next walk over the same code, under the conditions that hold for rows that were compiled.
    fn remember(&mut self, here: &Here, svma: Svma, found: &CoveredRow) {
        let (Some(cache), FrameAddress::Return(_)) = (&mut self.cache, here.address) else { return };
        let is_last_byte = svma.checked_add(1) == Some(found.covered.end());
        let is_stated =
            matches!(found.trust, Trust::Cfi | Trust::CompactUnwind | Trust::Exidx | Trust::RuntimeTable);
        if is_stated
            && !is_last_byte
            && let Some(rule) = Packed::new(&found.row, found.trust, self.registers.family())
            && !rule.is_in_link_register()
        {
            cache.put(&mut self.trail, here.address, rule, self.registers.family());
        }
    }

    /// Instructions of ARM's tables that no row can say.
    fn by_exidx(
        &self,
        here: &Here,
        image: &PlacedModule<'a>,
        at: Svma,
    ) -> Result<Result<Next, End>, Failure> {
        let code = image.module.and_then(|module| module.exidx_code(at));
        let code = code.ok_or(Failure::NoRules(here.address.raw()))?;
        let executed = match exidx::execute(code, &self.registers, self.memory) {
            Ok(executed) => executed,
            Err(exidx::Stopped::Refused) => return Ok(Err(End::CannotUnwind)),
            Err(exidx::Stopped::Unreadable(unreadable)) => return Err(Failure::Unreadable(unreadable)),
            Err(_) => return Err(Failure::NoRules(here.address.raw())),
        };
        let registers = executed.registers;
        let address = registers.pc().filter(|pc| pc.get() != 0);
        let Some(address) = address else { return Ok(Err(End::ZeroReturnAddress)) };
        let sp = registers.sp().unwrap_or_default();
        if sp <= here.stack_pointer {
            return Err(Failure::NotAdvancing(sp));
        }
        let is_return = matches!(here.address, FrameAddress::Return(_));
        let is_odd = is_return && executed.return_address_in_link_register;
        if is_odd && (address == here.address.raw() || self.odd >= MAX_ODD) {
            return Err(Failure::NotAdvancing(sp));
        }
        let address = FrameAddress::Return(address);
        Ok(Ok(Next {
            registers,
            address,
            trust: Trust::Exidx,
            is_after_signal: false,
            bytecode: None,
            is_odd,
        }))
    }

    /// Applies a table's row and checks what comes out.
    pub(super) fn by_row(
        &self,
        here: &Here,
        image: &PlacedModule<'_>,
        found: &CoveredRow,
        expressions: Expressions<'a>,
    ) -> Result<Result<Next, End>, Failure> {
        let (row, trust) = (&found.row, found.trust);
        let bytes_of = |expression| expressions.bytes(expression);
        let caller = execute::apply(row, &self.registers, self.memory, image.bias, bytes_of)?;
        let Some(raw) = caller.return_address else { return Ok(Err(End::Undefined)) };
        let address = self.strip(raw);
        if address.get() == 0 && !row.is_signal_frame {
            return Ok(Err(End::ZeroReturnAddress));
        }
        self.check_advance(here, &caller, address, row, trust)?;
        let cfa = caller.registers.sp().unwrap_or_default();
        if !row.is_signal_frame && self.is_no_code(address, cfa) {
            return Err(Failure::NotCode(address));
        }
        let caller_address =
            if row.is_signal_frame { FrameAddress::Exact(address) } else { self.caller_address(address) };
        if trust == Trust::RuntimeTable && !self.is_runtimes_caller(caller_address) {
            return Err(Failure::NotCalled(address));
        }
        let is_odd = !matches!(row.return_address, crate::Rule::Offset(_));
        let is_stuck =
            matches!(row.return_address, crate::Rule::Register(_)) && address == here.address.raw();
        if is_odd && (is_stuck || self.odd >= MAX_ODD) {
            return Err(Failure::NotAdvancing(caller.registers.sp().unwrap_or_default()));
        }
        Ok(Ok(Next {
            registers: caller.registers,
            address: caller_address,
            trust: refine(trust, row, self.registers.family()),
            is_after_signal: row.is_signal_frame,
            bytecode: caller.bytecode,
            is_odd,
        }))
    }

    /// A caller lies further out on the stack. The exceptions: a function that has not touched the stack (leaf, or
    /// just called, on machines with a link register); one that is at work and has its return address in a register, where a table
    /// says so (`vfork` of glibc on x86: what parent and child share must not hold it); a signal's frame, on whatever stack; and
    /// tables that take the stack pointer from elsewhere, a few times.
    fn check_advance(
        &self,
        here: &Here,
        caller: &Caller,
        address: Avma,
        row: &Row,
        trust: Trust,
    ) -> Result<(), Failure> {
        let sp = caller.registers.sp().unwrap_or_default();
        let stands = sp == here.stack_pointer && address != here.address.raw();
        let by_sp =
            matches!(row.cfa, crate::Cfa::RegisterOffset(by, _) if by == self.registers.family().sp());
        let is_table = matches!(trust, Trust::Cfi | Trust::CompactUnwind | Trust::Exidx);
        let elsewhere = is_table && !by_sp && self.is_code(address) == Some(true);
        let may_switch = self.switches < MAX_SWITCHES && (row.is_signal_frame || elsewhere);
        let in_register = is_table
            && matches!(row.return_address, crate::Rule::Register(_))
            && matches!(here.address, FrameAddress::Exact(_));
        // What is analysed may count from a copy of the stack pointer: `mov ip, sp; push {fp, ip, lr, pc}`.
        let by_code = by_sp || trust == Trust::Analysis;
        let fine = sp > here.stack_pointer
            || (stands && (by_code && self.registers.family().lr().is_some()))
            || (stands && (row.is_signal_frame || elsewhere || in_register))
            || (sp < here.stack_pointer && may_switch);
        if fine { Ok(()) } else { Err(Failure::NotAdvancing(sp)) }
    }
}

/// A row that finds the return address in the link register did not need the table to save it anywhere.
fn refine(trust: Trust, row: &Row, family: Family) -> Trust {
    match row.return_address {
        crate::Rule::Register(from) if trust == Trust::Analysis && Some(from) == family.lr() => {
            Trust::LinkRegister
        }
        _ => trust,
    }
}
