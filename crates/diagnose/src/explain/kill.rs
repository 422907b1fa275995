//! Why a process was ended from outside, and what that makes of its stacks. Shared by explaining and attributing.

use super::facts::{Class, class_of};
use super::resource::resource_type;
use super::sender::sent_from_outside;
pub(crate) use super::tables::kill::Blame;
use super::tables::kill::{KillCode, kill_code};
use super::tables::namespaces::{Namespace, namespace};
use super::words::{hex_after, leading_hex, number, one_line};
use backtrail_model::{Report, Termination};

/// A process's end by another's hand, or by a guard of the system.
pub(crate) struct Killing {
    pub(crate) namespace: Option<&'static Namespace>,
    /// The meaning of the code, where it is known.
    pub(crate) code: Option<&'static KillCode>,
    /// What happened, as a sentence.
    pub(crate) meaning: String,
    /// The report's line that says so.
    pub(crate) evidence: String,
    pub(crate) blame: Blame,
    /// Whether a signal from outside is all that is known of it.
    pub(crate) is_sent_signal: bool,
}

/// Tells whether and why the process of `report` was ended from outside. `None` where it crashed by itself.
pub(crate) fn killing(report: &Report) -> Option<Killing> {
    if let Some(note) = simulated_note(report) {
        let meaning = "The report was made on purpose, without a crash.".to_owned();
        let evidence = format!("Exception Note: {note}");
        return Some(Killing {
            namespace: None,
            code: None,
            meaning,
            evidence,
            blame: Blame::Outside,
            is_sent_signal: false,
        });
    }
    by_termination(report)
        .or_else(|| by_loaders_words(report))
        .or_else(|| by_exception_code(report))
        .or_else(|| by_resource_limit(report))
        .or_else(|| by_sent_signal(report))
}

/// A signal from outside: what ran then is no reason for it.
fn by_sent_signal(report: &Report) -> Option<Killing> {
    let evidence = sent_from_outside(report)?;
    let meaning = "the process was ended from outside".to_owned();
    Some(Killing {
        namespace: None,
        code: None,
        meaning,
        evidence,
        blame: Blame::Untold,
        is_sent_signal: true,
    })
}

/// The note of a report that was made without a crash. What the kernel found and let pass has the same note: a violation of a
/// guard or of a limit is real.
pub(crate) fn simulated_note(report: &Report) -> Option<&str> {
    let note = report.exception.as_ref()?.note.as_deref()?;
    let is_finding = || matches!(class_of(report), Class::Guard | Class::Resource);
    (note.contains("SIMULATED") && !is_finding()).then_some(note)
}

fn by_termination(report: &Report) -> Option<Killing> {
    let termination = report.termination.as_ref()?;
    let namespace = termination.namespace.as_deref().and_then(namespace);
    if is_own_fault(class_of(report)) && namespace.is_none_or(|namespace| namespace.name != "CODESIGNING") {
        return None;
    }
    let number = code_of(termination);
    let shared = number.and_then(kill_code);
    let own = namespace.zip(number).and_then(|(namespace, number)| namespace.code(number));
    let evidence = reason_line(termination);
    if let Some(code) = shared.or(own) {
        let meaning = code.meaning.to_owned();
        return Some(Killing {
            namespace,
            code: Some(code),
            meaning,
            evidence,
            blame: code.blame,
            is_sent_signal: false,
        });
    }
    let Some(namespace) = namespace else {
        // A namespace that this program does not know: what the report says of it is all there is.
        let name = termination.namespace.as_deref().filter(|_| class_of(report) == Class::Kill)?;
        let meaning =
            format!("{} ended the process, for a reason that this program does not know.", one_line(name));
        return Some(Killing {
            namespace: None,
            code: None,
            meaning,
            evidence,
            blame: Blame::Untold,
            is_sent_signal: false,
        });
    };
    if namespace.name == "SIGNAL" {
        return by_signal(report, termination, evidence);
    }
    let who = format!("{} ended the process.", namespace.meaning);
    let meaning = capitalized(&who);
    Some(Killing {
        namespace: Some(namespace),
        code: None,
        meaning,
        evidence,
        blame: namespace.blame,
        is_sent_signal: false,
    })
}

/// Exceptions that the processor raised. The namespace then only says who took note of it: a trap in
/// os_unfair_lock was seen with namespace FOUNDATION.
fn is_own_fault(class: Class) -> bool {
    matches!(class, Class::BadAccess | Class::BadInstruction | Class::Arithmetic | Class::Breakpoint)
}

/// SIGKILL and the signals by which other processes ask for an end; the rest are the process's own faults.
fn by_signal(report: &Report, termination: &Termination, evidence: String) -> Option<Killing> {
    if class_of(report) != Class::Kill {
        return None;
    }
    let by = termination.by_process.as_deref().filter(|by| !by.is_empty() && *by != "exc handler");
    let meaning = match by {
        Some(by) => format!("The process {by} killed it with SIGKILL."),
        None => "Somebody killed the process with SIGKILL; the report does not tell who.".to_owned(),
    };
    Some(Killing {
        namespace: namespace("SIGNAL"),
        code: None,
        meaning,
        evidence,
        blame: Blame::Untold,
        is_sent_signal: false,
    })
}

