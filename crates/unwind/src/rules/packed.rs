//! The rule of fixed size.

use crate::execute::ABOVE_CFA;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Avma, Family, ReadMemory, Register, Registers, Trust};

/// How many callee-saved registers the largest family has besides the link register.
const SLOTS: usize = 11;

/// One rule in 32 bytes: the CFA as register plus offset, and places of callee-saved registers in words from the CFA.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Packed {
    /// Of the CFA; or the number of the full row.
    offset: i32,
    register: u8,
    kind: u8,
    /// Which slots are saved.
    mask: u16,
    return_address: i16,
    saved: [i16; SLOTS],
}

/// The return address is still in the link register.
const IN_LINK_REGISTER: i16 = i16::MIN;
/// There is none: the outermost frame.
const UNDEFINED: i16 = i16::MIN + 1;
/// Flag of `kind`: `offset` is the number of a full row.
const WIDE: u8 = 0x80;

/// The callee-saved registers of each family, without the link register.
const fn slots(family: Family) -> &'static [u8] {
    match family {
        Family::X86 => &[3, 5, 6, 7],
        Family::X86_64 => &[3, 6, 12, 13, 14, 15],
        Family::Arm => &[4, 5, 6, 7, 8, 9, 10, 11],
        Family::Aarch64 => &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
        _ => &[],
    }
}

/// What stepping by a packed rule needs where only the stack pointer and the frame pointer matter: places in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FastRule {
    pub(crate) trust: Trust,
    pub(crate) base: Base,
    pub(crate) cfa: i32,
    /// From the CFA.
    pub(crate) return_address: i32,
    /// The saved frame pointer, from the CFA; zero where it is not saved.
    pub(crate) frame_pointer: i32,
    /// The other slots that are saved.
    pub(crate) others: u16,
}

/// What a fast rule's CFA is counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    StackPointer,
    FramePointer,
    /// Nothing: the frame is the outermost one, whatever the CFA.
    Outermost,
    /// Something else: the rule has no fast form.
    Other,
}

impl FastRule {
    /// No fast form.
    pub(crate) const NONE: Self =
        Self { trust: Trust::Cfi, base: Base::Other, cfa: 0, return_address: 0, frame_pointer: 0, others: 0 };
}

/// What a packed rule leads to before anything is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerState {
    pub(crate) cfa: u64,
    /// `None`: the outermost frame.
    pub(crate) return_address: Option<u64>,
}

impl Packed {
    /// Nothing: stands for a full row that is not there, so that nobody applies it.
    pub(crate) const NONE: Self =
        Self { offset: -1, register: 0, kind: WIDE, mask: 0, return_address: 0, saved: [0; SLOTS] };

    /// A stand-in for the numbered full row.
    pub(crate) fn for_wide(number: usize, trust: Trust) -> Option<Self> {
        Some(Self { offset: i32::try_from(number).ok()?, kind: WIDE | kind(trust), ..Self::default() })
    }

    /// The row in packed form, if it fits.
    pub(crate) fn new(row: &Row, trust: Trust, family: Family) -> Option<Self> {
        let Cfa::RegisterOffset(register, offset) = row.cfa else { return None };
        let word = i32::from(family.word_size());
        if row.is_signal_frame || register.0 >= 64 {
            return None;
        }
        let slots = slots(family);
        let mut packed = Self { offset, register: register.0, kind: kind(trust), ..Self::default() };
        packed.return_address = match row.return_address {
            Rule::Undefined => UNDEFINED,
            Rule::Register(from) if Some(from) == family.lr() && row.rule(from) == Rule::Same => {
                IN_LINK_REGISTER
            }
            // See `execute::apply`.
            ABOVE_CFA if family == Family::Aarch64 => return None,
            Rule::Offset(at) if family.lr().is_none_or(|lr| row.rule(lr) == row.return_address) => {
                words(at, word)?
            }
            _ => return None,
        };
        for (register, rule) in row.rules() {
            let slot = slots.iter().position(|slot| *slot == register.0);
            match (rule, slot) {
                (Rule::Offset(at), Some(slot)) => {
                    packed.mask |= 1 << slot;
                    *packed.saved.get_mut(slot)? = words(at, word)?;
                }
                _ if register == family.pc() || Some(register) == family.lr() => {}
                // What a call may change anyhow need not be marked as lost.
                (Rule::Undefined, None) => {}
                (Rule::ValueOffset(0), None) if register == family.sp() => {}
                _ => return None,
            }
        }
        Some(packed)
    }

    /// The number of the full row, if this stands for one.
    #[inline]
    pub(crate) fn wide(&self) -> Option<usize> {
        if self.is_wide() { usize::try_from(self.offset).ok() } else { None }
    }

    /// Whether this stands for a full row.
    #[inline]
    pub(crate) fn is_wide(&self) -> bool {
        self.kind & WIDE != 0
    }

