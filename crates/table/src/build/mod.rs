//! Writing a table.

mod batch;
mod intern;

use crate::error::{Error, ErrorKind, Result};
use crate::stats::Summary;
use crate::types::{DropReason, FileId, Header, StringId, SymbolPiece};
use backtrail_core::{AddrRange, Svma};
pub use batch::Batch;
use intern::Interner;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Seek, Write};
use std::sync::{Mutex, PoisonError};

/// Collects what goes into a table, from many threads at a time, and writes it.
///
/// The bytes that come out depend on what was added, not on the order or on the number of threads.
pub struct Builder {
    header: Header,
    strings: Interner,
    files: Interner,
    added: Mutex<Added>,
}

#[derive(Default)]
struct Added {
    batches: BTreeMap<u64, Vec<Batch>>,
    symbols: Vec<SymbolPiece>,
    sections: Vec<(AddrRange<Svma>, bool)>,
    dropped: BTreeMap<DropReason, u64>,
}

impl Builder {
    /// A builder of an empty table.
    pub fn new(header: Header) -> Self {
        Self { header, strings: Interner::new(), files: Interner::new(), added: Mutex::default() }
    }

    /// Keeps a string and gives its number; equal strings have the same.
    pub fn string(&self, bytes: &[u8]) -> StringId {
        StringId(self.strings.intern(bytes).unwrap_or(u32::MAX))
    }

    /// Keeps a source file by its whole path and gives its number. The table keeps directories apart and once.
    pub fn file(&self, path: &[u8]) -> FileId {
        FileId(self.files.intern(path).unwrap_or(u32::MAX))
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch {
        Batch::new()
    }

    /// Adds a unit's functions. `unit_index` is the unit's position in the input: of functions of different units at
    /// one address that of the lowest is kept.
    pub fn add(&self, unit_index: u64, mut batch: Batch) {
        if batch.is_empty() {
            return;
        }
        batch.shrink();
        self.with(|added| added.batches.entry(unit_index).or_default().push(batch));
    }

    /// Adds what a symbol table knows of some addresses. It answers where no function does. Where pieces overlap, the
    /// one that starts last has the address.
    pub fn symbol(&self, piece: SymbolPiece) {
        self.with(|added| added.symbols.push(piece));
    }

    /// Adds a section of the image, so that the table can tell why nothing is known of an address.
    pub fn section(&self, range: AddrRange<Svma>, is_code: bool) {
        self.with(|added| added.sections.push((range, is_code)));
    }

    /// Counts what is left out of the table.
    pub fn dropped(&self, reason: DropReason, count: u64) {
        self.with(|added| *added.dropped.entry(reason).or_default() += count);
    }

    fn with<T>(&self, act: impl FnOnce(&mut Added) -> T) -> T {
        act(&mut self.added.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the table on all of rayon's threads.
    ///
    /// # Errors
    /// When the output cannot be written, or something does not fit into the format.
    pub fn finish<W: Write + Seek>(self, out: &mut W) -> Result<Summary> {
        let _ = out;
        let _ = self.header;
        Err(Error::nowhere(ErrorKind::LimitExceeded, "writing comes with the next step"))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("header", &self.header).finish_non_exhaustive()
    }
}
