//! A range with its owner.

use backtrail_core::{AddrRange, Confidence, Svma};

/// One range of an app with its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OwnedRange {
    /// Where it lies; the end is not part of it.
    pub range: AddrRange<Svma>,
    /// The library's name.
    pub owner: String,
    /// Its version; `None` where another version's code is there.
    pub version: Option<String>,
    /// How sure that is.
    pub confidence: Confidence,
    /// By what it was told, in a word: `name`, `body`, `call`, `order`, `changed`, `link map`, `debug map`, `stamp`.
    pub how: &'static str,
}

impl OwnedRange {
    /// A range with its owner; `how` is one of the words of [`OwnedRange::how`].
    pub fn new(
        range: AddrRange<Svma>,
        owner: String,
        version: Option<String>,
        confidence: Confidence,
        how: &'static str,
    ) -> Self {
        Self { range, owner, version, confidence, how }
    }
}
