//! What `symbolicate`, `explain` and `group` share: from inputs to reports to results, many at a time.

use crate::io::console::Console;
use crate::io::file::InputFiles;
use crate::io::input::{self, Input};
use crate::io::output::{Sink, Target};
use crate::outcome::{Failure, Outcome};
use crate::tally::Tally;
use backtrail::json::Origin;
use backtrail::{Analysis, CaptureKind, Document, Limits, Report, Rules, Symbols, Unpacked, documents};
use rayon::prelude::*;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// Inputs that are worked on at the same time; bounds the memory that waits to be written.
const BATCH: usize = 32;

/// One report, for those who write it.
pub(crate) struct Shown<'a> {
    pub(crate) analysis: &'a Analysis,
    /// Its own bytes.
    pub(crate) original: &'a [u8],
    pub(crate) origin: Origin<'a>,
}

impl Shown<'_> {
    /// What the report is called where there are several.
    pub(crate) fn name(&self) -> String {
        part_name(self.origin.file.unwrap_or_default(), self.origin.part)
    }
}

pub(crate) fn part_name(file: &str, part: Option<usize>) -> String {
    part.map_or_else(|| file.to_owned(), |part| format!("{file}, report {part}"))
}

/// Writes one result.
type Write<'a> = dyn Fn(&Shown<'_>, bool) -> Result<Vec<u8>, String> + Sync + 'a;

/// Writes the page that lists many results.
type WriteIndex<'a> = dyn Fn(&[(String, Vec<u8>)]) -> io::Result<Vec<u8>> + Sync + 'a;

/// The page that lists many results.
pub(crate) struct Index<'a> {
    /// What it says of one.
    pub(crate) entry: &'a (dyn Fn(&Shown<'_>) -> io::Result<Vec<u8>> + Sync),
    /// Writes the page: for each result the name of its file, and what is said of it.
    pub(crate) write: &'a WriteIndex<'a>,
}

/// How a command treats reports.
pub(crate) struct Reports<'a> {
    pub(crate) symbols: &'a Symbols,
    pub(crate) rules: &'a Rules,
    pub(crate) target: &'a Target,
    /// The extension of results' files.
    pub(crate) extension: &'a str,
    /// Whether missing symbols make an outcome incomplete.
    pub(crate) wants_symbols: bool,
    /// Whether several results in one file are no result.
    pub(crate) stands_alone: bool,
    /// Writes one result; the last argument tells whether there is, or may be, more than one.
    pub(crate) write: &'a Write<'a>,
    /// Lists several results that are files of one directory.
    pub(crate) index: Option<Index<'a>>,
    pub(crate) console: &'a Console,
}

/// A finished report.
struct Done {
    bytes: Vec<u8>,
    outcome: Outcome,
    is_cut: bool,
    /// Debug files that answered.
    files: Vec<PathBuf>,
    /// What the index says of it.
    entry: Option<Vec<u8>>,
}

/// What is no report.
pub(crate) struct Failed {
    /// The input's bytes, as many as tell whether it was meant to be one.
    pub(crate) head: Vec<u8>,
    pub(crate) problem: String,
}

impl Failed {
    pub(crate) fn new(bytes: &[u8], problem: String) -> Self {
        Self { head: bytes.get(..4096).unwrap_or(bytes).to_vec(), problem }
    }
}

/// One report of an input, with its number where there are several.
pub(crate) struct Part<T> {
    pub(crate) number: Option<usize>,
    pub(crate) result: Result<T, Failed>,
}

/// The bytes of one report.
pub(crate) struct Bytes<'a> {
    pub(crate) document: &'a Document<'a>,
    pub(crate) origin: Origin<'a>,
    /// What unpacking found odd.
    pub(crate) note: Option<&'a str>,
}

