//! What sort of end a report tells of, in words that do not change when names are found later.

use super::name::normalised_message;
use crate::explain::facts::{Class, class_of};
use crate::explain::kill::{Blame, killing};
use crate::explain::thrown::{from_field, parse_objc};
use backtrail_model::{Report, Source};

/// The sort of event, and what more of it every report of the same bug says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    /// `access`, `abort`, `hang`…
    pub(super) word: &'static str,
    /// The exception's class, the code of a kill, the kernel's words.
    pub(super) detail: String,
}

impl Kind {
    fn new(word: &'static str, detail: impl Into<String>) -> Self {
        Self { word, detail: detail.into() }
    }

    /// The word of an abort of which nothing more is known.
    pub(super) const ABORT: &str = "abort";

    pub(super) fn is_plain_abort(&self) -> bool {
        self.word == Self::ABORT && self.detail.is_empty()
    }

    /// Whether Apple's loader ended the program.
    pub(super) fn is_loaders(&self) -> bool {
        self.word == "killed" && self.detail.starts_with("DYLD")
    }

    pub(super) fn is_exception(&self) -> bool {
        self.word == "exception"
    }

    /// Whether words of such reports are the program's, and tell its bugs apart.
    pub(super) fn has_words(&self) -> bool {
        match self.word {
            // A fault's words are those of its signal; of the kernel's errors, those of its checks.
            "access" | "trap" | "arithmetic" | "signal" | "crash" | "kernel" | "stacks" | "stackshot" => {
                false
            }
            // What sanitizers find is the same for many bugs; one of them names the line of the source.
            "sanitizer" => self.detail.starts_with("UndefinedBehavior"),
            _ => true,
        }
    }

    /// As keys have it.
    pub(super) fn key(&self) -> String {
        if self.detail.is_empty() { self.word.to_owned() } else { format!("{} {}", self.word, self.detail) }
    }
}

/// Whether a report tells of a crash: of what ended the program, other than for want of memory. Hangs, samples, warnings, limits
/// that ended nothing, exceptions that were caught, the kernel's own errors, and captures of programs that run are none.
pub fn is_crash(report: &Report) -> bool {
    let exception = report.exception.as_ref();
    let note = exception.and_then(|exception| exception.note.as_deref()).unwrap_or_default();
    let is_handled = report.thrown.as_ref().is_some_and(|thrown| thrown.is_handled);
    if is_handled || note.contains("NOT a crash") || is_message(report) {
        return false;
    }
    match report.source {
        Source::AppleJetsam
        | Source::ApplePanic
        | Source::LinuxKernel
        | Source::AppleStackshot
        | Source::AppleSamples
        | Source::AppleIpsOther
        | Source::AndroidAnr => false,
        Source::MetricKit | Source::JavaThreadDump | Source::Process | Source::SavedStack => {
            exception.is_some()
        }
        source => !source.is_runtimes() || exception.is_some(),
    }
}

/// Whether the program sent words alone, as Sentry's clients do.
fn is_message(report: &Report) -> bool {
    report.source == Source::Sentry && report.event.is_some()
}

pub(super) fn kind_of(report: &Report) -> Kind {
    match report.source {
        _ if is_message(report) => Kind::new("message", event(report)),
        Source::AppleJetsam => Kind::new("memory-event", kill_reasons(report)),
        Source::ApplePanic => Kind::new("kernel-panic", ""),
        Source::AppleStackshot => Kind::new("stackshot", ""),
        Source::AppleSamples | Source::AppleIpsOther => Kind::new("event", event(report)),
        Source::MetricKit if report.exception.is_none() => Kind::new("event", event(report)),
        Source::AndroidAnr => Kind::new("hang", "anr"),
        Source::JavaThreadDump | Source::Process | Source::SavedStack if report.exception.is_none() => {
            Kind::new("stacks", "")
        }
        source if source.is_runtimes() => of_runtime(report),
        _ => of_crash(report),
    }
}

/// Of what runtimes, sanitizers and Linux's kernel wrote, their own word for it counts; a signal, where they name no more.
fn of_runtime(report: &Report) -> Kind {
    let Some(exception) = &report.exception else { return Kind::new("stacks", "") };
    let kind = exception.kind.as_deref().map(normalised_message).unwrap_or_default();
    match report.source {
        Source::Sanitizer => {
            let what = exception.subtype.as_deref().map(normalised_message).unwrap_or_default();
            Kind::new("sanitizer", format!("{kind} {what}").trim())
        }
        Source::LinuxKernel => Kind::new("kernel", kind),
        _ if class_of(report) != Class::Unknown || kind.is_empty() => of_crash(report),
        _ => Kind::new("exception", kind),
    }
}

fn event(report: &Report) -> String {
    report.event.as_deref().map(normalised_message).unwrap_or_default()
}

fn kill_reasons(report: &Report) -> String {
    let all = std::iter::once(&report.process).chain(&report.processes);
    all.filter_map(|process| process.kill_reason.clone()).next().unwrap_or_default()
}

