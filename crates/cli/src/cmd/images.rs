//! `backtrail images`: what files hold.

use crate::args::{Images, PlainFormat};
use crate::output::{Failure, Outcome};
use backtrail::{Inspected, inspect};
use std::io::{self, Write};

pub(crate) fn run(args: &Images) -> Result<Outcome, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut outcome = Outcome::Done;
    for path in &args.files {
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
