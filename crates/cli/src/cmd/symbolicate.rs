//! `backtrail symbolicate`: reports in, answers out.

use crate::args::{Colour, ReportFormat, Symbolicate};
use crate::input::{self, Input};
use crate::output::{Failure, Outcome, Sink, style};
use crate::progress::Meter;
use crate::render::style::Style;
use crate::render::{html, text};
use backtrail::{Analysis, Limits, Symbols};
use rayon::prelude::*;
use std::collections::HashMap;

/// Reports that are worked on at the same time; bounds the memory that waits to be written.
const BATCH: usize = 32;

pub(crate) fn run(args: &Symbolicate, colour: Colour) -> Result<Outcome, Failure> {
    let inputs = input::collect(&args.reports)?;
    let mut sink = Sink::open(args.output.as_deref())?;
    if args.format == ReportFormat::Html && inputs.len() > 1 && !matches!(sink, Sink::Folder(_)) {
        return Err(Failure::Input("several reports as html need a folder: -o FOLDER/".to_owned()));
    }
    let mut symbols = Symbols::scan(&args.symbols, &Meter::new());
    if let Some(cache) = args.cache.tables() {
        symbols = symbols.with_cache(cache);
    }
    for problem in symbols.problems() {
        eprintln!("backtrail: {problem}");
    }
    let work =
        Work { format: args.format, style: style(colour, args.output.is_some()), many: inputs.len() > 1 };
    let mut names = HashMap::new();
    let mut outcome = Outcome::Done;
    for batch in inputs.chunks(BATCH) {
        let results = batch.par_iter().map(|input| work.on(input, &symbols)).collect::<Vec<_>>();
        for (input, result) in batch.iter().zip(results) {
            outcome = outcome.max(finish(input, result, work.format, &mut sink, &mut names)?);
        }
    }
    for problem in symbols.late_problems() {
        eprintln!("backtrail: {problem}");
    }
    sink.finish()?;
    Ok(outcome)
}

/// Writes a result, or says why there is none.
fn finish(
    input: &Input,
    result: Result<Done, String>,
    format: ReportFormat,
    sink: &mut Sink,
    names: &mut HashMap<String, usize>,
) -> Result<Outcome, Failure> {
    match result {
        Ok(done) => {
            sink.write(&file_name(input, format, names), &done.bytes)?;
            Ok(if done.incomplete { Outcome::Incomplete } else { Outcome::Done })
        }
        Err(problem) => {
            eprintln!("backtrail: {}: {problem}", input.name());
            Ok(if input.found { Outcome::Done } else { Outcome::BadInput })
        }
    }
}

/// A name for the result that no other result of this run has.
fn file_name(input: &Input, format: ReportFormat, names: &mut HashMap<String, usize>) -> String {
    let ending = match format {
        ReportFormat::Text => "txt",
        ReportFormat::Json => "json",
        ReportFormat::Html => "html",
        ReportFormat::Crash => "crash",
    };
    let stem = input.stem();
    let count = names.entry(stem.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { format!("{stem}.{ending}") } else { format!("{stem}-{count}.{ending}") }
}

/// A finished report.
struct Done {
    bytes: Vec<u8>,
    incomplete: bool,
}

/// What is done with every report.
struct Work {
    format: ReportFormat,
    style: Style,
    many: bool,
}

impl Work {
    fn on(&self, input: &Input, symbols: &Symbols) -> Result<Done, String> {
        let limits = Limits::default();
        let bytes = input.read(limits.max_bytes)?;
        let analysis = Analysis::new(&bytes, symbols, &limits).map_err(|error| error.to_string())?;
        let incomplete = analysis.is_incomplete();
        let bytes = self.render(input, &bytes, &analysis).map_err(|error| error.to_string())?;
        Ok(Done { bytes, incomplete })
    }

    fn render(&self, input: &Input, original: &[u8], analysis: &Analysis) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match self.format {
            ReportFormat::Text => {
                if self.many {
                    text::banner(&mut out, &input.name(), self.style)?;
                }
                text::write(&mut out, analysis, self.style)?;
            }
            ReportFormat::Json => backtrail::json::write_report(&mut out, analysis)?,
            ReportFormat::Html => html::write(&mut out, analysis)?,
            ReportFormat::Crash => out = analysis.filled_in(original),
        }
        Ok(out)
    }
}
