//! In what compilers differ from the ABI, where a name can be read in more ways than one.

/// How a name is read.
///
/// The ways are tried in this order; each but the first only on names that the ones before could not read and that
/// have what it is about. So reading stays linear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// As the ABI has it, and clang. Where a name shows that gcc made it, reading stops.
    Standard,
    /// The scope of an unresolved name and the base of an inherited constructor are types, whose parts count as
    /// substitutions; a member that is an operator has no `on` in front.
    Gcc,
    /// As the ABI has it, even if the name looks like gcc's.
    Literal,
    /// `auto` and `decltype(auto)` count as substitutions, as they did for clang up to version 6.
    CountedAuto,
}

impl Dialect {
    /// All, in the order in which they are tried.
    pub(super) const ALL: [Dialect; 4] =
        [Dialect::Standard, Dialect::Gcc, Dialect::Literal, Dialect::CountedAuto];

    /// Whether a name can be of this dialect.
    pub(super) fn suits(self, name: &str) -> bool {
        match self {
            Dialect::Standard => true,
            Dialect::Gcc => ["sr", "CI", "dt", "pt"].iter().any(|code| name.contains(code)),
            Dialect::Literal => name.contains("sr"),
            Dialect::CountedAuto => name.contains("Da") || name.contains("Dc"),
        }
    }
}
