//! `backtrail sdk`: whose code is where in an app.

use super::options::{PlainFormat, named_arch};
use super::reports::{self, Reports};
use crate::io::console::Console;
use crate::io::file::{InputFiles, refuse_pipe};
use crate::io::input::Input;
use crate::io::json::SafeJson;
use crate::io::output::{Sink, Target};
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use backtrail::sdk::{self, AppOwners, Build, Builds, Sighting, Stamped};
use backtrail::{Rules, Symbols};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
    Mine(Mine),
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
    /// Where to look for a stripped app's debug file, by its identity: a file, or a directory searched recursively. Names tell more
    /// than code alone. Repeatable.
    #[arg(short, long, value_name = "PATH")]
    symbols: Vec<PathBuf>,
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

/// Says which builds of apps have a library's code, and which reports are of it, from crash reports alone.
///
/// For the vendor who never sees the apps. Addresses on stacks lie behind calls; where the library's calls lie, the layout of an
/// app that was linked alike tells best.
#[derive(Args, Debug)]
struct Mine {
    /// Reports of any kind that is read. They may be packed, quoted in a text, or several in a file. A directory means every
    /// report in it, `-` is standard input.
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
    /// Fingerprints of libraries (.btsdk), or directories of them. Repeatable.
    #[arg(long, required = true, value_name = "F")]
    sdk: Vec<PathBuf>,
    /// An app that has the libraries and was linked as the unknown ones, or its link map. Repeatable.
    #[arg(long, value_name = "APP|MAP")]
    layout: Vec<PathBuf>,
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
        SdkCommand::Mine(args) => mine(args, console),
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
    let mut options = sdk::MapOptions::new();
    options.arch = args.arch.as_deref().map(named_arch).transpose()?;
    options.link_map.clone_from(&args.link_map);
    options.symbols.clone_from(&args.symbols);
    let fingerprints = sdk::fingerprints(&args.sdk).map_err(failed)?;
    let mut mapped = sdk::map(&args.app, &fingerprints, &options).map_err(failed)?;
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
    let mut sums: BTreeMap<(&str, String), (u64, usize)> = BTreeMap::new();
    for owned in &mapped.owners.ranges {
        let version = if owned.shared_by.is_empty() {
            owned.version.clone().unwrap_or_else(|| "version unknown".to_owned())
        } else {
            format!("by {}", owned.shared_by.join(", "))
        };
        let sum = sums.entry((&owned.owner, version.clone())).or_default();
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

fn mine(args: &Mine, console: &Console) -> Result<Outcome, Failure> {
    args.sdk
        .iter()
        .chain(&args.layout)
        .map(PathBuf::as_path)
        .try_for_each(refuse_pipe)
        .map_err(Failure::Input)?;
    let fingerprints = sdk::fingerprints(&args.sdk).map_err(failed)?;
    let mut layouts = Vec::new();
    for path in &args.layout {
        layouts.extend(sdk::layouts(path, &fingerprints).map_err(failed)?);
    }
    for fingerprint in fingerprints.iter().filter(|fingerprint| !fingerprint.has_calls()) {
        console.warn(format_args!(
            "{} {}: its fingerprint is of version 1, which knows no calls; learn the library again",
            fingerprint.name(),
            fingerprint.version()
        ));
    }
    let (builds, outcome) = builds(&args.reports, console)?;
    let mut out = console.stdout();
    for build in builds.into_builds() {
        let libraries = build.libraries(&layouts, &fingerprints);
        match args.format {
            PlainFormat::Json => {
                let json = backtrail::json::mined(&build, &libraries);
                backtrail::json::write_line(SafeJson::new(&mut out), &json)?;
            }
            PlainFormat::Text => write_mined(&mut Text::new(&mut out, Style::PLAIN), &build, &libraries)?,
        }
    }
    out.flush()?;
    Ok(outcome)
}

/// The builds of all reports, in the order of the reports' names: they are read many at a time.
fn builds(paths: &[PathBuf], console: &Console) -> Result<(Builds, Outcome), Failure> {
    let inputs = reports::inputs(paths, console)?;
    let read: Mutex<Vec<(String, Builds)>> = Mutex::new(Vec::new());
    let work = Reports {
        symbols: &Symbols::none(),
        rules: &Rules::default(),
        target: &Target::Stdout,
        extension: "txt",
        wants_symbols: false,
        stands_alone: false,
        write: &|shown, _| {
            let mut builds = Builds::default();
            builds.add(&shown.name(), &shown.analysis.report);
            read.lock().unwrap_or_else(PoisonError::into_inner).push((shown.name(), builds));
            Ok(Vec::new())
        },
        index: None,
        console,
    };
    let outcome = work.run(&inputs, InputFiles::new(inputs.iter().filter_map(Input::path)))?;
    let mut read = read.into_inner().unwrap_or_else(PoisonError::into_inner);
    read.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut builds = Builds::default();
    read.into_iter().for_each(|(_, of_report)| builds.join(of_report));
    Ok((builds, outcome))
}

fn write_mined(out: &mut Text<'_>, build: &Build, libraries: &[Sighting]) -> io::Result<()> {
    let version = build.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let (name, id, arch, count) = (&build.name, build.id, build.arch().name(), build.reports.len());
    out.line(format_args!("{name}{version} ({id}, {arch}), reports: {count}"))?;
    for found in libraries {
        let claim = match found.confidence {
            Some(confidence) => format!("{} {}: {}", found.name, found.version, confidence.as_str()),
            None => format!("{}: not decidable", found.name),
        };
        let (hits, misses, calls, addresses) = (found.hits, found.misses, found.calls, found.addresses);
        let (tried, chance, how) = (found.tried, found.chance, found.how);
        out.line(format_args!(
            "  {claim} ({how}): of {addresses} return addresses {hits} follow its calls, {misses} in its range do not, {calls} calls lead on; without the library at most {chance:.2e} such fits in {tried} places",
        ))?;
        if let (None, Some((start, _))) = (found.confidence, found.ranges.first()) {
            out.line(format_args!("    the best of these places is {start} from the image's start"))?;
        }
        for (start, end) in found.ranges.iter().filter(|_| found.confidence.is_some()) {
            out.line(format_args!("    {start} - {end} from the image's start"))?;
        }
    }
    for report in &build.reports {
        let mut frames = Vec::new();
        for frame in &report.frames {
            let Some(found) = libraries.iter().find(|found| found.owns(frame.address)) else { continue };
            let stack = if frame.crashed { "crashed".to_owned() } else { format!("stack {}", frame.stack) };
            frames.push(format!("{} at {stack} frame {}", found.name, frame.index));
        }
        if !frames.is_empty() {
            out.line(format_args!("  {}: {}", report.name, frames.join(", ")))?;
        }
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
