//! Where JSON reports begin that stand one after the other, or in an array.

use crate::apple_text::Lines;
use crate::{Detected, detect};
use std::ops::Range;

/// What JSON of a report, or of a part of one that may stand alone, has.
const REPORTS: [&[u8]; 6] = [
    b"\"threads\"",
    b"\"usedImages\"",
    b"\"binary_images\"",
    b"\"crash\"",
    b"\"recrash_report\"",
    b"\"callStackTree\"",
];
/// What Apple's line of metadata has, which the body follows.
const METADATA: [&[u8]; 2] = [b"\"bug_type\"", b"\"app_name\""];
/// Larger than any line of metadata.
const MAX_METADATA: usize = 64 << 10;

/// The positions at which reports begin in an input whose first value begins at `start`.
pub(super) fn starts(input: &[u8], start: usize) -> Vec<usize> {
    // A report is a value, or two: metadata and body. Both begin a line, so that one look at the lines tells of most inputs
    // that there is nothing to divide.
    let lines = Lines::new(input, start..input.len(), 1);
    let opening = lines.filter(|line| line.bytes.first() == Some(&b'{')).map(|line| line.span.start);
    let opening: Vec<usize> = opening.take(3).collect();
    let is_pair =
        || opening.get(1).is_some_and(|second| is_metadata(input.get(start..*second).unwrap_or_default()));
    if opening.len() < 2 || (opening.len() == 2 && is_pair()) {
        return vec![start];
    }
    let second = opening.get(1).copied().unwrap_or(input.len());
    let first = input.get(start..second).unwrap_or_default();
    if first.len() <= MAX_METADATA && has_any(first, &[b"\"event_id\""]) && !has_any(first, &REPORTS) {
        // The header of one of Sentry's envelopes, which are one event.
        return vec![start];
    }
    let mut starts = Vec::new();
    let mut at = start;
    let mut after_metadata = false;
    while let Some(end) = value_end(input, at) {
        let value = input.get(at..end).unwrap_or_default();
        let metadata = is_metadata(value);
        let begins = metadata || (!after_metadata && has_any(value, &REPORTS));
        if begins || starts.is_empty() {
            starts.push(at);
        }
        after_metadata = metadata;
        match next_value(input, end) {
            Some(next) => at = next,
            None => return starts,
        }
    }
    if starts.is_empty() {
        starts.push(start);
    } else if !after_metadata && is_metadata(input.get(at..).unwrap_or_default()) {
        // The last one is cut.
        starts.push(at);
    }
    starts
}

/// Where a report in JSON begins that has words before it, as in an issue or a mail: most of the text is it.
pub(super) fn within(text: &[u8]) -> Option<usize> {
    /// Braces that code before it may have.
    const TRIED: usize = 16;
    let opening = Lines::new(text, 0..text.len(), 1)
        .filter_map(|line| Some(line.span.start + memchr::memchr(b'{', line.bytes)?));
    let is_report = |at: &usize| {
        let Some(value) = value_end(text, *at).and_then(|end| text.get(*at..end)) else { return false };
        let is_most = value.len() > text.len() / 2;
        is_most
            && matches!(
                detect(value),
                Detected::KsCrash
                    | Detected::Sentry
                    | Detected::Bugsnag
                    | Detected::MetricKit
                    | Detected::SwiftBacktrace
                    | Detected::AppleIps
            )
    };
    opening.take(TRIED).find(is_report)
}

/// The items of an array of reports; `None` where it is not one of these.
pub(super) fn items(input: &[u8], start: usize) -> Option<Vec<Range<usize>>> {
    const KSCRASH: [&[u8]; 3] = [b"\"binary_images\"", b"\"recrash_report\"", b"\"crash\""];
    let mut items = Vec::new();
    let mut at = start + 1;
    loop {
        let blanks = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
        at += input.get(at..)?.iter().take_while(blanks).count();
        if input.get(at) != Some(&b'{') {
            break;
        }
        let end = value_end(input, at).unwrap_or(input.len());
        if !has_any(input.get(at..end)?, &KSCRASH) {
            return None;
        }
        items.push(at..end);
        at = end;
    }
    (!items.is_empty()).then_some(items)
}

fn is_metadata(value: &[u8]) -> bool {
    value.len() <= MAX_METADATA
        && has_any(value, &METADATA)
        && !has_any(value, &[b"\"usedImages\"", b"\"threads\""])
}

fn has_any(value: &[u8], words: &[&[u8]]) -> bool {
    let has = |word: &&[u8]| {
        // A word begins with a quotation mark: most positions are dismissed by one byte.
        let mut rest = value;
        while let Some(at) = rest.iter().position(|byte| *byte == b'"') {
            rest = rest.get(at..).unwrap_or_default();
            if rest.starts_with(word) {
                return true;
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        false
    };
    words.iter().any(has)
}

/// Behind the object that begins at `at`; `None` where it is not closed.
fn value_end(input: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut position = at;
    loop {
        match input.get(position)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(position + 1);
                }
            }
            b'"' => position = string_end(input, position)?,
            _ => {}
        }
        position += 1;
    }
}

/// The closing quotation mark of the string that opens at `at`.
fn string_end(input: &[u8], at: usize) -> Option<usize> {
    let mut position = at + 1;
    loop {
        match input.get(position)? {
            b'"' => return Some(position),
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

/// The next object from `end` on that begins a line, or follows at once.
fn next_value(input: &[u8], end: usize) -> Option<usize> {
    let rest = input.get(end..)?;
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b',').count();
    if rest.get(blanks) == Some(&b'{') {
        return Some(end + blanks);
    }
    let mut lines = Lines::new(input, end..input.len(), 1).skip(1);
    lines.find(|line| line.bytes.first() == Some(&b'{')).map(|line| line.span.start)
}
