//! `backtrail explain`: the explanation alone.

use super::options::{Colour, PlainFormat};
use super::symbolicate::{analyse, is_cut};
use crate::io::console::Console;
use crate::io::input;
use crate::io::json::document;
use crate::io::output::{Sink, Target};
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::report;
use crate::tally::Tally;
use backtrail::{Analysis, Limits, Symbols};
use clap::Args;
use std::io;
use std::path::PathBuf;

/// Explains crash reports; needs no symbols.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Reports: Apple's of any kind, MetricKit's, Swift's. A directory means every report in it, `-` is standard input.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

pub(crate) fn run(args: &Explain, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let inputs = input::collect(&args.reports)?;
    let mut sink = Sink::new(Target::Stdout, console);
    let style = colour.style(console, true);
    let symbols = Symbols::none();
    let limits = Limits::default();
    let mut tally = Tally::default();
    for input in &inputs {
        let banner = (inputs.len() > 1).then(|| input.name());
        let bytes = input.read(limits.max_bytes, console);
        let analysis =
            bytes.as_ref().map_err(Clone::clone).and_then(|bytes| analyse(bytes, &symbols, &limits));
        match analysis {
            Ok(analysis) => {
                tally.report(input, Outcome::Done, is_cut(&analysis));
                sink.write("", &rendered(&analysis, args.format, banner.as_deref(), style)?)?;
            }
            Err(problem) => tally.no_report(input, bytes.as_deref().unwrap_or_default(), &problem, console),
        }
    }
    sink.finish()?;
    Ok(tally.finish("reports", console))
}

fn rendered(
    analysis: &Analysis,
    format: PlainFormat,
    banner: Option<&str>,
    style: Style,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    match format {
        PlainFormat::Text => {
            let mut text = Text::new(&mut out, style);
            banner.map_or(Ok(()), |name| report::banner(&mut text, name))?;
            report::write_explanation(&mut text, analysis)?;
        }
        PlainFormat::Json => document(&mut out, |json| backtrail::json::write_explanation(json, analysis))?,
    }
    Ok(out)
}