    /// What the rule comes from.
    #[inline]
    pub(crate) fn trust(&self) -> Trust {
        match self.kind & !WIDE {
            1 => Trust::CompactUnwind,
            2 => Trust::Exidx,
            3 => Trust::RuntimeTable,
            _ => Trust::Cfi,
        }
    }

    /// The row that was packed, but for registers that were marked as lost.
    pub(crate) fn unpack(&self, family: Family) -> Row {
        let word = i32::from(family.word_size());
        let return_address = match (self.return_address, family.lr()) {
            (UNDEFINED, _) => Rule::Undefined,
            (IN_LINK_REGISTER, Some(lr)) => Rule::Register(lr),
            (words, _) => Rule::Offset(i32::from(words) * word),
        };
        let mut row = Row::new(Cfa::RegisterOffset(Register(self.register), self.offset), return_address);
        for (slot, register) in slots(family).iter().enumerate() {
            if self.mask & (1 << slot) != 0 {
                let words = self.saved.get(slot).copied().unwrap_or_default();
                row.set(Register(*register), Rule::Offset(i32::from(words) * word));
            }
        }
        if let (Rule::Offset(_), Some(lr)) = (return_address, family.lr()) {
            row.set(lr, return_address);
        }
        if family.lr().is_none() {
            row.set(family.pc(), return_address);
        }
        row
    }

    /// Finds the CFA and the return address; `None` where a register or memory is missing.
    ///
    /// This and the functions below are inlined with the family a constant, so that its tables and sizes are too.
    #[inline(always)]
    pub(crate) fn locate<M: ReadMemory + ?Sized>(
        &self,
        registers: &Registers,
        memory: &M,
        family: Family,
    ) -> Option<CallerState> {
        let value = registers.get(Register(self.register))?;
        let cfa = wrap(value.wrapping_add_signed(self.offset.into()), family);
        let return_address = match self.return_address {
            UNDEFINED => None,
            IN_LINK_REGISTER => Some(registers.get(family.lr()?)?),
            words => Some(memory.read_pointer(place(cfa, words, family), family.word_size()).ok()?),
        };
        Some(CallerState { cfa, return_address })
    }

    /// Makes the registers the caller's, given what [`Packed::locate`] found. Callee-saved registers that are not
    /// `wanted` (see [`wanted_slots`]) are left alone.
    #[inline(always)]
    pub(crate) fn commit<M: ReadMemory + ?Sized>(
        &self,
        registers: &mut Registers,
        memory: &M,
        found: &CallerState,
        wanted: u16,
        family: Family,
    ) {
        self.recover(registers, memory, found.cfa, wanted, family);
        if let (Some(lr), Some(address)) = (family.lr(), found.return_address) {
            registers.set(lr, address);
        }
        registers.set(family.sp(), found.cfa);
    }

    /// The whole step, where nothing about it is out of the ordinary: the caller's address and stack pointer, which
    /// the registers then hold. `None`, with nothing changed, where a closer look is needed: the outermost frame, a
    /// stack that does not advance, an address of zero or with bits that are none of it, or that is not known to be
    /// code, memory that cannot be read.
    #[inline]
    pub(crate) fn step<M: ReadMemory + ?Sized>(
        &self,
        registers: &mut Registers,
        memory: &M,
        wanted: u16,
        is_known: impl Fn(Avma) -> bool,
    ) -> Option<(Avma, Avma)> {
        match registers.family() {
            Family::X86_64 => self.step_as(registers, memory, wanted, Family::X86_64, is_known),
            Family::Aarch64 => self.step_as(registers, memory, wanted, Family::Aarch64, is_known),
            other => self.step_as(registers, memory, wanted, other, is_known),
        }
    }

    #[inline(always)]
    fn step_as<M: ReadMemory + ?Sized>(
        &self,
        registers: &mut Registers,
        memory: &M,
        wanted: u16,
        family: Family,
        is_known: impl Fn(Avma) -> bool,
    ) -> Option<(Avma, Avma)> {
        let place = self.locate(registers, memory, family)?;
        let address = place.return_address?;
        let plain = address != 0 && (family != Family::Aarch64 || address >> AARCH64_BITS == 0);
        let from_stack = self.return_address != IN_LINK_REGISTER;
        if self.kind & WIDE != 0 || !plain || !from_stack || place.cfa <= registers.get(family.sp())? {
            return None;
        }
        if !is_known(Avma::new(address)) {
            return None;
        }
        self.commit(registers, memory, &place, wanted, family);
        registers.set(family.pc(), address);
        Some((Avma::new(address), Avma::new(place.cfa)))
    }

