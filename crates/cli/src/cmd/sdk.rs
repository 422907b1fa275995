//! `backtrail sdk`: whose code is where in an app.

use super::options::{PlainFormat, named_arch};
use crate::io::console::Console;
use crate::io::file::{InputFiles, refuse_pipe};
use crate::io::json::SafeJson;
use crate::io::output::{Sink, Target};
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use backtrail::sdk::{self, AppOwners, Stamped};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Tells static libraries inside of an app apart: whose code lies at which addresses.
///
/// A vendor learns his library once; its fingerprint holds hashes only. Or he stamps it before he ships it: then every app
/// carries the exact range of his code.
#[derive(Args, Debug)]
pub(crate) struct Sdk {
    #[command(subcommand)]
    command: SdkCommand,
}

#[derive(Subcommand, Debug)]
enum SdkCommand {
    Learn(Learn),
    Map(Map),
    Stamp(Stamp),
    Unstamp(Unstamp),
}

/// Makes the fingerprint of a static library: hashes of its code, its classes, its texts.
#[derive(Args, Debug)]
struct Learn {
    /// A .a or .o file, a static .framework, or an .xcframework with all of its slices.
    #[arg(value_name = "LIB")]
    library: PathBuf,
    /// The library's name.
    #[arg(short, long, value_name = "NAME")]
    name: String,
    /// The library's version.
    #[arg(long, value_name = "V")]
    lib_version: String,
    /// The fingerprint's file.
    #[arg(short, long, value_name = "F.btsdk")]
    output: PathBuf,
}

/// Says which ranges of an app are which library's. What is not listed is the app's own, or unknown.
#[derive(Args, Debug)]
struct Map {
    /// An app's binary, stripped or not, or an .app bundle.
    #[arg(value_name = "APP")]
    app: PathBuf,
    /// Fingerprints of libraries (.btsdk), or directories of them. Repeatable. Stamps are read without.
    #[arg(long, num_args = 1.., value_name = "F")]
    sdk: Vec<PathBuf>,
    /// The linker's map of this very build: then its word is taken.
    #[arg(long, value_name = "M")]
    link_map: Option<PathBuf>,
    /// A library's first and last function, whose names the app still has: [NAME=]BEGIN,END.
    #[arg(long, value_name = "BEGIN,END")]
    markers: Vec<sdk::Markers>,
    /// Which slice of a fat file; all of them if not given.
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    format: PlainFormat,
}

/// Marks the code of a static library: its sections get a name of their own, which linkers keep apart, and an archive gets a
/// record of name and version.
#[derive(Args, Debug)]
struct Stamp {
    /// A .a or .o file.
    #[arg(value_name = "LIB")]
    library: PathBuf,
    /// At most 9 letters, digits or underscores.
    #[arg(short, long, value_name = "NAME")]
    name: String,
    /// The library's version: letters, digits and . _ + -
    #[arg(long, value_name = "V")]
    lib_version: Option<String>,
    /// The new library.
    #[arg(short, long, value_name = "NEW")]
    output: PathBuf,
}

/// Takes the mark away again.
#[derive(Args, Debug)]
struct Unstamp {
    /// A .a or .o file.
    #[arg(value_name = "LIB")]
    library: PathBuf,
    /// The name that it was marked with.
    #[arg(short, long, value_name = "NAME")]
    name: String,
    /// The new library.
    #[arg(short, long, value_name = "NEW")]
    output: PathBuf,
}

