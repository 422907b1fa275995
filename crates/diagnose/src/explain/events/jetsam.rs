//! Memory events: whom the system ended for want of memory, and why.
//!
//! Source of the reasons: XNU `bsd/kern/kern_memorystatus.c` and `bsd/sys/kern_memorystatus.h`.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::super::words::listed;
use super::{all, field, name_of, size};
use backtrail_model::{Process, Source};

/// A reason of the kernel.
struct Reason {
    name: &'static str,
    meaning: &'static str,
    shortage: Shortage,
}

/// What there was too little of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shortage {
    /// Of nothing: the process itself used more memory than it may.
    Own,
    /// Memory of the device.
    Memory,
    /// Space on the disk.
    Disk,
}

/// The reasons that reports print.
static REASONS: [Reason; 17] = [
    Reason {
        name: "per-process-limit",
        meaning: "It used more memory than the system allows a process of its kind.",
        shortage: Shortage::Own,
    },
    Reason {
        name: "highwater",
        meaning: "It was over its soft limit (high water mark) when the system wanted memory back.",
        shortage: Shortage::Own,
    },
    Reason {
        name: "vm-pageshortage",
        meaning: "The device ran out of free pages; processes are then ended from the lowest priority upwards, whatever each uses itself.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "vm-thrashing",
        meaning: "Memory was compressed and decompressed over and over; the system ended processes to break that.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "fc-thrashing",
        meaning: "Files were thrown out of memory and read again over and over; the system ended processes to break that.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "proc-thrashing",
        meaning: "Processes were started and ended over and over for want of memory.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "vnode-limit",
        meaning: "The system's table of open files was full.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "disk-space-shortage",
        meaning: "The storage was full, so that memory could not be swapped or caches not be kept.",
        shortage: Shortage::Disk,
    },
    Reason {
        name: "idle-exit",
        meaning: "It had nothing to do; the system ended it to get memory back. That is no fault.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "long-idle-exit",
        meaning: "It had had nothing to do for long. That is no fault.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "zone-map-exhaustion",
        meaning: "The kernel's own memory (its zone map) was used up; the process that held most of it was ended.",
        shortage: Shortage::Own,
    },
    Reason {
        name: "vm-compressor-thrashing",
        meaning: "Memory was compressed and decompressed over and over; the system ended processes to break that.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "vm-compressor-space-shortage",
        meaning: "The space for compressed memory was used up.",
        shortage: Shortage::Memory,
    },
    Reason { name: "low-swap", meaning: "The swap files were nearly full.", shortage: Shortage::Memory },
    Reason {
        name: "sustained-memory-pressure",
        meaning: "Memory was short for long; idle processes were ended.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "vm-pageout-starvation",
        meaning: "The kernel's thread that frees pages did not get on.",
        shortage: Shortage::Memory,
    },
    Reason {
        name: "conclave-limit",
        meaning: "A limit on memory of its secure part was passed.",
        shortage: Shortage::Own,
    },
];

/// Processes that a sentence names.
const MAX_NAMED: usize = 5;

pub(in super::super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    if report.source != Source::AppleJetsam {
        return false;
    }
    let killed: Vec<&Process> = all(report).filter(|process| process.kill_reason.is_some()).collect();
    match killed.as_slice() {
        [] => nobody(facts, draft),
        [only] => one(only, draft),
        several => many(several, draft),
    }
    largest(facts, draft);
    memory(facts, draft);
    true
}

fn reason(process: &Process) -> Option<&'static Reason> {
    let stated = process.kill_reason.as_deref()?;
    REASONS.iter().find(|reason| reason.name == stated)
}

fn holding(process: &Process) -> String {
    let pages = || field(&process.fields, "rpages").map(|pages| format!(", {pages} pages"));
    // Without the size of a page their number says as much as the report does.
    process.memory.map(|bytes| format!(", {}", size(bytes))).or_else(pages).unwrap_or_default()
}

fn nobody(facts: &Facts<'_>, draft: &mut Draft) {
    draft.lead(
        "Memory ran low: a list of all processes and their memory",
        "The system wrote down who used how much memory; the report names no process that was ended.",
    );
    if all(facts.report).all(|process| process.memory.is_none()) {
        draft.say("It does not say how much each used.");
    }
}

fn one(process: &Process, draft: &mut Draft) {
    let stated = process.kill_reason.as_deref().unwrap_or_default();
    let is_about_disk = reason(process).is_some_and(|reason| reason.shortage == Shortage::Disk);
    let what = if is_about_disk { "disk space" } else { "memory" };
    draft.lead(
        format!("The system ended {} for {what}: {stated}{}", name_of(process), holding(process)),
        format!("The system ended {} to get {what} back.", name_of(process)),
    );
    cite(process, draft);
    meaning(process, draft);
}

