//! Whose code a frame is.

use backtrail_core::Confidence;
use std::borrow::Cow;

/// Whose code a frame is, with how that is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Owner {
    /// The kind of owner.
    pub kind: OwnerKind,
    /// The app, the library or the system's image, by name.
    pub name: Option<String>,
    /// The version of that library, where it is known.
    pub version: Option<String>,
    /// How sure that is; `None` where nothing is known.
    pub confidence: Option<Confidence>,
    /// By what it was told, in a few words: `stamp`, `body`, `link map`, `rule: symbol FOO`, `path`.
    pub how: Cow<'static, str>,
    /// The object file that the linker took the code from, as the linker names it: `/build/libFoo.a(bar.o)`.
    pub file: Option<String>,
}

/// The kind of owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum OwnerKind {
    /// The app's own makers.
    App,
    /// Somebody whose library the app ships or loads.
    Sdk,
    /// The operating system, or tools by the same maker.
    System,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl OwnerKind {
    /// The word that JSON and rules use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Sdk => "sdk",
            Self::System => "system",
            Self::Unknown => "unknown",
        }
    }
}
