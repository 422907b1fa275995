//! What the main thread did, and who else waited.

use super::draft::Draft;
use super::facts::Facts;
use super::tables::waits::{By, WAITS, Wait};
use crate::names::{Names, cite, describe, is_any_of, own_frames, thread_label};
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
    // A thread waits only where its innermost frame is a system call that does.
    let first = Names::of(frames.first()?);
    if !WAITS.iter().any(|wait| first.is_any_of(wait.functions)) {
        return None;
    }
    let innermost = frames.get(..DEPTH.min(frames.len()))?;
    let named: Vec<_> = innermost.iter().map(|frame| (frame, Names::of(frame))).collect();
    WAITS.iter().find_map(|wait| {
        let (frame, _) = named.iter().find(|(_, names)| names.is_any_of(wait.functions))?;
        Some((wait, *frame))
    })
}

/// Whether at that frame a thread waits for another one of the process.
pub(super) fn is_wait_for_threads(frame: &Frame) -> bool {
    let foreign = |wait: &Wait| wait.idle || wait.by != By::Thread;
    WAITS.iter().filter(|wait| !foreign(wait)).any(|wait| is_any_of(frame, wait.functions))
}

/// Code outside of the system that runs an event loop of its own below the app's.
fn nested_loop<'r>(facts: &Facts<'r>, thread: &'r Thread) -> Option<&'r Frame> {
    let frames = own_frames(facts.report, &thread.frames);
    let suspect = suspect_on(facts.report, "", frames)?;
    let innermost = frames.get(..suspect.position)?;
    let waits = innermost
        .iter()
        .any(|frame| is_any_of(frame, &["__CFRunLoopServiceMachPort", "CFRunLoopRunSpecific"]));
    (waits && !suspect.is_entry && !is_any_of(suspect.frame, &["main"])).then_some(suspect.frame)
}

/// Says what the main thread was doing, by frame names. Tells whether it waited for something that is known.
pub(super) fn main_thread_activity(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(thread) = facts.main_thread() else { return false };
    let Some(top) = thread.frames.first() else {
        draft.say("The report has no stack of the main thread.");
        return false;
    };
    let label = format!("{} (main)", thread_label(thread));
    let frames = own_frames(facts.report, &thread.frames);
    let suspect = suspect_on(facts.report, &label, frames).filter(|suspect| !suspect.is_entry);
    let on_behalf =
        suspect.as_ref().map(|suspect| format!(", called by {}", describe(facts.report, suspect.frame)));
    match waiting_in(frames) {
        Some((wait, _)) if wait.idle => match nested_loop(facts, thread) {
            Some(frame) => {
                draft.say(format!(
                    "The main thread was waiting in an event loop of its own that {} runs.",
                    describe(facts.report, frame)
                ));
                draft.next("Do not run an event loop inside of a call on the main thread; continue in a completion handler.");
            }
            None => {
                draft.say("At the end the main thread was idle in its run loop: what had kept it busy was over by then, or it was never asked.");
                draft.evidence(cite(facts.report, &label, top));
            }
        },
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
            let is_place = suspect.as_ref().is_some_and(|suspect| suspect.position == 0);
            let on_behalf = on_behalf.filter(|_| !is_place).unwrap_or_default();
            draft.say(format!("The main thread was running {}{on_behalf}.", describe(facts.report, top)));
        }
    }
    waiting_in(frames).is_some_and(|(wait, _)| !wait.idle)
}

/// Who could let the main thread go on: threads of the process, as far as what it waits for is theirs.
pub(super) fn releasers(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(main) = facts.main_thread() else { return };
    let frames = own_frames(facts.report, &main.frames);
    let Some((wait, _)) = waiting_in(frames).filter(|(wait, _)| !wait.idle) else { return };
    match wait.by {
        By::Thread => {}
        By::Time => return,
        By::Outside(who) => {
            draft.say(format!("Only {who} can let it go on."));
            return;
        }
    }
    let suspect = suspect_on(facts.report, "", frames).filter(|suspect| !suspect.is_entry);
    let image = suspect.as_ref().and_then(|suspect| suspect.frame.image);
    let others = facts.report.process.threads.iter().filter(|thread| !std::ptr::eq(*thread, main)).take(512);
    let mut found: Vec<Releaser<'_>> = others.filter_map(|thread| releaser(facts, thread, image)).collect();
    found.sort_by_key(|releaser| releaser.rank);
    for releaser in found.iter().take(MAX_OTHERS) {
        let cited = cite(facts.report, &thread_label(releaser.thread), releaser.frame);
        draft.evidence(format!("{cited}: {}", releaser.what));
    }
    let waits = found.iter().any(|releaser| releaser.waits);
    draft.say(match (found.is_empty(), waits) {
        (true, _) => "No other thread runs or waits on behalf of code outside of the system; the report does not tell who should have let it go on.",
        (false, true) => "Another thread waits too: a deadlock, if each waits for the other. The report does not tell who holds what.",
        (false, false) => "Other threads run code outside of the system: one of them may be who the main thread waits for. The report does not tell who holds what.",
    });
}

/// A thread that may hold what the main thread waits for.
struct Releaser<'r> {
    thread: &'r Thread,
    frame: &'r Frame,
    what: String,
    waits: bool,
    /// The likelier, the lower.
    rank: u8,
}

fn releaser<'r>(facts: &Facts<'r>, thread: &'r Thread, image: Option<usize>) -> Option<Releaser<'r>> {
    let frames = own_frames(facts.report, &thread.frames);
    let frames = frames.get(..WAITER_DEPTH.min(frames.len()))?;
    let waiting = waiting_in(frames).map(|(wait, _)| wait);
    if waiting.is_some_and(|wait| wait.idle) || is_idle_worker(frames) {
        return None;
    }
    let suspect =
        suspect_on(facts.report, &thread_label(thread), frames).filter(|suspect| !suspect.is_entry)?;
    let queue = thread.queue.as_ref().map(|queue| format!(" on queue {queue}")).unwrap_or_default();
    let what = match waiting {
        Some(wait) => format!("waits for {}{queue}", wait.what),
        None => format!("runs{queue}"),
    };
    let near = image.is_some() && suspect.frame.image == image;
    let waits = waiting.is_some_and(|wait| wait.by == By::Thread);
    let rank = u8::from(!near) * 2 + u8::from(!waits);
    Some(Releaser { thread, frame: suspect.frame, what, waits, rank })
}

/// Threads of a pool that have nothing to do, and those that wait for sockets.
pub(super) fn is_idle_worker(frames: &[Frame]) -> bool {
    const IDLE: [&str; 9] = [
        "__workq_kernreturn",
        "start_wqthread",
        "kevent",
        "kevent64",
        "kevent_id",
        "kevent_qos",
        "__select",
        "poll",
        "__accept",
    ];
    frames.first().is_some_and(|frame| is_any_of(frame, &IDLE))
}
