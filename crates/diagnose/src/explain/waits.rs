//! What the main thread did, and who else waited.

use super::draft::Draft;
use super::facts::Facts;
use super::tables::waits::{WAITS, Wait};
use crate::names::{cite, describe, is_any_of, thread_label};
use crate::suspect::suspect_on;
use backtrail_model::{Frame, Thread};

/// Deeper frames are not what a thread waits in.
const DEPTH: usize = 14;

/// On whose behalf another thread waits stands among so many frames.
const WAITER_DEPTH: usize = 64;

/// At most so many other threads are cited.
const MAX_OTHERS: usize = 3;

/// The wait that a stack is in, with the frame that shows it.
pub(super) fn waiting_in(frames: &[Frame]) -> Option<(&'static Wait, &Frame)> {
    let innermost = frames.get(..DEPTH.min(frames.len()))?;
    let waits =
        |wait: &'static Wait| Some((wait, innermost.iter().find(|frame| is_any_of(frame, wait.functions))?));
    // A thread waits only where its innermost frame is a system call that does.
    let first = frames.first()?;
    let blocked = WAITS.iter().any(|wait| is_any_of(first, wait.functions));
    blocked.then(|| WAITS.iter().find_map(waits)).flatten()
}

/// Says what the main thread was doing, by frame names.
pub(super) fn main_thread_activity(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(thread) = facts.main_thread() else { return };
    let Some(top) = thread.frames.first() else {
        draft.say("The report has no stack of the main thread.");
        return;
    };
    let label = format!("{} (main)", thread_label(thread));
    let suspect = suspect_on(facts.report, &label, &thread.frames);
    let on_behalf =
        suspect.as_ref().map(|suspect| format!(", called by {}", describe(facts.report, suspect.frame)));
    draft.evidence(cite(facts.report, &label, top));
    match waiting_in(&thread.frames) {
        Some((wait, _)) if wait.idle => {
            draft.say("At the end the main thread was idle in its run loop: what had kept it busy was over by then.");
        }
        Some((wait, frame)) => {
            draft.say(format!(
                "The main thread was waiting for {}{}.",
                wait.what,
                on_behalf.unwrap_or_default()
            ));
            draft.evidence(cite(facts.report, &label, frame));
            draft.next(wait.advice);
        }
        None => {
            draft.say(format!(
                "The main thread was running {}{}.",
                describe(facts.report, top),
                on_behalf.unwrap_or_default()
            ));
        }
    }
    if let Some(suspect) = suspect.filter(|suspect| suspect.position > 0) {
        draft.evidence(cite(facts.report, &label, suspect.frame));
    }
}

/// Threads that wait themselves on behalf of code outside of the system: one of them may hold what main waits for.
pub(super) fn others_waiting(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(main) = facts.main_thread() else { return };
    let is_blocked = waiting_in(&main.frames).is_some_and(|(wait, _)| !wait.idle);
    if !is_blocked {
        return;
    }
    let candidates =
        facts.report.process.threads.iter().filter(|thread| !std::ptr::eq(*thread, main)).take(512);
    let mut found = 0;
    for thread in candidates {
        if let Some(line) = waiter(facts, thread).filter(|_| found < MAX_OTHERS) {
            draft.evidence(line);
            found += 1;
        }
    }
    draft.say(match found {
        0 => "No other thread waits on behalf of code outside of the system; the report does not tell who should have let it go on.",
        _ => "Other threads wait too, on behalf of code outside of the system: one of them may be who the main thread waits for (a deadlock, if each waits for the other). The report does not tell who holds what.",
    });
}

fn waiter(facts: &Facts<'_>, thread: &Thread) -> Option<String> {
    let (wait, _) = waiting_in(&thread.frames).filter(|(wait, _)| !wait.idle)?;
    let label = thread_label(thread);
    let frames = thread.frames.get(..WAITER_DEPTH.min(thread.frames.len()))?;
    let suspect = suspect_on(facts.report, &label, frames)?;
    Some(format!("{}: waits for {}", cite(facts.report, &label, suspect.frame), wait.what))
}