fn of_crash(report: &Report) -> Kind {
    if let Some(killing) = killing(report) {
        let code = killing.code.map(|code| format!(" {:#x}", code.code)).unwrap_or_default();
        let namespace = killing.namespace.map(|namespace| namespace.name).unwrap_or_default();
        return match killing.blame {
            // Namespaces differ between systems for one and the same watchdog.
            Blame::MainThread => Kind::new("hang", code.trim()),
            _ => Kind::new("killed", format!("{namespace}{code}").trim()),
        };
    }
    let detail = thrown(report).unwrap_or_default();
    match class_of(report) {
        Class::BadAccess => Kind::new("access", ""),
        // Compilers of other processors and other versions choose one trap or the other for the same check.
        Class::BadInstruction | Class::Breakpoint => Kind::new("trap", ""),
        Class::Arithmetic => Kind::new("arithmetic", ""),
        Class::Abort | Class::Unknown if !detail.is_empty() => Kind::new("exception", detail),
        Class::Abort => Kind::new(Kind::ABORT, ""),
        Class::Kill => Kind::new("killed", ""),
        Class::Resource => Kind::new("resource", first_word(report)),
        Class::Guard => Kind::new("guard", first_word(report)),
        Class::Signal => Kind::new(
            "signal",
            report.exception.as_ref().and_then(|it| it.signal.clone()).unwrap_or_default(),
        ),
        Class::Unknown => Kind::new("crash", ""),
    }
}

fn first_word(report: &Report) -> String {
    let subtype = report.exception.as_ref().and_then(|exception| exception.subtype.as_deref());
    subtype.and_then(|text| text.split_whitespace().next()).map(normalised_message).unwrap_or_default()
}

/// The class of the exception that nobody caught, where the report names it.
fn thrown(report: &Report) -> Option<String> {
    let exception = report.exception.as_ref();
    let is_abort = matches!(class_of(report), Class::Abort | Class::Unknown);
    // A Java exception has a class in the place of a signal.
    let java = exception.filter(|exception| exception.signal.is_none() && report.source.is_android_or_java());
    if let Some(class) = java.and_then(|exception| exception.kind.clone()) {
        return Some(class);
    }
    let messages =
        report.app_info.iter().take(64).flat_map(|info| info.lines.iter().take(64).map(String::as_str));
    let own = exception.and_then(|exception| exception.message.as_deref());
    let mut texts = messages.chain(own).filter(|_| is_abort);
    let told = texts.find_map(|text| {
        let objc = parse_objc(text).map(|thrown| thrown.name).filter(|name| !name.is_empty());
        // The words of libc++abi and libstdc++.
        let cpp = || {
            let (_, rest) = text.split_once("uncaught exception of type ")?;
            let end = rest.find(": ").unwrap_or(rest.len());
            let class = rest.get(..end)?.split(' ').next()?.trim_end_matches(':');
            Some(class.to_owned()).filter(|_| !rest.starts_with("std::__"))
        };
        objc.or_else(cpp)
    });
    // The same name in a member of its own.
    let member = || from_field(report).map(|thrown| thrown.name).filter(|_| is_abort);
    let stated = || {
        let name = report.thrown.as_ref().map(|thrown| normalised_message(&thrown.name))?;
        Some(name).filter(|name| is_abort && !name.is_empty() && !name.starts_with("std::__"))
    };
    told.or_else(member).or_else(stated)
}

/// What the exception that nobody caught says, else what the process said when it ended: in the same words whoever wrote the report.
pub(super) fn said(report: &Report, kind: &Kind) -> Option<String> {
    if !kind.has_words() {
        return None;
    }
    let thrown = report.thrown.as_ref().and_then(|thrown| thrown.reason.as_deref());
    let texts = report.app_info.iter().flat_map(|info| &info.lines).map(String::as_str);
    let own = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
    // libc++abi's words, with which Android's and Apple's reports have the exception.
    let reason = own.into_iter().chain(texts).find_map(|text| {
        let (_, rest) = text.split_once("uncaught exception of type ")?;
        rest.split_once(": ").map(|(_, reason)| reason)
    });
    let words = thrown.or(reason).map(|text| normalised_message(text.lines().next().unwrap_or(text)));
    words.or_else(|| message_of(report)).filter(|words| !words.is_empty())
}

/// What the report says of itself in words, without what differs from one run to the next; for reports without a stack.
pub(super) fn message_of(report: &Report) -> Option<String> {
    let own = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
    let reason = report.termination.as_ref().and_then(|termination| termination.reason.as_deref());
    let info = report.app_info.iter().flat_map(|info| &info.lines).map(String::as_str);
    let panic =
        report.fields.iter().filter(|field| field.key == "panicString").map(|field| field.value.as_str());
    let panics = report
        .sections
        .iter()
        .filter(|it| it.title.eq_ignore_ascii_case("panic string"))
        .map(|it| it.text.as_str());
    let mut texts = panic.chain(panics).chain(own).chain(info).chain(reason);
    let text = texts.find(|text| !text.trim().is_empty())?;
    let text = normalised_message(text.lines().next().unwrap_or(text));
    (!text.is_empty()).then_some(text)
}
