//! Samples as text: hangs, limits on CPU, wake-ups and disk writes, and what `sample` and spindump print.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::super::waits::waiting_in;
use super::super::words::{decimal_after, one_line};
use super::{field, name_of};
use crate::names::{cite, describe, is_any_of};
use backtrail_model::{Backtrace, Frame, Source};

/// A limit, by the report's word for the event.
struct Limit {
    event: &'static str,
    /// The line that states what was used and what was allowed.
    key: &'static str,
    title: &'static str,
    /// The words that are in that line before the limit.
    causes: &'static [&'static str],
    next: &'static str,
    /// What to do with the heaviest stack, where the report has one.
    with_stack: &'static str,
}

/// The limits that the systems watch.
static LIMITS: [Limit; 3] = [
    Limit {
        event: "cpu usage",
        key: "CPU",
        title: "Too much CPU time",
        causes: &["A loop that runs too often or does not end; work in the background that is not needed."],
        next: "Profile with Instruments (Time Profiler).",
        with_stack: "The heaviest stack is where to begin.",
    },
    Limit {
        event: "wakeups",
        key: "Wakeups",
        title: "Too many wake-ups",
        causes: &[
            "Threads that hand tiny pieces of work back and forth.",
            "Timers with a short interval, or polling instead of waiting.",
        ],
        next: "Batch the work; give timers a tolerance.",
        with_stack: "Look at what the heaviest stack waits for or is woken by.",
    },
    Limit {
        event: "disk writes",
        key: "Writes",
        title: "Too much written to disk",
        causes: &[
            "A database or log that is rewritten too often; large files written again for small changes.",
        ],
        next: "Batch writes; look at the database's journal mode and at how often logs are flushed.",
        with_stack: "The heaviest stack shows who writes most.",
    },
];

pub(in super::super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    if report.source != Source::AppleSamples {
        return false;
    }
    let event = report.event.as_deref().unwrap_or_default();
    match LIMITS.iter().find(|limit| limit.event == event) {
        Some(limit) => exceeded(facts, limit, draft),
        None if matches!(event, "hang" | "spin" | "unresponsive") => hang(facts, event, draft),
        None => sampled(facts, draft),
    }
    heaviest(facts, draft);
    true
}

/// A limit that was exceeded: what was observed, and the limit.
fn exceeded(facts: &Facts<'_>, limit: &Limit, draft: &mut Draft) {
    let (fields, process) = (&facts.report.fields, &facts.report.process);
    let who = name_of(process);
    let line = field(fields, limit.key);
    let (observed, allowed) = line.map_or((None, None), |line| {
        line.split_once(", exceeding ")
            .map_or((Some(line), None), |(observed, allowed)| (Some(observed), Some(allowed)))
    });
    let observed = observed.map(|observed| format!(": {}", one_line(observed))).unwrap_or_default();
    draft.lead(
        format!("{} by {who}{observed}", limit.title),
        match allowed {
            Some(allowed) if process.name.is_none() => format!("It went over a {}.", one_line(allowed)),
            Some(allowed) => format!("{who} went over a {}.", one_line(allowed)),
            None => format!("{who} went over a limit that the report does not state."),
        },
    );
    if let Some(line) = line {
        draft.evidence(format!("{}: {line}", limit.key));
    }
    match field(fields, "Action taken") {
        Some("none") => draft.say("The system took no action: the process went on."),
        Some(action) => {
            draft.say(format!("The action that the system took: {action}."));
        }
        None => {}
    }
    draft.causes(limit.causes);
    draft.next(limit.next);
    if !facts.report.process.backtraces.is_empty() {
        draft.next(limit.with_stack);
    }
}

