//! What headers tell a loader, in words.

use std::fmt;

/// One Mach-O load command, ELF program header or dynamic entry, for people to read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LoadCommand {
    /// The name that the format gives it: `LC_UUID`, `PT_LOAD`, `DT_NEEDED`.
    pub name: String,
    /// What it says, in short: `3BACA52B-…`, `/usr/lib/libSystem.B.dylib 1319.0.0`. Empty where the name says it all.
    pub text: String,
}

impl LoadCommand {
    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

impl fmt::Display for LoadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " {}", self.text) }
    }
}
