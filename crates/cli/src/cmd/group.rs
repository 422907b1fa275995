//! `backtrail group`: many reports as the few bugs that they are of.

use super::options::{Colour, NamesAndOwners};
use super::reports::{self, Failed, Part, check, is_cut, part_name, parts};
use crate::io::console::Console;
use crate::io::file::{InputFiles, read_at_most, refuse_pipe};
use crate::io::input::{self, Input};
use crate::io::json::document;
use crate::io::output::{Sink, Target, write_file};
use crate::io::progress::Meter;
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use crate::render::group_counts::{self, Counted};
use crate::render::groups as render;
use crate::tally::Tally;
use backtrail::groups::{ChangeKind, Done, GroupTable, InputNames};
use backtrail::json::{Origin, write_line};
use backtrail::{Document, Grouped, Limits, Rules, Symbols};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Puts reports of the same bug into one group, and lists the groups.
///
/// A report's group follows from the innermost function of the program that is no helper of others; without symbols, from its
/// place in its build. Reports without symbols find the group of those with, and each group says why a report is in it.
#[derive(Args, Debug)]
pub(crate) struct Group {
    /// Reports of any kind that is read, as for `symbolicate`. A directory means every report in it, `-` is standard input.
    #[arg(required_unless_present = "explain", value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) names: NamesAndOwners,
    /// What to list.
    #[arg(long, value_enum, default_value_t = By::Group)]
    pub(crate) by: By,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = GroupFormat::Text)]
    pub(crate) format: GroupFormat,
    /// Where to write; with --format html a directory, which gets an index and a page for each group.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Say which groups are new, gone, grown or shrunk since the groups that --format json wrote into this file.
    #[arg(long, value_name = "OLD.json", conflicts_with = "by")]
    pub(crate) diff: Option<PathBuf>,
    /// End with exit code 1 where a group is new.
    #[arg(long, value_enum, value_name = "WHAT", requires = "diff")]
    pub(crate) fail_on: Option<FailOn>,
    /// Say of this report what its keys are made of, and which group it is in.
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["diff", "by", "output"])]
    pub(crate) explain: Option<PathBuf>,
    /// Keep in FILE how far the work is, and go on from there the next time: after an interruption, or with further reports whose
    /// names sort behind those that were read.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Say how often whose code crashes, of each version on each system: a number of sessions, or a CSV file of lines
    /// `version,os,sessions`.
    #[arg(long, value_name = "N|FILE", conflicts_with_all = ["diff", "by", "explain", "state"])]
    pub(crate) sessions: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum By {
    /// Each group.
    Group,
    /// Whose code it was.
    Owner,
    /// The program's version.
    Version,
    /// The operating system.
    Os,
    /// The sort of event.
    Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum GroupFormat {
    /// For people.
    Text,
    /// For programs; one document, which --diff reads. docs/group.md describes it.
    Json,
    /// A table for spreadsheets.
    Csv,
    /// An index and a page for each group.
    Html,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum FailOn {
    /// A group that the earlier groups do not have.
    New,
}

/// Inputs that are worked on at the same time; bounds the memory that waits.
const BATCH: usize = 64;

/// After so many inputs the state is written.
const SAVE_EVERY: usize = 4096;

/// Bytes of a file of groups.
const MAX_EARLIER: u64 = 1 << 30;

pub(crate) fn run(args: &Group, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let target = Target::of(args.output.as_deref());
    if args.format == GroupFormat::Html && !matches!(target, Target::Directory(_)) && args.explain.is_none() {
        return Err(Failure::Input("groups as html need a directory: -o DIRECTORY/".to_owned()));
    }
    if args.diff.is_some() && matches!(args.format, GroupFormat::Csv | GroupFormat::Html) {
        return Err(Failure::Input("--diff has no such form: expected --format text or json".to_owned()));
    }
    if args.by != By::Group && args.format == GroupFormat::Html {
        return Err(Failure::Input("--by has no such form: expected --format text, json or csv".to_owned()));
    }
    let earlier = args.diff.as_deref().map(earlier).transpose()?;
    let inputs = if args.reports.is_empty() { Vec::new() } else { sorted(&args.reports, console)? };
    let own = [&args.state, &args.diff].into_iter().flatten().map(PathBuf::as_path);
    let files = InputFiles::new(inputs.iter().filter_map(Input::path).chain(args.names.files()));
    if let Some(state) = args.state.as_deref().filter(|state| files.contains(state)) {
        return Err(Failure::Input(format!(
            "{}: is one of the inputs, which is never written over",
            state.display()
        )));
    }
    own.into_iter().try_for_each(refuse_pipe).map_err(Failure::Input)?;
    target.check("index.html", &files)?;
    let rules = args.names.rules()?;
    let symbols = args.names.symbols(console)?;
    let mut work = Work {
        args,
        symbols: &symbols,
        rules: &rules,
        table: GroupTable::new(),
        names: InputNames::new(),
        tally: Tally::default(),
        console,
    };
    let result = work.read_all(&inputs);
    let Work { table, tally, .. } = work;
    result?;
    symbols.late_problems().into_iter().for_each(|problem| console.warn(problem));
    let style = colour.style(console, args.output.is_none());
    if let Some(report) = &args.explain {
        let mut out = Vec::new();
        explain(report, (&symbols, &rules), &table, &mut Text::new(&mut out, style), console)?;
        let mut sink = Sink::new(target, console);
        sink.write("explain.txt", &out)?;
        sink.finish()?;
        return Ok(Outcome::Done);
    }
    let mut outcome = tally.finish("reports", console);
    let mut sink = Sink::new(target, console);
    let diff = earlier.as_ref().map(|earlier| table.since(earlier));
    let mut out = Vec::new();
    match (&diff, args.format) {
        (Some(diff), GroupFormat::Json) => document(&mut out, |json| write_line(json, diff))?,
        (Some(diff), _) => render::write_diff(&mut Text::new(&mut out, style), diff)?,
        (None, GroupFormat::Html) => write_pages(&table, &mut sink)?,
        (None, format) => match (counted(args.by), format) {
            (None, GroupFormat::Json) => document(&mut out, |json| write_line(json, &table.document()))?,
            (None, GroupFormat::Csv) => render::write_csv(&mut out, &table)?,
            (None, _) => render::write_table(&mut Text::new(&mut out, style), &table)?,
            (Some(by), GroupFormat::Json) => {
                document(&mut out, |json| write_line(json, &group_counts::document(&table, by)))?;
            }
            (Some(by), GroupFormat::Csv) => group_counts::write_csv(&mut out, &table, by)?,
            (Some(by), _) => group_counts::write(&mut Text::new(&mut out, style), &table, by)?,
        },
    }
    if args.format != GroupFormat::Html {
        sink.write(if args.format == GroupFormat::Json { "groups.json" } else { "groups.txt" }, &out)?;
    }
    sink.finish()?;
    let new =
        diff.iter().flat_map(|diff| &diff.changes).filter(|change| change.kind == ChangeKind::New).count();
    if args.fail_on.is_some() && new > 0 {
        console.warn(format_args!("{new} groups are new"));
        outcome = outcome.max(Outcome::Incomplete);
    }
    Ok(outcome)
}

/// The inputs, in one order whichever they are named in: what is written is the same then.
pub(super) fn sorted(paths: &[PathBuf], console: &Console) -> Result<Vec<Input>, Failure> {
    let mut inputs = reports::inputs(&input::distinct(paths), console)?;
    inputs.sort_unstable_by(Input::by_name);
    Ok(inputs)
}

/// What reports are counted by, other than by their group.
fn counted(by: By) -> Option<Counted> {
    match by {
        By::Group => None,
        By::Kind => Some(Counted::Kind),
        By::Owner => Some(Counted::Owner),
        By::Version => Some(Counted::Version),
        By::Os => Some(Counted::System),
    }
}

fn write_pages(table: &GroupTable, sink: &mut Sink<'_>) -> Result<(), Failure> {
    for group in table.listed() {
        let mut page = Vec::new();
        render::write_page(&mut page, &group)?;
        sink.write(&render::page_name(group.row), &page)?;
    }
    let mut page = Vec::new();
    render::write_index(&mut page, table)?;
    sink.write("index.html", &page)
}

/// Reads the groups of an earlier run.
fn earlier(path: &Path) -> Result<GroupTable, Failure> {
    let failed = |problem: String| Failure::Input(format!("{}: {problem}", path.display()));
    let bytes = read_at_most(path, MAX_EARLIER).map_err(failed)?;
    GroupTable::of_document(&bytes).map(|(table, _)| table).map_err(|error| failed(error.to_string()))
}

/// Reads one report.
pub(super) fn grouped(document: &Document<'_>, symbols: &Symbols, rules: &Rules) -> Result<Grouped, Failed> {
    let failed = |problem: String| Failed::new(&document.bytes, problem);
    let grouped = Grouped::with_rules(document, symbols, rules, &Limits::default());
    let grouped = grouped.map_err(|error| failed(error.to_string()))?;
    check(&grouped.report).map_err(failed)?;
    Ok(grouped)
}

/// The work on all inputs.
struct Work<'a> {
    args: &'a Group,
    symbols: &'a Symbols,
    rules: &'a Rules,
    table: GroupTable,
    /// Of the inputs that were added.
    names: InputNames,
    tally: Tally,
    console: &'a Console,
}

impl Work<'_> {
    fn read_all(&mut self, inputs: &[Input]) -> Result<(), Failure> {
        let meter = Meter::new(self.console);
        let start = self.resume(inputs)?;
        let mut done = start;
        let mut saved = start;
        let (symbols, rules) = (self.symbols, self.rules);
        let read = |input: &Input| parts(input, |report| grouped(report.document, symbols, rules));
        // While a batch is read, the one before it is added: no core waits for the slowest report of a batch.
        let mut waiting: (&[Input], Vec<Vec<Part<Grouped>>>) = (&[], Vec::new());
        let batches = inputs.get(start..).unwrap_or_default().chunks(BATCH);
        for batch in batches.chain([&[][..]]) {
            let (added, results) = std::mem::take(&mut waiting);
            let add = || added.iter().zip(results).for_each(|(input, parts)| self.add(input, parts));
            let ((), results) = rayon::join(add, || batch.par_iter().map(read).collect());
            waiting = (batch, results);
            done += added.len();
            meter.grouped(done, inputs.len(), self.table.rows().len());
            if done - saved >= SAVE_EVERY {
                self.save(inputs, done)?;
                saved = done;
            }
        }
        if done > start { self.save(inputs, done) } else { Ok(()) }
    }

    fn add(&mut self, input: &Input, parts: Vec<Part<Grouped>>) {
        let name = input.name();
        self.names.add(&name);
        for part in parts {
            let shown = part_name(&name, part.number);
            match part.result {
                Ok(grouped) => {
                    let is_cut = is_cut(&grouped.report);
                    self.table.add(grouped, Origin { file: Some(&name), part: part.number });
                    self.tally.report(shown, Outcome::Done, is_cut);
                }
                Err(failed) => {
                    self.console.warn(format_args!("{shown}: {}", failed.problem));
                    self.tally.no_report(shown, input.is_meant(&failed.head));
                }
            }
        }
    }

    /// Takes over what an earlier run read. Tells how many inputs those were.
    fn resume(&mut self, inputs: &[Input]) -> Result<usize, Failure> {
        let Some(path) = self.args.state.as_deref().filter(|path| path.exists()) else { return Ok(0) };
        let bytes = read_at_most(path, MAX_EARLIER)
            .map_err(|problem| Failure::Input(format!("{}: {problem}", path.display())))?;
        let (table, done) = GroupTable::of_document(&bytes)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        let done = done.unwrap_or_default();
        let read = inputs.get(..done.inputs).filter(|read| !read.is_empty()).unwrap_or_default();
        let mut names = InputNames::new();
        read.iter().for_each(|input| names.add(&input.name()));
        let is_same = read.last().is_some_and(|last| last.name() == done.last);
        if !is_same || done.names.is_some_and(|of_earlier| of_earlier != names) {
            self.console.warn(format_args!("{}: is of other inputs; all are read again", path.display()));
            return Ok(0);
        }
        for _ in 0..table.reports() {
            self.tally.read(Outcome::Done);
        }
        self.table = table;
        self.names = names;
        Ok(done.inputs)
    }

    fn save(&self, inputs: &[Input], done: usize) -> Result<(), Failure> {
        let Some(path) = self.args.state.as_deref() else { return Ok(()) };
        let last = done.checked_sub(1).and_then(|last| inputs.get(last)).map(Input::name);
        let last = last.unwrap_or_default();
        let json = self.table.state(Done { inputs: done, last, names: Some(self.names) });
        let mut bytes = Vec::new();
        write_line(&mut bytes, &json)?;
        write_file(path, &bytes).map_err(|error| Failure::File(path.to_owned(), error))
    }
}

/// Says why a report is in its group.
fn explain(
    path: &Path,
    (symbols, rules): (&Symbols, &Rules),
    table: &GroupTable,
    out: &mut Text<'_>,
    console: &Console,
) -> Result<(), Failure> {
    let inputs = reports::inputs(&[path.to_owned()], console)?;
    for input in &inputs {
        for part in parts(input, |report| grouped(report.document, symbols, rules)) {
            let name = part_name(&input.name(), part.number);
            match part.result {
                Ok(grouped) => render::write_why(out, &name, grouped, table)?,
                Err(failed) => return Err(Failure::Input(format!("{name}: {}", failed.problem))),
            }
        }
    }
    Ok(())
}
