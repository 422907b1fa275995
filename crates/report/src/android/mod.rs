//! Reports of Android and of Java virtual machines: tombstones, ANR traces, Java exceptions, thread dumps.
//!
//! They hold parts of each other (a tombstone of xCrash has a Java stack, an ANR trace native frames, a log any of them),
//! so one reader goes through the lines of all. Each line says what it is by itself or by the block that it stands in; what
//! it says goes into the model, or is kept as text. What was found tells the kind of the report.
//!
//! A tombstone as a protocol buffer says the same and is read by `proto`.

mod finish;
mod foreign;
mod header;
mod images;
mod java_row;
mod native_row;
pub(crate) mod proto;
mod reader;
mod stacks;
#[cfg(test)]
mod tests;
mod thread_head;

use crate::logcat::log_line;
use java_row::JavaRow;
pub(crate) use native_row::NativeRow;

use crate::Limits;
use crate::apple_text::Lines;
use backtrail_model::{Backtrace, Report, Source};

/// How surely a line tells that its text is a report of these kinds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Telling {
    /// It may stand in any text.
    No,
    /// It is a row of a stack, which other kinds of reports may quote.
    Row,
    /// Nothing else has such lines.
    Sure,
}

/// Reads the whole input. Never fails; whether that was a report is the caller's to judge.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Report {
    let mut reader = reader::Reader::new(limits);
    for line in Lines::new(input, start..input.len(), 1) {
        reader.line(&line);
    }
    reader.finish()
}

/// Reads a text of which nothing is left but the first line of an exception.
pub(crate) fn read_head(input: &[u8], limits: &Limits) -> Option<Report> {
    let lines = Lines::new(input, 0..input.len(), 1);
    let mut lines = lines.filter(|line| line.bytes.len() <= limits.max_line);
    let title = lines.find_map(|line| {
        let text = line.text();
        let content = log_line(&text).map_or(&*text, |log| log.message);
        java_row::head_alone(content)
    })?;
    // Rows of a form that is not known: it would not be true that there are none.
    if lines.next().is_some_and(|line| line.bytes.trim_ascii_start().starts_with(b"at ")) {
        return None;
    }
    let mut report = Report { source: Source::JavaTrace, ..Report::default() };
    report.process.backtraces.push(Backtrace { title, ..Backtrace::default() });
    finish::settle(&mut report);
    Some(report)
}

/// Whether words are the first line of an exception of Java's library, Kotlin's or Android's, with what it says.
pub(crate) fn is_head(words: &str) -> bool {
    java_row::head_alone(words).is_some()
}

/// Beginnings of lines that only Android's reports and dumps of Java's threads have.
const SURE_STARTS: [&str; 7] = [
    "*** *** *** ***",
    "----- pid ",
    "----- Waiting Channels: pid ",
    "DALVIK THREADS",
    "Full thread dump ",
    "FATAL EXCEPTION: ",
    "ANR in ",
];

/// What a line tells of the text that it stands in.
pub(crate) fn telling(line: &str) -> Telling {
    let line = log_line(line).map_or(line, |log| log.message);
    let trimmed = line.trim();
    // This is asked of every line of every text: the first byte dismisses most.
    let is_sure = match trimmed.as_bytes().first() {
        Some(b'F' | b'A') if header::fatal(trimmed).is_some() => true,
        Some(b'*' | b'-' | b'D' | b'F' | b'A') => SURE_STARTS.iter().any(|word| trimmed.starts_with(word)),
        Some(b's') => header::signal(trimmed).is_some(),
        Some(b'p') => header::ThreadLine::read(trimmed).is_some_and(|line| line.process.is_some()),
        Some(b'#' | b'n') => NativeRow::read(trimmed).is_some(),
        Some(b'0'..=b'9') if trimmed.contains(" #") => NativeRow::read(trimmed).is_some(),
        Some(b'"') => thread_head::read(trimmed, 0).is_some(),
        Some(b'a') if JavaRow::read(trimmed).is_some() => return Telling::Row,
        Some(b'a' | b'j') if header::jni(trimmed).is_some() => true,
        Some(b'a'..=b'z') if trimmed.ends_with(')') && JavaRow::read(trimmed).is_some() => {
            return Telling::Row;
        }
        _ => false,
    };
    if is_sure { Telling::Sure } else { Telling::No }
}
