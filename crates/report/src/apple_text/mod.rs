//! Apple's text reports, and those of the reporters that imitate them (PLCrashReporter, KSCrash).
//!
//! The reader goes line by line. Each line says what it is by itself or by the block that it stands in, and each line
//! goes somewhere: into the model, or as text into a field or section. [`LineKind`] makes that visible, so that a test can
//! hold the reader to it.
//!
//! Files begin and end anywhere, blank lines and indentation come and go with the tool that passed the report on; so
//! no block is demanded, and rows of stacks, states and images are known by their own form.

mod blocks;
mod finish;
mod frame_row;
mod header;
mod heading;
mod image_row;
mod lines;
mod reader;
mod stacks;
mod state;
#[cfg(test)]
mod tests;
mod texts;
mod umeng;
mod words;

pub(crate) use finish::mark_throw;
pub(crate) use frame_row::FrameRow;
pub(crate) use header::{Blamed, KeyValue, fault_address, numeric_codes, set as set_header};
pub(crate) use image_row::ImageRow;
pub(crate) use lines::{Line, Lines};
pub(crate) use stacks::raw_addresses;
pub(crate) use words::{Hex, hex_value, name_and_pid};

use crate::Limits;
use backtrail_model::Report;
use std::ops::Range;

/// What a line was, and so where it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LineKind {
    /// Nothing on it.
    Blank,
    /// It opened a block, and what else it says is in the model.
    Heading,
    /// A header line: in the model or among the fields.
    KeyValue,
    /// In a thread or backtrace.
    Frame,
    /// Says how often a recursion goes on.
    Recursion,
    /// In a thread's registers.
    Registers,
    /// In the images.
    Image,
    /// In what libraries wrote down.
    AppInfo,
    /// In the account of who ended the process.
    Termination,
    /// Kept as text in a section.
    Text,
}

/// Reads a part of the input as a text report. Never fails; whether that was a report is the caller's to judge.
pub(crate) fn read(input: &[u8], part: Range<usize>, first_line: u64, limits: &Limits) -> Report {
    read_traced(input, part, first_line, limits, |_, _| {})
}

/// The same, telling where each line went.
pub(crate) fn read_traced<'d>(
    input: &'d [u8],
    part: Range<usize>,
    first_line: u64,
    limits: &Limits,
    mut went: impl FnMut(&Line<'d>, LineKind),
) -> Report {
    let mut reader = reader::Reader::new(limits);
    for line in Lines::new(input, part, first_line) {
        let place = reader.line(&line);
        went(&line, place);
    }
    reader.finish()
}

/// Whether a line alone tells that its text is a report of this kind.
pub(crate) fn is_telling(line: &str) -> bool {
    let line = line.trim();
    let heading = matches!(
        heading::Heading::read(line, false),
        Some(heading) if !matches!(heading, heading::Heading::End | heading::Heading::Section { .. })
    );
    let key = header::KeyValue::read(line).is_some_and(|key_value| key_value.is_telling());
    let row = || {
        FrameRow::read(line.as_bytes()).is_some()
            || image_row::ImageRow::read(line.as_bytes()).is_some()
            || frame_row::begins_without_addresses(line)
    };
    heading || key || header::loader(line).is_some() || row()
}
