//! `backtrail convert`: debug info into tables.

use super::options::Servers;
use crate::io::console::Console;
use crate::io::file::{InputFiles, refuse_pipe};
use crate::io::input::numbered;
use crate::io::json::SafeJson;
use crate::io::output::{Target, open_stream};
use crate::io::progress::Meter;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::tally::Tally;
use backtrail::{
    ConvertFailure, ConvertSettings, ConvertSource, ConvertSources, Converted, TableFormat, json,
};
use clap::{Args, ValueEnum};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Packs debug info and symbol tables into one small file per image, which is asked without any parsing.
///
/// Inputs are dSYM bundles, Mach-O and ELF files, .debug files, and directories of them. Slices of fat files become a table
/// each; a binary and its debug file, matched by their identity, become one. Split debug info (.dwo, .dwp), dwz files and
/// the object files of a debug map are found where the input names them, and among the inputs.
#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// What to convert.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// The table's file, or a directory for tables; the current directory by default.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = ConvertFormat::Btsym)]
    pub(crate) format: ConvertFormat,
    /// How many threads to use; all cores by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Look up every line row and inlined call again, in the table and in the debug info, and compare.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Show the size of each section of the table.
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print the summary for programs; one line for each table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ConvertFormat {
    /// backtrail's symbol table file.
    Btsym,
    /// LLVM's symbol file, read by llvm-gsymutil and llvm-symbolizer.
    Gsym,
    /// Breakpad's symbol file, as dump_syms writes it, with STACK CFI records.
    Breakpad,
}

pub(crate) fn run(args: &Convert, console: &Console) -> Result<Outcome, Failure> {
    args.files.iter().try_for_each(|path| refuse_pipe(path)).map_err(Failure::Input)?;
    let sources = ConvertSources::find_with(&args.files, args.servers.remote(&[], console));
    let mut tally = Tally::default();
    for problem in &sources.problems {
        console.warn(problem);
        // The message begins with the path.
        let path = problem.split_once(": ").map_or(problem.as_str(), |(path, _)| path);
        tally.failed(path.to_owned());
    }
    let settings = ConvertSettings {
        jobs: args.jobs.map(usize::from),
        verify: args.verify,
        format: match args.format {
            ConvertFormat::Btsym => TableFormat::Btsym,
            ConvertFormat::Gsym => TableFormat::Gsym,
            ConvertFormat::Breakpad => TableFormat::Breakpad,
        },
    };
    let target = match &args.output {
        Some(path) => Target::of(Some(path)),
        None => Target::Directory(PathBuf::new()),
    };
    let count = sources.sources.len();
    if count > 1 && !matches!(target, Target::Directory(_)) {
        return Err(Failure::Input(format!("{count} tables need a directory: -o DIRECTORY/")));
    }
    let names = sources.sources.iter().map(|source| source.name.clone()).collect();
    let names: Vec<_> =
        numbered(names).into_iter().map(|name| format!("{name}.{}", settings.format.ending())).collect();
    let read: Vec<_> =
        sources.sources.iter().flat_map(ConvertSource::file_names).map(PathBuf::from).collect();
    let inputs = InputFiles::new(args.files.iter().chain(&read).map(PathBuf::as_path));
    names.iter().try_for_each(|name| target.check(name, &inputs))?;
    for (source, name) in sources.sources.iter().zip(&names) {
        let conversion = Conversion { args, sources: &sources, source, settings: &settings, console };
        match conversion.run(&target, name)? {
            Ok(outcome) => tally.read(outcome),
            Err(problem) => {
                console.warn(&problem);
                tally.failed(source.name.clone());
            }
        }
    }
    Ok(tally.finish("inputs", console))
}

/// One image on its way to a table.
struct Conversion<'a> {
    args: &'a Convert,
    sources: &'a ConvertSources,
    source: &'a ConvertSource,
    settings: &'a ConvertSettings,
    console: &'a Console,
}

