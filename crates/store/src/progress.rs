//! How far a scan has come, for whoever wants to show it.

/// Hears of a scan's progress. Called from several threads, once for each file, so it should return at once.
pub trait Progress: Sync {
    /// The counts grow, but a call may arrive after one with higher counts.
    fn scanned(&self, counts: &Counts);
}

/// What a scan has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counts {
    /// Files and zip members looked at.
    pub files: u64,
    /// Binaries and debug files found; each slice of a fat file counts.
    pub found: u64,
    /// Bytes read from the disk.
    pub bytes_read: u64,
}

/// Nobody listens.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn scanned(&self, _: &Counts) {}
}
