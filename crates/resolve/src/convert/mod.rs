//! Debug files into symbol tables on the disk.

mod export;
mod sources;
mod stack_cfi;

use crate::image_symbolizer::ImageSymbolizer;
use backtrail_store::{Error, ErrorKind, FileData, ImageFiles, Index, NewFile};
use backtrail_symbolize::convert::{self as engine, ConvertError, ConvertOptions};
use backtrail_table::DropReason;
pub use sources::{ConvertSource, ConvertSources};
use std::fmt;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How tables are made.
#[derive(Clone, Debug, Default)]
pub struct ConvertSettings {
    /// Threads; as many as there are cores where `None`.
    pub jobs: Option<usize>,
    /// Whether every line row and inlined call is looked up again.
    pub verify: bool,
    /// The form of the output.
    pub format: TableFormat,
}

/// The form of a converted file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TableFormat {
    /// backtrail's own.
    #[default]
    Btsym,
    /// LLVM's.
    Gsym,
    /// Breakpad's `.sym`.
    Breakpad,
}

impl TableFormat {
    /// The ending of its files' names.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Btsym => "btsym",
            Self::Gsym => "gsym",
            Self::Breakpad => "sym",
        }
    }
}

/// Hears how far a conversion is; from all threads.
pub trait ConvertProgress: Sync {
    /// Bytes of debug info that were read, of all that have to be.
    fn advanced(&self, done: u64, total: u64);
}

/// What came of a conversion.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The file that was written.
    pub output: PathBuf,
    /// What it holds, and what it costs.
    pub stats: TableStats,
    /// What was left out: how often, by reason.
    pub dropped: Vec<(String, u64)>,
    /// How long it took, without `--verify`.
    pub took: Duration,
    /// Bytes of all input files.
    pub bytes_in: u64,
    /// What is broken in the input.
    pub problems: Vec<String>,
    /// What the table does not say though its files do, or would if they were all there and whole: the broken pieces above, and
    /// those that were left out for want of a file or for a limit.
    pub lost: Vec<String>,
    /// What looking everything up again came to, if that was asked for.
    pub verified: Option<Verified>,
}

pub use backtrail_table::Stats as TableStats;
pub use engine::Verified;

/// Why a table could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertFailure {
    /// The input cannot be read.
    Input(Error),
    /// The output, at this path, cannot be written.
    Output(PathBuf, io::Error),
}

impl fmt::Display for ConvertFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Output(path, error) => write!(f, "cannot write {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ConvertFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(error) => Some(error),
            Self::Output(_, error) => Some(error),
        }
    }
}

/// Further files that one image may ask for: as many `.dwo` files as a large program has units.
const MAX_REQUESTS: usize = 1 << 20;

/// Keeps an image's table at `place`; `None` where that fails, or where something of the image is broken or missing,
/// which another run may find.
pub(crate) fn keep(image: &ImageSymbolizer, index: &Index, place: &Path) -> Option<()> {
    image.provide_all(index, MAX_REQUESTS);
    let pending = NewFile::create(place).ok()?;
    let summary = engine_run(image, None, &Silent, place, &pending).ok()?;
    let is_lasting = |reason: &DropReason| !is_loss(*reason);
    let is_whole =
        summary.dropped.iter().all(|(reason, _)| is_lasting(reason)) && image.problems().is_empty();
    is_whole.then(|| pending.finish().ok()).flatten()
}

/// Writes a small file that is there whole or not at all, and the directory that it lies in.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut pending = NewFile::create(path)?;
    pending.write_all(bytes)?;
    pending.finish()
}

/// Whether that much is missing in a table that another table of the same files might have.
fn is_loss(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::BrokenUnit | DropReason::BrokenLines | DropReason::MissingFile | DropReason::Limit
    )
}

pub(crate) struct Silent;

impl ConvertProgress for Silent {
    fn advanced(&self, _: u64, _: u64) {}
}

