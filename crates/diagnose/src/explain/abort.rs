//! Processes that ended themselves: malloc's checks, assertions, plain abort().

use super::draft::Draft;
use super::facts::{Class, Facts, Said};
use super::kill::capitalized;
use super::sender::{Sender, sender};
use super::tables::messages::{ENDS, MALLOC, SANITIZERS};
use super::thrown::{hint_for, tell};
use super::words::{between, one_line};
use crate::names::{describe, image_name, is_any_of};
use crate::suspect::skip::{ABORT, frames_of_abort, has_abort};
use backtrail_model::Frame;

/// A sanitizer, or Xcode's checker of the main thread, said what is wrong.
pub(super) fn sanitizer(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(said) = facts.find_said(|text| hint_for(&SANITIZERS, text).is_some()) else { return false };
    let Some(hint) = hint_for(&SANITIZERS, &said.text) else { return false };
    // The line that says it; the sanitizer's report goes on with stacks.
    let line = said.text.lines().find(|line| line.contains(hint.text)).unwrap_or(&said.text);
    let start = line.find(hint.text).unwrap_or(0);
    draft.lead(one_line(line.get(start..).unwrap_or(line)), hint.meaning);
    draft.evidence(said.cite());
    draft.causes(hint.causes);
    draft.nexts(hint.next);
    true
}

/// malloc said what is wrong.
pub(super) fn malloc(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let about_malloc = |text: &str| {
        let marked =
            text.contains("malloc") || text.contains("MALLOC") || text.contains("*** error for object");
        let told = text.contains("Heap corruption detected") || text.contains("being freed");
        (marked || told) && hint_for(&MALLOC, text).is_some()
    };
    let Some(said) = facts.find_said(about_malloc) else { return false };
    let Some(hint) = hint_for(&MALLOC, &said.text) else { return false };
    let title = between(&said.text, "error for object ", "\n").unwrap_or(&said.text);
    draft.lead(format!("Heap error found by malloc: {}", one_line(title)), hint.meaning);
    draft.evidence(said.cite());
    draft.say("The code that notices such damage is often not the code that did it.");
    tell(hint, draft);
    true
}

/// malloc ended the process without a word in the report: its frames lie right above abort().
pub(super) fn malloc_frames(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::Abort {
        return false;
    }
    let caller = facts.frames.iter().take(8).find(|frame| !is_any_of(frame, &ABORT));
    let Some(frame) = caller.filter(|frame| {
        image_name(facts.report, frame).is_some_and(|name| name.starts_with("libsystem_malloc"))
    }) else {
        return false;
    };
    draft.lead("Heap error found by malloc", "malloc ended the process: its bookkeeping is damaged, or it was asked to free what it never gave out.");
    draft.evidence(facts.cite(frame));
    draft.say("The report does not tell which of the two. The code that notices such damage is often not the code that did it.");
    draft.causes(&[
        "A write to freed memory, or beyond the end of a block.",
        "Memory freed twice, or not allocated by malloc.",
    ]);
    draft.next("Run with Address Sanitizer (or Guard Malloc, Malloc Scribble): it stops where the memory is damaged, not later.");
    true
}

/// A failed assertion of C or Objective-C.
pub(super) fn assertion(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let about = |text: &str| {
        text.contains("Assertion failure in") || CONDITIONS.iter().any(|(begin, _)| text.contains(begin))
    };
    let Some(said) = facts.find_said(about) else { return false };
    tell_assertion(draft, &one_line(&said.text));
    draft.evidence(said.cite());
    true
}

/// What Metal's validation writes behind the function and line that failed.
const METALS: &str = ": failed assertion ";

/// What stands before the condition of an assertion, and the words of which one stands behind it.
const CONDITIONS: [(&str, &[&str]); 9] = [
    // glibc.
    ("Assertion `", &["' failed"]),
    // Apple's, BSDs', Windows'; musl.
    ("ssertion failed: ", &[", function ", ", file ", " ("]),
    // FFmpeg; Metal's validation.
    ("Assertion ", &[" failed at "]),
    (METALS, &["'"]),
    // newlib, bionic.
    ("assertion \"", &["\" failed"]),
    // GLib has the values behind the condition, as glog, Abseil and Chromium have.
    (": assertion failed ", &[]),
    ("] Check failed: ", &[]),
    // Qt.
    ("ASSERT: \"", &["\" in file"]),
    ("ASSERT failure in ", &[", file "]),
];

