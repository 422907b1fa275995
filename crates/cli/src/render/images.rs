//! The images of a process, and what files hold, as text.

use crate::io::text::Text;
use backtrail::{Arch, Image, ImageSymbols, Inspected, ObjectFormat, ObjectKind, Stacks, SymbolStatus};
use backtrail_render::facts::{id, subject};
use std::io;

/// Writes each image in two lines and more: range, bias and path; identity and symbols; what was tried in vain.
pub(crate) fn write_process(out: &mut Text<'_>, stacks: &Stacks) -> io::Result<()> {
    out.line(subject(&stacks.report))?;
    for (image, symbols) in stacks.report.process.images.iter().map(|image| (image, &image.symbols)) {
        write_image(out, image, symbols)?;
    }
    Ok(())
}

fn write_image(out: &mut Text<'_>, image: &Image, symbols: &ImageSymbols) -> io::Result<()> {
    let end = image.end_address.unwrap_or(image.load_address);
    let path = image.path.as_ref().unwrap_or(&image.name);
    out.end()?;
    out.line(format_args!("{}-{}  {path}", image.load_address, end))?;
    let kind = image.id.map_or("id", |id| id.kind());
    let bias = symbols.bias.map_or_else(|| "unknown".to_owned(), |bias| bias.to_string());
    out.line(format_args!("  {kind:<9}  {}", id(image)))?;
    out.line(format_args!("  bias       {bias}"))?;
    match symbols.status {
        SymbolStatus::Found => out.line(format_args!("  symbols    {}", symbols.files.join(", ")))?,
        SymbolStatus::ExportsOnly => {
            out.line(format_args!("  symbols    {} (only what it exports)", symbols.files.join(", ")))?;
        }
        SymbolStatus::Stripped => out.line("  symbols    stripped")?,
        SymbolStatus::NoneNeeded => out.line("  symbols    none")?,
        _ => out.line("  symbols    missing")?,
    }
    symbols.tried.iter().try_for_each(|tried| out.line(format_args!("  tried      {tried}")))
}

/// Writes one slice of a file: what it is, its identity, segments and load commands.
pub(crate) fn write_file(out: &mut Text<'_>, slice: &Inspected) -> io::Result<()> {
    let member = slice.member.as_ref().map(|member| format!("({member})")).unwrap_or_default();
    let words = [
        slice.format.map(ObjectFormat::as_str),
        slice.kind.map(ObjectKind::as_str),
        slice.arch.map(Arch::name),
    ];
    let words = words.map(|word| word.unwrap_or("unknown")).join(" ");
    let id = slice.id.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let image_base = slice.image_base.map_or_else(|| "unknown".to_owned(), |base| base.to_string());
    out.line(format_args!("{}{member}: {words}", slice.path.display()))?;
    out.line(format_args!("  id           {id}"))?;
    out.line(format_args!("  image base   {image_base}"))?;
    let debug_info = match (slice.debug_info, slice.debug_map_objects, &slice.debug_link) {
        (true, ..) => "DWARF".to_owned(),
        (false, objects @ 1.., _) => format!("none; a debug map names {objects} object files"),
        (false, 0, Some(link)) => format!("none; in {link}"),
        (false, 0, None) => "none".to_owned(),
    };
    out.line(format_args!("  debug info   {debug_info}"))?;
    out.line(format_args!("  symbols      {}; {} function starts", slice.symbols, slice.function_starts))?;
    for segment in &slice.segments {
        let (address, size) = (segment.address.to_string(), segment.size);
        out.line(format_args!(
            "  segment      {address:<18} {size:>12} bytes  {}  {}",
            segment.permissions, segment.name
        ))?;
    }
    for command in &slice.load_commands {
        out.line(format_args!("  {:<28} {}", command.name, command.text))?;
    }
    for problem in &slice.problems {
        out.line(format_args!("  problem      {problem}"))?;
    }
    Ok(())
}
