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