/// What an assertion's message tells.
pub(super) fn tell_assertion(draft: &mut Draft, text: &str) {
    let condition = CONDITIONS.iter().find_map(|(begin, ends)| {
        let (_, rest) = text.split_once(begin)?;
        let end = ends.iter().find_map(|end| rest.rfind(end)).unwrap_or(rest.len());
        rest.get(..end).map(|condition| condition.trim().trim_end_matches('.'))
    });
    let condition = condition.filter(|condition| !condition.is_empty()).unwrap_or(text);
    if text.contains(METALS) {
        draft.lead(
            format!("Metal's validation stopped the process: {}", condition.trim_start_matches('`')),
            "A call of Metal has arguments or a state that the API does not allow, or that this device or simulator does not.",
        );
        draft.cause("A pipeline, texture, buffer or encoder that does not fit what the call needs; the message names it.");
        draft.next("Look at what the message says of the named object. Without the validation (the scheme's diagnostics) the mistake stays, and is not told.");
        return;
    }
    draft.lead(
        format!("Assertion failed: {condition}"),
        format!("A condition that the code takes for granted did not hold: {condition}."),
    );
    draft.cause("Something that was thought impossible happened; the condition names it.");
    draft.next("Look at the function, file and line that the message names.");
}

/// abort() without a reason that this crate can read.
pub(super) fn abort(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::Abort {
        return false;
    }
    let last_words =
        facts.said.iter().find(|said| !said.text.trim().is_empty() && !said.text.contains("abort() called"));
    let known = facts.said.iter().find_map(|said| Some((said, hint_for(&ENDS, &said.text)?)));
    if facts.find_frame(&ABORT, 8).is_none() && known.is_none() {
        match unnamed_system_frame(facts) {
            Some(frame) => unknown_abort(facts, draft, frame, last_words),
            None => without_abort(draft, last_words),
        }
        return true;
    }
    let caller = facts.frames.get(frames_of_abort(facts.frames));
    let assertion = caller.filter(|caller| is_assert(facts, caller));
    match (assertion, known) {
        (_, Some((said, hint))) => {
            draft.lead(format!("Ended by abort(): {}", one_line(&said.text)), hint.meaning);
            draft.causes(hint.causes);
            draft.nexts(hint.next);
            return true;
        }
        (Some(frame), None) => {
            draft.lead("Failed assertion, very probably", "abort() was called by a function of the C library, very probably __assert_rtn, which assert() calls.");
            draft.evidence(format!(
                "{}: a call that does not return, at the end of a function of the C library",
                facts.cite(frame)
            ));
            draft.cause("A condition of assert() that did not hold.");
            draft.next("Look at the assert() in the named function; the device's log has its condition, file and line.");
            return true;
        }
        (None, None) => {}
    }
    if let Some(interrupted) = handler_that_aborted(facts) {
        by_handler(facts, draft, interrupted, last_words);
        return true;
    }
    let is_place = caller.is_some_and(|caller| {
        facts.suspect.as_ref().is_some_and(|suspect| std::ptr::eq(suspect.frame, caller))
    });
    let by = caller.filter(|_| !is_place).map(|caller| format!(" by {}", describe(facts.report, caller)));
    // Apple's C library is stripped of the name of abort() in many reports.
    let is_raised = facts.report.source.is_capture() && !has_abort(facts.frames);
    let (title, call) = match is_raised {
        true => {
            ("The process ended itself with SIGABRT", "The process sent itself SIGABRT: raise() was called")
        }
        false => ("The process ended itself with abort()", "abort() was called"),
    };
    draft.lead(title, format!("{call}{}.", by.unwrap_or_default()));
    const CHECK: &str = "A check in the calling code failed and it called abort() itself.";
    match last_words {
        Some(said) => draft.evidence(said.cite()),
        None => draft.say("The report does not tell why: no library left a message."),
    }
    // A capture has the whole stack: code of the program that calls abort() itself threw nothing.
    let is_exception_possible = last_words.is_none() && !(is_place && facts.report.source.is_capture());
    if is_exception_possible {
        draft.cause("An uncaught exception whose text did not reach the report.");
    }
    draft.cause(CHECK);
    draft.next(format!("Look at the calling frame, and in {} at the last lines before the end.", log(facts)));
    true
}

/// What a signal's handler interrupted that called abort(): the handler's frames lie behind those of abort().
fn handler_that_aborted<'r>(facts: &Facts<'r>) -> Option<&'r Frame> {
    let interrupted = facts.interrupted();
    let handler = facts.frames.len().saturating_sub(interrupted.len());
    // Of one that handles SIGABRT it is abort() that was interrupted.
    (handler > frames_of_abort(facts.frames) && has_abort(facts.frames)).then(|| interrupted.first())?
}