impl ConvertSources {
    /// Writes one image as a table at `place`. Nothing is there until it is whole.
    ///
    /// # Errors
    /// When none of the image's files can be read, or the output cannot be written.
    pub fn convert(
        &self,
        source: &ConvertSource,
        place: &Path,
        settings: &ConvertSettings,
        progress: &dyn ConvertProgress,
    ) -> Result<Converted, ConvertFailure> {
        write(&source.files, &self.index, &source.files.main_file, place, settings, progress)
    }
}

/// Writes the table of an image whose files are these; `input` names what it is made from.
pub(crate) fn write(
    files: &ImageFiles,
    index: &Index,
    input: &Path,
    place: &Path,
    settings: &ConvertSettings,
    progress: &dyn ConvertProgress,
) -> Result<Converted, ConvertFailure> {
    let start = Instant::now();
    let bytes_in = files.naming().iter().map(|file| file.bytes().len() as u64).sum();
    let broken = |what: String| ConvertFailure::Input(Error::new(ErrorKind::Object, input.display(), what));
    let image = ImageSymbolizer::new(files).map_err(broken)?;
    image.provide_all(index, MAX_REQUESTS);
    let failed = |error: io::Error| ConvertFailure::Output(place.to_owned(), error);
    let pending = NewFile::create(place).map_err(failed)?;
    let summary = engine_run(&image, settings.jobs, progress, input, &pending);
    let summary = summary.map_err(|error| error.at(place))?;
    let mut took = start.elapsed();
    let verified = match settings.verify {
        true => Some(verify(&image, &pending, settings).map_err(|error| error.at(place))?),
        false => None,
    };
    let mut summary = summary;
    let problems = image.problems();
    let losses = summary.dropped.iter().filter(|(reason, _)| is_loss(*reason));
    let losses = losses.map(|(reason, count)| format!("{count} {}", words(*reason)));
    let lost = problems.iter().cloned().chain(losses).collect();
    let mut dropped: Vec<_> =
        summary.dropped.iter().map(|(reason, count)| (words(*reason).to_owned(), *count)).collect();
    let start = Instant::now();
    let pending = match settings.format {
        TableFormat::Btsym => pending,
        _ => in_format(files, settings, &pending, place, &mut summary.stats, &mut dropped)?,
    };
    took += start.elapsed();
    pending.finish().map_err(failed)?;
    Ok(Converted {
        output: place.to_owned(),
        dropped,
        stats: summary.stats,
        took,
        bytes_in,
        problems,
        lost,
        verified,
    })
}

/// A [`ConvertFailure`] whose output the caller knows.
enum Failed {
    Input(Error),
    Output(io::Error),
}

impl Failed {
    fn at(self, output: &Path) -> ConvertFailure {
        match self {
            Self::Input(error) => ConvertFailure::Input(error),
            Self::Output(error) => ConvertFailure::Output(output.to_owned(), error),
        }
    }

