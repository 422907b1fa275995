//! `backtrail stacks`: what every thread of a process is or was doing.

use crate::args::{Colour, Detail, StackFormat, Stacks as Args};
use crate::output::{Failure, Outcome, style};
use crate::progress::Meter;
use crate::render::captured;
use backtrail::{StackOptions, Stacks, Symbols};
use std::io::{self, Write};

pub(crate) fn run(args: &Args, colour: Colour) -> Result<Outcome, Failure> {
    let mut symbols = Symbols::scan(&args.symbols, &Meter::new());
    if let Some(cache) = args.cache.tables() {
        symbols = symbols.with_cache(cache);
    }
    for problem in symbols.problems() {
        eprintln!("backtrail: {problem}");
    }
    let mut options = StackOptions::default();
    options.max_frames = args.max_frames.unwrap_or(options.max_frames);
    options.consistent = args.consistent;
    options.detail = match args.detail {
        Detail::Addresses => backtrail::Detail::Addresses,
        Detail::Names => backtrail::Detail::Names,
        Detail::Lines => backtrail::Detail::Lines,
    };
    let stacks = read(args, &symbols, &options).map_err(Failure::Input)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    match args.format {
        StackFormat::Text => captured::write(&mut out, &stacks, !args.no_fold, style(colour, false))?,
        StackFormat::Json => backtrail::json::write_stacks(&mut out, &stacks)?,
        StackFormat::Collapsed => captured::write_collapsed(&mut out, &stacks)?,
    }
    out.flush()?;
    if args.format != StackFormat::Text {
        for note in &stacks.report.notes {
            eprintln!("backtrail: {note}");
        }
    }
    let outcome = if stacks.is_incomplete() { Outcome::Incomplete } else { Outcome::Done };
    // The program ends next, which is quicker than to give back the frames of a thousand threads one by one.
    std::mem::forget(stacks);
    Ok(outcome)
}

fn read(args: &Args, symbols: &Symbols, options: &StackOptions) -> Result<Stacks, String> {
    if let Some(folder) = &args.offline {
        return Stacks::offline(folder, symbols, options).map_err(|error| error.to_string());
    }
    if let Some(file) = &args.minidump {
        return Stacks::minidump(file, symbols, options).map_err(|error| error.to_string());
    }
    if let Some(pid) = args.pid {
        return process(pid, symbols, options);
    }
    let core = args.core.as_ref().ok_or("expected a process, --core, --minidump or --offline")?;
    Stacks::core(core, args.executable.as_deref(), symbols, options).map_err(|error| error.to_string())
}

#[cfg(target_os = "linux")]
fn process(pid: u32, symbols: &Symbols, options: &StackOptions) -> Result<Stacks, String> {
    Stacks::process(pid, symbols, options).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn process(_: u32, _: &Symbols, _: &StackOptions) -> Result<Stacks, String> {
    Err("processes that run are captured on Linux only".to_owned())
}
