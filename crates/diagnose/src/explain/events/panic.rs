//! Panics of the kernel, by their first words.

use super::super::draft::Draft;
use super::super::facts::Facts;
use super::super::words::one_line;
use super::field;
use crate::names::cite;
use backtrail_model::{Image, Source};

/// What a panic's words stand for.
struct Kind {
    /// Words that are in the message, all of them.
    words: &'static [&'static str],
    title: &'static str,
    meaning: &'static str,
}

const fn kind(words: &'static [&'static str], title: &'static str, meaning: &'static str) -> Kind {
    Kind { words, title, meaning }
}

/// The kinds, the surest words first. Sources: XNU's `panic` calls (`osfmk/kern`, `osfmk/arm64/sleh.c`,
/// `osfmk/i386/trap.c`, `bsd/dev/monotonic`), and the names of coprocessors' firmware in real panics.
static KINDS: [Kind; 50] = [
    kind(
        &["zone map exhausted"],
        "Its own memory was used up",
        "The kernel could not allocate (its zone map was full). Mostly one zone grew without end, a leak of the kernel or of an extension; the message names the zone.",
    ),
    kind(
        &["userspace watchdog timeout"],
        "A system service did not answer: the watchdog restarted the device",
        "A service that the system cannot do without did not check in for too long (the message names it). It may hang itself, or wait for hardware, storage or memory.",
    ),
    kind(
        &["watchdog timeout", "watchdogd"],
        "The watchdog itself got no time: the device was restarted",
        "No process ran that could have answered: user space was stuck or starved as a whole, often for want of memory or because storage did not answer.",
    ),
    kind(
        &["watchdog timeout"],
        "A watchdog ran out: the device was restarted",
        "Something did not report in time (the message names it).",
    ),
    kind(
        &["DCP PANIC"],
        "The display coprocessor (DCP) failed",
        "The firmware that drives the display failed, not the kernel. Displays, cables, docks and adapters are the usual suspects, then the system's version.",
    ),
    kind(
        &["SEP Panic"],
        "The Secure Enclave (SEP) failed",
        "The firmware of the Secure Enclave failed, not the kernel.",
    ),
    kind(
        &["SEP PANIC"],
        "The Secure Enclave (SEP) failed",
        "The firmware of the Secure Enclave failed, not the kernel.",
    ),
    kind(
        &["SEP monitor error"],
        "The Secure Enclave (SEP) failed",
        "The chip saw the Secure Enclave in a state that it must not be in, or could not reach it: hardware or power, not the kernel.",
    ),
    kind(
        &["AOP Panic"],
        "The always-on processor (AOP) failed",
        "The firmware for sensors and audio that run in sleep failed, not the kernel.",
    ),
    kind(
        &["AOP PANIC"],
        "The always-on processor (AOP) failed",
        "The firmware for sensors and audio that run in sleep failed, not the kernel.",
    ),
    kind(
        &["ANS2"],
        "The storage controller (ANS) failed",
        "The firmware of the storage failed or did not answer. If it comes again, the storage may be broken.",
    ),
    kind(
        &["ANS PANIC"],
        "The storage controller (ANS) failed",
        "The firmware of the storage failed or did not answer. If it comes again, the storage may be broken.",
    ),
    kind(
        &["nvme"],
        "The storage (NVMe) failed",
        "The storage did not answer, or answered with errors. If it comes again, it may be broken.",
    ),
    kind(
        &["SMC PANIC"],
        "The system management controller (SMC) failed",
        "The firmware for power, temperature and fans failed, not the kernel.",
    ),
    kind(
        &["PMP"],
        "The power management processor (PMP) failed",
        "The firmware that manages power failed, not the kernel.",
    ),
    kind(
        &["GFX PANIC"],
        "The graphics processor failed",
        "The firmware of the graphics processor failed, not the kernel.",
    ),
    kind(&["GPU Panic"], "The graphics processor failed", "The driver of the graphics processor gave up."),
    kind(
        &["AGX"],
        "The graphics processor or its driver failed",
        "The message comes from the driver of Apple's graphics processor.",
    ),
    kind(
        &["IOGPU"],
        "The graphics processor's driver failed",
        "The message comes from the driver of Apple's graphics processor.",
    ),
    kind(
        &["x86 global reset detected"],
        "The Mac was reset from outside (seen by the T2 chip)",
        "bridgeOS, the system of the T2 chip, saw the processor being reset; it wrote this report, the main processor's own panic is another one.",
    ),
    kind(
        &["x86 CPU CATERR"],
        "The Mac's processor failed (seen by the T2 chip)",
        "bridgeOS saw the processor report a fatal error of the hardware.",
    ),
    kind(
        &["macOS watchdog"],
        "macOS did not answer (seen by the T2 chip)",
        "bridgeOS waited for a sign of macOS and got none.",
    ),
    kind(
        &["SOCD report detected"],
        "The processor stopped without a panic of its own",
        "The chip's debug block recorded the stop; the kernel did not see it. Often hardware or power.",
    ),
    kind(
        &["SError"],
        "A bus error of the hardware (SError)",
        "The processor was told that an access which was under way had failed: a device or memory did not answer as it must. Drivers and hardware are the suspects, not apps.",
    ),
    kind(
        &["LLC Bus error"],
        "A bus error of the hardware",
        "The last-level cache reported an error on the bus.",
    ),
    kind(
        &["Machine Check"],
        "A fault of the processor or memory (machine check)",
        "The processor reported an error of the hardware.",
    ),
    kind(
        &["machine-check"],
        "A fault of the processor or memory (machine check)",
        "The processor reported an error of the hardware.",
    ),
    kind(
        &["Wake transition timed out"],
        "Waking up took too long",
        "A driver did not answer while the Mac woke up (the message names it, if anyone). The stack is that of the thread that waited.",
    ),
    // `IOService::waitQuiet` of IOKit.
    kind(
        &["busy timeout["],
        "A driver did not become ready",
        "An object of a driver was busy for longer than the system waits at start and at waking up: the driver, or the device behind it, did not answer. The message names the object.",
    ),
    kind(
        &["Sleep transition timed out"],
        "Going to sleep or waking up took too long",
        "A driver did not answer while the Mac changed its power state (the message names it, if anyone).",
    ),
    kind(
        &["Sleep Wake failure"],
        "Going to sleep or waking up failed",
        "The Mac did not come through a change of its power state.",
    ),
    kind(
        &["PowerStateChange"],
        "A driver did not change its power state in time",
        "A driver did not answer while the Mac changed its power state.",
    ),
    kind(
        &["initproc"],
        "The first process (launchd) ended",
        "Without it nothing can run, so the kernel stops. The message says with which code it ended.",
    ),
    kind(
        &["preemption_level"],
        "A thread of the kernel blocked where it must not",
        "Code of the kernel or of an extension waited while it held a spinlock or served an interrupt. The extensions on the stack are the suspects.",
    ),
    kind(
        &["freed zone element"],
        "Memory of the kernel was changed after it was freed",
        "Somebody wrote to memory of the kernel that was free already: an extension or the kernel itself. The stack shows who noticed, not who did it.",
    ),
    kind(
        &["emory corruption"],
        "Memory of the kernel was damaged",
        "A check of the kernel's memory failed. The stack shows who noticed, not who did it.",
    ),
    kind(
        &["zone_require"],
        "A pointer of the kernel was of the wrong kind",
        "A check of the kernel's memory failed: damage, or a use after free.",
    ),
    kind(
        &["Kernel trap", "page fault"],
        "The kernel accessed memory that is not there",
        "Code of the kernel or of an extension used a bad pointer.",
    ),
    // The processor's exceptions, by their names in xnu's `osfmk/i386/trap.c`.
    kind(
        &["Kernel trap", "general protection"],
        "The kernel used a pointer that is no address (general protection fault)",
        "Code of the kernel or of an extension followed a pointer that no address can be, or made a call that the processor refuses.",
    ),
    kind(
        &["Kernel trap", "invalid opcode"],
        "The kernel met an instruction that the processor does not know",
        "Code of the kernel or of an extension stopped itself by a trap, was built for another processor, or was overwritten.",
    ),
    kind(
        &["Kernel trap", "double fault"],
        "A fault of the kernel while it dealt with one",
        "Mostly the stack of a thread of the kernel ran full: a recursion, or large variables in an extension.",
    ),
    kind(
        &["Kernel trap", "divide error"],
        "The kernel divided by zero",
        "Code of the kernel or of an extension divided by zero.",
    ),
    kind(
        &["Kernel trap"],
        "A fault in code of the kernel",
        "The processor raised an exception in code of the kernel or of an extension, which the message names.",
    ),
    kind(
        &["Kernel data abort"],
        "The kernel accessed memory that is not there",
        "Code of the kernel or of an extension used a bad pointer.",
    ),
    kind(
        &["Unaligned kernel data abort"],
        "The kernel accessed memory at an address that is not aligned",
        "Code of the kernel or of an extension used a bad pointer.",
    ),
    kind(
        &["kernel data abort"],
        "The kernel accessed memory that is not there",
        "Code of the kernel or of an extension used a bad pointer.",
    ),
    kind(
        &["ernel instruction fetch abort"],
        "The kernel jumped to an address without code",
        "Code of the kernel or of an extension called through a bad pointer.",
    ),
    kind(
        &["Cannot grow ipc space"],
        "The table of ports was full",
        "A process or the kernel itself has more Mach ports or vouchers than fit: mostly a leak that grew for days. The message names the table.",
    ),
    kind(
        &["lock"],
        "A lock of the kernel was not free in time, or used wrongly",
        "The message names the lock. The stacks of the other processors, where the report has them, show who held it.",
    ),
    kind(
        &["assertion failed"],
        "A check of the kernel failed",
        "The message is the condition that did not hold, with its place in the source.",
    ),
];