    /// The fast form, where the family's words have eight bytes.
    pub(crate) fn fast(&self, family: Family) -> FastRule {
        let base = match Register(self.register) {
            register if register == family.sp() => Base::StackPointer,
            register if register == family.fp() => Base::FramePointer,
            _ => Base::Other,
        };
        let fits = self.kind & WIDE == 0 && self.return_address > IN_LINK_REGISTER && family.word_size() == 8;
        if !fits {
            return FastRule::NONE;
        }
        if self.return_address == UNDEFINED {
            // The CFA must be known, though nothing is done with it.
            return if base == Base::Other {
                FastRule::NONE
            } else {
                FastRule { base: Base::Outermost, ..FastRule::NONE }
            };
        }
        let fp = frame_pointer_slot(family);
        let words = self.saved.get(fp.trailing_zeros() as usize).copied().unwrap_or_default();
        let is_saved = self.mask & fp != 0;
        if is_saved && words == 0 {
            return FastRule::NONE;
        }
        FastRule {
            trust: self.trust(),
            base,
            cfa: self.offset,
            return_address: i32::from(self.return_address) * 8,
            frame_pointer: if is_saved { i32::from(words) * 8 } else { 0 },
            others: self.mask & !fp,
        }
    }

    /// Recovers the callee-saved registers of some slots, given the CFA.
    #[inline(always)]
    pub(crate) fn recover<M: ReadMemory + ?Sized>(
        &self,
        registers: &mut Registers,
        memory: &M,
        cfa: u64,
        slots_wanted: u16,
        family: Family,
    ) {
        let slots = slots(family);
        let mut mask = self.mask & slots_wanted;
        while mask != 0 {
            let slot = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let (Some(register), Some(words)) = (slots.get(slot), self.saved.get(slot)) else { break };
            match memory.read_pointer(place(cfa, *words, family), family.word_size()) {
                Ok(value) => registers.set(Register(*register), value),
                Err(_) => registers.clear(Register(*register)),
            }
        }
    }

    /// Whether the return address is still in the link register.
    pub(crate) fn is_in_link_register(&self) -> bool {
        self.return_address == IN_LINK_REGISTER
    }

    /// The slot of the register that the CFA counts from, as a bit.
    pub(super) fn base_slot(&self, family: Family) -> u16 {
        if self.kind & WIDE != 0 { 0 } else { wanted_slots(family, |register| register.0 == self.register) }
    }
}

/// The frame pointer as a set of slots.
#[inline(always)]
pub(crate) const fn frame_pointer_slot(family: Family) -> u16 {
    match family {
        Family::X86 | Family::X86_64 => 1 << 1,
        Family::Arm => 1 << 7,
        Family::Aarch64 => 1 << 10,
        _ => 0,
    }
}

/// Callee-saved registers as a set of slots: those for which `is_wanted`.
pub(super) fn wanted_slots(family: Family, is_wanted: impl Fn(Register) -> bool) -> u16 {
    let wanted = (0..).zip(slots(family)).filter(|(_, register)| is_wanted(Register(**register)));
    wanted.fold(0, |set, (slot, _)| set | 1u16 << slot)
}

/// The registers of a set of slots, as bits by number.
#[inline(always)]
pub(crate) fn packed_registers(family: Family, set: u16) -> u64 {
    let chosen = (0..).zip(slots(family)).filter(|(slot, _)| set & (1u16 << slot) != 0);
    chosen.fold(0, |bits, (_, register)| bits | 1u64 << register)
}

/// An address of user space on 64-bit ARM has no more bits; what lies above is authentication.
const AARCH64_BITS: u32 = 48;

fn kind(trust: Trust) -> u8 {
    match trust {
        Trust::CompactUnwind => 1,
        Trust::Exidx => 2,
        Trust::RuntimeTable => 3,
        _ => 0,
    }
}

fn words(offset: i32, word: i32) -> Option<i16> {
    let words = i16::try_from(offset / word).ok()?;
    (offset % word == 0 && words > UNDEFINED).then_some(words)
}

#[inline]
fn wrap(address: u64, family: Family) -> u64 {
    if family.word_size() == 4 { address & 0xffff_ffff } else { address }
}

#[inline]
fn place(cfa: u64, words: i16, family: Family) -> Avma {
    let bytes = i64::from(words) * i64::from(family.word_size());
    Avma::new(wrap(cfa.wrapping_add_signed(bytes), family))
}

impl Packed {
    /// A number that spreads rules over a hash table.
    pub(super) fn digest(&self) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let head = u64::from(self.offset.cast_unsigned()) << 32
            | u64::from(self.register) << 24
            | u64::from(self.kind) << 16
            | u64::from(self.mask);
        let words = self.saved.iter().chain([&self.return_address]);
        let mixed = words.fold(head, |sum, word| {
            (sum.rotate_left(5) ^ u64::from(word.cast_unsigned())).wrapping_mul(FACTOR)
        });
        mixed ^ (mixed >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_pointers_slot_is_where_the_register_is() {
        for family in [Family::X86, Family::X86_64, Family::Arm, Family::Aarch64, Family::Other] {
            let slot = wanted_slots(family, |register| register == family.fp());
            assert_eq!(frame_pointer_slot(family), slot, "{family:?}");
        }
    }
}
