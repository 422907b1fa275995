//! `backtrail convert`: debug info into tables.

use crate::output::{Failure, Outcome};
use crate::progress::Meter;
use backtrail::{
    ConvertFailure, ConvertSettings, ConvertSource, ConvertSources, Converted, TableFormat, json,
};
use clap::{Args, ValueEnum};
use std::io::{self, Write};
use std::path::PathBuf;

/// Packs debug info and symbol tables into one small file per image, which is asked without any parsing.
///
/// Inputs are dSYM bundles, Mach-O and ELF files, .debug files, and folders of them. Slices of fat files become a table
/// each; a binary and its debug file, told by their identity, one together. Split debug info (.dwo, .dwp), dwz files and
/// the object files of a debug map are found where the input names them, and among the inputs.
#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// What to convert.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The table's file, or a folder for tables; the current folder by default.
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
    /// Say what each section of the table costs.
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
    /// Breakpad's symbol file, as dump_syms writes it, without STACK records.
    Breakpad,
}

pub(crate) fn run(args: &Convert) -> Result<Outcome, Failure> {
    let sources = ConvertSources::find(&args.files);
    let mut outcome = Outcome::Done;
    for problem in &sources.problems {
        eprintln!("backtrail: {problem}");
        outcome = Outcome::BadInput;
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
    let place = Place::new(args, &sources)?;
    let mut out = io::stdout().lock();
    for source in &sources.sources {
        let path = place.of(source, settings.format);
        match sources.convert(source, &path, &settings, &Meter::new()) {
            Ok(converted) => outcome = outcome.max(tell(&mut out, args, source, &converted)?),
            Err(ConvertFailure::Input(problem)) => {
                eprintln!("backtrail: {problem}");
                outcome = Outcome::BadInput;
            }
            Err(failure) => return Err(Failure::Input(failure.to_string())),
        }
    }
    Ok(outcome)
}

/// Where tables go.
enum Place {
    File(PathBuf),
    Folder(PathBuf),
}

impl Place {
    /// A folder where the path is one, or ends like one; else a file, which only one table can be.
    fn new(args: &Convert, sources: &ConvertSources) -> Result<Self, Failure> {
        let Some(path) = &args.output else { return Ok(Self::Folder(PathBuf::new())) };
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            std::fs::create_dir_all(path).map_err(|error| Failure::File(path.clone(), error))?;
            return Ok(Self::Folder(path.clone()));
        }
        if sources.sources.len() > 1 {
            let count = sources.sources.len();
            return Err(Failure::Input(format!("{count} tables need a folder: -o FOLDER/")));
        }
        Ok(Self::File(path.clone()))
    }

    fn of(&self, source: &ConvertSource, format: TableFormat) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Folder(folder) => folder.join(format!("{}.{}", source.name, format.ending())),
        }
    }
}

/// Prints the summary.
fn tell(
    out: &mut dyn Write,
    args: &Convert,
    source: &ConvertSource,
    converted: &Converted,
) -> io::Result<Outcome> {
    for problem in &converted.problems {
        eprintln!("backtrail: {problem}");
    }
    if args.json {
        json::write_line(&mut *out, &json::converted(source, converted))?;
    } else {
        write_text(out, args, source, converted)?;
    }
    let outcome = if converted.problems.is_empty() { Outcome::Done } else { Outcome::Incomplete };
    let Some(verified) = &converted.verified else { return Ok(outcome) };
    for difference in &verified.shown {
        eprintln!("backtrail: {}: {difference}", converted.output.display());
    }
    Ok(if verified.differences == 0 { outcome } else { Outcome::Incomplete })
}

fn write_text(
    out: &mut dyn Write,
    args: &Convert,
    source: &ConvertSource,
    converted: &Converted,
) -> io::Result<()> {
    let stats = &converted.stats;
    writeln!(out, "{}: {} {}", converted.output.display(), source.arch.name(), source.files.join(", "))?;
    writeln!(
        out,
        "  {} functions, {} inlined calls, {} rows, {} symbols",
        stats.functions, stats.inlines, stats.rows, stats.symbols
    )?;
    writeln!(
        out,
        "  {:.2} s, {} in, {} out",
        converted.took.as_secs_f64(),
        size(converted.bytes_in),
        size(stats.bytes)
    )?;
    for (reason, count) in &converted.dropped {
        writeln!(out, "  left out: {count} {reason}")?;
    }
    if let Some(verified) = &converted.verified {
        let (rows, ranges, differences) = (verified.rows, verified.ranges, verified.differences);
        writeln!(out, "  verified: {rows} rows and {ranges} ends of ranges, {differences} differences")?;
    }
    if args.stats {
        write_stats(out, converted)?;
    }
    Ok(())
}

fn write_stats(out: &mut dyn Write, converted: &Converted) -> io::Result<()> {
    let stats = &converted.stats;
    for (section, bytes) in &stats.sections {
        let share = *bytes as f64 * 100.0 / stats.bytes.max(1) as f64;
        writeln!(out, "  {section:<12} {bytes:>12} bytes {share:>5.1} %")?;
    }
    for (what, count) in [("ranges", stats.ranges), ("names", stats.names), ("files", stats.files)] {
        writeln!(out, "  {what:<12} {count:>12}")?;
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
