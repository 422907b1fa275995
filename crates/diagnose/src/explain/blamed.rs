//! The frame to look at first.

use super::facts::{Class, class_of};
use super::file_lock::holders;
use super::kill::{Blame, killing};
use crate::names::{base_name, image_name, main_thread, own_frames, thread_label};
use crate::suspect::skip::{
    frames_of_abort, inlined_help, is_end_or_throw, is_library_only, is_reporters_name,
};
use crate::suspect::{
    at_terminate, behind_throw, fault_stack, handlers_frames, hides_script, is_system, suspect_on,
};
use backtrail_core::Trust;
use backtrail_model::{Frame, Report, Source};

/// How the reader calls what V8 prints before it ends a program.
pub(super) const V8_FATAL: &str = "V8 fatal error";

/// And what Node.js prints of an assertion of its own that failed.
pub(super) const NODE_ASSERTION: &str = "Node.js assertion";

/// The frame to look at first, and the stack that it is on.
#[derive(Clone, Debug)]
pub struct Blamed<'r> {
    /// How evidence names the stack: `Thread 0`, `Last Exception Backtrace`.
    pub stack: String,
    /// The frame.
    pub frame: &'r Frame,
    /// How many of the functions that are inlined there, innermost first, only end the process or throw, or are a language's library: it
    /// begins behind them.
    pub passed: usize,
}

impl<'r> Blamed<'r> {
    fn new(stack: String, frame: &'r Frame) -> Self {
        Self { stack, frame, passed: inlined_help(frame) }
    }
}

/// The frame to look at first: the innermost that is not the system's and not passed over; where there is none, the
/// innermost that does more than end the process or throw. With or without a name, and never one that was found by
/// scanning. `None` where no code of the process is to blame, or the report has no stack.
pub fn blamed(report: &Report) -> Option<Blamed<'_>> {
    let (stack, frames) = match fault_place(report)? {
        FaultPlace::Stack(stack, frames) => (stack, frames),
        FaultPlace::Frame(stack, frame) => return Some(Blamed::new(stack, frame)),
    };
    on(report, stack, frames)
}

/// Where a report's fault is to be looked for.
pub(crate) enum FaultPlace<'r> {
    /// On that stack, by its label.
    Stack(String, &'r [Frame]),
    /// At that very frame.
    Frame(String, &'r Frame),
}

/// The stack that shows the fault; `None` where no code of the process is to blame, or the report has no stack.
pub(crate) fn fault_place(report: &Report) -> Option<FaultPlace<'_>> {
    // The innermost frames of a kernel panic are those of the panic itself.
    if report.source == Source::ApplePanic {
        return None;
    }
    let kind = report.exception.as_ref().and_then(|exception| exception.kind.as_deref());
    if report.source == Source::JavaScriptError && matches!(kind, Some(V8_FATAL | NODE_ASSERTION)) {
        return engines_place(report, kind == Some(NODE_ASSERTION));
    }
    if hides_script(report) {
        return None;
    }
    if is_recorder(report) && !report.process.backtraces.iter().any(|stack| stack.is_exception) {
        return None;
    }
    let killing = killing(report);
    let is_privacy = killing
        .as_ref()
        .and_then(|killing| killing.namespace)
        .is_some_and(|namespace| namespace.name == "TCC");
    if killing.as_ref().is_some_and(|killing| killing.is_sent_signal) {
        return None;
    }
    match killing.as_ref().map(|killing| killing.blame) {
        Some(Blame::Outside) => return None,
        Some(Blame::Packaging) if !is_privacy => return None,
        Some(Blame::MainThread) => {
            let thread = main_thread(report)?;
            return Some(FaultPlace::Stack(thread_label(thread), own_frames(report, &thread.frames)));
        }
        _ => {}
    }
    if killing.and_then(|killing| killing.code).is_some_and(|code| code.code == 0xdead_10cc)
        && let Some(holder) = holders(report).into_iter().next()
    {
        return Some(FaultPlace::Frame(thread_label(holder.thread), holder.caller.unwrap_or(holder.lock)));
    }
    let (stack, frames) = fault_stack(report)?;
    Some(FaultPlace::Stack(stack, frames))
}

/// Where a check of V8 or Node.js failed: an addon that called the engine, else the function of Node.js that made the check. All else are
/// the engine's own way to the end.
fn engines_place(report: &Report, is_assertion: bool) -> Option<FaultPlace<'_>> {
    /// `node::Abort`, and `node::Assert` or what stands in the symbol table before it.
    const ENDS: usize = 2;
    let stack = report.process.backtraces.first()?;
    let is_addon = |frame: &&Frame| frame.image_name.as_deref().is_some_and(|name| name.ends_with(".node"));
    let is_nodes =
        |frame: &&Frame| is_assertion && frame.names().next().is_some_and(|name| name.starts_with("node::"));
    let frame = stack.frames.iter().find(is_addon);
    let frame = frame.or_else(|| stack.frames.iter().skip(ENDS).find(is_nodes))?;
    Some(FaultPlace::Frame(stack.title.clone(), frame))
}

/// Whether the thread that crashed is the one that Crashlytics, or Fabric before it, records exceptions on.
pub(super) fn is_recorder(report: &Report) -> bool {
    let thread = report.crashed();
    let name = thread.and_then(|thread| thread.name.as_deref().or(thread.queue.as_deref()));
    name.is_some_and(|name| name.contains("crashlytics.") && name.contains(".exception"))
}

fn on<'r>(report: &'r Report, stack: String, frames: &'r [Frame]) -> Option<Blamed<'r>> {
    let suspect = suspect_on(report, &stack, frames).filter(|suspect| !suspect.is_entry);
    if let Some(suspect) = suspect {
        return Some(Blamed::new(stack, suspect.frame));
    }
    // A call that does not return bears the next function's name, which is of the same kind in the system's libraries.
    let name = |frame: &&'r Frame| frame.names().next().or_else(|| frame.follows());
    let ends = |frame: &&'r Frame| {
        name(frame).is_some_and(|name| is_end_or_throw(base_name(name)) || is_reporters_name(base_name(name)))
    };
    let is_abort = class_of(report) == Class::Abort;
    let own = if is_abort { frames_of_abort(frames) } else { 0 };
    let start = handlers_frames(frames).max(own).max(behind_throw(frames)).max(at_terminate(frames));
    let frames = frames.get(start..).filter(|rest| !rest.is_empty()).unwrap_or(frames);
    let is_nowhere =
        |frame: &&'r Frame| frame.names().next().is_none() && image_name(report, frame).is_none();
    let is_runtimes = report.source.is_runtimes();
    // Addresses alone lead nowhere where the text has nothing to look them up by.
    let leads =
        |frame: &&'r Frame| frame.trust != Trust::Scan && !ends(frame) && !(is_runtimes && is_nowhere(frame));
    let own = frames.iter().find(|frame| leads(frame) && !is_library_only(frame));
    let frame = own.or_else(|| frames.iter().find(leads))?;
    // What the kernel reports by, and Rust's library panics by, is never the place.
    if matches!(report.source, Source::LinuxKernel | Source::RustPanic) && is_system(report, frame) {
        return None;
    }
    // The innermost frames of a throw are the throw, also where no name says so.
    let is_throw = report.process.backtraces.iter().any(|it| it.is_exception && it.title == stack);
    (!is_throw || !is_nowhere(&frame)).then(|| Blamed::new(stack, frame))
}
