//! The report again, with those frames filled in that symbolizing found something for.
//!
//! Only the bytes behind a row's address change in text, only `symbol`, `symbolLocation`, `sourceFile` and `sourceLine`
//! in JSON; inlined functions become rows or objects before their machine frame, marked as Apple marks them. Every
//! other byte stays, so a report of which nothing was found comes back as it was.

mod android;
mod json;
#[cfg(test)]
mod tests;
mod text;

use crate::read::translated_part;
use crate::{Limits, apple_text};
use backtrail_core::{FrameAddress, Function};
use backtrail_model::{Frame, Report, Source};
use std::collections::HashMap;
use std::ops::Range;

/// Bytes to be replaced.
#[derive(Debug)]
struct Edit {
    range: Range<usize>,
    by: Vec<u8>,
}

/// Gives `input` back with the frames of `report` filled in. `report` must have been read from `input`; frames whose
/// [`Frame::span`] lies elsewhere are passed over.
///
/// Rows that the report itself marks as inlined are replaced together with their machine frame, so what symbolizing
/// found belongs to that one; on the inlined rows it is not looked at.
pub fn emit(input: &[u8], report: &Report) -> Vec<u8> {
    let mut edits = Vec::new();
    for stack in stacks(report) {
        stack_edits(input, report, stack, &mut edits);
    }
    if report.source == Source::AppleIps {
        translation_edits(input, report, &mut edits);
    }
    apply(input, edits)
}

fn stacks(report: &Report) -> impl Iterator<Item = &[Frame]> {
    let threads = report.process.threads.iter().map(|thread| thread.frames.as_slice());
    threads.chain(report.process.backtraces.iter().map(|backtrace| backtrace.frames.as_slice()))
}

fn is_filled(frame: &Frame) -> bool {
    !frame.functions.is_empty() || frame.symbol.is_some()
}

fn stack_edits(input: &[u8], report: &Report, stack: &[Frame], edits: &mut Vec<Edit>) {
    // Rows that the report marks as inlined, up to their machine frame.
    let mut inlined: Vec<&Frame> = Vec::new();
    let mut raw_lists = text::RawLists::default();
    for frame in stack {
        if frame.inlined {
            inlined.push(frame);
            continue;
        }
        let bytes = frame.span.clone().and_then(|span| input.get(span)).unwrap_or_default();
        if bytes.starts_with(b"0x") {
            raw_lists.add(input, frame);
        } else if report.source.is_android_or_java() {
            if is_filled(frame) && frame.language.is_none() {
                android::row(input, frame, edits);
            }
        } else if is_filled(frame) && bytes.starts_with(b"{") {
            json::object(input, &inlined, frame, edits);
        } else if is_filled(frame) {
            let form = if report.source == Source::AppleIps { text::Form::InJson } else { text::Form::Plain };
            text::row(input, &inlined, frame, form, edits);
        }
        inlined.clear();
    }
    raw_lists.finish(input, report, edits);
}

/// The text of a translated report says the same as its JSON, so the same frames are filled in there.
fn translation_edits(input: &[u8], report: &Report, edits: &mut Vec<Edit>) {
    let Some(part) = translated_part(input) else { return };
    let answers: HashMap<FrameAddress, &Frame> = stacks(report)
        .flatten()
        .filter(|frame| is_filled(frame) && !frame.inlined)
        .filter_map(|frame| Some((frame.address?, frame)))
        .collect();
    if answers.is_empty() {
        return;
    }
    let mut text = apple_text::read(input, part, 1, &Limits::default());
    for frame in text.process.frames_mut() {
        if let Some(answer) = frame.address.and_then(|address| answers.get(&address)) {
            frame.functions.clone_from(&answer.functions);
            frame.symbol.clone_from(&answer.symbol);
            frame.function_offset = answer.function_offset;
        }
    }
    for stack in stacks(&text) {
        stack_edits(input, &text, stack, edits);
    }
}

fn apply(input: &[u8], mut edits: Vec<Edit>) -> Vec<u8> {
    edits.sort_by_key(|edit| edit.range.start);
    let mut output = Vec::with_capacity(input.len() + edits.iter().map(|edit| edit.by.len()).sum::<usize>());
    let mut at = 0;
    for edit in edits {
        // Spans that overlap or lie outside come from a report that was not read from this input.
        let Some(before) = input.get(at..edit.range.start) else { continue };
        if edit.range.end > input.len() || edit.range.end < edit.range.start {
            continue;
        }
        output.extend_from_slice(before);
        output.extend_from_slice(&edit.by);
        at = edit.range.end;
    }
    output.extend_from_slice(input.get(at..).unwrap_or_default());
    output
}

/// One function as it is written into a report.
#[derive(Debug)]
struct Written<'f> {
    name: String,
    offset: Option<u64>,
    /// The file's name without directories, and the line: what Apple's tools print.
    file: Option<&'f str>,
    line: Option<u32>,
    inlined: bool,
}

/// What is to be written for a filled frame, innermost first.
fn written(frame: &Frame) -> Vec<Written<'_>> {
    let machine = frame.functions.len().saturating_sub(1);
    let functions = frame.functions.iter().enumerate().map(|(position, function)| {
        let name = one_line(readable(function));
        let inlined = position < machine;
        let found = || frame.function_offset.or_else(|| reported_offset(frame, &name));
        let offset = if inlined { None } else { found() };
        let file = function.file.as_deref().map(file_name);
        Written { name, offset, file, line: function.line, inlined }
    });
    let symbol = frame.symbol.as_ref().filter(|_| frame.functions.is_empty());
    let symbol = symbol.map(|symbol| Written {
        name: one_line(&symbol.name),
        offset: Some(symbol.offset),
        file: None,
        line: None,
        inlined: false,
    });
    functions.chain(symbol).collect()
}

fn readable(function: &Function) -> &str {
    let linkage = function.linkage_name.as_deref().unwrap_or_default();
    let named = [function.name.as_str(), linkage].into_iter().find(|name| !name.is_empty());
    named.unwrap_or("???")
}

/// The offset that the report itself states, where it speaks of the same function.
fn reported_offset(frame: &Frame, name: &str) -> Option<u64> {
    frame.reported.as_ref().filter(|reported| reported.name == name)?.offset
}

fn file_name(path: &str) -> &str {
    // `/<compiler-generated>` is no path.
    if path.ends_with('>') {
        return path;
    }
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// A name from debug info may hold anything; a line break would break the report.
fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
