//! What is wrong with a piece of DWARF.

use std::fmt;

/// Bytes that are not what the spec says stands there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Malformed {
    /// The section, by its ELF name.
    pub(crate) section: &'static str,
    /// Offset in the (decompressed) section.
    pub(crate) offset: u64,
    /// What was expected there.
    pub(crate) expected: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: expected {}", self.section, self.offset, self.expected)
    }
}
