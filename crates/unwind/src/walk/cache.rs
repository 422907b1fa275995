//! Rules found before, by return address.

use crate::rules::Packed;
use backtrail_core::Avma;

const ENTRIES: usize = 512;

/// Remembers which rule led on from a return address, so that walking the same code again searches nothing. Good for
/// one set of images: [`Cache::clear`] it when that changes.
///
/// A value of fixed size (20 KB) that allocates nothing; each thread that walks has its own.
#[derive(Clone)]
pub struct Cache {
    entries: [Entry; ENTRIES],
}

#[derive(Clone, Copy, Default)]
struct Entry {
    address: u64,
    rule: Packed,
}

impl Cache {
    /// An empty cache.
    pub const fn new() -> Self {
        Self { entries: [Entry { address: 0, rule: Packed::ZERO }; ENTRIES] }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.fill(Entry::default());
    }

    /// Return addresses of one image differ in their low bits; images in those above.
    #[inline]
    fn index(address: Avma) -> usize {
        const BITS: u32 = ENTRIES.ilog2();
        let address = address.get();
        (address ^ (address >> BITS) ^ (address >> (2 * BITS))) as usize % ENTRIES
    }

    #[inline]
    pub(crate) fn get(&self, address: Avma) -> Option<&Packed> {
        let entry = self.entries.get(Self::index(address))?;
        (entry.address == address.get()).then_some(&entry.rule)
    }

    #[inline]
    pub(crate) fn put(&mut self, address: Avma, rule: Packed) {
        if let Some(entry) = self.entries.get_mut(Self::index(address)) {
            *entry = Entry { address: address.get(), rule };
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
