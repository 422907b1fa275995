//! The shortest way along a stack: rules from the cache, with the registers that count at hand.

use super::{Frame, Walk};
use crate::rules::{Base, wanted_slots};
use backtrail_core::{Avma, Family, FrameAddress, ReadMemory};

/// Above lies authentication on 64-bit ARM, which takes a closer look.
const fn highest(family: Family) -> u64 {
    if matches!(family, Family::Aarch64) { u64::MAX >> 16 } else { u64::MAX }
}

impl<M: ReadMemory + ?Sized> Walk<'_, M> {
    /// Gives every further frame to `give`, until it says false. The same frames as by iterating, and quicker: between
    /// frames the registers stay where they are.
    ///
    /// # Signal safety
    ///
    /// As safe as `give`, where iterating is.
    #[inline]
    pub fn each(&mut self, mut give: impl FnMut(&Frame) -> bool) {
        loop {
            let goes_on = match self.registers.family() {
                Family::X86_64 => self.run(&mut give, Family::X86_64),
                Family::Aarch64 => self.run(&mut give, Family::Aarch64),
                _ => true,
            };
            let next = if goes_on { self.next() } else { return };
            if !next.is_some_and(|frame| give(&frame)) {
                return;
            }
        }
    }

    /// Goes on as long as nothing is out of the ordinary; says whether there is more to be looked at. What is out of the
    /// ordinary is left to [`Walk::next`] from the beginning: nothing of that step is done.
    #[inline(always)]
    fn run(&mut self, give: &mut impl FnMut(&Frame) -> bool, family: Family) -> bool {
        let (Some(FrameAddress::Return(mut address)), Some(cache)) = (self.at, self.cache.as_deref_mut())
        else {
            return true;
        };
        let (Some(mut sp), Some(mut fp)) = (self.registers.sp(), self.registers.fp()) else { return true };
        let others = self.wanted & !wanted_slots(family, |register| register == family.fp());
        let (mut trail, mut remaining, mut goes_on) = (self.trail, self.remaining, true);
        while goes_on && remaining > 0 {
            let mut trail_here = trail;
            let Some((quick, rule)) = cache.follow_quickly(&mut trail_here, address) else { break };
            let base = match quick.base {
                Base::StackPointer => sp,
                Base::FramePointer => fp,
                Base::Other => break,
            };
            let cfa = base.get().wrapping_add_signed(quick.cfa.into());
            let at = |offset: i32| Avma::new(cfa.wrapping_add_signed(offset.into()));
            let Ok(caller) = self.memory.read_u64(at(quick.return_address)) else { break };
            if cfa <= sp.get() || caller == 0 || caller > highest(family) {
                break;
            }
            if quick.frame_pointer != 0 {
                let Ok(saved) = self.memory.read_u64(at(quick.frame_pointer)) else { break };
                fp = Avma::new(saved);
            }
            if quick.others & others != 0 {
                rule.recover(&mut self.registers, self.memory, cfa, others, family);
            }
            (trail, sp, address, remaining) = (trail_here, Avma::new(cfa), Avma::new(caller), remaining - 1);
            let (address, trust) = (FrameAddress::Return(address), quick.trust);
            goes_on =
                give(&Frame { address, stack_pointer: sp, trust, is_after_signal: false, bytecode: None });
        }
        if remaining == self.remaining {
            return true;
        }
        (self.trail, self.remaining, self.at) = (trail, remaining, Some(FrameAddress::Return(address)));
        self.registers.set(family.sp(), sp.get());
        self.registers.set(family.fp(), fp.get());
        self.registers.set(family.pc(), address.get());
        if let Some(lr) = family.lr() {
            self.registers.set(lr, address.get());
        }
        goes_on
    }
}
