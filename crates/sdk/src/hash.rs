//! Hashes of names and code: the only thing that a fingerprint keeps of a library.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// The first 64 bits of a BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Digest(pub(crate) u64);

/// What was hashed: equal bytes of two kinds have two hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Domain {
    /// A function's bytes without what a linker fills in.
    Body = 1,
    /// The same without everything that looks like an address, which needs no relocations to be told.
    Outline = 2,
    /// A symbol, or a member of an archive.
    Name = 3,
    /// A class, or a category.
    Class = 4,
    /// A selector, with `-` or `+`.
    Selector = 5,
    /// A C string.
    String = 6,
    /// A string object.
    StringObject = 7,
    /// A constant.
    Constant = 8,
}

impl Digest {
    pub(crate) fn of(domain: Domain, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[domain as u8]);
        hasher.update(bytes);
        let hash = hasher.finalize();
        Self(hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }
}

/// For keys that are spread already, or small numbers: one multiplication.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;
pub(crate) type Set<K> = HashSet<K, BuildHasherDefault<Mix>>;
