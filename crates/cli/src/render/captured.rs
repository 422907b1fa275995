//! Captured processes as text and as collapsed stacks.

use super::paths::common_folder;
use super::style::{Look, Style, plain};
use super::text::{folded, id, is_missing, subject, what};
use super::threads::Threads;
use backtrail::{Frame, Report, Stacks, Thread};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the process, its stacks (identical ones once, unless `fold` is off), and what was missing.
pub(crate) fn write(out: &mut dyn Write, stacks: &Stacks, fold: bool, style: Style) -> io::Result<()> {
    let report = &stacks.report;
    let folder = common_folder(report);
    head(out, report, style)?;
    if let Some(folder) = &folder {
        writeln!(out, "{}", style.paint(Look::Faint, format_args!("Source files are below {folder}")))?;
    }
    let threads = Threads { report, style, folder: folder.as_deref() };
    if let Some(thread) = report.crashed() {
        threads.thread(out, &[thread])?;
        threads.registers(out, thread)?;
    }
    let others = report.process.threads.iter().enumerate();
    let others = others.filter(|(index, _)| Some(*index) != report.process.crashed_thread).map(|(_, thread)| thread);
    let groups: Vec<Vec<&Thread>> =
        if fold { folded(others) } else { others.map(|thread| vec![thread]).collect() };
    for group in groups {
        threads.thread(out, &group)?;
    }
    missing(out, stacks, style)?;
    notes(out, report, style)
}

/// What process this was, and what stopped it.
fn head(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let subject = subject(report);
    if !subject.is_empty() {
        writeln!(out, "{}", style.paint(Look::Title, subject))?;
    }
    let process = &report.process;
    for line in [process.command_line.as_ref().or(process.path.as_ref())].into_iter().flatten() {
        writeln!(out, "{}", style.paint(Look::Faint, plain(line)))?;
    }
    if let Some(what) = what(report) {
        let address = report.exception.as_ref().and_then(|exception| exception.address);
        let place = address.map(|address| format!(" at {address}")).unwrap_or_default();
        writeln!(out, "{what}{place}")?;
    }
    Ok(())
}

fn missing(out: &mut dyn Write, stacks: &Stacks, style: Style) -> io::Result<()> {
    let images = stacks.report.process.images.iter().zip(&stacks.images);
    let mut missing =
        images.filter(|(_, symbols)| is_missing(symbols) && symbols.unnamed_frames > 0).peekable();
    if missing.peek().is_some() {
        writeln!(out, "\n{}", style.paint(Look::Heading, "Files missing"))?;
    }
    for (image, symbols) in missing {
        let frames = if symbols.unnamed_frames == 1 { "frame" } else { "frames" };
        let name = image.path.as_ref().unwrap_or(&image.name);
        writeln!(
            out,
            "  {}  {}  {} {frames}",
            style.paint(Look::Bad, plain(name)),
            id(image),
            symbols.unnamed_frames
        )?;
    }
    Ok(())
}

fn notes(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if !report.notes.is_empty() {
        writeln!(out, "\n{}", style.paint(Look::Heading, "Notes"))?;
    }
    report.notes.iter().try_for_each(|note| writeln!(out, "  - {note}"))
}

/// Writes each distinct stack as `outermost;…;innermost count`, in the order of the names: what flame graphs are made of.
pub(crate) fn write_collapsed(out: &mut dyn Write, stacks: &Stacks) -> io::Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for thread in stacks.report.process.threads.iter().filter(|thread| !thread.frames.is_empty()) {
        let names: Vec<_> = thread.frames.iter().flat_map(|frame| names(&stacks.report, frame)).collect();
        let outermost_first: Vec<_> = names.into_iter().rev().collect();
        *counts.entry(outermost_first.join(";")).or_default() += 1;
    }
    counts.iter().try_for_each(|(stack, count)| writeln!(out, "{stack} {count}"))
}

/// The names of one frame, innermost first; `image+0x…` where it has none. A semicolon would end the frame, a line break
/// the stack.
fn names(report: &Report, frame: &Frame) -> Vec<String> {
    let mut names: Vec<_> = frame.names().map(str::to_owned).collect();
    if names.is_empty() {
        let image = frame.image.and_then(|index| report.process.images.get(index)).map(|image| image.name.as_str());
        let place = frame.relative_pc.map(|pc| pc.to_string());
        let address = || frame.address.map(|address| address.raw().to_string()).unwrap_or_default();
        names.push(match (image.or(frame.image_name.as_deref()), place) {
            (Some(image), Some(place)) => format!("{image}+{place}"),
            _ => address(),
        });
    }
    names.iter_mut().for_each(|name| *name = name.replace(';', ":").replace(char::is_control, " "));
    names
}
