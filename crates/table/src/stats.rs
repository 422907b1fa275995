//! What a table holds and what it costs.

use crate::types::DropReason;

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// What the table holds, and the bytes that it takes.
    pub stats: Stats,
    /// What was left out, by reason.
    pub dropped: Vec<(DropReason, u64)>,
}

/// What a table holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Functions, without inlined ones.
    pub functions: u64,
    /// Address ranges of functions, and of lines without function.
    pub ranges: u64,
    /// Inlined calls.
    pub inlines: u64,
    /// Line rows.
    pub rows: u64,
    /// Different names of functions.
    pub names: u64,
    /// Source files.
    pub files: u64,
    /// Strings kept for names and paths.
    pub strings: u64,
    /// Addresses with symbols only, in pieces.
    pub symbols: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes of each section by its name, in the order of the file.
    pub sections: Vec<(&'static str, u64)>,
}
