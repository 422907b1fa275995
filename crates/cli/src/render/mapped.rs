//! The images of a process as text.

use super::style::plain;
use super::text::{id, subject};
use backtrail::{Image, ImageSymbols, Stacks, SymbolStatus};
use std::io::{self, Write};

/// Writes each image in two lines and more: range, bias and path; identity and symbols; what was tried in vain.
pub(crate) fn write(out: &mut dyn Write, stacks: &Stacks) -> io::Result<()> {
    writeln!(out, "{}", subject(&stacks.report))?;
    for (image, symbols) in stacks.report.process.images.iter().zip(&stacks.images) {
        write_image(out, image, symbols)?;
    }
    Ok(())
}

fn write_image(out: &mut dyn Write, image: &Image, symbols: &ImageSymbols) -> io::Result<()> {
    let end = image.end_address.unwrap_or(image.load_address);
    let path = plain(image.path.as_ref().unwrap_or(&image.name));
    writeln!(out, "\n{}-{}  {path}", image.load_address, end)?;
    let kind = image.id.map_or("id", |id| id.kind());
    let bias = symbols.bias.map_or_else(|| "unknown".to_owned(), |bias| bias.to_string());
    writeln!(out, "  {kind:<9}  {}", id(image))?;
    writeln!(out, "  bias       {bias}")?;
    match symbols.status {
        SymbolStatus::Found => writeln!(out, "  symbols    {}", plain(&symbols.files.join(", ")))?,
        SymbolStatus::NoneNeeded => writeln!(out, "  symbols    none")?,
        _ => writeln!(out, "  symbols    missing")?,
    }
    symbols.tried.iter().try_for_each(|tried| writeln!(out, "  tried      {}", plain(tried)))
}