    /// A table that was just written cannot be read again.
    fn table(table: &NewFile, error: &backtrail_table::Error) -> Self {
        Self::Input(Error::new(ErrorKind::Changed, table.temporary().display(), error.to_string()))
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Input(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

struct ProgressAdapter<'p> {
    progress: &'p dyn ConvertProgress,
    image: &'p ImageSymbolizer,
}

impl engine::Progress for ProgressAdapter<'_> {
    fn advanced(&self, done: u64, total: u64) {
        self.progress.advanced(done, total);
    }

    fn finished_with(&self, part: &[u8]) {
        self.image.release_part(part);
    }

    fn finished_reading(&self) {
        self.image.release();
    }
}

/// Writes the table itself; `input` names what it is made from.
fn engine_run(
    image: &ImageSymbolizer,
    jobs: Option<usize>,
    progress: &dyn ConvertProgress,
    input: &Path,
    pending: &NewFile,
) -> Result<engine::TableSummary, Failed> {
    let adapter = ProgressAdapter { progress, image };
    let name = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let options = ConvertOptions { jobs, name, progress: &adapter };
    let mut out = BufWriter::with_capacity(1 << 20, pending.file());
    let summary = image.with_symbolizer(|symbolizer| engine::convert(symbolizer, &options, &mut out));
    let input = |what: String| Error::new(ErrorKind::Object, input.display(), what);
    let nothing = || input("nothing to convert".to_owned());
    let summary = summary.ok_or_else(nothing)?.map_err(|error| match error {
        ConvertError::Table(error) if error.kind() == backtrail_table::ErrorKind::Io => {
            Failed::Output(io::Error::other(error))
        }
        error => Failed::Input(input(error.to_string())),
    })?;
    out.flush()?;
    Ok(summary)
}

fn verify(
    image: &ImageSymbolizer,
    pending: &NewFile,
    settings: &ConvertSettings,
) -> Result<Verified, Failed> {
    let data = FileData::map(pending.temporary())?;
    let broken = |error| Failed::table(pending, &error);
    let table = backtrail_table::Table::open(&data).map_err(broken)?;
    table.check().map_err(broken)?;
    let verified = image.with_symbolizer(|symbolizer| engine::verify(&table, symbolizer, settings.jobs));
    let failed =
        |error: ConvertError| Error::new(ErrorKind::Io, pending.temporary().display(), error.to_string());
    Ok(verified.unwrap_or_else(|| Ok(Verified::default())).map_err(failed)?)
}

/// Writes a table that is on its way in another format, and tells what that comes to.
fn in_format(
    files: &ImageFiles,
    settings: &ConvertSettings,
    table: &NewFile,
    place: &Path,
    stats: &mut TableStats,
    dropped: &mut Vec<(String, u64)>,
) -> Result<NewFile, ConvertFailure> {
    let output = |error: io::Error| ConvertFailure::Output(place.to_owned(), error);
    let exported = NewFile::create(place).map_err(output)?;
    let (nameless, ruleless) = export(files, settings, table, &exported).map_err(|error| error.at(place))?;
    for (count, what) in [(nameless, NAMELESS), (ruleless, RULELESS)] {
        dropped.extend((count > 0).then(|| (what.to_owned(), count)));
    }
    stats.sections.clear();
    stats.bytes = exported.file().metadata().map_err(output)?.len();
    Ok(exported)
}

/// Neither GSYM nor Breakpad knows them.
const NAMELESS: &str = "functions and symbols without names, lines without functions";

/// Breakpad's rules can only add, multiply and read memory.
const RULELESS: &str = "ranges whose unwind rules Breakpad cannot express, and broken entries";

/// Gives how much had no name, and how much no rules.
fn export(
    files: &ImageFiles,
    settings: &ConvertSettings,
    table: &NewFile,
    to: &NewFile,
) -> Result<(u64, u64), Failed> {
    let pending = table;
    let data = FileData::map(pending.temporary())?;
    let table = backtrail_table::Table::open(&data).map_err(|error| Failed::table(pending, &error))?;
    let mut out = BufWriter::with_capacity(1 << 20, to.file());
    let written = export::write(&table, settings.format, files, settings.jobs, &mut out);
    let (exported, ruleless) = written.map_err(|error| match error.kind() {
        backtrail_table::ErrorKind::Io => Failed::Output(io::Error::other(error)),
        _ => Failed::table(pending, &error),
    })?;
    out.flush()?;
    Ok((exported.nameless, ruleless))
}

fn words(reason: DropReason) -> &'static str {
    match reason {
        DropReason::DeadFunction => "functions whose code was left out by the linker",
        DropReason::DeadRows => "line sequences whose code was left out by the linker",
        DropReason::MergedFunction => "functions whose code the linker merged with that of others",
        DropReason::EmptyInline => "inlined calls without addresses",
        DropReason::DeepInline => "inlined calls nested too deep",
        DropReason::BrokenUnit => "broken units",
        DropReason::BrokenLines => "broken line programs",
        DropReason::MissingFile => "units whose split debug info is missing",
        DropReason::Limit => "pieces past a limit",
        DropReason::MergedRows => "line sequences of addresses that another unit has lines for",
        DropReason::TooLarge => "names, paths or numbers that are too large",
        _ => "other pieces",
    }
}
