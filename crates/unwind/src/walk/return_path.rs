//! Functions without a table, by the code that leads to their return.

use super::fallback::CALL_BYTES;
use super::{Here, Next, Site, Walk};
use crate::arch;
use crate::code::Code;
use crate::execute;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Avma, Bias, FrameAddress, ReadMemory, Registers, Trust};

/// How far behind a function's start code of it is believed to lie, if a call leads to that start.
const MAX_FUNCTION: u64 = 1 << 20;

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// The caller, by following the code to the return. It must lie behind a call, which, if its target is told, must lead to
    /// a function that can be the one at hand: else the paths led through a call that never comes back.
    pub(super) fn by_return_path(&self, here: &Here, site: &Site<'a>) -> Option<Next> {
        let (image, lookup) = site.image.zip(site.svma)?;
        let at = if site.is_exact { lookup } else { lookup.checked_add(1)? };
        let text = *image.module?.text_at(lookup)?;
        let code = Code { text, at, function: None, thumb: false, is_described: false };
        let family = self.registers.family();
        let by_register = if site.is_exact { arch::behind_system_call(family, &code) } else { None };
        let row = by_register.or_else(|| arch::by_return_path(family, &code, false))?;
        self.by_return_path_row(here, &self.registers, site, &row, image.bias, |address| {
            let is_start = || matches!(self.caller_address(address), FrameAddress::Exact(_));
            self.is_return_address(address) && self.may_call(address, here.address.raw()) || is_start()
        })
    }

    /// Applies the row that the code to the return has given to `registers`, those of `here`.
    pub(super) fn by_return_path_row(
        &self,
        here: &Here,
        registers: &Registers,
        site: &Site<'a>,
        row: &Row,
        bias: Bias,
        is_called: impl Fn(Avma) -> bool,
    ) -> Option<Next> {
        let caller = execute::apply(row, registers, self.memory, bias, |_| None).ok()?;
        let address = self.strip(caller.return_address?);
        let sp = caller.registers.sp()?;
        // What has its return address in a register has left the stack to its caller already.
        let is_in_register = matches!(row.return_address, Rule::Register(_)) && sp == here.stack_pointer;
        let is_outwards = sp > here.stack_pointer && self.stack_above(here.stack_pointer).contains(sp);
        if !is_outwards && !is_in_register || !is_called(address) && !self.is_signal_return(address, sp) {
            return None;
        }
        // Of a function that has just set its frame pointer, what it will save is not there yet.
        let by_fp = matches!(row.cfa, Cfa::RegisterOffset(base, _) if base == self.registers.family().fp());
        let is_sure = !(site.is_exact && by_fp);
        let registers =
            if is_sure { caller.registers } else { self.forget_all_but_pointers(&caller.registers) };
        Some(Next {
            registers,
            address: self.caller_address(address),
            trust: Trust::Analysis,
            is_after_signal: false,
            bytecode: None,
            is_odd: false,
        })
    }

    /// Whether the call before a return address may lead to the function around another address.
    fn may_call(&self, address: Avma, inside: Avma) -> bool {
        let Some(target) = self.direct_target(address) else { return true };
        let is_near = inside.offset_from(target).is_some_and(|distance| distance < MAX_FUNCTION);
        is_near || self.is_stub(target)
    }

    /// Where the call before a return address goes to, if that is told by the call itself.
    pub(super) fn direct_target(&self, address: Avma) -> Option<Avma> {
        const CALL: u64 = 5;
        let mut copy = [0; CALL_BYTES];
        let call = address.checked_sub(CALL);
        let call = call.and_then(|call| self.code_from(call, self.images.at(call), &mut copy));
        let Some([0xe8, a, b, c, d, ..]) = call else { return None };
        let distance = i32::from_le_bytes([*a, *b, *c, *d]).into();
        Some(Avma::new(address.get().wrapping_add_signed(distance)))
    }

    /// Whether a jump through a table lies there, which leads anywhere.
    pub(super) fn is_stub(&self, at: Avma) -> bool {
        let mut copy = [0; CALL_BYTES];
        let code = self.code_from(at, self.images.at(at), &mut copy).unwrap_or_default();
        let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
        code.strip_prefix(&[0xf2]).unwrap_or(code).starts_with(&[0xff, 0x25])
    }
}
