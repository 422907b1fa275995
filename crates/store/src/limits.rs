//! How far a scan goes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds on what a scan and the opening of files may cost; whatever reaches one is named in an error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Levels of folders below a path that was given.
    pub folder_depth: usize,
    /// Files looked at, zip members not counted.
    pub files: usize,
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
    /// Bytes inflated by one scan, all zips together.
    pub inflated_bytes: u64,
    /// Errors kept; of those beyond, only the number is.
    pub problems: usize,
    /// Bounds on the reading of object files' headers.
    pub object: backtrail_object::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            folder_depth: 128,
            files: 4_000_000,
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

/// What all threads of a scan may use up together.
#[derive(Debug)]
pub(crate) struct Budget(AtomicU64);

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Takes `bytes` away; `false` when so many are not left.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}
