//! A range with its owner.

use backtrail_core::{AddrRange, Confidence, Svma};

/// The owner of code that several libraries have, as those that were built with the same open source.
pub const SHARED: &str = "shared";

/// One range of an app with its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OwnedRange {
    /// Where it lies; the end is not part of it.
    pub range: AddrRange<Svma>,
    /// The library's name; [`SHARED`] where several have this very code.
    pub owner: String,
    /// Those that have it, where there are several.
    pub shared_by: Vec<String>,
    /// Its version; `None` where another version's code is there.
    pub version: Option<String>,
    /// How sure that is.
    pub confidence: Confidence,
    /// By what it was told, in a word: `name`, `body`, `call`, `order`, `present`, `changed`, `link map`, `debug map`, `stamp`,
    /// `markers`.
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
        Self { range, owner, shared_by: Vec::new(), version, confidence, how }
    }
}
