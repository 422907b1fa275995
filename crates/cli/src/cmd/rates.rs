//! `backtrail group --sessions`: how often whose code crashes.

use super::group::{Group, GroupFormat, grouped, sorted};
use super::options::Colour;
use super::reports::{is_cut, part_name, parts};
use crate::io::console::Console;
use crate::io::file::{InputFiles, read_at_most};
use crate::io::input::Input;
use crate::io::json::document;
use crate::io::output::{Sink, Target};
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use crate::render::rates as render;
use crate::tally::Tally;
use backtrail::groups::GroupTable;
use backtrail::json::{Origin, write_line};
use backtrail::rates::{RateTable, Sessions};
use rayon::prelude::*;
use std::path::Path;

/// Inputs that are worked on at the same time; bounds the memory that waits.
const BATCH: usize = 64;

/// Bytes of a table of sessions; one more is refused.
const MAX_SESSIONS: u64 = 1 << 24;

pub(super) fn run(
    args: &Group,
    sessions: &str,
    colour: Colour,
    console: &Console,
) -> Result<Outcome, Failure> {
    if args.format == GroupFormat::Html {
        return Err(Failure::Input("rates have no pages: expected --format text, json or csv".to_owned()));
    }
    let (sessions, file) = read(sessions)?;
    let inputs = sorted(&args.reports, console)?;
    let files = inputs.iter().filter_map(Input::path).chain(args.names.files()).chain(file);
    let files = InputFiles::new(files);
    let target = Target::of(args.output.as_deref());
    target.check("", &files)?;
    let rules = args.names.rules()?;
    let symbols = args.names.symbols(console)?;
    let (mut rates, mut groups, mut tally) = (RateTable::new(sessions), GroupTable::new(), Tally::default());
    for batch in inputs.chunks(BATCH) {
        let read = |input: &Input| {
            parts(input, |report| {
                let for_group = grouped(report.document, &symbols, &rules)?;
                let analysis = for_group.clone().analysis();
                Ok((for_group, analysis))
            })
        };
        let results: Vec<_> = batch.par_iter().map(read).collect();
        for (input, parts) in batch.iter().zip(results) {
            let name = input.name();
            for part in parts {
                let shown = part_name(&name, part.number);
                match part.result {
                    Ok((for_group, analysis)) => {
                        rates.add(&analysis);
                        let is_cut = is_cut(&for_group.report);
                        groups.add(for_group, Origin { file: Some(&name), part: part.number });
                        tally.report(shown, Outcome::Done, is_cut);
                    }
                    Err(failed) => {
                        console.warn(format_args!("{shown}: {}", failed.problem));
                        tally.no_report(shown, input.is_meant(&failed.head));
                    }
                }
            }
        }
    }
    symbols.late_problems().into_iter().for_each(|problem| console.warn(problem));
    let outcome = tally.finish("reports", console);
    let style = colour.style(console, args.output.is_none());
    let mut out = Vec::new();
    match args.format {
        GroupFormat::Json => document(&mut out, |json| write_line(json, &rates.document(&groups)))?,
        GroupFormat::Csv => render::write_csv(&mut out, &rates)?,
        GroupFormat::Text | GroupFormat::Html => {
            render::write_table(&mut Text::new(&mut out, style), &rates, &groups)?;
        }
    }
    let mut sink = Sink::new(target, console);
    sink.write("rates", &out)?;
    sink.finish()?;
    Ok(outcome)
}

/// A number of sessions, or a file that has them.
fn read(sessions: &str) -> Result<(Sessions, Option<&Path>), Failure> {
    if let Ok(count) = sessions.parse::<u64>() {
        return Ok((Sessions::all(count), None));
    }
    let path = Path::new(sessions);
    let failed = |problem: String| Failure::Input(format!("{sessions}: {problem}"));
    let bytes = read_at_most(path, MAX_SESSIONS).map_err(failed)?;
    let read = Sessions::parse(&bytes).map_err(|error| failed(error.to_string()))?;
    Ok((read, Some(path)))
}