/// Runtimes and crash reporters end so: Ruby's `[BUG]`, a JVM's error log.
fn by_handler(facts: &Facts<'_>, draft: &mut Draft, interrupted: &Frame, last_words: Option<&Said>) {
    draft.lead(
        "A signal's handler ended the process with abort()",
        "A signal came before: its handler, of a runtime or a crash reporter as a rule, called abort(). The report has SIGABRT, not the signal that came first.",
    );
    last_words.iter().for_each(|said| draft.evidence(said.cite()));
    draft.evidence(format!("{}: what the first signal interrupted", facts.cite(interrupted)));
    draft.cause("A fault of the code that was interrupted, most of all a bad pointer.");
    draft.next(format!(
        "Look at the frame that was interrupted, and in {} or the runtime's own error log at what the handler wrote.",
        log(facts)
    ));
}

/// `__assert_rtn` is stripped of its name in many reports. It ends with its call of abort(), so a symbolicator that looks up
/// the return address names the function behind it (`basename_r + 0` on iOS 11).
fn is_assert(facts: &Facts<'_>, caller: &Frame) -> bool {
    let in_libc = image_name(facts.report, caller).is_some_and(|name| name.starts_with("libsystem_c."));
    in_libc && caller.follows().is_some()
}

/// Where a process's last words go.
fn log(facts: &Facts<'_>) -> &'static str {
    if facts.report.source.is_capture() { "its standard error" } else { "the device's log" }
}

/// The innermost frame of a capture, where it is the system's and has no name: it may be abort()'s.
fn unnamed_system_frame<'r>(facts: &Facts<'r>) -> Option<&'r Frame> {
    let first = facts.frames.first().filter(|_| facts.report.source.is_capture())?;
    let is_ours = facts.suspect.as_ref().is_some_and(|suspect| suspect.position == 0);
    (first.names().next().is_none() && !is_ours).then_some(first)
}

/// SIGABRT of which it is not known whether abort() was called: the C library's frames have no names.
fn unknown_abort(facts: &Facts<'_>, draft: &mut Draft, frame: &Frame, last_words: Option<&Said>) {
    let image = image_name(facts.report, frame).unwrap_or("the innermost image");
    draft.lead(ended_by_sigabrt(last_words), "The process was ended by SIGABRT.");
    last_words.iter().for_each(|said| draft.evidence(said.cite()));
    draft.say(match sender(facts.report) {
        Some(Sender::Itself) => {
            "The process sent the signal to itself, as abort() and raise() do.".to_owned()
        }
        Some(Sender::Other(who)) => format!("{} sent the signal.", capitalized(&who)),
        Some(Sender::Untold) | None => {
            "Whether abort() was called or another process sent the signal is not known.".to_owned()
        }
    });
    draft.say(format!("Frames of {image} have no names here, so it is not known what called it."));
    draft.next(format!("Give the symbols of {image} (`backtrail symbolicate`): the names of its frames tell whether it was abort(), an assertion or an uncaught exception."));
}

/// The title: what a library said last is the reason, as far as the report has one.
fn ended_by_sigabrt(last_words: Option<&Said>) -> String {
    match last_words.and_then(|said| said.text.lines().map(str::trim).find(|line| !line.is_empty())) {
        Some(words) => format!("Ended by SIGABRT: {}", one_line(words)),
        None => "Abort (SIGABRT) without a reason in the report".to_owned(),
    }
}

/// SIGABRT, but nobody on the stack calls abort(): crash reporters inside the app that catch an exception give the
/// stack of the throw instead.
fn without_abort(draft: &mut Draft, last_words: Option<&Said>) {
    draft.lead(ended_by_sigabrt(last_words), "The process was ended by SIGABRT.");
    match last_words {
        Some(said) => {
            draft.evidence(said.cite());
            draft.say("No abort() is on the stack: it may be that of an uncaught exception where it was thrown, or another process sent the signal.");
        }
        None => draft.say("No abort() is on the stack and no message is left: the stack may be that of an uncaught exception where it was thrown, or another process sent the signal. The report does not tell which."),
    }
    draft.cause("An uncaught exception (C++ or Objective-C), caught by a crash reporter that gives the stack of the throw.");
    draft.next("Look at the innermost frames outside of the system for a throw or a raise.");
}
