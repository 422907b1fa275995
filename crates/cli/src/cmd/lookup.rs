//! `backtrail lookup`: addresses of one binary into functions.

use super::named_arch;
use crate::args::{Lookup, PlainFormat, parse_address};
use crate::output::{Failure, Outcome};
use crate::render::stack::place;
use backtrail::{Avma, Binary, Located, Placement, Svma};
use std::io::{self, BufRead as _, Write};

pub(crate) fn run(args: &Lookup) -> Result<Outcome, Failure> {
    let arch = args.arch.as_deref().map(named_arch).transpose()?;
    let binary = Binary::open(&args.file, arch).map_err(|error| Failure::Input(error.to_string()))?;
    let placement = match (args.load_address, args.slide) {
        (Some(load), _) => Placement::LoadedAt(Avma::new(load)),
        (None, Some(slide)) => Placement::Slid(slide),
        (None, None) => Placement::AsStated,
    };
    let mut answers = Answers { args, binary: &binary, placement, outcome: Outcome::Done };
    let mut out = io::BufWriter::new(io::stdout().lock());
    for address in &args.addresses {
        answers.one(&mut out, address)?;
    }
    if args.addresses.is_empty() {
        for line in io::stdin().lock().lines() {
            let line = line.map_err(|error| Failure::Input(format!("standard input: {error}")))?;
            answers.one(&mut out, line.trim())?;
        }
    }
    out.flush()?;
    for problem in binary.problems() {
        eprintln!("backtrail: {problem}");
    }
    Ok(answers.outcome)
}

struct Answers<'a> {
    args: &'a Lookup,
    binary: &'a Binary,
    placement: Placement,
    outcome: Outcome,
}

impl Answers<'_> {
    /// Answers one address; one that is no address is said and passed over.
    fn one(&mut self, out: &mut dyn Write, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let address = match parse_address(text) {
            Ok(address) => address,
            Err(problem) => {
                eprintln!("backtrail: {problem}");
                self.outcome = Outcome::BadInput;
                return Ok(());
            }
        };
        let located = match self.binary.stated_address(address, self.placement) {
            Some(svma) => self.binary.lookup(svma),
            None => Located::outside(),
        };
        if located.is_unknown() {
            self.outcome = self.outcome.max(Outcome::Incomplete);
        }
        match self.args.format {
            PlainFormat::Text => write_text(out, Svma::new(address), &located)?,
            PlainFormat::Json => backtrail::json::write_lookup(&mut *out, Svma::new(address), &located)?,
        }
        Ok(())
    }
}

/// The address, then the functions innermost first, each on a line of its own.
fn write_text(out: &mut dyn Write, address: Svma, located: &Located) -> io::Result<()> {
    write!(out, "{address}")?;
    for (position, function) in located.functions.iter().enumerate() {
        let indent = if position == 0 { "  " } else { "    inlined into " };
        write!(out, "{indent}{}", function.name)?;
        if let Some(place) = place(function, None) {
            write!(out, "  at {place}")?;
        }
        writeln!(out)?;
    }
    match (&located.symbol, located.reason) {
        _ if !located.functions.is_empty() => Ok(()),
        (Some(symbol), _) => writeln!(out, "  {} + {}", symbol.name, symbol.offset),
        (None, Some(reason)) => writeln!(out, "  ???  ({})", reason.explain()),
        (None, None) => writeln!(out, "  ???"),
    }
}
