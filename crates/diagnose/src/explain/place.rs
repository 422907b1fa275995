//! Where it happened: the innermost function that is not the system's, and what to do where it has no name.

use super::draft::Draft;
use super::events::has_no_place;
use super::facts::{Class, Facts};
use super::kill::{Blame, killing};
use crate::names::{describe, image_name, image_of, is_any_of, missing_thread};
use crate::suspect::skip::inlined_help;
use backtrail_core::Trust;
use backtrail_model::{Frame, Thread};

/// Adds the place, for all but what was ended from outside.
pub(super) fn place(facts: &Facts<'_>, draft: &mut Draft) {
    let elsewhere = killing(facts.report).is_some_and(|killing| killing.blame != Blame::Stack);
    if elsewhere || has_no_place(facts) {
        return;
    }
    let Some(suspect) = &facts.suspect else {
        nobody(facts, draft);
        return;
    };
    if suspect.is_entry {
        draft.place(format!(
            "The innermost code that is not the system's, {}, only runs the event loop.",
            describe(facts.report, suspect.frame)
        ));
        return;
    }
    // What is inlined there may only end the process, as `std::__terminate` does, or be a library's, as C++'s containers are.
    let mut told = suspect.frame.clone();
    told.functions.drain(..inlined_help(suspect.frame));
    let place = describe(facts.report, &told);
    let thrown = facts
        .report
        .process
        .backtraces
        .iter()
        .find(|backtrace| backtrace.is_exception && !backtrace.frames.is_empty())
        // A crash reporter's signal handler gives its own stack as that of an exception that it makes.
        .is_some_and(|backtrace| !backtrace.frames.iter().any(|frame| is_any_of(frame, &["_sigtramp"])));
    draft.place(match (thrown, suspect.position) {
        (true, 0) => format!("It was thrown in {place}."),
        (true, _) => format!("It was thrown below {place}."),
        (false, 0) => format!("It happened in {place}."),
        (false, _) => format!("It happened below {place}."),
    });
    if suspect.frame.names().next().is_none() {
        let image = image_name(facts.report, suspect.frame).unwrap_or("the image");
        let id = image_of(facts.report, suspect.frame)
            .and_then(|image| image.id)
            .map(|id| format!(" ({} {id})", id.kind()));
        draft.next(format!("Get the symbols of {image}{} to see function and line.", id.unwrap_or_default()));
    }
}

fn nobody(facts: &Facts<'_>, draft: &mut Draft) {
    if let Some(number) = missing_thread(facts.report).filter(|_| facts.stack.is_empty()) {
        draft.place(format!("The report ends before the stack of thread {number}, where it happened."));
        draft.next("Get the whole report: the stack of that thread tells where it happened.");
    } else if facts.report.process.threads.is_empty() && facts.report.process.backtraces.is_empty() {
        draft.place("The report has no stack.");
    } else if facts.stack.is_empty() {
        draft.place("The report does not say which thread it was.");
    } else if facts.thread.is_some_and(|thread| has_no_frames(facts, thread)) {
        draft.place(format!("{} has no frames: its stack could not be followed.", facts.stack));
        if facts.class == Class::BadAccess {
            draft.place("That often means that the code had jumped to an address that is no code, or that the stack was overwritten.");
        }
    } else if facts.report.process.images.is_empty() {
        draft.place("The report has no list of images, so it does not tell whose code the frames are.");
    } else {
        draft.place(format!("No frame of {} lies outside of the system.", facts.stack));
    }
}

/// Whether nothing of a thread's stack is known but what its registers hold.
fn has_no_frames(facts: &Facts<'_>, thread: &Thread) -> bool {
    match facts.report.source.is_capture() {
        // A capture's frames are all walked to; the first is the program counter.
        true => thread.frames.iter().all(|frame| frame.trust == Trust::Context && frame.image.is_none()),
        false => thread.frames.iter().all(is_added),
    }
}

/// Whether the frame comes from the registers, not from the report's list.
fn is_added(frame: &Frame) -> bool {
    frame.trust != Trust::Report
}
