//! What a table holds and what it costs.

use crate::format::{Counts, Entry, SECTIONS};
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
    /// Addresses with symbols only, in pieces.
    pub symbols: u64,
    /// Bytes of the bodies that tell inlined calls; the others tell lines.
    pub call_bytes: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes of each section by its name, in the order of the file.
    pub sections: Vec<(&'static str, u64)>,
}

impl Stats {
    pub(crate) fn new(counts: &Counts, names: u64, files: u64, bytes: u64, entries: &[Entry]) -> Self {
        let name = |kind: u32| {
            SECTIONS.into_iter().find(|known| *known as u32 == kind).map_or("unknown", |kind| kind.name())
        };
        let Counts { functions, ranges, inlines, rows, symbols, call_bytes } = *counts;
        let sections = entries.iter().map(|entry| (name(entry.kind), entry.size)).collect();
        Self { functions, ranges, inlines, rows, names, files, symbols, call_bytes, bytes, sections }
    }
}
