//! `backtrail symbolicate`: reports in, answers out.

use super::options::{Cache, Colour, Servers, symbols};
use crate::io::console::Console;
use crate::io::file::InputFiles;
use crate::io::input::{self, Input};
use crate::io::json::document;
use crate::io::output::{Sink, Target};
use crate::io::text::{Escaping, Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::{html, report};
use crate::tally::Tally;
use backtrail::{Analysis, Limits, Symbols};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Reads crash reports, fills in names from debug files and says what happened, where, why and in whose code.
///
/// Symbols are found by UUID or build id below every PATH: dSYM bundles, zips of them, Xcode archives, device-support
/// directories, Mach-O and ELF files, .build-id trees. Java's names are found in R8's mapping files there, if their names
/// have `mapping` in them.
#[derive(Args, Debug)]
pub(crate) struct Symbolicate {
    /// Reports: Apple's of any kind, MetricKit's, Swift's, Android's, Java's. A directory means every report in it, `-` is
    /// standard input.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    /// Where to look for symbols: a file, or a directory searched recursively. Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) servers: Servers,
    #[command(flatten)]
    pub(crate) cache: Cache,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Write to PATH instead of standard output; a directory gets one file for each report, and with html an index.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs; one line for each report. The schema is docs/report.schema.json.
    Json,
    /// One self-contained page.
    Html,
    /// The original report with its frames filled in, all else untouched.
    Crash,
}

impl ReportFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Json => "json",
            Self::Html => "html",
            Self::Crash => "crash",
        }
    }
}

/// Reports that are worked on at the same time; bounds the memory that waits to be written.
const BATCH: usize = 32;

pub(crate) fn run(args: &Symbolicate, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let inputs = input::collect(&args.reports)?;
    let target = Target::of(args.output.as_deref());
    if args.format == ReportFormat::Html && inputs.len() > 1 && !matches!(target, Target::Directory(_)) {
        return Err(Failure::Input("several reports as html need a directory: -o DIRECTORY/".to_owned()));
    }
    let names = names(&inputs, args.format);
    let mut files = InputFiles::new(
        inputs.iter().filter_map(Input::path).chain(args.symbols.iter().map(PathBuf::as_path)),
    );
    names.iter().try_for_each(|name| target.check(name, &files))?;
    let symbols = symbols(&args.symbols, Some(&args.cache), &args.servers, console)?;
    let mut style = colour.style(console, args.output.is_none());
    if args.format == ReportFormat::Crash {
        style.escaping = if target.may_be_terminal(console) { Escaping::Whole } else { Escaping::None };
    }
    let work = Work { format: args.format, style, many: inputs.len() > 1, console };
    let mut sink = Sink::new(target.clone(), console);
    let mut tally = Tally::default();
    let mut index = Vec::new();
    let named: Vec<_> = inputs.iter().zip(&names).collect();
    for batch in named.chunks(BATCH) {
        let results =
            batch.par_iter().map(|(input, name)| work.on(input, name, &symbols)).collect::<Vec<_>>();
        for ((input, name), result) in batch.iter().zip(results) {
            match result {
                Ok(done) => {
                    // What answered was read, too, and is as little written over.
                    done.files.iter().for_each(|file| files.add(file));
                    target.check(name, &files)?;
                    sink.write(name, &done.bytes)?;
                    index.extend(done.index_entry);
                    tally.report(input, done.outcome, done.is_cut);
                }
                Err((bytes, problem)) => tally.no_report(input, &bytes, &problem, console),
            }
        }
    }
    for problem in symbols.late_problems() {
        console.warn(problem);
    }
    if index.len() > 1 {
        let name = index_name(&names);
        target.check(&name, &files)?;
        let mut page = Vec::new();
        html::write_index(&mut page, &index).map_err(Failure::Output)?;
        sink.write(&name, &page)?;
    }
    sink.finish()?;
    Ok(tally.finish("reports", console))
}

/// The name of the page that lists the others; none of theirs.
fn index_name(names: &[String]) -> String {
    let taken = |name: &String| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number| format!("index-{number}.html"));
    let mut all = std::iter::once("index.html".to_owned()).chain(numbered);
    all.find(|name| !taken(name)).unwrap_or_default()
}

