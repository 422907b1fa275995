//! Where in an input reports begin and end: several may stand in one file, and people paste them into mails and issues.

mod json;
mod mail;
mod metrickit;
mod pasted;
#[cfg(test)]
mod tests;
mod text;

use crate::detect::{SNIFFED, detect_lines};
use crate::read::{parse_as, start_of};
use crate::{Detected, Error, Limits, detect, runtimes};
use backtrail_model::Report;
use std::borrow::Cow;

/// One report of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document<'d> {
    /// Its bytes, for [`parse`](crate::parse): as they stand in the input, without what was put around them when they
    /// were pasted, or as a payload of its own.
    pub bytes: Cow<'d, [u8]>,
    /// The line of the input that it begins with, counted from 1.
    pub line: u64,
    /// The format of these bytes, where dividing the input told it.
    detected: Option<Detected>,
}

impl Document<'_> {
    /// Reads the report; [`parse`](crate::parse) does the same for bytes of which nothing is known yet.
    ///
    /// # Errors
    /// As [`parse`](crate::parse).
    pub fn parse(&self, limits: &Limits) -> Result<Report, Error> {
        parse_as(&self.bytes, self.detected, limits)
    }
}

/// Bytes that are one report.
impl<'d> From<&'d [u8]> for Document<'d> {
    fn from(bytes: &'d [u8]) -> Self {
        Self { bytes: Cow::Borrowed(bytes), line: 1, detected: None }
    }
}

/// No input has more; what follows belongs to the last.
const MAX_DOCUMENTS: usize = 1_000_000;

/// Divides an input into its reports: one as a rule, and never none. Together they are all of the input, but where it is a
/// JSON array of reports, or a payload of MetricKit: of that each diagnostic is a report. Words before a report in JSON, and a long
/// log (256 KiB) before one, are left out.
///
/// Text that was pasted into a mail or an issue is given without the marks of a quotation, fences and the escapes of HTML, bodies
/// of mails without their encoding, and UTF-16 as UTF-8.
/// Bytes of which nothing is known are one report, and so is text of another kind than crash reports.
pub fn documents(input: &[u8]) -> Vec<Document<'_>> {
    match utf16(input).map(String::into_bytes).or_else(|| mail::decoded(input)) {
        Some(text) => documents_within(&text).into_iter().map(Document::into_owned).collect(),
        None => documents_within(input),
    }
}

/// Text in UTF-16, which PowerShell and editors of Windows write, as UTF-8.
fn utf16(input: &[u8]) -> Option<String> {
    let (bytes, read): (_, fn([u8; 2]) -> u16) = match input.split_at_checked(2)? {
        (b"\xff\xfe", rest) => (rest, u16::from_le_bytes),
        (b"\xfe\xff", rest) => (rest, u16::from_be_bytes),
        _ => return None,
    };
    let units = bytes.as_chunks().0.iter().map(|pair| read(*pair));
    Some(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

fn documents_within(input: &[u8]) -> Vec<Document<'_>> {
    let start = start_of(input);
    let rest = input.get(start..).unwrap_or_default();
    let head = rest.get(..4096).unwrap_or(rest);
    let is_text = !head.contains(&0) && !head.starts_with(b"bplist") && !head.starts_with(b"plcrash");
    let (starts, detected) = match head.first() {
        _ if !is_text => (Vec::new(), None),
        Some(b'{') if !pasted::is_block_mark(head) => {
            if let Some(payloads) = metrickit::diagnostics(input, start) {
                return payloads_of(input, payloads);
            }
            let mut starts = json::starts(input, start);
            // Blanks before it are of the first.
            starts.iter_mut().take(1).for_each(|first| *first = 0);
            (starts, None)
        }
        Some(b'[') => {
            if let Some(items) = json::items(input, start) {
                return borrowed(input, items.into_iter(), None);
            }
            if let Some(payloads) = metrickit::diagnostics(input, start) {
                return payloads_of(input, payloads);
            }
            // Lines of logs begin with brackets too.
            text_starts(input)
        }
        _ => {
            if let Some(cleaned) = pasted::cleaned(input) {
                let (starts, detected) = text_starts(&cleaned);
                return owned(&cleaned, &starts, detected);
            }
            text_starts(input)
        }
    };
    borrowed(input, parts(input.len(), &starts), detected)
}

/// Where the part of a long log begins that a report is in; `None` where that is nowhere.
fn behind_a_log(text: &[u8]) -> Option<usize> {
    /// What a report is known by may lie over the border of two parts.
    const OVERLAP: usize = 16 << 10;
    let parts = (0..text.len()).step_by(SNIFFED - OVERLAP).skip(1);
    // Whole lines only: half of one may look like another.
    let lines = parts.filter_map(|at| Some(at + memchr::memchr(b'\n', text.get(at..)?)? + 1));
    let mut known = lines.filter(|at| {
        let part = text.get(*at..).unwrap_or_default();
        detect_lines(part) != Detected::Unknown
    });
    known.next()
}

fn payloads_of(input: &[u8], payloads: Vec<(usize, Vec<u8>)>) -> Vec<Document<'_>> {
    let mut lines = LineCount { text: input, at: 0, line: 1 };
    let document =
        |(at, bytes)| Document { line: lines.number_at(at), bytes: Cow::Owned(bytes), detected: None };
    payloads.into_iter().map(document).collect()
}

