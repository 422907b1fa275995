//! What the process does that makes tables: it limits itself, reads one file of a stranger, and writes a table of each image in it.

use backtrail::{ConvertFailure, ConvertSettings, NoProgress, SymbolOptions, Symbols};
use backtrail_store::{Entry, Index, ScanOptions};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Images of one file that are looked at.
pub(super) const MAX_IMAGES: usize = 10_000;

/// Characters of what is wrong.
const MAX_PROBLEM: usize = 300;

/// What a process may take that makes tables of one file, or looks at one build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TableLimits {
    /// Bytes of memory that it writes to (`RLIMIT_DATA`).
    pub memory: u64,
    /// Seconds of processor time (`RLIMIT_CPU`).
    pub seconds: u64,
    /// Bytes of all tables, and so of each (`RLIMIT_FSIZE`).
    pub bytes: u64,
}

impl TableLimits {
    /// With these limits.
    pub fn new(memory: u64, seconds: u64, bytes: u64) -> Self {
        Self { memory, seconds, bytes }
    }
}

/// What came of one image; a line of the process's output.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) arch: String,
    /// Whether there is a table, which is called as this line is numbered.
    pub(crate) table: bool,
    /// Why there is none; absent where none is needed.
    pub(crate) problem: Option<String>,
    /// Whether it may go better another time: the disk is full, say.
    pub(crate) again: bool,
    /// The last line. Without it the process did not come to its end.
    pub(crate) end: bool,
}

/// Makes tables of all images in a file, as `0`, `1`, … in a directory, and prints what came of each. To be called by a process
/// of its own, which has these limits from then on.
///
/// # Errors
/// Where the limits cannot be set, or `out` not be written to.
pub fn make_tables(file: &Path, to: &Path, limits: TableLimits, out: &mut dyn Write) -> io::Result<()> {
    limit(limits)?;
    let paths = [file.to_owned()];
    let index = Index::scan(&paths, &ScanOptions::default(), &NoProgress);
    let mut options = SymbolOptions::default();
    options.paths = paths.to_vec();
    // No other file is opened, whatever this one names.
    options.debug_directories = Some(Vec::new());
    options.only_scanned = true;
    let symbols = Symbols::with_options(options, &NoProgress);
    let mut left = limits.bytes;
    let mut number = 0_usize;
    for entry in index.entries().iter().take(MAX_IMAGES) {
        let Some(id) = entry.identity.id else { continue };
        let place = to.join(number.to_string());
        let mut line = of_image(&index, &symbols, entry, &place, &mut left);
        line.id = id.to_string();
        entry.identity.arch.name().clone_into(&mut line.arch);
        if !line.table {
            let _ = fs::remove_file(&place);
        }
        // Where the file lies is nobody's matter.
        let here = format!("{}: ", file.display());
        line.problem = line.problem.map(|why| why.replace(&here, "").chars().take(MAX_PROBLEM).collect());
        write_line(out, &line)?;
        number += 1;
    }
    write_line(out, &Line { end: true, ..Line::default() })?;
    out.flush()
}

pub(crate) fn write_line(out: &mut dyn Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Tries whether an image can be read to its end, and keeps a table of it where that helps.
fn of_image(index: &Index, symbols: &Symbols, entry: &Entry, place: &Path, left: &mut u64) -> Line {
    let no = |why: String| Line { problem: Some(why), ..Line::default() };
    let file = match index.object(entry) {
        Ok(file) => file,
        Err(error) => return no(error.to_string()),
    };
    if let Some(problem) = file.problem() {
        return no(problem.to_owned());
    }
    if file.object().is_none() {
        // A table already, or another tool's symbol file.
        if let Some(table) = file.table()
            && let Err(error) = table.check()
        {
            return no(error.to_string());
        }
        return Line::default();
    }
    let Some(id) = entry.identity.id else { return Line::default() };
    let settings = ConvertSettings { jobs: Some(1), ..ConvertSettings::default() };
    let converted = symbols.convert(id, Some(entry.identity.arch), &id.to_string(), place, &settings);
    let converted = match converted {
        None => return Line::default(),
        Some(Err(ConvertFailure::Output(_, error))) => {
            return Line { again: true, ..no(format!("it cannot be written: {error}")) };
        }
        // Without debug information there need not be anything to convert.
        Some(Err(_)) if !entry.identity.has_debug_info => return Line::default(),
        Some(Err(error)) => return no(error.to_string()),
        Some(Ok(converted)) => converted,
    };
    if let Some(lost) = converted.lost.first() {
        return no(lost.clone());
    }
    // Symbols alone are found as fast where they are.
    if !entry.identity.has_debug_info {
        return Line::default();
    }
    match left.checked_sub(converted.stats.bytes) {
        Some(rest) => *left = rest,
        None => return no("the tables of the file are too large together".to_owned()),
    }
    Line { table: true, ..Line::default() }
}

/// Sets the limits, for good, and ends this process with the one that started it.
#[cfg(target_os = "linux")]
pub(crate) fn limit(limits: TableLimits) -> io::Result<()> {
    use rustix::process::{
        Resource, Rlimit, Signal, getrlimit, nice, set_parent_process_death_signal, setrlimit,
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let _ = nice(5);
    // Where memory runs out all the same, this process goes before the server.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    for (resource, most) in [
        (Resource::Data, limits.memory),
        (Resource::Cpu, limits.seconds),
        (Resource::Fsize, limits.bytes),
        (Resource::Core, 0),
        (Resource::Nofile, 64),
    ] {
        // Who may not raise a limit may have less already.
        let most = getrlimit(resource).maximum.map_or(most, |maximum| most.min(maximum));
        // SIGXCPU comes first, and SIGKILL some seconds later: so one that others sent is told from it.
        let later = if resource == Resource::Cpu { most.saturating_add(5) } else { most };
        let later = getrlimit(resource).maximum.map_or(later, |maximum| later.min(maximum));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(later) })?;
    }
    Ok(())
}

/// Elsewhere only the time that passes is limited.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit(_: TableLimits) -> io::Result<()> {
    Ok(())
}