/// The panic's words, on one line, without quotes.
fn words_of(facts: &Facts<'_>) -> Option<String> {
    let message = facts.report.exception.as_ref()?.message.as_deref()?;
    let first = message.lines().next().unwrap_or(message);
    Some(one_line(first.trim().trim_start_matches('"')))
}

pub(in super::super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    if report.source != Source::ApplePanic {
        return false;
    }
    let message = words_of(facts);
    let text = message.clone().unwrap_or_default();
    let known = KINDS.iter().find(|kind| kind.words.iter().all(|word| text.contains(word)));
    let title = known.map_or("The kernel stopped", |kind| kind.title);
    let what = known
        .map_or("The kernel found a state that it cannot go on from, and restarted the device.", |kind| {
            kind.meaning
        });
    let behind = text.split_once("checkins from ").map(|(_, behind)| behind);
    let service = behind.and_then(|behind| behind.split_whitespace().next());
    let named = service.map(|service| format!(" ({service})")).unwrap_or_default();
    draft.lead(format!("Kernel panic: {}{named}", lower_first(title)), what);
    match text.lines().map(|line| line.trim().trim_matches('"')).find(|line| !line.is_empty()) {
        Some(line) => draft.evidence(format!("Panic: {line}")),
        None => draft.say("The report has no panic string."),
    }
    if known.is_none() && message.is_some() {
        draft.say("What its words mean beyond that is not known here.");
    }
    extensions(facts, draft);
    stack(facts, draft);
    for key in ["BSD process name corresponding to current thread", "Panicked task"] {
        if let Some(value) = field(&report.fields, key) {
            draft.evidence(format!("{key}: {value}"));
        }
    }
    draft.say("Apps cannot do this by themselves: the kernel, its extensions, firmware or the hardware did.");
    draft.next("Compare several panics: the same words and extensions each time point at software, different ones at hardware.");
    draft.next("Update the system; take off what is connected; where an extension is named, update or remove what brings it.");
    true
}

