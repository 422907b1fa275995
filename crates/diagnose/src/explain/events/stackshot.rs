//! The stacks of all processes at one moment.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::super::kill::killing;
use super::super::words::one_line;
use super::{field, name_of};
use backtrail_model::{Report, Source, Thread};

/// The kernel's word for a reset by the buttons, in reports of iOS 16.
const BUTTONS: &str = "btn_rst";

/// Lines of waits that are cited.
const MAX_WAITS: usize = 5;

pub(in super::super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    if report.source != Source::AppleStackshot {
        return false;
    }
    let watchdog = report.event.as_deref().is_some_and(|event| event.contains("watchdog"));
    if let Some(termination) = report.termination.as_ref().filter(|_| watchdog || killing(report).is_some()) {
        let reason = termination.reason.clone().unwrap_or_default();
        draft.lead(
            format!("The watchdog ended {}: {reason}", name_of(&report.process)),
            format!("{} did not answer in time, and the system ended it. The report has the stacks of all processes at that moment.", name_of(&report.process)),
        );
        let namespace = termination.namespace.as_deref().unwrap_or_default();
        draft.evidence(format!("Termination: {namespace} {reason}"));
        termination.details.iter().for_each(|detail| draft.evidence(detail));
        draft.next("Look at what the threads of the process wait for, and who could let them go on.");
    } else {
        let what = report.event.as_deref().unwrap_or("stackshot");
        let is_reset = what.contains("reset");
        let title = if is_reset {
            "The device was reset by force"
        } else {
            "A snapshot of all processes: nothing crashed"
        };
        let said = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
        let reason = match (field(&report.fields, "reason"), said) {
            (Some(reason), _) => format!(": {reason}"),
            (None, Some(BUTTONS)) => ": its buttons were held until it went off".to_owned(),
            _ => String::new(),
        };
        draft.lead(
            format!("{title}{reason}"),
            "The stacks of all processes were written down, because somebody asked for it or a timer ran out; no process failed for it.",
        );
        draft.evidence(format!("Kind of report: {what}"));
        if let Some(said) = said {
            draft.evidence(format!("Panic: {}", one_line(said)));
        }
        if said == Some(BUTTONS) {
            draft.say("The kernel writes a panic then, though nothing in it failed.");
            draft.next("Look for what made the device not react before: hangs, watchdogs and memory events of that time.");
        }
    }
    counts(report, draft);
    waits(report, draft);
    true
}

fn counts(report: &Report, draft: &mut Draft) {
    let processes = report.processes.len() + usize::from(report.process.pid.is_some());
    let threads: usize = super::all(report).map(|process| process.threads.len()).sum();
    draft.say(format!("It has {processes} processes with {threads} threads."));
    let own = &report.process;
    if own.pid.is_some() {
        let memory = own.memory.map(|bytes| format!(", {}", super::size(bytes))).unwrap_or_default();
        draft.evidence(format!("{}: {} threads{memory}", name_of(own), own.threads.len()));
        let busiest = own
            .threads
            .iter()
            .filter(|thread| time(thread) > 0.0)
            .max_by(|one, other| time(one).total_cmp(&time(other)));
        if let Some(thread) = busiest {
            let name = thread.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            draft.evidence(format!(
                "Its thread {}{name} used most CPU: {:.1} s",
                thread.number,
                time(thread)
            ));
        }
    }
}

fn time(thread: &Thread) -> f64 {
    thread.user_time.unwrap_or_default() + thread.system_time.unwrap_or_default()
}

/// Whom the process's threads wait for: the kernel wrote it down.
fn waits(report: &Report, draft: &mut Draft) {
    let own = &report.process;
    for key in ["waitInfo", "turnstileInfo"] {
        if let Some(lines) = field(&own.fields, key) {
            for line in lines.trim_matches(['[', ']']).split("\",").take(MAX_WAITS) {
                let line = line.trim().trim_matches('"');
                if !line.is_empty() {
                    draft.evidence(format!("{key}: {line}"));
                }
            }
        }
    }
}
