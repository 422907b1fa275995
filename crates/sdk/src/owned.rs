//! A range with its owner.

use backtrail_core::{AddrRange, Svma};

/// How sure it is whose a range is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Confidence {
    /// It follows from something else: what lies around it, or the name of its class. Its code is not the known one.
    Likely,
    /// Its code is the library's, and what it calls and mentions agrees.
    Strong,
    /// The linker said so.
    Certain,
}

impl Confidence {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Likely => "likely",
            Self::Strong => "strong",
            Self::Certain => "certain",
        }
    }
}

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
    /// By what it was told, in a word: `name`, `body`, `call`, `order`, `changed`, `link map`, `stamp`.
    pub how: &'static str,
}