/// The name of each result's file.
fn names(inputs: &[Input], format: ReportFormat) -> Vec<String> {
    let names = input::output_names(inputs).into_iter();
    names.map(|name| format!("{name}.{}", format.extension())).collect()
}

/// Whether the report ends early or is broken somewhere, so that only a part of it was read.
pub(crate) fn is_cut(analysis: &Analysis) -> bool {
    analysis.report.notes.iter().any(|note| note.starts_with("the report is cut or broken"))
}

/// Whether nothing of what a report is for was found in it: not even its process' path, which stands in its body.
fn is_empty(analysis: &Analysis) -> bool {
    let report = &analysis.report;
    report.event.is_none()
        && report.processes.is_empty()
        && report.process.trees.is_empty()
        && report.process.threads.is_empty()
        && report.process.backtraces.is_empty()
        && report.process.images.is_empty()
        && report.exception.is_none()
        && report.termination.is_none()
        && report.app_info.is_empty()
        && report.process.path.is_none()
}

/// Reads a report that has something to say.
pub(crate) fn analyse(bytes: &[u8], symbols: &Symbols, limits: &Limits) -> Result<Analysis, String> {
    let analysis = Analysis::new(bytes, symbols, limits).map_err(|error| error.to_string())?;
    if !is_empty(&analysis) {
        return Ok(analysis);
    }
    let note = analysis.report.notes.iter().find_map(|note| note.split_once(" is read: "));
    let why = note.map_or("expected a process, an exception, threads or images", |(_, why)| why);
    Err(format!("nothing of the report can be read: {why}"))
}

/// A finished report.
struct Done {
    bytes: Vec<u8>,
    outcome: Outcome,
    is_cut: bool,
    /// Debug files that answered.
    files: Vec<PathBuf>,
    /// What the index of many pages says of it.
    index_entry: Option<Vec<u8>>,
}

/// What is done with every report.
struct Work<'a> {
    format: ReportFormat,
    style: Style,
    many: bool,
    console: &'a Console,
}

impl Work<'_> {
    /// The result, or the bytes that are no report and what is wrong with them.
    fn on(&self, input: &Input, name: &str, symbols: &Symbols) -> Result<Done, (Vec<u8>, String)> {
        let limits = Limits::default();
        let bytes = input.read(limits.max_bytes, self.console).map_err(|problem| (Vec::new(), problem))?;
        let rendered = analyse(&bytes, symbols, &limits).and_then(|analysis| {
            let text = self.render(input, &bytes, &analysis).map_err(|error| error.to_string())?;
            Ok((analysis, text))
        });
        let (analysis, text) = rendered.map_err(|problem| (bytes, problem))?;
        let outcome = if analysis.is_incomplete() { Outcome::Incomplete } else { Outcome::Done };
        let is_listed = self.many && self.format == ReportFormat::Html;
        // Writing into memory does not fail.
        let entry = is_listed.then(|| html::index_entry(&analysis, name, &input.name()).ok());
        let index_entry = entry.flatten();
        Ok(Done { bytes: text, outcome, is_cut: is_cut(&analysis), files: files(&analysis), index_entry })
    }

    fn render(&self, input: &Input, original: &[u8], analysis: &Analysis) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match self.format {
            ReportFormat::Text => {
                let mut text = Text::new(&mut out, self.style);
                if self.many {
                    report::banner(&mut text, &input.name())?;
                }
                report::write(&mut text, analysis)?;
            }
            ReportFormat::Json => {
                let file = input.name();
                document(&mut out, |json| backtrail::json::write_report(json, analysis, Some(&file)))?;
            }
            ReportFormat::Html => html::write(&mut out, analysis)?,
            ReportFormat::Crash => {
                Text::new(&mut out, self.style).put_lines(&analysis.filled_in(original))?;
            }
        }
        Ok(out)
    }
}

/// The debug files that answered: `archive!member` stands for the archive.
fn files(analysis: &Analysis) -> Vec<PathBuf> {
    let files = analysis.report.process.images.iter().flat_map(|image| &image.symbols.files);
    files
        .map(|file| Path::new(file.split_once('!').map_or(file.as_str(), |(archive, _)| archive)).to_owned())
        .collect()
}
