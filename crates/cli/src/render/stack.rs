//! A stack as rows: one row a machine frame, and one for each function inlined there.

use super::paths::below;
use backtrail::{Frame, Function, Report};
use std::fmt::Write as _;

/// One line of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// The frame's number; `None` on the rows of a frame that follow its first.
    pub(crate) index: Option<u32>,
    /// The image's name.
    pub(crate) image: String,
    /// The function, `name + offset`, or the bare address.
    pub(crate) what: String,
    /// `file:line:column`.
    pub(crate) place: Option<String>,
    /// Whether this function is inlined into the next row's.
    pub(crate) inlined: bool,
    /// Why there is no name.
    pub(crate) reason: Option<&'static str>,
    /// Whether backtrail found the name, or the report has it with a line.
    pub(crate) located: bool,
}

/// The rows of `frames`.
pub(crate) fn rows(report: &Report, frames: &[Frame], folder: Option<&str>) -> Vec<Row> {
    frames.iter().flat_map(|frame| frame_rows(report, frame, folder)).collect()
}

fn frame_rows(report: &Report, frame: &Frame, folder: Option<&str>) -> Vec<Row> {
    let image = frame.image.and_then(|index| report.images.get(index)).map(|image| image.name.as_str());
    let image = image.or(frame.image_name.as_deref()).unwrap_or("???").to_owned();
    if frame.functions.is_empty() {
        return vec![plain_row(frame, image)];
    }
    let row = |(position, function): (usize, &Function)| Row {
        index: (position == 0).then_some(frame.index),
        image: image.clone(),
        what: function.name.clone(),
        place: place(function, folder),
        inlined: function.inlined,
        reason: None,
        located: function.file.is_some(),
    };
    frame.functions.iter().enumerate().map(row).collect()
}

/// A frame without debug info: a symbol with its offset, the report's own words, or the address.
fn plain_row(frame: &Frame, image: String) -> Row {
    let reported = frame.reported.as_ref();
    let (what, place) = match (&frame.symbol, reported) {
        (Some(symbol), _) => (format!("{} + {}", symbol.name, symbol.offset), None),
        (None, Some(symbol)) if frame.names().next().is_some() => {
            let mut what = symbol.name.clone();
            if let Some(offset) = symbol.offset {
                let _ = write!(what, " + {offset}");
            }
            (what, symbol.file.as_ref().map(|file| with_line(file, symbol.line, None)))
        }
        _ => (bare_address(frame), None),
    };
    let reason = frame.reason.map(backtrail::Reason::as_str);
    Row {
        index: Some(frame.index),
        image,
        what,
        located: place.is_some(),
        place,
        inlined: frame.inlined,
        reason,
    }
}

/// `0x102f4d3d4 (+ 54228)`: the address, and where it lies in the image.
fn bare_address(frame: &Frame) -> String {
    let address = frame.address.map_or_else(|| "no address".to_owned(), |address| address.raw().to_string());
    match frame.image_offset {
        Some(offset) => format!("{address} (+ {offset})"),
        None => address,
    }
}

/// `file:line:column`, as far as known.
pub(crate) fn place(function: &Function, folder: Option<&str>) -> Option<String> {
    let file = below(function.file.as_deref()?, folder);
    Some(with_line(file, function.line, function.column))
}

fn with_line(file: &str, line: Option<u32>, column: Option<u32>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        _ => file.to_owned(),
    }
}
