//! Rules found before, by return address.

use crate::rules::{FastRule, Packed};
use backtrail_core::{Avma, Family, FrameAddress};

const ENTRIES: usize = 512;
/// Few places are where walks begin.
const EXACT: usize = 8;

/// Remembers which rule led on from an address, so that walking the same code again searches nothing. Good for one set of
/// images: [`Cache::clear`] it when that changes.
///
/// Each entry also remembers where the caller's was the last time. A walk that goes the same way again has the next rule
/// at hand before the return address has come from the stack, which is only compared with it: reading the stack and
/// finding rules no longer wait for each other.
///
/// A value of fixed size (32 KB) that allocates nothing; each thread that walks has its own.
#[derive(Clone)]
pub struct Cache {
    entries: [Entry; ENTRIES],
    /// Those of exact addresses.
    exact: [Entry; EXACT],
}

/// One line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry {
    address: u64,
    /// The caller's entry, as far as the last walk that came here tells.
    next: u16,
    fast: FastRule,
    rule: Packed,
}

/// Addresses of one image differ in their low bits; images in those above.
#[inline]
fn index(address: u64) -> usize {
    const BITS: u32 = ENTRIES.ilog2();
    (address ^ (address >> BITS) ^ (address >> (2 * BITS))) as usize % ENTRIES
}

/// Where in the cache a walk is: the entry that led on last, and the one that is expected to lead on now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trail {
    last: u16,
    next: u16,
}

const NOWHERE: u16 = u16::MAX;

impl Trail {
    pub(super) const START: Self = Self { last: NOWHERE, next: 0 };
}

impl Entry {
    const EMPTY: Self = Self { address: 0, next: 0, fast: FastRule::NONE, rule: Packed::NONE };
}

impl Cache {
    /// An empty cache.
    pub const fn new() -> Self {
        Self { entries: [Entry::EMPTY; ENTRIES], exact: [Entry::EMPTY; EXACT] }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.fill(Entry::EMPTY);
        self.exact.fill(Entry::EMPTY);
    }

    /// The rule of the return address that a walk has come to.
    #[inline]
    pub(super) fn follow(&mut self, trail: &mut Trail, address: Avma) -> Option<&Packed> {
        let place = self.follow_place(trail, address)?;
        self.at(place, false).map(|(_, rule)| rule)
    }

    /// The place of the entry of the return address that a walk has come to.
    #[inline(always)]
    pub(super) fn follow_place(&mut self, trail: &mut Trail, address: Avma) -> Option<u16> {
        let mut place = usize::from(trail.next) % ENTRIES;
        if self.entries.get(place)?.address != address.get() {
            place = self.turn(trail.last, address)?;
        }
        let entry = self.entries.get(place)?;
        *trail = Trail { last: place as u16, next: entry.next };
        Some(place as u16)
    }

    /// The same of an exact address, where a walk begins.
    #[inline(always)]
    pub(super) fn find_place(&self, trail: &mut Trail, address: Avma) -> Option<u16> {
        let place = index(address.get()) % EXACT;
        let entry = self.exact.get(place)?;
        *trail = Trail::START;
        // What was never used has the address zero, where wild jumps lead to; and no fast form.
        (entry.address == address.get()).then_some(place as u16)
    }

    /// The rule at a place, and its form for the shortest path.
    #[inline(always)]
    pub(super) fn at(&self, place: u16, is_exact: bool) -> Option<(&FastRule, &Packed)> {
        let place = usize::from(place);
        let entry = if is_exact { self.exact.get(place) } else { self.entries.get(place % ENTRIES) };
        entry.map(|entry| (&entry.fast, &entry.rule))
    }

    /// Whether a rule is known for the return address: a walk has come there before, and found code.
    #[inline]
    pub(super) fn knows(&self, trail: Trail, address: Avma) -> bool {
        let expected = self.entries.get(usize::from(trail.next) % ENTRIES);
        expected.is_some_and(|entry| entry.address == address.get()) || self.place(address).is_some()
    }

