//! What the rules ask of a report, worked out once.

use super::fault::Fault;
use super::registers::Registers;
use super::sender::sender;
pub(crate) use super::tables::exceptions::Class;
use super::tables::exceptions::signal_by_number;
use super::words::one_line;
use crate::names::{cite, is_any_of, main_thread, only_thread, own_frames, thread_label};
use crate::suspect::skip::has_abort;
use crate::suspect::{Suspect, fault_stack, handlers_frames, suspect_on};
use backtrail_core::{Arch, Family};
use backtrail_model::{Exception, Field, Frame, Report, Thread};

/// A line that a library, the loader or the kernel left in the report.
pub(crate) struct Said {
    /// The text; lines of one message stay together.
    pub(crate) text: String,
    /// Where it stands: `Application Specific Information (libswiftCore.dylib)`.
    pub(crate) place: String,
}

impl Said {
    /// Cites it as evidence.
    pub(crate) fn cite(&self) -> String {
        format!("{}: {}", self.place, one_line(&self.text))
    }
}

/// The report, with what follows from it.
pub(crate) struct Facts<'r> {
    pub(crate) report: &'r Report,
    pub(crate) class: Class,
    /// The blamed thread.
    pub(crate) thread: Option<&'r Thread>,
    /// Its frames.
    pub(crate) frames: &'r [Frame],
    pub(crate) registers: Registers<'r>,
    /// What is known of a failed memory access.
    pub(crate) fault: Option<Fault>,
    pub(crate) said: Vec<Said>,
    /// The innermost frame that is not the system's, on the stack that tells whose fault it is.
    pub(crate) suspect: Option<Suspect<'r>>,
    /// The label of that stack.
    pub(crate) stack: String,
    /// Its frames.
    pub(crate) fault_frames: &'r [Frame],
}

/// Sections whose text is a message of the kind that libraries leave.
const MESSAGE_SECTIONS: [&str; 8] = [
    // What stands before anything that a reader knows: reporters other than Apple's begin with their own words.
    "",
    "Application Specific Information",
    "Application Specific Signatures",
    "Dyld Error Message",
    "kernel messages",
    "Filtered syslog",
    "Kernel Triage",
    // KSCrash's own diagnosis.
    "Crash Doctor",
];

impl<'r> Facts<'r> {
    pub(crate) fn new(report: &'r Report) -> Self {
        let class = class_of(report);
        let thread = report.crashed().or_else(|| only_thread(report));
        let registers = Registers::of(report, thread);
        let (stack, fault_frames) = fault_stack(report).unwrap_or_default();
        let frames = match thread {
            Some(thread) => own_frames(report, &thread.frames),
            // A stack that nobody called a thread's is the blamed one where it is all there is.
            None if report.process.threads.is_empty() && !is_throw_alone(report) => fault_frames,
            None => &[],
        };
        let fault = (class == Class::BadAccess).then(|| Fault::read(report, &registers));
        let suspect = suspect_on(report, &stack, fault_frames);
        Self {
            report,
            class,
            thread,
            frames,
            registers,
            fault,
            said: said(report),
            suspect,
            stack,
            fault_frames,
        }
    }

