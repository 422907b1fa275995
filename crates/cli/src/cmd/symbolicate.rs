//! `backtrail symbolicate`: reports in, answers out.

use super::options::{Colour, NamesAndOwners};
use super::reports::{self, Index, Reports, Shown};
use crate::io::console::Console;
use crate::io::file::InputFiles;
use crate::io::input::Input;
use crate::io::json::document;
use crate::io::output::Target;
use crate::io::text::{Escaping, Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::{report, summary};
use backtrail::Symbols;
use backtrail_render::html;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Reads crash reports, fills in names from debug files and says what happened, where, why and in whose code.
///
/// Symbols are found by UUID or build id below every PATH: dSYM bundles, zips of them, Xcode archives, device-support
/// directories, Mach-O and ELF files, .build-id trees. Java's names are found in R8's mapping files there, if their names
/// have `mapping` in them.
#[derive(Args, Debug)]
pub(crate) struct Symbolicate {
    /// Reports of any kind that is read: Apple's, MetricKit's, Swift's, Android's, Java's, minidumps, ELF cores. They may be packed
    /// (gzip, zstd, xz, zip), quoted in a text, or several in a file. A directory means every report in it, `-` is standard
    /// input.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) names: NamesAndOwners,
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
    /// One line for each report: its file, what happened, whose code it was, and the crashed stack.
    Summary,
    /// Apple's JSON of a crash (`.ips`), for tools that read nothing else.
    Ips,
    /// A minidump of one of backtrail's crash files, for tools that read nothing else; needs -o.
    Minidump,
}

impl ReportFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Json => "json",
            Self::Html => "html",
            Self::Crash => "crash",
            Self::Summary => "summary",
            Self::Ips => "ips",
            Self::Minidump => "dmp",
        }
    }
}

pub(crate) fn run(args: &Symbolicate, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let inputs = reports::inputs(&args.reports, console)?;
    let target = Target::of(args.output.as_deref());
    let has_index = args.format == ReportFormat::Html;
    let stands_alone = has_index || matches!(args.format, ReportFormat::Ips | ReportFormat::Minidump);
    if stands_alone && inputs.len() > 1 && !matches!(target, Target::Directory(_)) {
        let format = args.format.extension();
        return Err(Failure::Input(format!("several reports as {format} need a directory: -o DIRECTORY/")));
    }
    if args.format == ReportFormat::Minidump && target.may_be_terminal(console) {
        return Err(Failure::Input("a minidump is no text: -o FILE".to_owned()));
    }
    let mut style = colour.style(console, matches!(target, Target::Stdout));
    if args.format == ReportFormat::Crash {
        style.escaping = if target.may_be_terminal(console) { Escaping::Whole } else { Escaping::None };
    }
    let files = InputFiles::new(inputs.iter().filter_map(Input::path).chain(args.names.files()));
    let rules = args.names.rules()?;
    let none = Symbols::none();
    let index = Index {
        entry: &|shown| html::index_entry(shown.analysis, &shown.name()),
        write: &|entries| {
            let mut page = Vec::new();
            html::write_index(&mut page, entries)?;
            Ok(page)
        },
    };
    let mut work = Reports {
        symbols: &none,
        rules: &rules,
        target: &target,
        extension: args.format.extension(),
        wants_symbols: true,
        stands_alone,
        write: &|shown, many| write(args.format, style, shown, many),
        index: has_index.then_some(index),
        console,
    };
    work.names(&inputs).iter().try_for_each(|name| target.check(name, &files))?;
    let symbols = args.names.symbols(console)?;
    work.symbols = &symbols;
    work.run(&inputs, files)
}

fn write(format: ReportFormat, style: Style, shown: &Shown<'_>, many: bool) -> Result<Vec<u8>, String> {
    let analysis = shown.analysis;
    if format == ReportFormat::Crash && !analysis.report.source.has_rows() {
        let kind = analysis.report.source.as_str();
        return Err(format!(
            "a report of kind {kind} has no rows to fill in: use --format text, json or html"
        ));
    }
    if format == ReportFormat::Minidump {
        return backtrail::minidump_of_crash_file(shown.original).map_err(|error| error.to_string());
    }
    let mut out = Vec::new();
    render(format, style, shown, many, &mut out).map_err(|error| error.to_string())?;
    Ok(out)
}

fn render(
    format: ReportFormat,
    style: Style,
    shown: &Shown<'_>,
    many: bool,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let analysis = shown.analysis;
    match format {
        ReportFormat::Text => {
            let mut text = Text::new(out, style);
            if many {
                report::banner(&mut text, &shown.name())?;
            }
            report::write(&mut text, analysis)
        }
        ReportFormat::Json => {
            document(out, |json| backtrail::json::write_report(json, analysis, shown.origin))
        }
        ReportFormat::Summary => summary::write(&mut Text::new(out, style), analysis, &shown.name()),
        ReportFormat::Html => html::write(out, analysis),
        ReportFormat::Minidump => Ok(()),
        ReportFormat::Ips => Text::new(out, style).put_lines(analysis.ips().as_bytes()),
        ReportFormat::Crash => Text::new(out, style).put_lines(&analysis.filled_in(shown.original)),
    }
}
