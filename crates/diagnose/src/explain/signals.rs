//! Signals that no other rule explains, and what the words for exceptions and signals mean.

use super::blamed::is_recorder;
use super::draft::Draft;
use super::facts::Facts;
use super::tables::exceptions::{EXCEPTIONS, signal_by_name};
use super::tables::messages::REASONS;
use super::thrown::{hint_for, tell};
use backtrail_model::Source;

/// A signal with a meaning of its own.
pub(super) fn signal(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let name = Some(facts.signal()).filter(|name| !name.is_empty());
    let name = name.or(facts.exception().kind.as_deref()).unwrap_or_default();
    let Some(signal) = signal_by_name(name).filter(|signal| !signal.title.is_empty()) else { return false };
    draft.lead(signal.title, format!("The process ended by {name}: {}.", signal.meaning));
    if let Some(by) =
        facts.report.termination.as_ref().and_then(|termination| termination.by_process.as_deref())
    {
        draft.evidence(format!("Terminating Process: {by}"));
    } else {
        draft.say("The report does not tell who sent it.");
    }
    if facts.exception().subtype.as_deref() == Some("LAUNCH_HANG") {
        draft.say("The process took too long to launch (LAUNCH_HANG).");
    }
    // The kernel of Linux sends SIGQUIT for a key; extensions with a host are Apple's.
    if name == "SIGQUIT" && !facts.report.source.is_apple() {
        draft.cause("A person asked for the end and a core: Control-\\ in the terminal, or `kill -QUIT`.");
        return true;
    }
    draft.causes(signal.causes);
    draft.nexts(signal.next);
    true
}

/// A shell's or a service manager's word of a signal, and nothing else.
pub(super) fn alone(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let is_bare = facts.report.source == Source::ExceptionLog
        && exception.kind.is_none()
        && facts.report.process.threads.is_empty()
        && facts.report.process.backtraces.is_empty();
    let Some(signal) = signal_by_name(facts.signal()).filter(|_| is_bare) else { return false };
    let title = match facts.signal() {
        "SIGSEGV" => "Segmentation fault (SIGSEGV)",
        "SIGABRT" => "The process ended itself with abort() (SIGABRT)",
        "SIGBUS" => "Bus error (SIGBUS)",
        "SIGILL" => "Illegal instruction (SIGILL)",
        "SIGFPE" => "Arithmetic error (SIGFPE)",
        "SIGTRAP" => "Stopped at a trap (SIGTRAP)",
        "SIGKILL" => "Killed with SIGKILL",
        _ => signal.title,
    };
    draft.lead(title, format!("The process ended by {}: {}.", signal.name, signal.meaning));
    if facts.signal() == "SIGKILL" {
        draft.cause(
            "Linux's kernel, or a container's limit, for want of memory; else a person or a supervisor.",
        );
        draft.next("Look in the kernel's log (`dmesg`) for the process's name and \"Out of memory\".");
        return true;
    }
    draft.say("Nothing else is told: neither where nor why.");
    draft.causes(signal.causes);
    usual(facts, draft);
    draft.next("Get a stack: let it happen under `backtrail watch -- PROGRAM`, or give a core (`coredumpctl dump`) to `backtrail explain`; on macOS reports are in ~/Library/Logs/DiagnosticReports.");
    true
}

/// What is usual where a signal is all there is, and its name alone does not say it.
fn usual(facts: &Facts<'_>, draft: &mut Draft) {
    match facts.signal() {
        "SIGILL" => {
            draft.causes(&[
                "A program built for a newer processor than this one (AVX, AVX2, AVX-512; -march=native), or a virtual machine that hides its features.",
                "The program's own check: compilers end at a trap where it must not go on (__builtin_trap, unreachable code, Swift's and Rust's checks).",
            ]);
            draft.next("Compare `grep flags /proc/cpuinfo` with what the program was built for; gdb's `x/i $pc` shows the instruction.");
        }
        "SIGFPE" => draft.cause("An integer division by zero, or one whose result does not fit (INT_MIN / -1); floating point only where its traps are on."),
        "SIGBUS" => draft.causes(&[
            "A mapped file that was cut, or whose disk failed; a full tmpfs (/dev/shm of a container).",
            "An address that is not aligned, on processors that want it.",
        ]),
        _ => {}
    }
}