fn lower_first(title: &str) -> String {
    let mut letters = title.chars();
    let (first, second) = (letters.next(), letters.next());
    match (first, second) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            let rest = title.get(first.len_utf8()..).unwrap_or_default();
            format!("{}{rest}", first.to_lowercase())
        }
        _ => title.to_owned(),
    }
}

/// Extensions of others on the stack are who to look at first.
fn extensions(facts: &Facts<'_>, draft: &mut Draft) {
    let process = &facts.report.process;
    let mut on_stack = vec![0_usize; process.images.len()];
    for position in facts.frames.iter().filter_map(|frame| frame.image) {
        if let Some(count) = on_stack.get_mut(position) {
            *count += 1;
        }
    }
    let mut foreign = 0;
    for (image, count) in process.images.iter().zip(on_stack) {
        let Some(id) = image.bundle_id.as_deref().filter(|_| count > 0) else { continue };
        let frames = if count == 1 { "1 frame".to_owned() } else { format!("{count} frames") };
        draft.evidence(format!("{id}{} is on the stack: {frames}", version(image)));
        if !id.starts_with("com.apple.") {
            foreign += 1;
            draft.say(format!("The extension {id}, which is not Apple's, is on the stack."));
            draft.cause(format!("A fault in {id}."));
        }
    }
    let lists = process.images.iter().any(|image| image.bundle_id.is_some());
    if lists && foreign == 0 {
        draft.say("The extensions on the stack are Apple's own.");
    }
}

fn version(image: &Image) -> String {
    image.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default()
}

/// The innermost frame that is not the panic's own machinery.
fn stack(facts: &Facts<'_>, draft: &mut Draft) {
    const MACHINERY: [&str; 9] =
        ["panic", "Debugger", "debugger", "kdp", "trap", "assfail", "handle_", "sleh_", "fleh_"];
    let is_machinery =
        |name: &str| MACHINERY.iter().any(|word| name.trim_start_matches('_').starts_with(word));
    let telling = facts
        .frames
        .iter()
        .find(|frame| frame.names().next().is_some_and(|name| !is_machinery(name) && !name.contains("trap")));
    if let Some(frame) = telling {
        draft.evidence(cite(facts.report, "Panicked thread", frame));
    }
}
