//! Debug info and symbol tables into one table.
//!
//! Every unit is walked once, by whichever thread comes to it, and handed to a [`Builder`]; no lookup is made. What the
//! table answers is what [`Symbolizer::lookup`] answers: the same units are asked for the same addresses, the same names,
//! files and lines are read. [`verify`](verify::verify) holds the two against each other.
//!
//! # Memory
//! Apart from the input and what the builder keeps (some 8 bytes a row and 16 an inlined call), a thread keeps the
//! functions, calls and rows of one unit: at most 12 times the bytes of the largest unit with its line program.

mod fast_map;
mod files;
mod gopclntab;
mod names;
mod symbols;
mod target;
mod unit;
mod verify;
mod walk;
mod work;

use crate::dwarf::{Claims, DwarfFile};
use crate::symbolizer::Symbolizer;
use backtrail_core::{AddrRange, Svma};
use backtrail_object::Format;
use backtrail_table::{Builder, Header, SourceKind};
use std::fmt;
use std::io::{Seek, Write};
use symbols::{Pieces, Symbols};
use target::Linked;
use work::Job;

pub use backtrail_table::Summary as TableSummary;
pub use verify::{Verified, verify};

/// How a conversion is done.
pub struct ConvertOptions<'p> {
    /// Threads; as many as there are cores where `None`.
    pub jobs: Option<usize>,
    /// The name that the table has of its input, without directories.
    pub name: String,
    /// Who is told how far it is.
    pub progress: &'p dyn Progress,
}

impl Default for ConvertOptions<'_> {
    fn default() -> Self {
        Self { jobs: None, name: String::new(), progress: &Silent }
    }
}

impl fmt::Debug for ConvertOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConvertOptions")
            .field("jobs", &self.jobs)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Hears how far a conversion is; from all threads.
pub trait Progress: Sync {
    /// Bytes of debug info that were read, of all that have to be.
    fn advanced(&self, done: u64, total: u64);

    /// These bytes of the input are not needed again soon: a mapped file may let go of them.
    fn finished_with(&self, part: &[u8]) {
        let _ = part;
    }

    /// The whole input is read, and what follows needs none of it.
    fn finished_reading(&self) {}
}

struct Silent;

impl Progress for Silent {
    fn advanced(&self, _: u64, _: u64) {}
}

/// Why there is no table.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertError {
    /// Threads could not be started.
    Threads(String),
    /// The table could not be written.
    Table(backtrail_table::Error),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(error) => write!(f, "cannot start threads: {error}"),
            Self::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConvertError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Threads(_) => None,
            Self::Table(error) => Some(error),
        }
    }
}

/// Writes what a symbolizer knows as a table. Files that [`Symbolizer::missing_file`] still asks for count as missing.
///
/// # Errors
/// When `out` cannot be written, or the input goes past what a table can say.
pub fn convert<W: Write + Seek + Send>(
    symbolizer: &Symbolizer<'_>,
    options: &ConvertOptions<'_>,
    out: &mut W,
) -> Result<TableSummary, ConvertError> {
    pool(options.jobs)?.install(|| {
        let builder = Builder::new(header(symbolizer, options));
        collect(symbolizer, options, &builder);
        let finish = || builder.finish(out).map_err(ConvertError::Table);
        rayon::join(|| options.progress.finished_reading(), finish).1
    })
}

fn pool(jobs: Option<usize>) -> Result<rayon::ThreadPool, ConvertError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
    pool.map_err(|error| ConvertError::Threads(error.to_string()))
}

fn header(symbolizer: &Symbolizer<'_>, options: &ConvertOptions<'_>) -> Header {
    let objects = &symbolizer.objects;
    let first = objects.first();
    let has_dwarf = !symbolizer.dwarf.is_empty() || !symbolizer.debug_map().is_empty();
    let source = match (first.map(|object| object.format()), has_dwarf) {
        (Some(Format::Elf), true) => SourceKind::ElfDwarf,
        (Some(Format::Elf), false) => SourceKind::ElfSymbols,
        (Some(Format::MachO), true) => SourceKind::MachODwarf,
        (Some(Format::MachO), false) => SourceKind::MachOSymbols,
        (None, _) => SourceKind::Unknown,
    };
    Header {
        id: objects.iter().find_map(|object| object.id()),
        arch: first.map_or(backtrail_core::Arch::Unknown, |object| object.arch()),
        source,
        image_base: first.map_or(Svma::new(0), |object| object.image_base()),
        name: options.name.clone(),
    }
}

fn collect(symbolizer: &Symbolizer<'_>, options: &ConvertOptions<'_>, builder: &Builder) {
    for (range, is_code) in symbolizer.code.mapped() {
        builder.section(range, is_code);
    }
    let read = || Pieces::new(symbolizer.symtab(), &symbolizer.code, builder);
    let symbols = Symbols::new(&read);
    let code_of_files = Code::of(symbolizer);
    let jobs = code_of_files.jobs();
    work::run(&jobs, builder, &symbols, options.progress);
    symbols.pieces();
    if let Some(table) = symbolizer.go_table() {
        gopclntab::emit(table, builder);
    }
}

/// Where the code of all files is.
struct Code<'s, 'd> {
    files: Vec<(&'s DwarfFile<'d>, Claims)>,
    /// Object files that a debug map names, each with the pieces of it that were linked.
    linked: Vec<(&'s DwarfFile<'d>, Vec<Linked>)>,
}

impl<'s, 'd> Code<'s, 'd> {
    fn of(symbolizer: &'s Symbolizer<'d>) -> Self {
        let files = symbolizer.dwarf.iter().map(|file| (file, file.claims()));
        let mut code = Self { files: files.collect(), linked: Vec::new() };
        if code.files.is_empty() {
            let linked = symbolizer.debug_map().linked().into_iter();
            code.linked = linked.map(|(file, functions)| (file, pieces(functions))).collect();
        }
        code
    }

    /// All units that have code.
    fn jobs(&self) -> Vec<Job<'_, 'd>> {
        let files = (0u64..).zip(&self.files);
        let linked = (0u64..).zip(&self.linked);
        let jobs = files.flat_map(|(position, (file, claims))| Job::of_file(file, claims, position));
        let linked = linked.flat_map(|(position, (file, linked))| Job::of_linked(file, linked, position));
        jobs.chain(linked).collect()
    }
}

/// Sorts what was linked: where functions lie in their object file, where they were linked to, and how long they are.
fn pieces(functions: Vec<(Svma, Svma, u64)>) -> Vec<Linked> {
    let pieces = functions.into_iter().filter_map(|(start, to, size)| {
        let range = AddrRange::from_size(start, size);
        let shift = to.get().wrapping_sub(start.get());
        (!range.is_empty()).then_some(Linked { start: start.get(), end: range.end().get(), shift })
    });
    let mut pieces: Vec<_> = pieces.collect();
    pieces.sort_unstable();
    pieces
}