    /// The entry of an address that another led to than expected, which is expected there from now on.
    #[inline]
    fn turn(&mut self, last: u16, address: Avma) -> Option<usize> {
        let place = self.place(address)?;
        if let Some(last) = self.entries.get_mut(usize::from(last)) {
            last.next = place as u16;
        }
        Some(place)
    }

    /// Where the entry of a return address is. Two addresses that belong in one place are both remembered: of the frames of
    /// a stack some pair does in one process of four, and each walk would forget one for the other.
    #[inline]
    fn place(&self, address: Avma) -> Option<usize> {
        let is_at = |place: &usize| self.entries.get(*place).is_some_and(|it| it.address == address.get());
        let place = index(address.get());
        [place, place ^ 1].into_iter().find(is_at)
    }

    /// Where the entry of a return address is to be put: where it is, else where nothing is, else in the place of another.
    fn room(&self, address: Avma) -> usize {
        let place = index(address.get());
        let is_free = |place: &usize| self.entries.get(*place).is_some_and(|it| it.address == 0);
        let known = self.place(address);
        known.or_else(|| [place, place ^ 1].into_iter().find(is_free)).unwrap_or(place)
    }

    /// The rule of an address, wherever the walk has come from.
    pub(super) fn find(&mut self, trail: &mut Trail, address: FrameAddress) -> Option<Packed> {
        let FrameAddress::Exact(exact) = address else {
            return self.follow(trail, address.raw()).copied().filter(|rule| !rule.is_wide());
        };
        let entry = self.exact.get(index(exact.get()) % EXACT)?;
        *trail = Trail::START;
        // What was never used has the address zero, where wild jumps lead to.
        (entry.address == exact.get() && !entry.rule.is_wide()).then_some(entry.rule)
    }

    /// Remembers a rule, and that the walk has come to it here.
    pub(super) fn put(&mut self, trail: &mut Trail, address: FrameAddress, rule: Packed, family: Family) {
        let fast = rule.fast(family);
        let (entries, place) = match address {
            FrameAddress::Return(address) => {
                let room = self.room(address);
                (&mut self.entries[..], room)
            }
            FrameAddress::Exact(address) => (&mut self.exact[..], index(address.get()) % EXACT),
        };
        let Some(entry) = entries.get_mut(place) else { return };
        *entry = Entry { address: address.raw().get(), next: 0, fast, rule };
        let last = core::mem::replace(trail, Trail::START).last;
        if let FrameAddress::Return(address) = address {
            self.turn(last, address);
            trail.last = place as u16;
        }
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Cache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let used = self.entries.iter().filter(|entry| entry.address != 0).count();
        write!(f, "Cache of {used} rules")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_addresses_of_one_place_are_both_remembered() {
        let mut cache = Cache::new();
        let addresses = [0x1000, 0x1000 + (ENTRIES * ENTRIES * ENTRIES) as u64, 0x1001].map(Avma::new);
        assert_eq!(index(addresses[0].get()), index(addresses[1].get()));
        let mut trail = Trail::START;
        for address in &addresses[..2] {
            cache.put(&mut trail, FrameAddress::Return(*address), Packed::default(), Family::X86_64);
        }
        let known = |cache: &mut Cache| {
            addresses.map(|address| cache.follow(&mut Trail::START.clone(), address).is_some())
        };
        assert_eq!(known(&mut cache), [true, true, false]);
        // The third belongs where the second is, and takes the place.
        cache.put(&mut trail, FrameAddress::Return(addresses[2]), Packed::default(), Family::X86_64);
        assert_eq!(known(&mut cache), [true, false, true]);
        // What is put again stays where it is.
        cache.put(&mut trail, FrameAddress::Return(addresses[0]), Packed::default(), Family::X86_64);
        assert_eq!(known(&mut cache), [true, false, true]);
        cache.clear();
        assert_eq!(known(&mut cache), [false; 3]);
    }
}
