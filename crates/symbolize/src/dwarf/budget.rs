//! A bound on work that hostile files could otherwise multiply by sharing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Work that may still be done. Tables and lists that many units share are read again for each of them, so that a
/// small file could ask for the square of its size; honest files stay far below a few times their own.
#[derive(Debug)]
pub(crate) struct Budget(AtomicU64);

impl Budget {
    pub(crate) fn new(amount: u64) -> Self {
        Self(AtomicU64::new(amount))
    }

    /// Takes `amount` from the budget; `false` once it is used up.
    pub(crate) fn spend(&self, amount: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount)).is_ok()
    }
}
