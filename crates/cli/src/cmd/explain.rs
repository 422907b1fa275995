//! `backtrail explain`: the explanation alone.

use crate::args::{Colour, Explain, PlainFormat};
use crate::input;
use crate::output::{Failure, Outcome, Sink, style};
use crate::render::text;
use backtrail::{Analysis, Limits, Symbols};

pub(crate) fn run(args: &Explain, colour: Colour) -> Result<Outcome, Failure> {
    let inputs = input::collect(&args.reports)?;
    let mut sink = Sink::open(None)?;
    let style = style(colour, false);
    let symbols = Symbols::none();
    let limits = Limits::default();
    let mut outcome = Outcome::Done;
    for input in &inputs {
        let analysis = input
            .read(limits.max_bytes)
            .and_then(|bytes| Analysis::new(&bytes, &symbols, &limits).map_err(|error| error.to_string()));
        let analysis = match analysis {
            Ok(analysis) => analysis,
            Err(problem) => {
                eprintln!("backtrail: {}: {problem}", input.name());
                outcome = if input.found { outcome } else { Outcome::BadInput };
                continue;
            }
        };
        let mut out = Vec::new();
        match args.format {
            PlainFormat::Text => {
                if inputs.len() > 1 {
                    text::banner(&mut out, &input.name(), style)?;
                }
                text::write_explanation(&mut out, &analysis, style)?;
            }
            PlainFormat::Json => backtrail::json::write_explanation(&mut out, &analysis)?,
        }
        sink.write("", &out)?;
    }
    sink.finish()?;
    Ok(outcome)
}
