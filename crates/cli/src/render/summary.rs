//! One line a report, for lists: file, title, owner, stack, with tabs between them.

use crate::io::text::Text;
use backtrail::{Analysis, Frame, OwnerKind, Report};
use backtrail_render::stack::{below, directory};
use std::fmt::Write as _;
use std::io;

/// Frames of a stack that are shown.
const MAX_FRAMES: usize = 16;

/// Writes the line of one analysed report.
pub(crate) fn write(out: &mut Text<'_>, analysis: &Analysis, file: &str) -> io::Result<()> {
    let columns = [file, &analysis.explanation.title, &owner(analysis), &stack(&analysis.report)];
    for (position, column) in columns.into_iter().enumerate() {
        if position > 0 {
            out.tab()?;
        }
        out.put_str(column)?;
    }
    out.end()
}

/// Whose code it was, in as few words as there are.
fn owner(analysis: &Analysis) -> String {
    let attribution = &analysis.attribution;
    let word = attribution.verdict.as_str();
    match &attribution.name {
        Some(name) if attribution.verdict != OwnerKind::Unknown => {
            let version = attribution.version.as_deref().map(|version| format!(" {version}"));
            format!("{word} {name}{}", version.unwrap_or_default())
        }
        _ => word.to_owned(),
    }
}

/// The stack that tells whose fault it is, innermost function first.
fn stack(report: &Report) -> String {
    let frames = report.fault_frames();
    let mut line = String::new();
    for frame in frames.iter().take(MAX_FRAMES) {
        add_frame(report, frame, &mut line);
    }
    if let Some(more) = frames.len().checked_sub(MAX_FRAMES).filter(|more| *more > 0) {
        // Writing to a String cannot fail.
        let _ = write!(line, " < {more} more");
    }
    line
}

fn add_frame(report: &Report, frame: &Frame, line: &mut String) {
    let separator = |line: &mut String| {
        if !line.is_empty() {
            line.push_str(" < ");
        }
    };
    for function in &frame.functions {
        separator(line);
        line.push_str(&function.name);
        add_place(function.file.as_deref(), function.line, line);
    }
    if !frame.functions.is_empty() {
        return;
    }
    separator(line);
    if let Some(name) = frame.names().next() {
        line.push_str(name);
        let reported = frame.reported.as_ref().filter(|_| frame.symbol.is_none());
        add_place(
            reported.and_then(|symbol| symbol.file.as_deref()),
            reported.and_then(|symbol| symbol.line),
            line,
        );
        return;
    }
    let image = frame.image.and_then(|position| report.process.images.get(position));
    let name = image.map(|image| image.name.as_str()).or(frame.image_name.as_deref()).unwrap_or("???");
    line.push_str(name);
    let offset = frame
        .address
        .zip(image)
        .and_then(|(address, image)| address.raw().get().checked_sub(image.load_address.get()));
    let _ = match (offset, frame.address) {
        (Some(offset), _) => write!(line, " + {offset:#x}"),
        (None, Some(address)) => write!(line, " {}", address.raw()),
        (None, None) => Ok(()),
    };
}

fn add_place(file: Option<&str>, number: Option<u32>, line: &mut String) {
    let Some(file) = file else { return };
    let _ = match number {
        Some(number) => write!(line, " ({}:{number})", below(file, Some(directory(file)))),
        None => write!(line, " ({})", below(file, Some(directory(file)))),
    };
}
