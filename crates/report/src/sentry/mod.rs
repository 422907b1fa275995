//! Sentry's events: JSON of a crash or an error as its clients send it, alone or in an envelope.
//!
//! Frames stand outermost first there. (develop.sentry.dev, "Event Payloads" and "Envelopes".)

mod event;
#[cfg(test)]
mod tests;

use crate::json::{self, Json};
use crate::members::Members;
use crate::{Error, ErrorKind, Limits};
use backtrail_model::{Field, Report, Source};

/// Whether the beginning of a JSON input is that of an event, or of an envelope.
pub(crate) fn is_sentry(head: &str) -> bool {
    let has = |word: &str| head.contains(word);
    // What an event is of may lie far behind; all that clients send names the platform.
    let payload = PAYLOAD.iter().any(|name| has(&format!("\"{name}\"")));
    has("\"event_id\"") && (payload || has("\"platform\"") || has("\"stacktrace\""))
}

/// What an event is of: each has one of these. `comments` is the old form of what a user said of a crash, `contexts.feedback` the new one.
const PAYLOAD: [&str; 6] = ["exception", "threads", "debug_meta", "message", "logentry", "comments"];

/// Items of an envelope that are looked at.
const MAX_ITEMS: usize = 1000;

/// Reads the event that begins at `start`, or that the envelope there has.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let mut members = Members::new(input, Source::Sentry, limits);
    let mut headers = Vec::new();
    let mut at = start;
    for _ in 0..MAX_ITEMS {
        let arena = json::Arena::default();
        let outcome = json::read(&arena, input, at, limits);
        let Some(document) = outcome.value.as_ref().filter(|value| value.is_object()) else { break };
        if is_event(document) {
            members.report.fields.extend(headers);
            event::read(&mut members, document);
            return Ok(members.finish(&outcome));
        }
        // What an envelope says before its event.
        for member in document.members() {
            let value = member
                .value
                .scalar()
                .map_or_else(|| crate::leftovers::raw(input, &member.value), std::borrow::Cow::into_owned);
            headers.push(Field { key: format!("envelope.{}", member.name()), value });
        }
        at = outcome.end;
        if outcome.problem.is_some() {
            break;
        }
    }
    let message = "expected an event with `exception`, `threads`, `debug_meta`, `message` or `logentry`";
    Err(Error::new(ErrorKind::Malformed, message).at(input, at))
}

fn is_event(document: &Json<'_>) -> bool {
    let has_feedback = || document.get("contexts").is_some_and(|contexts| contexts.get("feedback").is_some());
    PAYLOAD.iter().any(|name| document.get(name).is_some())
        || document.get("stacktrace").is_some()
        || has_feedback()
}