    /// The exception, or one without any content.
    pub(crate) fn exception(&self) -> &'r Exception {
        static EMPTY: Exception = Exception {
            kind: None,
            signal: None,
            codes: None,
            raw_codes: Vec::new(),
            subtype: None,
            message: None,
            note: None,
            address: None,
        };
        self.report.exception.as_ref().unwrap_or(&EMPTY)
    }

    /// The signal's name, or an empty text.
    pub(crate) fn signal(&self) -> &'r str {
        self.exception().signal.as_deref().unwrap_or_default()
    }

    /// The architecture that the process ran as.
    pub(crate) fn arch(&self) -> Option<Arch> {
        self.report.process.arch.or_else(|| self.report.process.images.iter().find_map(|image| image.arch))
    }

    /// Its family; guessed from the registers' names where the report does not say.
    pub(crate) fn family(&self) -> Family {
        self.arch().map_or_else(|| self.registers.family(), Arch::family)
    }

    /// The label by which evidence cites the blamed thread.
    pub(crate) fn thread_label(&self) -> String {
        self.thread.map_or_else(|| self.stack.clone(), thread_label)
    }

    /// Cites a frame of the blamed thread.
    pub(crate) fn cite(&self, frame: &Frame) -> String {
        cite(self.report, &self.thread_label(), frame)
    }

    /// The first of the innermost `depth` frames that is one of `functions`.
    pub(crate) fn find_frame(&self, functions: &[&str], depth: usize) -> Option<&'r Frame> {
        self.frames.iter().take(depth).find(|frame| is_any_of(frame, functions))
    }

    /// The frames that a signal interrupted: those of its handler do not count.
    pub(crate) fn interrupted(&self) -> &'r [Frame] {
        self.frames.get(handlers_frames(self.frames)..).unwrap_or_default()
    }

    /// Whether the innermost frame is one of `functions`.
    pub(crate) fn top_is(&self, functions: &[&str]) -> Option<&'r Frame> {
        self.find_frame(functions, 1)
    }

    /// The first message that `test` accepts.
    pub(crate) fn find_said(&self, test: impl Fn(&str) -> bool) -> Option<&Said> {
        self.said.iter().find(|said| test(&said.text))
    }

    /// The main thread.
    pub(crate) fn main_thread(&self) -> Option<&'r Thread> {
        main_thread(self.report)
    }
}

/// Whether the stack of a throw is all there is: rules of its own read that.
fn is_throw_alone(report: &Report) -> bool {
    report.process.backtraces.iter().any(|backtrace| backtrace.is_exception)
}

/// Which family the exception is of.
pub(crate) fn class_of(report: &Report) -> Class {
    let Some(exception) = &report.exception else { return class_of_frames(report) };
    let signal = exception.signal.as_deref().or_else(|| signal_of_termination(report)).unwrap_or_default();
    match exception.kind.as_deref().unwrap_or_default() {
        kind if kind.starts_with("EXC_BAD_ACCESS") => Class::BadAccess,
        kind if kind.starts_with("EXC_BAD_INSTRUCTION") => Class::BadInstruction,
        kind if kind.starts_with("EXC_ARITHMETIC") => Class::Arithmetic,
        kind if kind.starts_with("EXC_BREAKPOINT") => Class::Breakpoint,
        kind if kind.starts_with("EXC_RESOURCE") => Class::Resource,
        kind if kind.starts_with("EXC_GUARD") => Class::Guard,
        // Seen in iOS 3 to 5 where the system killed the app: the exception's number in hexadecimal.
        "00000020" => Class::Kill,
        kind if kind.starts_with("SIG") => class_of_signal(kind),
        kind if is_windows(kind) => class_of_windows(kind),
        _ if signal != "SIGKILL" && signal != "SIGABRT" && sender(report).is_some() => Class::Signal,
        _ => class_of_signal(signal),
    }
}

/// Where no line tells the signal: a thread that is said to have crashed and whose innermost frames send it to the process.
fn class_of_frames(report: &Report) -> Class {
    let has_kill = |frame: &Frame| is_any_of(frame, &["__pthread_kill", "__kill", "__abort_with_payload"]);
    let frames = report.crashed().map(|thread| thread.frames.as_slice()).unwrap_or_default();
    let is_sent = report.source.is_apple() && frames.first().is_some_and(has_kill) && has_abort(frames);
    if is_sent { Class::Abort } else { Class::Unknown }
}

/// The value of the first field of that key.
pub(super) fn field<'r>(fields: &'r [Field], key: &str) -> Option<&'r str> {
    fields.iter().find(|field| field.key == key).map(|field| field.value.as_str())
}

/// `Termination Reason: Namespace SIGNAL, Code 0x9`.
fn signal_of_termination(report: &Report) -> Option<&'static str> {
    let termination = report.termination.as_ref()?;
    let is_signal = termination.namespace.as_deref() == Some("SIGNAL");
    let signal = signal_by_number(termination.code.filter(|_| is_signal)?)?;
    Some(signal.name)
}