/// A signal that an exit code stands for, by the convention of shells.
pub(super) fn by_code(facts: &Facts<'_>, draft: &mut Draft, code: u32) {
    let Some(signal) = signal_by_name(facts.signal()) else { return };
    let title = match signal.name {
        "SIGKILL" => "killed with SIGKILL, mostly for want of memory".to_owned(),
        name => format!("ended by {name}"),
    };
    draft.lead(
        format!("Exit code {code}: {title}"),
        format!("Exit code {code} is 128 + {}: {}, {}.", code - 128, signal.name, signal.meaning),
    );
    draft
        .say("That is the convention of shells and containers; a program can also choose the number itself.");
    if signal.name == "SIGKILL" {
        draft.causes(&[
            "The limit on memory of the container or of the CI job, or the machine out of memory: the kernel's OOM killer.",
            "A time limit or a stop that did not work with SIGTERM: the container's platform, a supervisor, a person.",
        ]);
        draft.next("Look for `OOMKilled` (`kubectl describe pod`, `docker inspect`) and for `Out of memory` in the kernel's log (`dmesg`); else for who stopped it.");
        return;
    }
    draft.causes(signal.causes);
    usual(facts, draft);
    draft.next("Look at the lines before, which may say why; else get a stack: `backtrail watch -- PROGRAM`, or a core.");
}

/// SIGKILL of which nothing else is told.
pub(super) fn sigkill(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != super::facts::Class::Kill {
        return false;
    }
    draft.lead("Killed with SIGKILL", "The process was killed from outside; it could do nothing about it.");
    draft.say("The report tells neither who did it nor why: there is no termination reason.");
    draft.say("The stacks show what ran at that moment only.");
    draft.causes(&[
        "The system killed it: memory, watchdog, or the user.",
        "Another process or a debugger killed it.",
    ]);
    draft.next("Look in the device's log at that time for the name of the process.");
    true
}

/// How reporters head the stack of an app that hangs: Bugsnag (`App Hang: …`), Sentry (`App Hanging: …`).
const HANGS: [&str; 2] = ["App Hang", "App Hanging"];

/// What a reporter heads the stack of a hang with: a field, or a line below the title that somebody gave it.
fn hang_head(report: &backtrail_model::Report) -> Option<String> {
    let is_head = |key: &str| HANGS.contains(&key);
    let field = report.fields.iter().find(|field| is_head(&field.key));
    let mut firsts = report.sections.iter().filter_map(|section| section.text.lines().next());
    field.map(|field| format!("{}: {}", field.key, field.value)).or_else(|| {
        firsts.find(|line| line.split_once(": ").is_some_and(|(key, _)| is_head(key))).map(str::to_owned)
    })
}

/// LAUNCH_HANG of an extension.
pub(super) fn launch_hang(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.exception().subtype.as_deref().map(str::trim) != Some("LAUNCH_HANG") {
        return false;
    }
    draft.lead(
        "The extension took too long to launch",
        "The process, usually an app extension, did not finish launching in the time allowed and was ended.",
    );
    draft.evidence("Exception Subtype: LAUNCH_HANG");
    draft.cause("Work at launch on the main thread: static constructors, loading libraries, reading files or databases.");
    draft.next("See what the main thread does; link fewer dynamic libraries and postpone work.");
    super::waits::main_thread_activity(facts, draft);
    true
}

