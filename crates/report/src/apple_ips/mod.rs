//! Apple's `.ips` reports: a line of metadata in JSON, then the body in JSON or, for old ones, in text.
//!
//! Either part may be missing, cut or followed by something else. JSON is read with the place of every value, so that
//! frames can be filled in later without touching another byte. Every member goes somewhere: into the model, or as a
//! field or section under its path (`threads[3].frames[2].region`).

mod asi;
mod body;
mod bug_types;
mod exception;
mod images;
mod members;
mod metadata;
mod state;
#[cfg(test)]
mod tests;
mod threads;

use crate::json::{self, Outcome};
use crate::{Error, ErrorKind, Limits, apple_text};
use backtrail_model::{Report, Section, Source};
use metadata::Metadata;

/// Reads the report that begins at `start` with a JSON value.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let first = json::read(input, start, limits);
    let Some(document) = first.value.as_ref().filter(|json| json.is_object()) else {
        return Err(broken(input, &first, "a JSON object with the report's metadata or body"));
    };
    if body::looks_like_crash(document) {
        // The metadata line is missing: tools that pass bodies on leave it out.
        return read_body(input, &first, &Metadata::none(), limits);
    }
    let metadata = Metadata::read(input, document);
    let rest = skip_blanks(input, first.end);
    if first.problem.is_some() || rest >= input.len() {
        metadata.kind()?;
        return Err(broken(input, &first, "the report's body behind the metadata"));
    }
    if input.get(rest) == Some(&b'{') {
        let body = json::read(input, rest, limits);
        let is_crash = body.value.as_ref().is_some_and(body::looks_like_crash);
        return match metadata.kind() {
            Err(error) if metadata.has_known_kind() || !is_crash => Err(error),
            _ if !is_crash => {
                Err(broken(input, &body, "a crash report's body (with `threads`, `usedImages`…)"))
            }
            _ => read_body(input, &body, &metadata, limits),
        };
    }
    metadata.kind()?;
    Ok(read_text_body(input, rest, &metadata, limits))
}

fn skip_blanks(input: &[u8], from: usize) -> usize {
    let rest = input.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn broken(input: &[u8], outcome: &Outcome<'_>, expected: &str) -> Error {
    let (at, expected) = match outcome.problem {
        Some(problem) => (problem.at, problem.expected),
        None => (outcome.end, expected),
    };
    let found = if at >= input.len() { ", found the end of the file" } else { "" };
    let found = if expected.contains("found") { "" } else { found };
    Error::new(ErrorKind::Malformed, format!("expected {expected}{found}")).at(input, at)
}

fn read_body(
    input: &[u8],
    outcome: &Outcome<'_>,
    metadata: &Metadata,
    limits: &Limits,
) -> Result<Report, Error> {
    let Some(document) = &outcome.value else {
        return Err(broken(input, outcome, "the report's body"));
    };
    let mut report = body::Body::new(input, limits).read(document);
    metadata.add_to(&mut report);
    if outcome.problem.is_some() {
        let why = broken(input, outcome, "");
        report.notes.push(format!("the report is cut or broken, what stands before is read: {why}"));
    }
    add_trailer(&mut report, input, outcome.end);
    Ok(report)
}

/// What stands behind the body: `System Profile:` and its lines on macOS, or the rest behind a broken place.
fn add_trailer(report: &mut Report, input: &[u8], end: usize) {
    let text = String::from_utf8_lossy(input.get(end..).unwrap_or_default());
    let text = text.trim();
    if !text.is_empty() {
        let title = "Text behind the report".to_owned();
        report.sections.push(Section { title, text: text.to_owned() });
    }
}

/// Up to iOS 14 the body is the text report.
fn read_text_body(input: &[u8], start: usize, metadata: &Metadata, limits: &Limits) -> Report {
    let before = input.get(..start).unwrap_or_default();
    let lines_before = before.iter().filter(|byte| **byte == b'\n').count();
    let mut report = apple_text::read(input, start..input.len(), lines_before as u64 + 1, limits);
    report.source = Source::AppleText;
    metadata.add_to(&mut report);
    report
}