fn class_of_signal(signal: &str) -> Class {
    match signal {
        "SIGSEGV" | "SIGBUS" => Class::BadAccess,
        "SIGILL" => Class::BadInstruction,
        "SIGFPE" => Class::Arithmetic,
        "SIGTRAP" => Class::Breakpoint,
        "SIGABRT" => Class::Abort,
        "SIGKILL" | "Code Signature Invalid" | "SIGKILL (Code Signature Invalid)" => Class::Kill,
        signal if signal.starts_with("SIG") => Class::Signal,
        _ => Class::Unknown,
    }
}

/// Longest message that is searched, in bytes; no runtime writes one of a tenth of that.
const MAX_MESSAGE: usize = 16 * 1024;

/// Most messages that are kept.
const MAX_SAID: usize = 256;

fn said(report: &Report) -> Vec<Said> {
    let from_info = report.app_info.iter().take(MAX_SAID).map(|info| {
        let image = info.image.as_ref().map(|image| format!(" ({image})")).unwrap_or_default();
        (format!("Application Specific Information{image}"), lines_of(info.lines.iter().map(String::as_str)))
    });
    let messages = |title: &str| MESSAGE_SECTIONS.iter().any(|known| title.eq_ignore_ascii_case(known));
    let sections = report.sections.iter().filter(|section| messages(&section.title)).take(MAX_SAID);
    let from_sections = sections.map(|section| {
        let title = if section.title.is_empty() { "The report begins" } else { &section.title };
        (title.to_owned(), lines_of(section.text.lines()))
    });
    let mut said = Vec::new();
    for (place, lines) in from_info.chain(from_sections) {
        said.extend(messages_of(&lines).into_iter().map(|text| Said { text, place: place.clone() }));
    }
    let message = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
    let message = message.map(|text| cut(text).to_owned());
    said.extend(message.map(|text| Said { text, place: "Exception Message".to_owned() }));
    said.truncate(MAX_SAID);
    said
}

fn lines_of<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    lines.take(MAX_SAID).map(cut).collect()
}

/// `text`, no longer than a message may be.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_MESSAGE)).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Joins lines that one message was broken into: a quoted reason may hold line breaks.
fn messages_of(lines: &[&str]) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in lines {
        match messages.last_mut() {
            Some(open) if has_open_reason(open) && open.len() < MAX_MESSAGE => {
                open.push('\n');
                open.push_str(line);
            }
            _ => messages.push((*line).to_owned()),
        }
    }
    messages
}

/// Whether `text` announces a quoted reason and does not end it.
fn has_open_reason(text: &str) -> bool {
    let is_open = |quote: char| {
        let reason = text.split_once(&format!("reason: {quote}"));
        reason.is_some_and(|(_, reason)| !reason.trim_end().trim_end_matches('.').ends_with(quote))
    };
    is_open('\'') || is_open('"')
}

/// Whether an exception's name is one of Windows'.
pub(super) fn is_windows(kind: &str) -> bool {
    kind.starts_with("EXCEPTION_") || kind.starts_with("STATUS_")
}

/// Which family an exception of Windows is of.
pub(super) fn class_of_windows(kind: &str) -> Class {
    let name = kind.trim_start_matches("EXCEPTION_").trim_start_matches("STATUS_");
    match name {
        name if name.starts_with("ACCESS_VIOLATION") || name.starts_with("IN_PAGE_ERROR") => Class::BadAccess,
        "DATATYPE_MISALIGNMENT" | "STACK_OVERFLOW" => Class::BadAccess,
        "ILLEGAL_INSTRUCTION" | "PRIV_INSTRUCTION" | "PRIVILEGED_INSTRUCTION" => Class::BadInstruction,
        name if name.starts_with("INT_") || name.starts_with("FLT_") || name.starts_with("INTEGER_") => {
            Class::Arithmetic
        }
        name if name.starts_with("FLOAT_") => Class::Arithmetic,
        "BREAKPOINT" | "SINGLE_STEP" => Class::Breakpoint,
        _ => Class::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_over_several_lines_stay_one_message() {
        let lines = ["a", "*** x 'N', reason: 'first", "second'", "abort() called"];
        assert_eq!(messages_of(&lines), ["a", "*** x 'N', reason: 'first\nsecond'", "abort() called"]);
    }
}