/// Reports of iOS 9 to 12 name no namespace for the loader: its words stand in the termination's description, or in a
/// section of their own (`Dyld Error Message`).
fn by_loaders_words(report: &Report) -> Option<Killing> {
    // Up to macOS 10.11 the loader ended the process by a trap.
    if is_own_fault(class_of(report)) && class_of(report) != Class::Breakpoint {
        return None;
    }
    let account = account(report);
    let sections = report.sections.iter().filter(|section| section.title.starts_with("Dyld Error"));
    let texts: Vec<&str> =
        std::iter::once(account.as_str()).chain(sections.map(|section| section.text.as_str())).collect();
    let found = LOADERS_WORDS
        .iter()
        .find_map(|(words, code)| Some((texts.iter().find(|text| text.contains(words))?, *code)));
    let (text, code) = found?;
    let space = namespace("DYLD")?;
    let code = space.code(code)?;
    let evidence = format!("Termination Description: {}", one_line(text));
    let meaning = code.meaning.to_owned();
    Some(Killing {
        namespace: Some(space),
        code: Some(code),
        meaning,
        evidence,
        blame: code.blame,
        is_sent_signal: false,
    })
}

/// What the loader writes, and the code that newer systems give for it.
const LOADERS_WORDS: [(&str, u64); 2] = [("Library not loaded:", 1), ("Symbol not found:", 4)];

/// Old reports carry the code as the exception's code: `Exception Codes: 0x8badf00d`.
fn by_exception_code(report: &Report) -> Option<Killing> {
    if !matches!(class_of(report), Class::Kill | Class::Unknown) {
        return None;
    }
    let exception = report.exception.as_ref()?;
    let printed =
        exception.codes.as_deref().and_then(|codes| leading_hex(codes.trim())).map(|(code, _)| code);
    let code = exception.raw_codes.iter().copied().chain(printed).find_map(kill_code)?;
    let evidence = format!("Exception Codes: {}", exception.codes.as_deref().unwrap_or_default());
    let meaning = code.meaning.to_owned();
    Some(Killing {
        namespace: None,
        code: Some(code),
        meaning,
        evidence,
        blame: code.blame,
        is_sent_signal: false,
    })
}

/// What a resource limit makes of the stacks.
fn by_resource_limit(report: &Report) -> Option<Killing> {
    let exception = report.exception.as_ref()?;
    if class_of(report) != Class::Resource {
        return None;
    }
    let known = resource_type(exception);
    let meaning =
        known.map_or("A limit on a resource was exceeded.".to_owned(), |known| format!("{}.", known.title));
    let subtype = exception.subtype.as_deref().map(|subtype| format!(" {subtype}")).unwrap_or_default();
    let evidence = format!("Exception Type: EXC_RESOURCE{subtype}");
    let blame = known.map_or(Blame::Untold, |known| known.blame);
    Some(Killing { namespace: None, code: None, meaning, evidence, blame, is_sent_signal: false })
}

/// The code, from the text where the report has it only there: `<RBSTerminateContext| domain:10 code:0x8BADF00D …`.
fn code_of(termination: &Termination) -> Option<u64> {
    let texts = || termination.reason.iter().chain(&termination.details);
    let context =
        texts().find_map(|text| hex_after(text, "RBSTerminateContext").or_else(|| hex_after(text, "code:")));
    let second_word = || texts().find_map(|text| number(text.split_whitespace().nth(1)?));
    let told = context.filter(|code| kill_code(*code).is_some());
    told.or(termination.code)
        .or(context)
        .or_else(second_word)
        .or_else(|| texts().find_map(|text| by_words(text)))
}

/// The code that words of the watchdog stand for, which watches give without one.
fn by_words(text: &str) -> Option<u64> {
    let is_background = text.contains("Background App Refresh") || text.contains("BackgroundRefresh");
    match text.contains("watchdog transgression") {
        true if is_background && text.contains("CPU time allowance") => Some(0xc51b_ad01),
        true if is_background => Some(0xc51b_ad02),
        true => Some(0x8bad_f00d),
        false => None,
    }
}

/// The line as evidence cites it.
pub(crate) fn reason_line(termination: &Termination) -> String {
    let namespace = termination.namespace.as_deref().unwrap_or("of no namespace");
    let code = termination.code.map(|code| format!(", Code {code:#x}")).unwrap_or_default();
    let reason = termination.reason.as_deref().map(|reason| format!(" {reason}")).unwrap_or_default();
    format!("Termination Reason: Namespace {namespace}{code}{reason}")
}

/// Everything that the report says of the termination, as one text.
pub(crate) fn account(report: &Report) -> String {
    let Some(termination) = &report.termination else { return String::new() };
    let parts: Vec<&str> =
        termination.reason.iter().chain(&termination.details).map(String::as_str).collect();
    parts.join("\n")
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
