//! Compares our stacks with the peers' and with the source.

use super::builds::DebugInfo;
use super::cases::{Case, Treatment};
use super::explained;
use super::make::Made;
use stacks_compared::compare::{Verdict, compare, same_inlined};
use stacks_compared::gdb::Stacks;
use stacks_compared::ours::Thread;

/// One thread, compared.
#[derive(Debug)]
pub(super) struct JudgedThread {
    pub(super) id: u64,
    pub(super) frames: usize,
    /// Frames whose inlined functions are as many as gdb's.
    pub(super) inlined: usize,
    pub(super) gdb: Verdict,
    pub(super) eu_stack: Verdict,
}

/// One core, compared.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) threads: Vec<JudgedThread>,
    /// Where we differ from what the source says.
    pub(super) against_source: Vec<String>,
}

pub(super) fn judge(
    case: &Case,
    made: &Made,
    ours: &[Thread],
    gdb: Option<&Stacks>,
    eu_stack: Option<&Stacks>,
) -> Judged {
    let name = case.name();
    let against = |peer: &'static str, thread: &Thread, stacks: Option<&Stacks>| {
        let Some(stacks) = stacks else { return Verdict::NotCompared };
        let Some(stack) = stacks.get(&thread.id) else {
            return Verdict::Different("has no such thread".to_owned());
        };
        compare(&name, peer, thread, stack, &explained::RULES)
    };
    let threads = ours.iter().map(|thread| JudgedThread {
        id: thread.id,
        frames: thread.frames.len(),
        inlined: gdb.and_then(|gdb| gdb.get(&thread.id)).map_or(0, |stack| same_inlined(thread, stack)),
        gdb: against("gdb", thread, gdb),
        eu_stack: against("eu-stack", thread, eu_stack),
    });
    let mut against_source = against_source(case, made, ours);
    for (peer, stacks) in [("gdb", gdb), ("eu-stack", eu_stack)] {
        if let Some(stacks) = stacks.filter(|stacks| stacks.len() != ours.len()) {
            against_source.push(format!("{} threads, {peer} has {}", ours.len(), stacks.len()));
        }
    }
    Judged { threads: threads.collect(), name, against_source }
}

/// What the source says: which functions, how many threads, how deep.
fn against_source(case: &Case, made: &Made, ours: &[Thread]) -> Vec<String> {
    let mut faults = Vec::new();
    if matches!(case.treatment, Treatment::Cut(_)) {
        return faults;
    }
    if let Some(wanted) = case.way.threads.filter(|wanted| *wanted != ours.len()) {
        faults.push(format!("{} threads, the program had {wanted}", ours.len()));
    }
    let has_names = case.build.debug_info != DebugInfo::Nowhere && case.treatment != Treatment::ProgramGone;
    let has_names = has_names && explained::is_to_be_told(&case.name());
    let Some(thread) = ours.iter().find(|thread| thread.is_crashed).or(ours.first()).filter(|_| has_names)
    else {
        return faults;
    };
    let names: Vec<&str> =
        thread.frames.iter().flat_map(|frame| &frame.functions).map(|name| plain_name(name)).collect();
    let mut rest = names.iter();
    for wanted in case.way.functions {
        if !rest.any(|name| name == wanted) {
            faults.push(format!("{wanted} is not on the stack, or not there: {}", outline(&names)));
            break;
        }
    }
    faults.extend(depth(case, made, &names).map(|fault| fault + &format!(": {}", outline(&names))));
    faults
}

/// Names without parameters, clones and hashes.
fn plain_name(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    let name = if name.starts_with("main.") || name.starts_with("runtime.") {
        name
    } else {
        name.split_once('.').map_or(name, |(name, _)| name)
    };
    name.split_once("<").map_or(name, |(before, _)| if before.is_empty() { name } else { before })
}

fn outline(names: &[&str]) -> String {
    let mut text = names.iter().take(24).copied().collect::<Vec<_>>().join(" < ");
    if names.len() > 24 {
        text.push_str(&format!(" … ({} names)", names.len()));
    }
    text
}

/// A call that had no room for its return address is not counted; one that had none behind that is.
fn depth(case: &Case, made: &Made, names: &[&str]) -> Option<String> {
    if case.way.repeated.is_empty() {
        return None;
    }
    let Some(depth) = made.depth else { return Some("the program did not say how deep it came".to_owned()) };
    let there = names.iter().filter(|name| case.way.repeated.contains(name)).count() as u64;
    (there != depth && there != depth + 1)
        .then(|| format!("{there} repeated frames, the program made {depth}"))
}
