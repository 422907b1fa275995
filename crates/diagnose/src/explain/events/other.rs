//! Reports of Apple's systems that are neither of crashes nor of stacks.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::super::words::one_line;
use backtrail_model::Source;

/// What some kinds are, by the words that stand for their type.
static MEANINGS: [(&str, &str); 8] = [
    (
        "forced reset",
        "The device was restarted by its buttons, or by hardware, without being shut down. That is how people end a device that does not react; the report tells what it was doing.",
    ),
    (
        "reset count",
        "The device counts its restarts, and why it restarted. Many of them in a short time point at panics or at hardware.",
    ),
    ("software update report", "An update or a restore of the system wrote down what it did."),
    ("software restore report", "A restore of the system wrote down what it did."),
    ("low battery shutdown", "The device shut down because its battery was empty, or gave way under load."),
    ("analytics", "Counts and events that the system gathers; nothing failed."),
    (
        "GPU restart",
        "The graphics processor did not answer and was restarted; what was drawn by apps at that time may have been lost.",
    ),
    ("baseband crash", "The modem's firmware failed and was restarted."),
];

/// Members that state an outcome.
const OUTCOMES: [&str; 6] = ["error", "reason", "failure", "signature", "status", "count"];

pub(in super::super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    if report.source != Source::AppleIpsOther {
        return false;
    }
    let event = report.event.as_deref().unwrap_or("unknown");
    let meaning = MEANINGS.iter().find(|(known, _)| *known == event).map(|(_, meaning)| *meaning);
    let name = report.process.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    draft.lead(
        format!("No crash, but a report of another kind: {event}{name}"),
        meaning.unwrap_or(
            "What it says is kept as fields and sections; backtrail knows no rules for this kind.",
        ),
    );
    let telling = report.fields.iter().filter(|field| {
        let key = field.key.to_ascii_lowercase();
        OUTCOMES.iter().any(|word| key.contains(word)) && !field.value.is_empty()
    });
    telling.take(8).for_each(|field| draft.evidence(format!("{}: {}", field.key, field.value)));
    let text = report.sections.iter().find(|section| section.title == "Text");
    let failed = text
        .into_iter()
        .flat_map(|section| section.text.lines())
        .filter(|line| line.to_ascii_lowercase().contains("error"));
    failed.take(3).for_each(|line| draft.evidence(one_line(line)));
    true
}
