//! The shortest way along a stack: rules from the cache, with the registers that count at hand.

use super::{End, Frame, Step, Walk, WalkEnd};
use crate::rules::{Base, FastRule, frame_pointer_slot};
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
        if self.at.is_none() && self.remaining > 0 {
            // What fails is looked at again below.
            if let Step::Caller(frame) = self.first() {
                self.remaining -= 1;
                if !give(&frame) {
                    return;
                }
            }
        }
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
        let (Some(at), Some(cache)) = (self.at, self.cache.as_deref_mut()) else { return true };
        let (Some(sp), Some(fp)) = (self.registers.sp(), self.registers.fp()) else { return true };
        let others = self.wanted & !frame_pointer_slot(family);
        let (mut trail, mut remaining, mut goes_on) = (self.trail, self.remaining, true);
        let mut here = Pointers { sp, fp, address: at.raw() };
        let mut is_exact = matches!(at, FrameAddress::Exact(_));
        let mut trail_here = trail;
        let mut place = if is_exact {
            cache.find_place(&mut trail_here, here.address)
        } else {
            cache.follow_place(&mut trail_here, here.address)
        };
        while goes_on && remaining > 0 {
            let Some(place_here) = place else { break };
            let Some((fast, _)) = cache.at(place_here, is_exact) else { break };
            let fast = *fast;
            if fast.base == Base::Outermost {
                (self.ended, remaining, goes_on) = (Some(WalkEnd::EndOfStack(End::Undefined)), 0, false);
                break;
            }
            let Some((caller, cfa)) = here.step(&fast, self.memory, family) else { break };
            // A frame is given once its own rule is at hand, and so is known to be in code; else it is looked at closer.
            let mut trail_there = trail_here;
            place = cache.follow_place(&mut trail_there, caller.address);
            if place.is_none() {
                break;
            }
            if fast.others & others != 0
                && let Some((_, rule)) = cache.at(place_here, is_exact)
            {
                rule.recover(&mut self.registers, self.memory, cfa, others, family);
            }
            (trail, trail_here, here, remaining, is_exact) =
                (trail_here, trail_there, caller, remaining - 1, false);
            let (address, trust) = (FrameAddress::Return(here.address), fast.trust);
            goes_on = give(&Frame {
                address,
                stack_pointer: here.sp,
                trust,
                is_after_signal: false,
                bytecode: None,
            });
        }
        if remaining == self.remaining {
            return true;
        }
        self.leave(&here, is_exact, family);
        (self.trail, self.remaining) = (trail, remaining);
        goes_on
    }

    /// Puts back what was at hand.
    #[inline(always)]
    fn leave(&mut self, here: &Pointers, is_exact: bool, family: Family) {
        if is_exact {
            return;
        }
        self.at = Some(FrameAddress::Return(here.address));
        self.registers.set(family.sp(), here.sp.get());
        self.registers.set(family.fp(), here.fp.get());
        self.registers.set(family.pc(), here.address.get());
        if let Some(lr) = family.lr() {
            self.registers.set(lr, here.address.get());
        }
    }
}

/// The registers that count.
#[derive(Clone, Copy)]
struct Pointers {
    sp: Avma,
    fp: Avma,
    address: Avma,
}

impl Pointers {
    /// The caller's, and the CFA.
    #[inline(always)]
    fn step<M: ReadMemory + ?Sized>(
        self,
        fast: &FastRule,
        memory: &M,
        family: Family,
    ) -> Option<(Self, u64)> {
        let base = match fast.base {
            Base::StackPointer => self.sp,
            Base::FramePointer => self.fp,
            Base::Outermost | Base::Other => return None,
        };
        let cfa = base.get().wrapping_add_signed(fast.cfa.into());
        let at = |offset: i32| Avma::new(cfa.wrapping_add_signed(offset.into()));
        let address = memory.read_u64(at(fast.return_address)).ok()?;
        if cfa <= self.sp.get() || address == 0 || address > highest(family) {
            return None;
        }
        let fp = match fast.frame_pointer {
            0 => self.fp,
            offset => Avma::new(memory.read_u64(at(offset)).ok()?),
        };
        Some((Self { sp: Avma::new(cfa), fp, address: Avma::new(address) }, cfa))
    }
}
