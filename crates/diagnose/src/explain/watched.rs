//! What `backtrail watch`, or the program itself, reports and is no crash.

use super::captures::go_panic;
use super::draft::Draft;
use super::facts::{Facts, field};
use super::waits::{main_thread_activity, releasers};
use backtrail_model::Source;

/// The first thread of a watched process did not run for longer than was allowed.
pub(super) fn hang(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::CrashFile || facts.report.event.as_deref() != Some("hang") {
        return false;
    }
    let time = field(&facts.report.fields, "Time without running");
    let lasted = time.map(|time| format!(" for {time}")).unwrap_or_default();
    draft.lead(
        format!("Hang: the first thread did not run{lasted}"),
        format!(
            "The first thread neither ran nor began another wait{lasted}. The process did not crash for it."
        ),
    );
    main_thread_activity(facts, draft);
    releasers(facts, draft);
    true
}

/// A watched process ended by itself, with an exit code that says that something failed.
pub(super) fn failing_exit(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::CrashFile || facts.report.event.as_deref() != Some("exit") {
        return false;
    }
    let code = field(&facts.report.fields, "Exit code").unwrap_or("other than 0");
    // A panic of Go's ends the process by an exit code, with the goroutine's stack as it was.
    if go_panic(facts, draft) {
        draft.say(format!("The exit code is {code}."));
        return true;
    }
    draft.lead(
        format!("The process ended with exit code {code}"),
        "The process ended by itself; nothing crashed. The stacks are those of its last moment.",
    );
    draft.next("Look at the frames that call exit, and at the last lines of the program's output.");
    true
}

/// A program sent a message, or a user said something: no exception and no crash came along.
pub(super) fn message(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(said) = facts.report.event.as_deref().filter(|_| facts.report.source == Source::Sentry) else {
        return false;
    };
    draft.lead(said, "The program sent a message; nothing crashed.");
    facts.said.iter().take(3).for_each(|said| draft.evidence(said.cite()));
    true
}
