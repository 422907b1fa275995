//! Samples of processes as text: what `sample` prints, and what spindump prints and the systems write when a process hangs
//! or uses too much of the processor, wakes up too often or writes too much to disk.
//!
//! Both are a header of `Key: value` lines, then call trees by indentation, then images. Each line goes somewhere: into the
//! model, or as text into a field or section.

mod builder;
mod row;
mod sample;
mod spindump;
#[cfg(test)]
mod tests;

use crate::Limits;
pub(crate) use builder::finish;

use crate::apple_text::{Blamed, KeyValue, Line, Lines, set_header};
use crate::notes::Notes;
use backtrail_model::{Backtrace, Field, Frame, Process, Report, Section, Source};
use std::ops::Range;

/// The line by which `sample`'s output is known.
pub(crate) const SAMPLE: &str = "Analysis of sampling ";

/// The line by which spindump's output is known.
pub(crate) const SPINDUMP: &str = "Data Source:";

/// Whether a line is the row of a thread that `sample` prints, without the number of samples: what people leave of a graph.
pub(crate) fn is_threads_row(line: &str) -> bool {
    let rest = line.strip_prefix("Thread_").unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && rest.get(digits..).is_some_and(|rest| rest.trim_start().starts_with("DispatchQueue_"))
}

/// Whether a line says which limit of the systems was passed: reports may have no stack, and people leave them out.
pub(crate) fn is_event(line: &str) -> bool {
    const EVENTS: [&str; 3] = ["cpu usage", "wakeups", "disk writes"];
    line.strip_prefix("Event:").is_some_and(|event| EVENTS.contains(&event.trim()))
}

/// Reads a part of the input as text with call trees.
pub(crate) fn read(input: &[u8], part: Range<usize>, first_line: u64, limits: &Limits) -> Report {
    let text = input.get(part.clone()).unwrap_or_default();
    let is_sample = Lines::new(input, part.clone(), first_line).take(MAX_HEADER).any(|line| {
        let line = line.text();
        line.starts_with(SAMPLE) || line.trim() == "Call graph:" || is_threads_row(line.trim())
    });
    let lines = Lines::new(input, part, first_line);
    let mut report = if is_sample && !text.is_empty() {
        sample::read(lines, limits)
    } else {
        spindump::read(lines, limits)
    };
    report.source = Source::AppleSamples;
    report
}

/// Lines of a header that are looked at.
const MAX_HEADER: usize = 200;

/// What both readers need.
#[derive(Debug)]
struct Common<'l> {
    limits: &'l Limits,
    report: Report,
    notes: Notes,
    nodes_left: usize,
    images_left: usize,
    fields_left: usize,
}

impl<'l> Common<'l> {
    fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            report: Report::default(),
            notes: Notes::new(limits.max_notes),
            nodes_left: limits.max_frames,
            images_left: limits.max_images,
            fields_left: limits.max_items,
        }
    }

    /// Keeps a line as text, in the section that is being written; `title` opens another one.
    fn text(&mut self, title: &str, line: &str) {
        let sections = &mut self.report.sections;
        // Beyond the limit all goes into the last section, which costs no more than its text.
        let is_full = sections.len() >= self.limits.max_items;
        match sections.last_mut().filter(|section| section.title == title || is_full) {
            Some(section) => {
                section.text.push('\n');
                section.text.push_str(line.trim_end());
            }
            None => {
                sections.push(Section { title: title.to_owned(), text: line.trim_end().to_owned() });
            }
        }
    }

    /// A header line: into the model, or among the fields.
    fn header(&mut self, line: KeyValue<'_>) -> bool {
        let Some(left) = self.fields_left.checked_sub(1) else { return false };
        self.fields_left = left;
        set_header(&mut self.report, &mut Blamed::default(), line);
        true
    }

    /// A line that is too long to be looked at.
    fn is_too_long(&mut self, line: &Line<'_>) -> bool {
        let (number, bytes) = (line.number, line.bytes.len());
        if bytes > self.limits.max_line {
            self.notes.add(|| format!("line {number}: {bytes} bytes long, kept as text only"));
        }
        bytes > self.limits.max_line
    }

    fn finish(mut self) -> Report {
        for process in self.report.all_processes_mut() {
            finish_process(process);
        }
        add_heaviest(&mut self.report.process);
        self.report.notes = self.notes.finish();
        self.report
    }
}

/// What is worked out when all of a process is known.
fn finish_process(process: &mut Process) {
    row::add_unlisted_images(process);
    process.place_frames();
    process.trees.iter_mut().for_each(builder::finish);
}

/// Where a report of samples does not itself print the heaviest stack: that of its first tree, which is the main thread's.
pub(crate) fn add_heaviest(process: &mut Process) {
    if !process.backtraces.is_empty() || !process.threads.is_empty() {
        return;
    }
    let Some(tree) = process.trees.first() else { return };
    let Some(node) = tree.heaviest() else { return };
    let frames: Vec<Frame> = tree.stack(node).cloned().zip(0..).map(renumbered).collect();
    let title = format!("Heaviest stack of {}", thread_of(&tree.title));
    process.backtraces.push(Backtrace { title, is_exception: false, frames });
}

/// The thread that a tree's title names, without what else the title says: `Thread 0x3316`, `Thread_13078`.
fn thread_of(title: &str) -> &str {
    let mut blanks = title.match_indices(' ').map(|(at, _)| at);
    let end = match (blanks.next(), blanks.next()) {
        (Some(first), second) if title.starts_with("Thread 0x") => {
            second.or(Some(title.len())).filter(|_| first > 0)
        }
        (Some(first), _) if title.starts_with("Thread_") => Some(first),
        _ => None,
    };
    end.and_then(|end| title.get(..end)).unwrap_or(title).trim_end_matches(':')
}

/// In a tree a frame's index is its depth; in a stack it is its place.
fn renumbered((frame, index): (Frame, u32)) -> Frame {
    Frame { index, ..frame }
}

/// Keeps what is said of a process that the model has no place for.
fn process_field(process: &mut Process, line: KeyValue<'_>) {
    process.fields.push(Field { key: line.key.to_owned(), value: line.value.to_owned() });
}
