//! Rows of text.

use super::{Edit, Written, is_filled, written};
use crate::apple_text::{self, FrameRow};
use crate::json::{decode, encode};
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Frame, Report};
use std::fmt::Write as _;
use std::ops::Range;

/// How rows stand in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// As lines.
    Plain,
    /// As lines of a JSON string.
    InJson,
}

/// Replaces what stands behind the row's address, and the inline rows before it.
pub(super) fn row(input: &[u8], inlined: &[&Frame], frame: &Frame, form: Form, edits: &mut Vec<Edit>) {
    let Some(span) = frame.span.clone() else { return };
    let Some(line) = input.get(span.clone()) else { return };
    let Some(tail) = tail_start(line, form) else { return };
    let line_break = line_break_at(input, span.end, form);
    for inlined in inlined.iter().filter_map(|frame| frame.span.clone()) {
        let end = inlined.end + line_break_at(input, inlined.end, form).len();
        edits.push(Edit { range: inlined.start..end, by: Vec::new() });
    }
    let prefix = line.get(..tail).unwrap_or_default();
    let blank = if prefix.ends_with(b" ") || prefix.ends_with(b"\t") { "" } else { " " };
    // The last row of a file may have no line break behind it to copy.
    let line_break = match (line_break, form) {
        ([], Form::Plain) => b"\n",
        ([], Form::InJson) => &b"\\n"[..],
        (line_break, _) => line_break,
    };
    let mut rows = Vec::new();
    for (position, function) in written(frame).iter().enumerate() {
        if position > 0 {
            rows.extend_from_slice(line_break);
        }
        let tail = describe(function);
        let tail = if form == Form::InJson { encode(&tail) } else { tail };
        rows.extend_from_slice(prefix);
        rows.extend_from_slice(blank.as_bytes());
        rows.extend_from_slice(tail.as_bytes());
    }
    edits.push(Edit { range: span, by: rows });
}

/// `name + 12 (File.swift:34) [inlined]`.
fn describe(function: &Written<'_>) -> String {
    let mut tail = function.name.clone();
    // Writing to a String cannot fail.
    if let Some(offset) = function.offset {
        let _ = write!(tail, " + {offset}");
    }
    if let (Some(file), Some(line)) = (function.file, function.line) {
        let _ = write!(tail, " ({file}:{line})");
    }
    if function.inlined {
        tail.push_str(" [inlined]");
    }
    tail
}

/// Where in the row that begins which is to be replaced: behind the address and the blanks after it.
fn tail_start(line: &[u8], form: Form) -> Option<usize> {
    let behind = match form {
        Form::Plain => FrameRow::read(line)?.address_span.end,
        Form::InJson => {
            // Escapes before the address make places in the text differ from places in the input.
            let text = decode(line);
            let row = FrameRow::read(text.as_bytes())?;
            let address = text.as_bytes().get(row.address_span)?;
            line.windows(address.len()).position(|window| window == address)? + address.len()
        }
    };
    let blanks = line.get(behind..)?.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(behind + blanks)
}

fn line_break_at(input: &[u8], at: usize, form: Form) -> &[u8] {
    let rest = input.get(at..).unwrap_or_default();
    let known: [&[u8]; 3] =
        if form == Form::InJson { [b"\\r\\n", b"\\n", b"\n"] } else { [b"\r\n", b"\n", b""] };
    let found = known.into_iter().find(|line_break| rest.starts_with(line_break));
    found.and_then(|line_break| rest.get(..line_break.len())).unwrap_or_default()
}

/// Lists `(0x1aa 0x1bb …)`, which have no room for names: a list of which something was found becomes rows.
#[derive(Debug, Default)]
pub(super) struct RawLists<'r> {
    /// Where each list stands, and its frames.
    lists: Vec<(Range<usize>, Vec<&'r Frame>)>,
}

impl<'r> RawLists<'r> {
    pub(super) fn add(&mut self, input: &[u8], frame: &'r Frame) {
        let Some(span) = frame.span.clone() else { return };
        if let Some((list, frames)) = self.lists.last_mut()
            && list.contains(&span.start)
        {
            frames.push(frame);
            return;
        }
        let before = input.get(..span.start).unwrap_or_default();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let behind = input.get(span.end..).unwrap_or_default();
        let end =
            span.end + behind.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(behind.len());
        let line = input.get(start..end).unwrap_or_default();
        if apple_text::raw_addresses(line).is_some() {
            self.lists.push((start..end, vec![frame]));
        }
    }

    pub(super) fn finish(self, input: &[u8], report: &Report, edits: &mut Vec<Edit>) {
        for (list, frames) in self.lists {
            if !frames.iter().any(|frame| is_filled(frame)) {
                continue;
            }
            let line_break = match line_break_at(input, list.end, Form::Plain) {
                b"\r\n" => "\r\n",
                _ => "\n",
            };
            let rows: Vec<String> = frames.iter().flat_map(|frame| rows_of(report, frame)).collect();
            edits.push(Edit { range: list, by: rows.join(line_break).into_bytes() });
        }
    }
}

/// Whole rows in the columns of Apple's reports.
fn rows_of(report: &Report, frame: &Frame) -> Vec<String> {
    let address = frame.address.map(FrameAddress::raw);
    let image = frame.image.and_then(|position| report.process.images.get(position));
    let name = image.map_or("???", |image| image.name.as_str());
    let head = format!("{:<3} {name:<30}\t{:#018x}", frame.index, address.map_or(0, Avma::get));
    if is_filled(frame) {
        return written(frame).iter().map(|function| format!("{head} {}", describe(function))).collect();
    }
    let offset = image.zip(address).and_then(|(image, address)| address.offset_from(image.load_address));
    let tail = match image.zip(offset) {
        Some((image, offset)) => format!("{:#x} + {offset}", image.load_address),
        None => "???".to_owned(),
    };
    vec![format!("{head} {tail}")]
}
