//! How sure an answer is that is no plain fact of a file.

/// How sure it is whose code is somewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Confidence {
    /// It follows from something else: what lies around it, the name of its class, the path of its image.
    Likely,
    /// The code itself is the owner's, or somebody who must know says so in a rule.
    Strong,
    /// The linker, a stamp or the system said so.
    Certain,
}

impl Confidence {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Likely => "likely",
            Self::Strong => "strong",
            Self::Certain => "certain",
        }
    }
}
