//! Processes that ended themselves: malloc's checks, assertions, plain abort().

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::tables::messages::{ENDS, MALLOC, SANITIZERS};
use super::thrown::{hint_for, tell};
use super::words::{between, one_line};
use crate::names::{describe, image_name, is_any_of};
use crate::suspect::skip::ABORT;
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
        text.contains("Assertion failed:")
            || text.contains("assertion failed:")
            || text.contains("Assertion failure in")
    };
    let Some(said) = facts.find_said(about) else { return false };
    let text = one_line(&said.text);
    let condition = between(&text, "ssertion failed: ", ", function").unwrap_or(&text);
    draft.lead(
        format!("Assertion failed: {condition}"),
        format!("A condition that the code takes for granted did not hold: {condition}."),
    );
    draft.evidence(said.cite());
    draft.cause("Something that was thought impossible happened; the condition names it.");
    draft.next("Look at the function, file and line that the message names.");
    true
}

/// abort() without a reason that this crate can read.
pub(super) fn abort(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::Abort {
        return false;
    }
    let last_words =
        facts.said.iter().find(|said| !said.text.trim().is_empty() && !said.text.contains("abort() called"));
    if facts.find_frame(&ABORT, 8).is_none() {
        without_abort(draft, last_words);
        return true;
    }
    let caller = facts.frames.iter().take(16).find(|frame| !is_any_of(frame, &ABORT));
    let assertion = caller.filter(|caller| is_assert(facts, caller));
    let known = facts.said.iter().find_map(|said| Some((said, hint_for(&ENDS, &said.text)?)));
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
    let is_place = caller.is_some_and(|caller| {
        facts.suspect.as_ref().is_some_and(|suspect| std::ptr::eq(suspect.frame, caller))
    });
    let by = caller.filter(|_| !is_place).map(|caller| format!(" by {}", describe(facts.report, caller)));
    draft.lead(
        "The process ended itself with abort()",
        format!("abort() was called{}.", by.unwrap_or_default()),
    );
    match last_words {
        Some(said) => draft.evidence(said.cite()),
        None => {
            draft.say("The report does not tell why: no library left a message.");
            draft.cause("An uncaught exception whose text did not reach the report.");
        }
    }
    draft.cause("A check in the calling code failed and it called abort() itself.");
    draft.next("Look at the calling frame, and in the device's log at the last lines before the end.");
    true
}

/// `__assert_rtn` is stripped of its name in many reports. It ends with its call of abort(), so a symbolicator that looks up
/// the return address names the function behind it (`basename_r + 0` on iOS 11).
fn is_assert(facts: &Facts<'_>, caller: &Frame) -> bool {
    let in_libc = image_name(facts.report, caller).is_some_and(|name| name.starts_with("libsystem_c."));
    in_libc && caller.follows().is_some()
}

/// SIGABRT, but nobody on the stack calls abort(): crash reporters inside the app that catch an exception give the
/// stack of the throw instead.
fn without_abort(draft: &mut Draft, last_words: Option<&super::facts::Said>) {
    draft.lead("Abort (SIGABRT) without a reason in the report", "The process was ended by SIGABRT.");
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
