//! `backtrail images`: what files hold, and what a process has mapped.

use crate::args::{Images, PlainFormat};
use crate::output::{Failure, Outcome};
use crate::progress::Meter;
use crate::render::mapped;
use backtrail::{Inspected, Stacks, Symbols, inspect};
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(args: &Images) -> Result<Outcome, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut outcome = Outcome::Done;
    for path in &args.files {
        if let Some(pid) = process(path) {
            match images_of(pid, args) {
                Ok(stacks) => match args.format {
                    PlainFormat::Text => mapped::write(&mut out, &stacks)?,
                    PlainFormat::Json => backtrail::json::write_images(&mut out, &stacks)?,
                },
                Err(problem) => {
                    eprintln!("backtrail: {problem}");
                    outcome = Outcome::BadInput;
                }
            }
            continue;
        }
        match inspect(path) {
            Ok(slices) => {
                for slice in &slices {
                    match args.format {
                        PlainFormat::Text => write_text(&mut out, slice)?,
                        PlainFormat::Json => backtrail::json::write_line(&mut out, slice)?,
                    }
                }
            }
            Err(problem) => {
                eprintln!("backtrail: {problem}");
                outcome = Outcome::BadInput;
            }
        }
    }
    out.flush()?;
    Ok(outcome)
}

/// A process id: nothing but digits.
fn process(path: &Path) -> Option<u32> {
    path.to_str()?.parse().ok()
}

#[cfg(target_os = "linux")]
fn images_of(pid: u32, args: &Images) -> Result<Stacks, String> {
    let symbols = Symbols::scan(&args.symbols, &Meter::new());
    for problem in symbols.problems() {
        eprintln!("backtrail: {problem}");
    }
    Stacks::images_of(pid, &symbols).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn images_of(_: u32, _: &Images) -> Result<Stacks, String> {
    Err("processes that run are looked at on Linux only".to_owned())
}

fn write_text(out: &mut dyn Write, slice: &Inspected) -> io::Result<()> {
    let member = slice.member.as_ref().map(|member| format!("({member})")).unwrap_or_default();
    let words = [slice.format, slice.kind, slice.arch].map(|word| word.unwrap_or("unknown")).join(" ");
    writeln!(out, "{}{member}: {words}", slice.path)?;
    writeln!(out, "  id           {}", slice.id.as_deref().unwrap_or("none"))?;
    writeln!(out, "  image base   {}", slice.image_base.as_deref().unwrap_or("unknown"))?;
    let debug_info = match (slice.debug_info, slice.debug_map_objects, &slice.debug_link) {
        (true, ..) => "DWARF".to_owned(),
        (false, objects @ 1.., _) => format!("none; a debug map names {objects} object files"),
        (false, 0, Some(link)) => format!("none; in {link}"),
        (false, 0, None) => "none".to_owned(),
    };
    writeln!(out, "  debug info   {debug_info}")?;
    writeln!(out, "  symbols      {}; {} function starts", slice.symbols, slice.function_starts)?;
    for segment in &slice.segments {
        let (address, size) = (&segment.address, segment.size);
        writeln!(
            out,
            "  segment      {address:<18} {size:>12} bytes  {}  {}",
            segment.permissions, segment.name
        )?;
    }
    for command in &slice.load_commands {
        writeln!(out, "  {:<28} {}", command.name, command.text)?;
    }
    for problem in &slice.problems {
        writeln!(out, "  problem      {problem}")?;
    }
    Ok(())
}
