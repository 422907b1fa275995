//! Where the parts of an object lie that shares its file with others.

use std::sync::Arc;

use super::cache::SharedCache;

/// How the parts of an object lie in its bytes.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// The header comes first, and all offsets count from it.
    Whole,
    /// The header lies at this offset, and all offsets count from the start of the file: kernel collections.
    Entry { header: u64 },
    /// The header lies at this offset; segments are found by address in the cache's mappings.
    Cached { header: u64, cache: Arc<SharedCache> },
}

impl Placement {
    pub(crate) fn header(&self) -> u64 {
        match self {
            Self::Whole => 0,
            Self::Entry { header } | Self::Cached { header, .. } => *header,
        }
    }
}