pub(crate) fn run(args: &Sdk, console: &Console) -> Result<Outcome, Failure> {
    match &args.command {
        SdkCommand::Learn(args) => learn(args, console),
        SdkCommand::Map(args) => map(args, console),
        SdkCommand::Stamp(args) => {
            let version = args.lib_version.as_deref();
            let stamped = stamp((&args.library, &args.output), console, || {
                sdk::stamp(&args.library, &args.name, version)
            })?;
            if !stamped.has_record {
                console
                    .warn("an object by itself has no place for a record of name and version: archives have");
            }
            Ok(Outcome::Done)
        }
        SdkCommand::Unstamp(args) => {
            stamp((&args.library, &args.output), console, || sdk::unstamp(&args.library, &args.name))?;
            Ok(Outcome::Done)
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Input(error.to_string())
}

/// Writes a file that appears whole, and over no input.
fn write(output: &Path, inputs: &[PathBuf], bytes: &[u8], console: &Console) -> Result<(), Failure> {
    let target = Target::of(Some(output));
    if let Target::Directory(path) = &target {
        return Err(Failure::Input(format!(
            "{}: is a directory; name a file for the output",
            path.display()
        )));
    }
    target.check("", &InputFiles::new(inputs))?;
    let mut sink = Sink::new(target, console);
    sink.write("", bytes)?;
    sink.finish()
}

fn learn(args: &Learn, console: &Console) -> Result<Outcome, Failure> {
    refuse_pipe(&args.library).map_err(Failure::Input)?;
    let options = sdk::LearnOptions::new(&args.name, &args.lib_version);
    let learned = sdk::learn(&args.library, &options).map_err(failed)?;
    for problem in &learned.problems {
        console.warn(problem);
    }
    let inputs = sdk::library_files(&args.library);
    write(&args.output, &inputs, &learned.fingerprint.to_bytes(), console)?;
    Ok(if learned.problems.is_empty() { Outcome::Done } else { Outcome::Incomplete })
}

fn map(args: &Map, console: &Console) -> Result<Outcome, Failure> {
    let inputs = [&args.app].into_iter().chain(&args.sdk).chain(&args.link_map);
    inputs.map(PathBuf::as_path).try_for_each(refuse_pipe).map_err(Failure::Input)?;
    let arch = args.arch.as_deref().map(named_arch).transpose()?;
    let fingerprints = sdk::fingerprints(&args.sdk).map_err(failed)?;
    let mut mapped = sdk::map(&args.app, arch, &fingerprints, args.link_map.as_deref()).map_err(failed)?;
    for markers in &args.markers {
        sdk::add_markers(&args.app, markers, &mut mapped).map_err(failed)?;
    }
    let mut out = console.stdout();
    let app = args.app.display().to_string();
    for one in &mapped {
        match args.format {
            PlainFormat::Json => {
                backtrail::json::write_line(SafeJson::new(&mut out), &backtrail::json::owners(&app, one))?;
            }
            PlainFormat::Text => write_text(&mut Text::new(&mut out, Style::PLAIN), &app, one)?,
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn write_text(out: &mut Text<'_>, app: &str, mapped: &AppOwners) -> io::Result<()> {
    let id = mapped.id.map(|id| format!(" {id}")).unwrap_or_default();
    out.line(format_args!("{app}: {}{id}", mapped.arch.name()))?;
    let mut sums: BTreeMap<(&str, &str), (u64, usize)> = BTreeMap::new();
    for owned in &mapped.owners.ranges {
        let version = owned.version.as_deref().unwrap_or("version unknown");
        let sum = sums.entry((&owned.owner, version)).or_default();
        *sum = (sum.0 + owned.range.size(), sum.1 + 1);
        let (owner, confidence, how) = (&owned.owner, owned.confidence.as_str(), owned.how);
        let (start, end) = (owned.range.start(), owned.range.end());
        out.line(format_args!("  {start} - {end}  {owner} {version}  {confidence} ({how})"))?;
    }
    for ((owner, version), (bytes, ranges)) in sums {
        out.line(format_args!("  {owner} {version}: {bytes} bytes in {ranges} ranges"))?;
    }
    if mapped.owners.ranges.is_empty() {
        out.line(format_args!("  none of the libraries is certain to be there"))?;
    }
    for note in &mapped.owners.notes {
        out.line(format_args!("  note: {note}"))?;
    }
    Ok(())
}

fn stamp(
    (library, output): (&PathBuf, &Path),
    console: &Console,
    work: impl FnOnce() -> Result<Stamped, sdk::SdkError>,
) -> Result<Stamped, Failure> {
    refuse_pipe(library).map_err(Failure::Input)?;
    let stamped = work().map_err(failed)?;
    write(output, std::slice::from_ref(library), &stamped.bytes, console)?;
    if stamped.shared > 0 {
        console.warn(format_args!(
            "{} members have code that other libraries may share, weak or in COMDAT groups: a linker takes one copy for all",
            stamped.shared
        ));
    }
    Ok(stamped)
}
