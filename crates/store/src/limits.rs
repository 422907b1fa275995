//! How far a scan goes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds on what a scan and the opening of files may cost; whatever reaches one is named in an error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Levels of directories below a path that was given.
    pub directory_depth: usize,
    /// Files looked at, zip members not counted.
    pub files: usize,
    /// Directories listed.
    pub directories: usize,
    /// Files and directories outside of the paths that were given, which only links lead to. Links to files do not count.
    pub linked: usize,
    /// Members of one zip.
    pub zip_members: usize,
    /// Zips within zips: 1 reads the zips that lie in a zip, but not those within them.
    pub zip_depth: usize,
    /// Size of a compressed zip within a zip, which has to be held in memory while it is read.
    pub nested_zip_bytes: u64,
    /// Size of a zip member that is opened, and so held in memory.
    pub member_bytes: u64,
    /// How many times larger than its compressed form a member of more than 64 MiB may be. Debug information
    /// compresses to about a quarter; DEFLATE reaches 1032.
    pub ratio: u64,
    /// Bytes inflated by one scan, all zips together. Whatever is set here, it is no more than 50 times the size of
    /// the zips and 256 MiB besides, which the reading of headers comes near to only where bombs are.
    pub inflated_bytes: u64,
    /// Errors kept; of those beyond, only the number is.
    pub problems: usize,
    /// Bounds on the reading of object files' headers.
    pub object: backtrail_object::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            directory_depth: 128,
            files: 4_000_000,
            directories: 1_000_000,
            linked: 20_000,
            zip_members: 1_000_000,
            zip_depth: 1,
            nested_zip_bytes: 1 << 30,
            member_bytes: 8 << 30,
            ratio: 200,
            inflated_bytes: 64 << 30,
            problems: 1000,
            object: backtrail_object::Limits::default(),
        }
    }
}

impl Limits {
    /// Whether a member's stated sizes are those of a bomb.
    pub(crate) fn is_bomb(&self, compressed: u64, inflated: u64) -> bool {
        const UNSUSPICIOUS: u64 = 64 << 20;
        inflated > UNSUSPICIOUS && inflated / self.ratio.max(1) > compressed
    }
}

/// Bytes that all threads of a scan together may inflate.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
    /// To be had for zips yet to come.
    reserve: AtomicU64,
}

/// Many small members can each be a bomb too small to tell; what they come to is bounded by these.
const FREELY: u64 = 256 << 20;
const PER_BYTE: u64 = 50;

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        let left = bytes.min(FREELY);
        Self { left: AtomicU64::new(left), reserve: AtomicU64::new(bytes - left) }
    }

    /// Adds what a zip of `size` bytes on the disk may inflate to.
    pub(crate) fn grant(&self, size: u64) {
        let wanted = size.saturating_mul(PER_BYTE);
        let take = |reserve: u64| Some(reserve.saturating_sub(wanted));
        let before = self.reserve.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).unwrap_or(0);
        self.left.fetch_add(before.min(wanted), Ordering::Relaxed);
    }

    /// Takes `bytes` away; `false` when so many are not left.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_grows_with_the_zips_up_to_its_bound() {
        let budget = Budget::new(3 << 30);
        // Of zips of hardly any size.
        assert!(budget.take(256 << 20));
        assert!(!budget.take(1));
        budget.grant(2);
        assert!(budget.take(100) && !budget.take(1));
        budget.grant(u64::MAX);
        assert!(budget.take((3 << 30) - (256 << 20) - 100) && !budget.take(1));
        assert!(!Budget::new(5).take(6));
    }
}
