//! Strings kept once, from many threads.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;
/// The most strings in a shard: what fits into the bits that the shard's number leaves.
const MAX_STRINGS: u32 = u32::MAX >> SHARD_BITS;

/// Byte strings by content. The numbers depend on who comes first; whoever needs an order sorts by content.
pub(crate) struct Interner {
    seed: u64,
    shards: Vec<Mutex<Shard>>,
}

/// The strings of one lock.
#[derive(Default)]
pub(crate) struct Shard {
    /// Open addressing: upper half of the hash, index of the string plus one.
    slots: Vec<(u32, u32)>,
    /// Where each string ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        // Nobody who writes a file shall know which strings collide.
        let seed = RandomState::new().build_hasher().finish();
        Self { seed, shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// The number of a string; `None` when there are too many.
    pub(crate) fn intern(&self, bytes: &[u8]) -> Option<u32> {
        let hash = hash(bytes, self.seed);
        let shard = hash as usize % SHARDS;
        let index = lock(self.shards.get(shard)?).intern(bytes, (hash >> 32) as u32)?;
        Some(index << SHARD_BITS | shard as u32)
    }

    /// Ends the collecting.
    pub(crate) fn into_strings(self) -> Strings {
        let shards = self.shards.into_iter().map(|shard| {
            let mut shard = shard.into_inner().unwrap_or_else(PoisonError::into_inner);
            shard.slots = Vec::new();
            shard
        });
        Strings { shards: shards.collect() }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A string is either in or not; a panic elsewhere leaves nothing half done.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn get(&self, index: u32) -> &[u8] {
        let index = index as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    fn intern(&mut self, bytes: &[u8], hash: u32) -> Option<u32> {
        if self.ends.len() * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let &(found, index) = self.slots.get(at)?;
            let Some(index) = index.checked_sub(1) else { break };
            if found == hash && self.get(index) == bytes {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
        let index = u32::try_from(self.ends.len()).ok().filter(|index| *index < MAX_STRINGS)?;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        *self.slots.get_mut(at)? = (hash, index + 1);
        Some(index)
    }

    fn grow(&mut self) {
        let slots = vec![(0, 0); (self.slots.len() * 2).max(64)];
        let mask = slots.len() - 1;
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|(_, index)| *index != 0) {
            let mut at = slot.0 as usize & mask;
            while self.slots.get(at).is_some_and(|(_, index)| *index != 0) {
                at = (at + 1) & mask;
            }
            if let Some(free) = self.slots.get_mut(at) {
                *free = slot;
            }
        }
    }
}

/// All strings, no longer growing.
pub(crate) struct Strings {
    shards: Vec<Shard>,
}

impl Strings {
    /// The string of a number.
    pub(crate) fn get(&self, id: u32) -> &[u8] {
        let shard = self.shards.get(id as usize % SHARDS);
        shard.map_or(&[], |shard| shard.get(id >> SHARD_BITS))
    }

    /// A number above all that were given out.
    pub(crate) fn bound(&self) -> usize {
        self.shards.iter().map(|shard| shard.ends.len()).max().unwrap_or(0) * SHARDS
    }
}

/// Multiplies and folds 8 bytes at a time.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR ^ seed.rotate_left(32) | 1);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut state = seed ^ bytes.len() as u64;
    for word in words {
        state = mix(state, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let state = mix(state, u64::from_le_bytes(last));
    mix(state, FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_number_and_read_back() {
        let interner = Interner::new();
        let text = |index: usize| format!("_ZN{index}name{}Ev", index % 7).into_bytes();
        let ids: Vec<u32> = (0..20_000).map(|index| interner.intern(&text(index)).unwrap()).collect();
        for (index, id) in ids.iter().enumerate() {
            assert_eq!(interner.intern(&text(index)), Some(*id));
        }
        let empty = interner.intern(b"").unwrap();
        let strings = interner.into_strings();
        for (index, id) in ids.iter().enumerate() {
            assert_eq!(strings.get(*id), text(index));
            assert!((*id as usize) < strings.bound());
        }
        assert_eq!(strings.get(empty), b"");
    }
}
