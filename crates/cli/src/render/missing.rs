//! Why frames have no names: one table of the images that they lie in.

use crate::io::text::{Look, Text};
use backtrail::{Image, Process, Report, SymbolStatus};
use backtrail_render::facts::id;
use std::io;

/// Writes each image with frames without names: how many, what became of its symbols, what was tried, and how to come by
/// them. Nothing where all frames have names.
pub(crate) fn write(out: &mut Text<'_>, report: &Report) -> io::Result<()> {
    let processes = std::iter::once(&report.process).chain(&report.processes);
    let images: Vec<_> =
        processes.flat_map(|process| &process.images).filter(|image| image.symbols.is_incomplete()).collect();
    let processes = std::iter::once(&report.process).chain(&report.processes);
    let stray = processes.flat_map(Process::frames_without_image).count();
    if images.is_empty() && stray == 0 {
        return Ok(());
    }
    out.end()?;
    out.painted_line(Look::Heading, "Frames without names")?;
    images.into_iter().try_for_each(|image| write_image(out, image))?;
    if stray > 0 {
        let why = match report.process.images.is_empty() {
            true => "the report has no list of images, so nothing tells which files to look for",
            false => "in none of the images that the report lists",
        };
        out.line(format_args!("  {}: {why}", frames(stray)))?;
    }
    Ok(())
}

fn frames(count: usize) -> String {
    if count == 1 { "1 frame".to_owned() } else { format!("{count} frames") }
}

fn write_image(out: &mut Text<'_>, image: &Image) -> io::Result<()> {
    let symbols = &image.symbols;
    let frames = frames(symbols.unnamed_frames);
    out.put_str("  ")?;
    out.paint(Look::Bad, image.path.as_ref().unwrap_or(&image.name))?;
    let arch = image.arch.map_or("", backtrail::Arch::name);
    out.line(format_args!("  {}  {arch}  {frames}: {}", id(image), explain(&symbols.status)))?;
    for tried in &symbols.tried {
        out.put_str("      ")?;
        out.painted_line(Look::Faint, tried)?;
    }
    if let Some(how) = &symbols.how_to_get {
        out.line(format_args!("      to get them: {how}"))?;
    }
    Ok(())
}

/// The status in words.
fn explain(status: &SymbolStatus) -> &'static str {
    match status {
        SymbolStatus::Found => "debug info has no function there",
        SymbolStatus::ExportsOnly => "the file names only what it exports",
        SymbolStatus::Stripped => "the file has no names for them",
        SymbolStatus::IdMismatch(_) => "only another build was found",
        _ => "no file",
    }
}
