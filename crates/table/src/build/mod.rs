//! Writing a table.

mod batch;
mod collect;
mod encode;
mod heads;
mod intern;
mod names;
mod output;
mod place;
mod spans;
mod steps;
mod write;

use crate::body::MAX_TEXT;
use crate::error::Result;
use crate::format::SectionKind;
use crate::stats::{Stats, Summary};
use crate::types::{DropReason, FileId, FunctionHead, Header, Language, NameId, StringId, SymbolPiece};
use backtrail_core::{AddrRange, Svma};
pub use batch::Batch;
use collect::Input;
use heads::HeadInterner;
use intern::{Interner, Strings};
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
    names: HeadInterner,
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
        let (strings, files, names) = (Interner::new(), Interner::new(), HeadInterner::new());
        Self { header, strings, files, names, added: Mutex::default() }
    }

    /// Keeps a string and gives its number; equal strings have the same. What is longer than a mebibyte is cut.
    pub fn string(&self, bytes: &[u8]) -> StringId {
        let kept = bytes.get(..MAX_TEXT).unwrap_or(bytes);
        if kept.len() < bytes.len() {
            self.dropped(DropReason::TooLarge, 1);
        }
        StringId(self.strings.intern(kept).unwrap_or(u32::MAX))
    }

    /// Keeps what a function is called and gives its number; equal ones have the same.
    pub fn name(&self, head: FunctionHead) -> NameId {
        self.names.intern(head)
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
    pub fn finish<W: Write + Seek + Send>(self, out: &mut W) -> Result<Summary> {
        let Added { batches, mut symbols, sections, mut dropped } =
            self.added.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (strings, paths) = (self.strings.into_strings(), self.files.into_strings());
        let batches: Vec<Batch> = batches.into_values().flatten().collect();
        sort(&mut symbols, &strings);
        let symbol_name = |symbol: &SymbolPiece| {
            self.names.intern(FunctionHead { name: None, linkage_name: symbol.name, language: Language(0) })
        };
        let symbol_names: Vec<NameId> = symbols.iter().map(symbol_name).collect();
        let heads = self.names.into_heads();
        let placed = place::place(&batches, &symbols);
        let input = Input {
            batches: &batches,
            symbols: &symbols,
            symbol_names: &symbol_names,
            heads: &heads,
            placed: &placed,
            paths: &paths,
        };
        let numbers = collect::collect(&input);
        let mut output = output::Output::new(out)?;
        let languages = names::languages(&numbers);
        let names = names::names(&numbers, &strings, &languages);
        let (chunks, counts) = write::names_and_bodies(&mut output, names, &input, &numbers)?;
        output.section(SectionKind::Index, &write::index(&chunks))?;
        output.section(SectionKind::Files, &write::files(&numbers, &paths))?;
        output.section(SectionKind::Regions, &write::regions(&sections))?;
        for (reason, count) in
            [(DropReason::MergedFunction, placed.merged), (DropReason::DeepInline, numbers.too_deep)]
        {
            *dropped.entry(reason).or_default() += count;
        }
        dropped.retain(|_, count| *count > 0);
        let mut facts = write::facts(&self.header, counts, languages);
        facts.dropped = dropped.into_iter().collect();
        output.section(SectionKind::Facts, &facts.put())?;
        let (size, entries) = output.finish(&self.header)?;
        let (names, files) = (numbers.names.len() as u64, numbers.files.len() as u64);
        let stats = Stats::new(&facts.counts, names, files, size, &entries);
        Ok(Summary { stats, dropped: facts.dropped })
    }
}

/// They come in any order, and of two pieces of the same addresses the last one wins.
fn sort(symbols: &mut [SymbolPiece], strings: &Strings) {
    let name = |symbol: &SymbolPiece| symbol.name.map(|name| strings.get(name.0));
    symbols.sort_by(|a, b| {
        let place = |symbol: &SymbolPiece| (symbol.range.start(), symbol.range.end(), symbol.start);
        place(a).cmp(&place(b)).then_with(|| name(a).cmp(&name(b)))
    });
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("header", &self.header).finish_non_exhaustive()
    }
}
