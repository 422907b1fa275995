//! Apple's `.ips` reports: a line of metadata in JSON, then the body in JSON or, for old ones, in text. Crashes, stackshots,
//! panics and memory events are told apart by the members of their bodies; all else is kept as fields and sections.
//!
//! Either part may be missing, cut or followed by something else. JSON is read with the place of every value, so that
//! frames can be filled in later without touching another byte. Every member goes somewhere: into the model, or as a
//! field or section under its path (`threads[3].frames[2].region`).

mod asi;
mod body;
mod bug_types;
mod exception;
mod images;
mod jetsam;
mod members;
mod metadata;
mod other;
mod panic;
mod stackshot;
mod state;
#[cfg(test)]
mod tests;
mod threads;

use crate::detect::detect_text;
use crate::json::{self, Json, Outcome};
use crate::leftovers::keep_rest;
use crate::notes::cut;
use crate::{Detected, Error, ErrorKind, Limits, apple_text, call_tree, jetsam_text, panic_text};
use backtrail_model::Report;
use metadata::Metadata;

/// Reads the report that begins at `start` with a JSON value.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let first = json::read(&arena, input, start, limits);
    let Some(document) = first.value.as_ref().filter(|json| json.is_object()) else {
        return Err(broken(input, &first, "a JSON object with the report's metadata or body"));
    };
    if let Some(form) = Form::of(document) {
        // The metadata line is missing: tools that pass bodies on leave it out.
        return read_body(input, &first, &Metadata::none(), Some(form), limits);
    }
    let metadata = Metadata::read(input, document);
    let rest = skip_blanks(input, first.end);
    if first.problem.is_some() || rest >= input.len() {
        if first.problem.is_none() && !metadata.is_crash() {
            return Ok(other::read_text("", &metadata, limits));
        }
        return Err(broken(input, &first, "the report's body behind the metadata"));
    }
    if input.get(rest) == Some(&b'{') {
        let body = json::read(&arena, input, rest, limits);
        let form = body.value.as_ref().and_then(Form::of);
        // Cut before the members that tell: what the line of metadata says is so.
        let is_begun =
            body.problem.is_some() && body.value.as_ref().is_some_and(|it| it.get("procName").is_some());
        let form = form.or((metadata.is_crash() && is_begun).then_some(Form::Crash));
        if form.is_none() && metadata.is_crash() {
            return Err(broken(input, &body, "a crash report's body (with `threads`, `usedImages`…)"));
        }
        return read_body(input, &body, &metadata, form, limits);
    }
    Ok(read_text_body(input, rest, &metadata, limits))
}

/// Reads members of a body that were cut out of it; `None` where there is none that tells what happened.
pub(crate) fn read_part(input: &[u8], body: &Outcome<'_>, limits: &Limits) -> Option<Report> {
    let document = body.value.as_ref().filter(|json| json.is_object())?;
    let form = Form::of(document).or_else(|| body::has_any(document).then_some(Form::Crash))?;
    read_body(input, body, &Metadata::none(), Some(form), limits).ok()
}

/// What the members of a body tell that it is. `bug_type` does not decide: the same type has had several forms.
#[derive(Clone, Copy)]
enum Form {
    Panic,
    Stackshot,
    Jetsam,
    Crash,
}

impl Form {
    fn of(document: &Json<'_>) -> Option<Self> {
        type Test = fn(&Json<'_>) -> bool;
        let forms: [(Self, Test); 4] = [
            (Self::Panic, panic::looks_so),
            (Self::Stackshot, stackshot::looks_so),
            (Self::Jetsam, jetsam::looks_so),
            (Self::Crash, body::looks_like_crash),
        ];
        forms.into_iter().find(|(_, looks_so)| looks_so(document)).map(|(form, _)| form)
    }
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
    form: Option<Form>,
    limits: &Limits,
) -> Result<Report, Error> {
    let Some(document) = &outcome.value else {
        return Err(broken(input, outcome, "the report's body"));
    };
    let body = body::Body::new(input, limits);
    let mut report = match form {
        Some(Form::Panic) => panic::read(body, document),
        Some(Form::Stackshot) => stackshot::read(body, document),
        Some(Form::Jetsam) => jetsam::read(body, document),
        Some(Form::Crash) => body.read(document),
        None => other::read(body, document),
    };
    metadata.add_to(&mut report);
    if outcome.problem.is_some() {
        let why = broken(input, outcome, "");
        report.notes.push(cut(&why));
    }
    // On macOS `System Profile:` and its lines.
    keep_rest(&mut report, input, outcome.end);
    Ok(report)
}

/// Up to iOS 14 the body is the text report; of some types it is text today.
fn read_text_body(input: &[u8], start: usize, metadata: &Metadata, limits: &Limits) -> Report {
    let before = input.get(..start).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let rest = input.get(start..).unwrap_or_default();
    let text = || String::from_utf8_lossy(rest);
    let mut report = match detect_text(rest) {
        Detected::AppleSamples => call_tree::read(input, start..input.len(), line, limits),
        Detected::ApplePanic => panic_text::read(&text(), limits),
        Detected::AppleJetsamText => jetsam_text::read(&text(), limits),
        Detected::AppleText => apple_text::read(input, start..input.len(), line, limits),
        _ if metadata.is_crash() => apple_text::read(input, start..input.len(), line, limits),
        _ => return other::read_text(&text(), metadata, limits),
    };
    metadata.add_to(&mut report);
    report
}
