//! How much of a capture is read.

/// Bounds on what reading a capture may cost. The defaults hold every real one with room to spare.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Threads.
    pub threads: usize,
    /// Mapped ranges, and pieces of memory.
    pub mappings: usize,
    /// Images.
    pub images: usize,
    /// Bytes of one name.
    pub name_bytes: usize,
    /// Notes for people; further ones are counted only.
    pub notes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 100_000, mappings: 1_000_000, images: 200_000, name_bytes: 4096, notes: 200 }
    }
}