fn hang(facts: &Facts<'_>, event: &str, draft: &mut Draft) {
    let fields = &facts.report.fields;
    let who = name_of(&facts.report.process);
    let lasted = field(fields, "Duration").map(|duration| format!(" for {duration}")).unwrap_or_default();
    draft.lead(
        format!("Hang: {who} did not react{lasted}"),
        format!("The main thread of {who} did not answer events{lasted}. It did not crash for it."),
    );
    draft.evidence(format!("Event: {event}"));
    for key in ["Duration", "Duration Sampled", "Total CPU Time"] {
        if let Some(value) = field(fields, key) {
            draft.evidence(format!("{key}: {value}"));
        }
    }
    busy(fields, draft);
    draft.next("Move what the main thread's heaviest stack does off the main thread, or make it wait for nothing there.");
}

/// Whether the processor was busy, where the report has both figures.
fn busy(fields: &[backtrail_model::Field], draft: &mut Draft) {
    let seconds = |key: &str| {
        field(fields, key).and_then(|text| decimal_after(text, "")).and_then(|text| text.parse::<f64>().ok())
    };
    let (Some(cpu), Some(sampled)) = (seconds("Total CPU Time"), seconds("Duration Sampled")) else { return };
    if sampled <= 0.0 {
        return;
    }
    let share = cpu / sampled;
    draft.say(format!("Its threads used {cpu} s of CPU in the {sampled} s that were sampled."));
    if share < 0.1 {
        draft.cause("The main thread waits: for a lock, another process, the disk or the network.");
    } else if share > 0.7 {
        draft.cause("The main thread, or one that it waits for, works: too much work at once, or a loop.");
    }
}

fn sampled(facts: &Facts<'_>, draft: &mut Draft) {
    let report = facts.report;
    let trees: usize = super::all(report).map(|process| process.trees.len()).sum();
    let who = name_of(&report.process);
    let others = match report.processes.len() {
        0 => String::new(),
        1 => " and another process".to_owned(),
        count => format!(" and {count} other processes"),
    };
    let stuck = stuck(facts);
    draft.lead(
        match stuck {
            Some(_) => format!("Samples of {who}{others}: the main thread did one thing all the time"),
            None => format!("Samples of {who}{others}: nothing crashed"),
        },
        match trees {
            0 => format!(
                "Somebody sampled the stacks of {who}{others}; of them the report has the heaviest one."
            ),
            1 => format!("Somebody sampled the stacks of {who}{others}; the report has 1 call tree."),
            _ => format!("Somebody sampled the stacks of {who}{others}; the report has {trees} call trees."),
        },
    );
    if let Some(total) = stuck {
        draft.say(format!("In all {total} samples the main thread was below the same call, and did not wait for events: it did not answer in that time."));
        draft.next("Look at what that call waits for or works at; it belongs off the main thread.");
    }
    if let Some(event) = &report.event {
        draft.evidence(event);
    }
    for key in ["Duration", "Steps", "Physical footprint"] {
        if let Some(value) = field(&report.fields, key) {
            draft.evidence(format!("{key}: {value}"));
        }
    }
}

/// The samples of the main thread, where it was below the same call in all of them and did not wait for events: a hang.
fn stuck(facts: &Facts<'_>) -> Option<u64> {
    let process = &facts.report.process;
    let main = process.trees.iter().find(|tree| tree.title.contains("com.apple.main-thread"))?;
    let frames = &process.backtraces.first()?.frames;
    let total = all_in_one(main)?;
    let is_idle = waiting_in(user_part(frames)).is_some_and(|(wait, _)| wait.idle);
    // A tree of a row or two was cut before what the thread does.
    (!is_idle && total > 1 && frames.len() > 4).then_some(total)
}

/// The samples of a tree, where its heaviest stack was in all of them.
fn all_in_one(tree: &backtrail_model::Tree) -> Option<u64> {
    let roots = tree.nodes.iter().filter(|node| node.parent.is_none());
    let total = roots.map(|node| node.weight).fold(0, u64::saturating_add);
    let leaf = tree.heaviest().and_then(|leaf| tree.nodes.get(leaf))?;
    (total > 0 && leaf.weight == total).then_some(total)
}

