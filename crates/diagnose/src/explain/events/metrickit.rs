//! MetricKit's diagnostics other than crashes, and its metrics.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::{field, name_of};
use crate::names::cite;
use backtrail_model::Source;

/// A kind of diagnostic.
struct Kind {
    event: &'static str,
    title: &'static str,
    meaning: &'static str,
    /// Members that state what was observed.
    keys: &'static [&'static str],
    next: &'static str,
}

static KINDS: [Kind; 4] = [
    Kind {
        event: "hang",
        title: "Hang: the app did not react",
        meaning: "The main thread did not answer events for too long; the app did not crash for it.",
        keys: &["hangDuration"],
        next: "Move what the heaviest stack does off the main thread, or make it wait for nothing there.",
    },
    Kind {
        event: "CPU exception",
        title: "Too much CPU time",
        meaning: "The app used more of the processor than the system allows.",
        keys: &["totalCPUTime", "totalSampledTime"],
        next: "Profile with Instruments (Time Profiler); the heaviest stack is where to begin.",
    },
    Kind {
        event: "disk write exception",
        title: "Too much written to disk",
        meaning: "The app wrote more to disk in a day than the system allows.",
        keys: &["writesCaused"],
        next: "Batch writes; look at the database's journal mode and at how often logs are flushed.",
    },
    Kind {
        event: "app launch",
        title: "A slow launch of the app",
        meaning: "The app took long to launch.",
        keys: &["launchDuration"],
        next: "Do less before the first frame; the heaviest stack is where to begin.",
    },
];

/// Endings of metrics that people look at first.
const METRICS: [&str; 12] = [
    "peakMemoryUsage",
    "cumulativeCPUTime",
    "cumulativeForegroundTime",
    "cumulativeBackgroundTime",
    "cumulativeLogicalWrites",
    "cumulativeAbnormalExitCount",
    "cumulativeAppWatchdogExitCount",
    "cumulativeBadAccessExitCount",
    "cumulativeIllegalInstructionExitCount",
    "cumulativeMemoryPressureExitCount",
    "cumulativeMemoryResourceLimitExitCount",
    "cumulativeSuspendedWithLockedFileExitCount",
];

pub(in super::super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    let Some(event) = report.event.as_deref().filter(|_| report.source == Source::MetricKit) else {
        return false;
    };
    match KINDS.iter().find(|kind| kind.event == event) {
        Some(kind) => diagnostic(facts, kind, draft),
        None if event == "metrics" => metrics(facts, draft),
        None => draft.lead(
            "A call stack of MetricKit without its diagnostic",
            "The stack was taken out of its payload, so the report does not say what it is of.",
        ),
    }
    true
}

fn diagnostic(facts: &Facts<'_>, kind: &Kind, draft: &mut Draft) {
    let process = &facts.report.process;
    let stated: Vec<String> =
        kind.keys.iter().filter_map(|key| Some(format!("{key}: {}", field(&process.fields, key)?))).collect();
    let values: Vec<&str> = kind.keys.iter().filter_map(|key| field(&process.fields, key)).collect();
    let observed = if values.is_empty() { String::new() } else { format!(": {}", values.join(" of ")) };
    draft.lead(format!("{}{observed}", kind.title), kind.meaning);
    if values.is_empty() {
        draft.say("The payload does not say how much.");
    }
    stated.iter().for_each(|line| draft.evidence(line));
    if let Some(stack) = process.backtraces.first()
        && let Some(top) = stack.frames.first()
    {
        draft.evidence(cite(facts.report, &stack.title, top));
    }
    let others = facts.report.processes.len();
    if others > 0 {
        draft.say(format!("The payload has {others} further diagnostics."));
    }
    draft.next(kind.next);
}

fn metrics(facts: &Facts<'_>, draft: &mut Draft) {
    let fields = &facts.report.fields;
    let begin = field(fields, "timeStampBegin").map(|begin| format!(", from {begin}")).unwrap_or_default();
    let end = facts.report.time.as_ref().map(|end| format!(" to {end}")).unwrap_or_default();
    draft.lead(
        format!("Metrics of {}{begin}{end}", name_of(&facts.report.process)),
        "Sums over a day that MetricKit counted on one device; the payload has no stacks and no faults.",
    );
    for metric in METRICS {
        let found = fields.iter().find(|field| field.key.ends_with(metric) && field.value != "0");
        if let Some(field) = found {
            draft.evidence(format!("{}: {}", field.key, field.value));
        }
    }
}
