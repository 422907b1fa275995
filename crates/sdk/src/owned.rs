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
    /// By what it was told, in a word: `name`, `body`, `call`, `order`, `changed`, `link map`, `stamp`.
    pub how: &'static str,
}