/// What the heaviest stack was doing.
fn heaviest(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(stack) = facts.report.process.backtraces.first() else {
        draft.say("The report has no stack of the process.");
        return;
    };
    let Some(top) = stack.frames.first() else { return };
    weight(facts, stack, draft);
    draft.evidence(cite(facts.report, &stack.title, top));
    match waiting_in(user_part(&stack.frames)) {
        Some((wait, _)) if wait.idle => {
            draft.say("In the heaviest stack the thread waits in its run loop for something to do.");
        }
        Some((wait, _)) => {
            draft.say(format!("In the heaviest stack the thread waits for {}.", wait.what));
            draft.next(wait.advice);
            own_queue(facts, &stack.frames, draft);
        }
        None => {
            draft.say(format!("The heaviest stack ends in {}.", describe(facts.report, top)));
        }
    }
}

/// Whether the main thread waits for a queue in all of its samples, and no other thread is there that could be at work in that
/// queue: then it is the main queue, which the main thread itself runs.
///
/// Source: dispatch_sync(3), "calling this function and targeting the current queue results in deadlock".
fn own_queue(facts: &Facts<'_>, frames: &[Frame], draft: &mut Draft) {
    const SYNC: [&str; 8] = [
        "__DISPATCH_WAIT_FOR_QUEUE__",
        "_dispatch_sync_f_slow",
        "_dispatch_sync_wait",
        "_dispatch_barrier_sync_f_slow",
        "_dispatch_lane_barrier_sync_invoke_and_complete",
        "dispatch_sync",
        "dispatch_sync_f",
        "dispatch_barrier_sync",
    ];
    let Some(at) = frames.iter().rposition(|frame| is_any_of(frame, &SYNC)) else { return };
    let process = &facts.report.process;
    let is_main = |tree: &backtrail_model::Tree| tree.title.contains("com.apple.main-thread");
    let Some(main) = process.trees.iter().find(|tree| is_main(tree)) else { return };
    let Some(caller) = frames.get(at + 1).filter(|_| all_in_one(main).is_some()) else { return };
    let place = describe(facts.report, caller);
    draft.say(format!(
        "The main thread did nothing else in all samples: {place} called dispatch_sync and never came back."
    ));
    if process.trees.len() == 1 {
        draft.cause("The queue is the main queue: the main thread waits for itself and will for ever. dispatch_sync to the queue that one runs on is a deadlock.");
    } else {
        draft.cause("The queue is the main queue, which waits for itself; or another thread works on that queue and waits for the main thread.");
    }
    draft.next("Call the block right there where the code runs on the main thread already ([NSThread isMainThread]), or use dispatch_async.");
}

/// The frames outside of the kernel: what the kernel does for a thread that waits says nothing of why it does.
fn user_part(frames: &[Frame]) -> &[Frame] {
    const KERNEL: u64 = 1 << 63;
    let in_kernel = |frame: &Frame| frame.address.is_some_and(|address| address.raw().get() >= KERNEL);
    let begin = frames.iter().position(|frame| !in_kernel(frame)).unwrap_or(0);
    frames.get(begin..).unwrap_or(frames)
}

/// How many of the samples have the heaviest stack, where the report has its tree.
fn weight(facts: &Facts<'_>, stack: &Backtrace, draft: &mut Draft) {
    let tree = facts.report.process.trees.first();
    let node = tree.and_then(|tree| tree.nodes.get(tree.heaviest()?));
    let total: u64 = tree.map_or(0, |tree| {
        tree.nodes
            .iter()
            .filter(|node| node.parent.is_none())
            .map(|node| node.weight)
            .fold(0, u64::saturating_add)
    });
    if let Some(node) = node.filter(|_| total > 0 && stack.title.starts_with("Heaviest stack of")) {
        draft.evidence(format!("{}: {} of {total} samples", stack.title, node.weight));
    }
}