/// Where the reports of a text begin; of one alone also its format, where that was looked at. Only crash reports are divided: in
/// those of other kinds the lines that begin a report stand for each of many processes and threads.
fn text_starts(text: &[u8]) -> (Vec<usize>, Option<Detected>) {
    // A report may stand far inside of a long log.
    let mut detected = (text.len() > SNIFFED).then(|| detect(text));
    if detected == Some(Detected::Unknown)
        && let Some(at) = behind_a_log(text)
    {
        let (starts, detected) = text_starts(text.get(at..).unwrap_or_default());
        return (starts.into_iter().map(|start| start + at).collect(), detected);
    }
    let (starts, is_known) = text::starts(text);
    if !is_known && let Some(at) = json::within(text) {
        return (json::starts(text, at), None);
    }
    // Which kind it is takes longer to find out than how many there are.
    if is_known && starts == [0] {
        return (starts, detected);
    }
    let detected = *detected.get_or_insert_with(|| detect(text));
    let starts = match detected {
        Detected::AppleText
        | Detected::AppleIps
        | Detected::Crashlytics
        | Detected::ExceptionLog
        | Detected::Unknown => starts,
        Detected::Runtimes(kind) => runtimes::starts(kind, text),
        _ => vec![0],
    };
    let is_one = starts.len() <= 1;
    (starts, Some(detected).filter(|_| is_one))
}

/// The ranges from each start to the next; where there is none, all of it.
fn parts(length: usize, starts: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> {
    // Words before a report in JSON are none of it.
    let first = starts.first().copied().unwrap_or_default();
    let starts = starts.get(1..).unwrap_or_default();
    let starts = starts.get(..MAX_DOCUMENTS.min(starts.len())).unwrap_or_default();
    let begins = std::iter::once(first).chain(starts.iter().copied());
    let ends = starts.iter().copied().chain(std::iter::once(length));
    begins.zip(ends).map(|(begin, end)| begin..end)
}

fn borrowed(
    input: &[u8],
    ranges: impl Iterator<Item = std::ops::Range<usize>>,
    detected: Option<Detected>,
) -> Vec<Document<'_>> {
    let mut lines = LineCount { text: input, at: 0, line: 1 };
    let document = |range: std::ops::Range<usize>| Document {
        line: lines.number_at(range.start),
        bytes: Cow::Borrowed(input.get(range).unwrap_or_default()),
        detected,
    };
    ranges.map(document).collect()
}

fn owned(cleaned: &[u8], starts: &[usize], detected: Option<Detected>) -> Vec<Document<'static>> {
    // Cleaning keeps lines, so that they are still numbered as in the input.
    let mut lines = LineCount { text: cleaned, at: 0, line: 1 };
    let document = |range: std::ops::Range<usize>| Document {
        line: lines.number_at(range.start),
        bytes: Cow::Owned(cleaned.get(range).unwrap_or_default().to_vec()),
        detected,
    };
    parts(cleaned.len(), starts).map(document).collect()
}

impl Document<'_> {
    fn into_owned(self) -> Document<'static> {
        Document { bytes: Cow::Owned(self.bytes.into_owned()), line: self.line, detected: self.detected }
    }
}

/// Counts lines from place to place: a log may have a report in each.
struct LineCount<'t> {
    text: &'t [u8],
    at: usize,
    line: u64,
}

impl LineCount<'_> {
    /// The number of the line at a place, which lies behind the one asked for before.
    fn number_at(&mut self, at: usize) -> u64 {
        let passed = self.text.get(self.at..at).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at = self.at.max(at);
        self.line
    }
}