/// Reads an input and has `one` treat each of its reports.
pub(crate) fn parts<T: Send>(
    input: &Input,
    one: impl Fn(&Bytes<'_>) -> Result<T, Failed> + Sync,
) -> Vec<Part<T>> {
    let limits = Limits::default();
    let Unpacked { data, note } = match input.read(limits.max_bytes) {
        Ok(unpacked) => unpacked,
        Err(problem) => {
            return vec![Part { number: None, result: Err(Failed { head: Vec::new(), problem }) }];
        }
    };
    let name = input.name();
    let note = note.as_deref();
    if CaptureKind::of(&data).is_some() {
        let origin = Origin { file: Some(&name), part: None };
        return vec![Part { number: None, result: one(&Bytes { document: &data[..].into(), origin, note }) }];
    }
    let documents = documents(&data);
    let several = documents.len() > 1;
    let part = |(position, document): (usize, &Document<'_>)| {
        let number = several.then_some(position + 1);
        let origin = Origin { file: Some(&name), part: number };
        let result = one(&Bytes { document, origin, note });
        let with_line = |failed: Failed| Failed {
            problem: match number {
                Some(_) => format!("from line {} on: {}", document.line, failed.problem),
                None => failed.problem,
            },
            ..failed
        };
        Part { number, result: result.map_err(with_line) }
    };
    documents.par_iter().enumerate().map(part).collect()
}

/// The inputs of a command.
pub(crate) fn inputs(paths: &[PathBuf], console: &Console) -> Result<Vec<Input>, Failure> {
    input::collect(paths, Limits::default().max_bytes, console)
}

impl Reports<'_> {
    /// The name of each input's result.
    pub(crate) fn names(&self, inputs: &[Input]) -> Vec<String> {
        // The page that lists the others is `index.html`.
        let is_listed = self.index.is_some() && matches!(self.target, Target::Directory(_));
        let names = input::output_names(inputs, is_listed.then_some(INDEX)).into_iter();
        names.map(|name| format!("{name}.{}", self.extension)).collect()
    }

    /// Reads all inputs and writes their results, in the inputs' order.
    pub(crate) fn run(&self, inputs: &[Input], mut files: InputFiles) -> Result<Outcome, Failure> {
        let names = self.names(inputs);
        let mut sink = Sink::new(self.target.clone(), self.console);
        let mut tally = Tally::default();
        let mut taken: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let named: Vec<_> = inputs.iter().zip(&names).collect();
        let mut entries = Vec::new();
        for batch in named.chunks(BATCH) {
            let results = batch.par_iter().map(|(input, _)| self.parts(input, inputs.len() > 1));
            let results = results.collect::<Vec<_>>();
            for ((input, name), parts) in batch.iter().zip(results) {
                for part in parts {
                    let shown = part_name(&input.name(), part.number);
                    match part.result {
                        Ok(done) => {
                            // What answered was read, too, and is as little written over.
                            done.files.iter().for_each(|file| files.add(file));
                            let name = self.part_name(name, part.number, &mut taken);
                            self.target.check(&name, &files)?;
                            sink.write(&name, &done.bytes)?;
                            entries.extend(done.entry.map(|entry| (name, entry)));
                            tally.report(shown, done.outcome, done.is_cut);
                        }
                        Err(failed) => {
                            self.console.warn(format_args!("{shown}: {}", failed.problem));
                            tally.no_report(shown, input.is_meant(&failed.head));
                        }
                    }
                }
            }
        }
        for problem in self.symbols.late_problems() {
            self.console.warn(problem);
        }
        if let Some(index) = self.index.as_ref().filter(|_| entries.len() > 1) {
            let name = index_name(&taken);
            self.target.check(&name, &files)?;
            let page = (index.write)(&entries).map_err(Failure::Output)?;
            sink.write(&name, &page)?;
        }
        sink.finish()?;
        Ok(tally.finish("reports", self.console))
    }

    /// The name of a result's file: the input's for its first report, a number added for those that follow.
    fn part_name(&self, name: &str, part: Option<usize>, taken: &mut HashSet<String>) -> String {
        let Some(mut number) = part.filter(|number| *number > 1) else { return name.to_owned() };
        let stem = name.strip_suffix(self.extension).unwrap_or(name).trim_end_matches('.');
        loop {
            let numbered = format!("{stem}-{number}.{}", self.extension);
            if taken.insert(numbered.to_lowercase()) {
                return numbered;
            }
            number += 1;
        }
    }

    fn parts(&self, input: &Input, many: bool) -> Vec<Part<Done>> {
        parts(input, |report| self.one(report, many || report.origin.part.is_some()))
    }

    fn one(&self, report: &Bytes<'_>, many: bool) -> Result<Done, Failed> {
        let Bytes { document, origin, note } = *report;
        let failed = |problem: String| Failed::new(&document.bytes, problem);
        if self.stands_alone && origin.part.is_some() && !matches!(self.target, Target::Directory(_)) {
            return Err(failed(
                "one of several reports, which as html need a directory: -o DIRECTORY/".to_owned(),
            ));
        }
        let mut analysis = analyse(document, self.symbols, self.rules).map_err(failed)?;
        analysis.report.notes.extend(note.map(str::to_owned));
        let shown = Shown { analysis: &analysis, original: &document.bytes, origin };
        let bytes = (self.write)(&shown, many).map_err(failed)?;
        // Writing into memory does not fail.
        let entry = self.index.as_ref().and_then(|index| (index.entry)(&shown).ok());
        let is_incomplete = self.wants_symbols && analysis.is_incomplete();
        let outcome = if is_incomplete { Outcome::Incomplete } else { Outcome::Done };
        let is_cut = note.is_some() || is_cut(&analysis.report);
        Ok(Done { bytes, outcome, is_cut, files: answering_files(&analysis), entry })
    }
}

/// The name of the page that lists the others, without its extension.
const INDEX: &str = "index";

/// The name of the page that lists the others; none of theirs.
fn index_name(taken: &HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{INDEX}-{number}.html"));
    let mut all = std::iter::once(format!("{INDEX}.html")).chain(numbered);
    all.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Whether the report ends early or is broken somewhere, so that only a part of it was read.
pub(crate) fn is_cut(report: &Report) -> bool {
    report.notes.iter().any(|note| note.starts_with("the report is cut or broken"))
}

/// Reads a report that has something to say.
fn analyse(document: &Document<'_>, symbols: &Symbols, rules: &Rules) -> Result<Analysis, String> {
    let analysis = Analysis::with_rules(document, symbols, rules, &Limits::default());
    let analysis = analysis.map_err(|error| error.to_string())?;
    check(&analysis.report)?;
    Ok(analysis)
}

/// Says why nothing of a report can be read, if that is so.
pub(crate) fn check(report: &Report) -> Result<(), String> {
    if !report.is_empty() {
        return Ok(());
    }
    let note = report.notes.iter().find_map(|note| note.split_once(" is read: "));
    let why = note.map_or("expected a process, an exception, threads or images", |(_, why)| why);
    Err(format!("nothing of the report can be read: {why}"))
}

/// The debug files that answered: `archive!member` stands for the archive.
fn answering_files(analysis: &Analysis) -> Vec<PathBuf> {
    let files = analysis.report.process.images.iter().flat_map(|image| &image.symbols.files);
    files
        .map(|file| Path::new(file.split_once('!').map_or(file.as_str(), |(archive, _)| archive)).to_owned())
        .collect()
}
