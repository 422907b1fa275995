//! A hash map for keys that are offsets: quick, and seeded anew in each process, so that no file can be made whose
//! offsets collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

pub(super) type FastMap<K, V> = HashMap<K, V, Seeded>;

#[derive(Clone, Copy)]
pub(super) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().build_hasher().finish()))
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

pub(super) struct Folded(u64);

impl Hasher for Folded {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
}

/// Small numbers by the offsets of DIEs, for one unit after the other. Open addressing.
#[derive(Default)]
pub(super) struct OffsetMap {
    /// Offset, or 0 where nothing is, and number.
    slots: Vec<(u64, u32)>,
    count: usize,
}

impl OffsetMap {
    /// Forgets everything, and makes room for so many.
    pub(super) fn restart(&mut self, count: usize) {
        self.slots.clear();
        self.slots.resize((count * 2).next_power_of_two().max(64), (0, 0));
        self.count = 0;
    }

    /// The place of an offset: where it is, or could be put.
    #[inline]
    fn place(&self, offset: u64) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let factor = Seeded::default().0 | 1;
        let mut at = (offset.wrapping_mul(factor) >> 32) as usize & mask;
        while self.slots.get(at).is_some_and(|slot| slot.0 != 0 && slot.0 != offset) {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline]
    pub(super) fn get(&self, offset: u64) -> Option<u32> {
        let slot = self.slots.get(self.place(offset))?;
        (slot.0 == offset && offset != 0).then_some(slot.1)
    }

    /// Keeps a number, as long as there is room.
    #[inline]
    pub(super) fn insert(&mut self, offset: u64, number: u32) {
        let place = self.place(offset);
        // Half of the slots stay free, so that every search ends.
        if offset != 0
            && self.count * 2 < self.slots.len()
            && let Some(slot) = self.slots.get_mut(place)
        {
            self.count += usize::from(slot.0 == 0);
            *slot = (offset, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_found_again_until_the_next_unit() {
        let mut map = OffsetMap::default();
        assert_eq!(map.get(7), None);
        for unit in 1..4u64 {
            map.restart(1000);
            for offset in 1..=1000 {
                assert_eq!(map.get(offset * unit), None);
                map.insert(offset * unit, offset as u32);
            }
            for offset in 1..=1000 {
                assert_eq!(map.get(offset * unit), Some(offset as u32));
            }
            assert_eq!(map.get(0), None);
        }
    }

    #[test]
    fn what_has_no_room_is_not_kept() {
        let mut map = OffsetMap::default();
        map.insert(3, 3);
        assert_eq!(map.get(3), None);
        map.restart(0);
        (0..200).for_each(|offset| map.insert(offset, 1));
        assert_eq!((1..200).filter(|offset| map.get(*offset) == Some(1)).count(), 32);
    }
}