fn meaning(process: &Process, draft: &mut Draft) {
    let Some(reason) = reason(process) else {
        draft.say("The report's word for the reason is not one that is known here.");
        return;
    };
    draft.say(reason.meaning);
    match reason.shortage {
        Shortage::Own => {
            draft.cause(
                "Memory that grows: leaks, retain cycles, caches without a bound, images decoded at full size.",
            );
            draft.next(
                "Profile with Instruments (Allocations, Leaks, VM Tracker), and watch memory warnings.",
            );
        }
        Shortage::Disk => {}
        Shortage::Memory if is_in_front(process) => {
            draft.cause("The app in front needed more than was left when everything behind it was gone, or other processes that the system keeps used the memory up.");
            draft.next("Look at the largest process, then at what this one holds: Instruments (Allocations, VM Tracker).");
        }
        Shortage::Memory => {
            draft.cause("Other processes used the memory up; this one only had a low priority.");
            draft.next("Look first at the largest process and at the one in front, then at this one.");
            draft.next("An app in the background is ended the later the less memory it holds: free caches on the way to the background.");
        }
    }
}

/// The system's word for the app that people see.
fn is_in_front(process: &Process) -> bool {
    process.role.as_deref().is_some_and(|role| role.split([' ', ',']).any(|word| word == "frontmost"))
}

fn many(killed: &[&Process], draft: &mut Draft) {
    let mut reasons: Vec<String> = killed.iter().filter_map(|process| process.kill_reason.clone()).collect();
    reasons.sort();
    reasons.dedup();
    reasons.truncate(MAX_NAMED);
    draft.lead(
        format!("The system ended {} processes for memory: {}", killed.len(), listed(&reasons)),
        format!("The system ended {} processes to get memory back.", killed.len()),
    );
    let mut named = killed.to_vec();
    named.sort_by_key(|process| std::cmp::Reverse(process.memory));
    named.iter().take(MAX_NAMED).for_each(|process| cite(process, draft));
    let known: Vec<_> =
        REASONS.iter().filter(|reason| reasons.iter().any(|stated| stated == reason.name)).collect();
    known.iter().for_each(|reason| draft.say(format!("{}: {}", reason.name, reason.meaning)));
    draft.next("Look first at the largest process and at the one in front.");
}

fn cite(process: &Process, draft: &mut Draft) {
    let role = process.role.as_ref().map(|role| format!(", {role}")).unwrap_or_default();
    let most = field(&process.fields, "lifetimeMax")
        .map(|pages| format!(", at most {pages} pages"))
        .unwrap_or_default();
    let stated = process.kill_reason.as_deref().unwrap_or("not ended");
    draft.evidence(format!("{}: {stated}{}{most}{role}", name_of(process), holding(process)));
}

/// Who used most, by the report's word and by its table.
fn largest(facts: &Facts<'_>, draft: &mut Draft) {
    let report = facts.report;
    if let Some(name) = field(&report.fields, "largestProcess").or(field(&report.fields, "Largest process")) {
        draft.evidence(format!("Largest process: {name}"));
        draft.say(format!("The largest process was {name}, by the report's word."));
    }
    let most = all(report).filter(|process| process.memory.is_some()).max_by_key(|process| process.memory);
    let total = all(report).filter_map(|process| process.memory).fold(0, u64::saturating_add);
    let Some(most) = most else { return };
    let is_killed = most.kill_reason.is_some();
    let fate = if is_killed { ", which was ended," } else { "" };
    draft.say(format!(
        "Of the processes listed, {}{fate} held most ({}); all together held {}.",
        name_of(most),
        size(most.memory.unwrap_or_default()),
        size(total)
    ));
}

/// The device's own figures.
fn memory(facts: &Facts<'_>, draft: &mut Draft) {
    let fields = &facts.report.fields;
    let number = |key: &str| field(fields, key).and_then(|text| text.parse::<u64>().ok());
    let page = number("memoryStatus.pageSize");
    let pages = |key: &str| {
        number(&format!("memoryStatus.memoryPages.{key}"))
            .zip(page)
            .and_then(|(pages, page)| pages.checked_mul(page))
    };
    if let Some(free) = pages("free") {
        let wired = pages("wired").map(|wired| format!(", {} wired", size(wired))).unwrap_or_default();
        draft.evidence(format!("memoryStatus: {} free{wired}", size(free)));
    }
    draft.say("Reports of this kind have no stacks.");
}