impl Conversion<'_> {
    /// Writes the table and its summary, or says why the image cannot be converted.
    fn run(&self, target: &Target, name: &str) -> Result<Result<Outcome, String>, Failure> {
        if let Target::Directory(path) = target
            && !path.as_os_str().is_empty()
        {
            std::fs::create_dir_all(path).map_err(|error| Failure::File(path.clone(), error))?;
        }
        let mut summary = Vec::new();
        let converted = match target.place(name) {
            Some(place) => self.convert(&place)?,
            None => self.convert_to_stream(target)?,
        };
        let converted = match converted {
            Ok(converted) => converted,
            Err(problem) => return Ok(Err(problem)),
        };
        let outcome = summarize(&mut summary, self.console, self.args, self.source, &converted)?;
        if *target == Target::Stdout {
            self.console.write_to_stderr(&summary);
        } else {
            let mut out = self.console.stdout();
            out.write_all(&summary)?;
            out.flush()?;
        }
        Ok(Ok(outcome))
    }

    fn convert(&self, place: &Path) -> Result<Result<Converted, String>, Failure> {
        let meter = Meter::new(self.console);
        match self.sources.convert(self.source, place, self.settings, &meter) {
            Ok(converted) => Ok(Ok(converted)),
            Err(ConvertFailure::Input(error)) => Ok(Err(error.to_string())),
            Err(failure) => Err(Failure::Input(failure.to_string())),
        }
    }

    /// A table is written back and forth, which devices and pipes cannot: it becomes a file first.
    fn convert_to_stream(&self, target: &Target) -> Result<Result<Converted, String>, Failure> {
        let failed = |error| Failure::File(std::env::temp_dir(), error);
        let directory = PassingDirectory::create().map_err(failed)?;
        let place = directory.0.join("table");
        let mut converted = match self.convert(&place)? {
            Ok(converted) => converted,
            Err(problem) => return Ok(Err(problem)),
        };
        let mut table = std::fs::File::open(&place).map_err(failed)?;
        match target {
            Target::Stream(path) => {
                let mut out = open_stream(path)?;
                let copied = io::copy(&mut table, &mut out).and_then(|_| out.flush());
                copied.map_err(|error| Failure::File(path.clone(), error))?;
                converted.output.clone_from(path);
            }
            _ => {
                let mut out = self.console.stdout();
                io::copy(&mut table, &mut out)?;
                out.flush()?;
                converted.output = PathBuf::from("standard output");
            }
        }
        Ok(Ok(converted))
    }
}

/// A directory of our own for a file that is not to stay.
struct PassingDirectory(PathBuf);

impl PassingDirectory {
    /// Directories that are tried; more than one is there only after a process of the same number was killed.
    const TRIES: u32 = 64;

    fn create() -> io::Result<Self> {
        for attempt in 0..Self::TRIES {
            let path = std::env::temp_dir().join(format!("backtrail-{}-{attempt}", std::process::id()));
            let mut builder = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for PassingDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Prints the summary.
fn summarize(
    out: &mut dyn Write,
    console: &Console,
    args: &Convert,
    source: &ConvertSource,
    converted: &Converted,
) -> io::Result<Outcome> {
    for problem in &converted.problems {
        console.warn(problem);
    }
    if args.json {
        json::write_line(SafeJson::new(&mut *out), &json::converted(source, converted))?;
    } else {
        write_text(&mut Text::new(out, Style::PLAIN), args, source, converted)?;
    }
    let outcome = if converted.problems.is_empty() { Outcome::Done } else { Outcome::Incomplete };
    let Some(verified) = &converted.verified else { return Ok(outcome) };
    for difference in &verified.shown {
        console.warn(format_args!("{}: {difference}", converted.output.display()));
    }
    Ok(if verified.differences == 0 { outcome } else { Outcome::Incomplete })
}

fn write_text(
    out: &mut Text<'_>,
    args: &Convert,
    source: &ConvertSource,
    converted: &Converted,
) -> io::Result<()> {
    let stats = &converted.stats;
    out.line(format_args!(
        "{}: {} {}",
        converted.output.display(),
        source.arch.name(),
        source.file_names().join(", ")
    ))?;
    out.line(format_args!(
        "  {} functions, {} inlined calls, {} rows, {} symbols",
        stats.functions, stats.inlines, stats.rows, stats.symbols
    ))?;
    out.line(format_args!(
        "  {:.2} s, {} in, {} out",
        converted.took.as_secs_f64(),
        size(converted.bytes_in),
        size(stats.bytes)
    ))?;
    for (reason, count) in &converted.dropped {
        out.line(format_args!("  left out: {count} {reason}"))?;
    }
    if let Some(verified) = &converted.verified {
        let (rows, ranges, differences) = (verified.rows, verified.ranges, verified.differences);
        out.line(format_args!(
            "  verified: {rows} rows and {ranges} ends of ranges, {differences} differences"
        ))?;
    }
    if args.stats {
        write_stats(out, converted)?;
    }
    Ok(())
}

fn write_stats(out: &mut Text<'_>, converted: &Converted) -> io::Result<()> {
    let stats = &converted.stats;
    for (section, bytes) in &stats.sections {
        let share = *bytes as f64 * 100.0 / stats.bytes.max(1) as f64;
        out.line(format_args!("  {section:<12} {bytes:>12} bytes {share:>5.1} %"))?;
    }
    for (what, count) in [("ranges", stats.ranges), ("names", stats.names), ("files", stats.files)] {
        out.line(format_args!("  {what:<12} {count:>12}"))?;
    }
    Ok(())
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