/// A reporter that gives nothing but its own words: `Application received signal SIGSEGV`, or an exception's reason.
pub(super) fn reporters_words(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.exception.is_some() {
        return false;
    }
    const RECEIVED: &str = "received signal ";
    if let Some(said) = facts.find_said(|text| text.contains(RECEIVED)) {
        let word = said.text.split_once(RECEIVED).and_then(|(_, rest)| rest.split_whitespace().next());
        let Some(signal) = word.and_then(signal_by_name) else { return false };
        draft.lead(
            format!("The process received {}", signal.name),
            format!("The process received {}: {}.", signal.name, signal.meaning),
        );
        draft.evidence(said.cite());
        draft.say("The report tells neither address nor codes.");
        draft.causes(signal.causes);
        draft.next("Look at the first frame behind `_sigtramp`, if the stack has it: the frames before it are the reporter's own.");
        return true;
    }
    if let Some(head) = hang_head(facts.report) {
        draft
            .lead("The app hung", "The main thread did not answer events for as long as the reporter waits.");
        draft.evidence(head);
        match super::waits::waiting_in(facts.fault_frames) {
            Some((wait, _)) if wait.idle => {
                draft.say("When the stack was taken, the thread waited for events: it had come back.");
            }
            Some((wait, _)) => {
                draft.say(format!("The thread waits for {}.", wait.what));
                draft.next(wait.advice);
            }
            None => draft.next("Move what the stack shows off the main thread."),
        }
        return true;
    }
    let Some(said) = facts.find_said(|text| hint_for(&REASONS, text).is_some()) else { return false };
    draft.lead(format!("Uncaught exception: {}", said.text), "An exception was thrown and nobody caught it.");
    draft.evidence(said.cite());
    hint_for(&REASONS, &said.text).iter().for_each(|hint| tell(hint, draft));
    true
}

/// An exception that only its name explains, or none at all.
pub(super) fn anything(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let kind = exception.kind.as_deref().unwrap_or_default();
    let known = EXCEPTIONS.iter().find(|(_, name, _)| kind.starts_with(name));
    let signal = signal_by_name(facts.signal()).or_else(|| signal_by_name(kind));
    match (known, signal) {
        (Some((_, name, meaning)), _) => draft.lead(name, format!("The report says {name}: {meaning}.")),
        (None, Some(signal)) => {
            draft.lead(signal.name, format!("The process ended by {}: {}.", signal.name, signal.meaning));
        }
        (None, None) if !kind.is_empty() => {
            draft.lead(kind, format!("The report says {kind}, which this program does not know."));
        }
        (None, None) if is_recorder(facts.report) => {
            draft.lead(
                "An uncaught exception, which the text does not name",
                "The thread is the crash reporter's own, which writes down an exception that nobody caught: its frames say nothing of why.",
            );
            draft.next("Get the whole export: the exception has its name, its reason and its stack in a part of their own (`Fatal Exception`).");
            return true;
        }
        (None, None) => draft.lead(
            "The report does not tell what happened",
            "The report names neither exception nor signal nor reason.",
        ),
    }
    let said: Vec<_> = facts.said.iter().filter(|said| !said.text.trim().is_empty()).take(3).collect();
    if said.is_empty() {
        draft.say("The report does not tell more of why it happened.");
    }
    said.iter().for_each(|said| draft.evidence(said.cite()));
    if !facts.frames.is_empty() || !facts.fault_frames.is_empty() {
        draft.next("Look at the innermost frames outside of the system, and in the device's log at the last lines before the end.");
    }
    true
}

/// Detail: whether the process lived on.
pub(super) fn non_fatal(facts: &Facts<'_>, draft: &mut Draft) {
    let note = facts.exception().note.as_deref().unwrap_or_default();
    if note.contains("NON-FATAL") {
        draft.say("The process was not ended by this: it is a warning (the note says NON-FATAL CONDITION).");
    } else if note.contains("SIMULATED") && super::kill::simulated_note(facts.report).is_none() {
        draft.say("The process was not ended by this: the system noted it and let it pass (the note says SIMULATED).");
    }
}
