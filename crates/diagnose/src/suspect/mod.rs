//! The frame of a stack to suspect: the innermost that is not passed over.
//!
//! Frames are passed over from the innermost outwards while they lie in system images (`owner`), or are functions that end
//! up on top without being at fault (`skip`: abort, throw, reference counting, locks, allocators, crash reporters).

mod android;
mod languages;
pub(crate) mod owner;
pub(crate) mod paths;
mod runtimes;
pub(crate) mod skip;
mod sources;

use crate::names::{base_name, cite, image_name, is_any_of, only_thread, own_frames, thread_label};
pub(crate) use android::is_web_view;
use backtrail_core::Trust;
use backtrail_model::{Backtrace, Frame, Image, Language, OwnerKind, Process, Report, Source};
use owner::Ownership;
use paths::{INJECTED_PATHS, SYSTEM_PATHS, rule_for};
use skip::{REPORTER_IMAGES, has_abort, is_library_only, skip_reason};

/// Whose the code of a frame is: the owner that the frame has, else that of its image.
pub(crate) fn kind_of(report: &Report, frame: &Frame) -> OwnerKind {
    frame.owner.as_ref().map_or_else(|| owner_of(report, frame).owner, |owner| owner.kind)
}

/// Tells whose the code of a frame is, by its image or its class alone.
pub(crate) fn owner_of(report: &Report, frame: &Frame) -> Ownership {
    if report.source.is_android_or_java() && !is_script(report, frame) {
        android::owner_of(report, frame)
    } else if report.source.is_runtimes() || is_script(report, frame) || is_of_sentrys_script(report, frame) {
        runtimes::owner_of(report, frame)
    } else {
        owner::owner_of(report, frame)
    }
}

/// The exception of Java by which React Native ends an app for an error of JavaScript (`com.facebook.react.common`).
pub(crate) const SCRIPT_CARRIER: &str = "com.facebook.react.common.JavascriptException";

/// Whether a report's exception only carries one of JavaScript, and the report has no stack of that.
pub(crate) fn hides_script(report: &Report) -> bool {
    let kind = report.exception.as_ref().and_then(|exception| exception.kind.as_deref());
    let is_script = |frame: &Frame| frame.language == Some(Language::JavaScript);
    kind == Some(SCRIPT_CARRIER)
        && !report.process.backtraces.iter().any(|stack| stack.frames.iter().any(is_script))
}

/// Whether the frame is one of JavaScript in a report of Apple's systems or Android: React Native's, in an exception's reason.
pub(crate) fn is_script(report: &Report, frame: &Frame) -> bool {
    (report.source.is_apple() || report.source.is_android_or_java())
        && frame.language == Some(Language::JavaScript)
}

/// Whether the frame is one that a client of Sentry's knows by its language alone.
pub(crate) fn is_of_sentrys_script(report: &Report, frame: &Frame) -> bool {
    report.source == Source::Sentry && frame.language.is_some()
}

/// Deeper frames have no say: whatever lies there called half of the program.
const MAX_FRAMES: usize = 4096;

/// How many frames that were passed over the evidence cites.
const MAX_CITED: usize = 4;

/// The first frame that is not passed over.
pub(crate) struct Suspect<'r> {
    /// The frame.
    pub(crate) frame: &'r Frame,
    /// How many frames lie further in.
    pub(crate) position: usize,
    /// Sentences on the frames that were passed over.
    pub(crate) passed: Vec<String>,
    /// Whether it is only where the app began: `main`, which runs the event loop that all else happens below.
    pub(crate) is_entry: bool,
}

/// Functions that run an app's event loop and do not return. What called them is the app's `main`.
pub(crate) const EVENT_LOOPS: [&str; 7] = [
    "UIApplicationMain",
    "NSApplicationMain",
    "-[NSApplication run]",
    "GSEventRunModal",
    "NSExtensionMain",
    "xpc_main",
    "WKExtensionMain",
];

/// Whether the frame at `position` did nothing but start the event loop.
fn is_entry(frames: &[Frame], position: usize) -> bool {
    frames.get(..position).unwrap_or_default().iter().any(|frame| is_any_of(frame, &EVENT_LOOPS))
}

/// Whether the code at `frame` is the system's.
pub fn is_system(report: &Report, frame: &Frame) -> bool {
    kind_of(report, frame) == OwnerKind::System
}

/// Whether an image is the system's by its path alone, and not the process's own executable: no code of an app was linked into
/// it.
pub fn is_system_image(process: &Process, image: &Image) -> bool {
    let Some(path) = image.path.as_deref().filter(|path| process.path.as_deref() != Some(*path)) else {
        return false;
    };
    let is_systems = rule_for(&*SYSTEM_PATHS, path).is_some() || android::is_system_path(path);
    is_systems && rule_for(&*INJECTED_PATHS, path).is_none()
}

/// The stack that tells whose fault it is, with the label by which evidence cites it: where an uncaught exception
/// was thrown if the report has that, else the blamed thread, else the only one, else a bare backtrace.
pub(crate) fn fault_stack(report: &Report) -> Option<(String, &[Frame])> {
    let labelled = |backtrace: &'_ Backtrace| backtrace.title.clone();
    let thrown = report
        .process
        .backtraces
        .iter()
        .find(|backtrace| backtrace.is_exception && !backtrace.frames.is_empty());
    let thrown = thrown.map(|cause| told_by(report, cause));
    let thrown = thrown.map(|backtrace| (labelled(backtrace), backtrace.frames.as_slice()));
    let crashed = || {
        report
            .crashed()
            // A trace of an app that did not respond is about the main thread, whatever else is left of it.
            .or_else(|| only_thread(report).filter(|_| report.source != Source::AndroidAnr))
            .map(|thread| (thread_label(thread), thread.frames.as_slice()))
    };
    let bare = || report.process.backtraces.first().filter(|_| report.process.threads.is_empty());
    let (label, frames) = thrown
        .or_else(crashed)
        .or_else(|| bare().map(|backtrace| (labelled(backtrace), backtrace.frames.as_slice())))?;
    Some((label, own_frames(report, frames)))
}

/// The stack of a Java exception to look at: that of the root cause, unless it has no frame outside of the system and that of an
/// exception which it caused has one.
fn told_by<'r>(report: &'r Report, cause: &'r Backtrace) -> &'r Backtrace {
    let is_outside = |backtrace: &Backtrace| backtrace.frames.iter().any(|frame| !is_system(report, frame));
    if !report.source.is_android_or_java() || is_outside(cause) {
        return cause;
    }
    let backtraces =
        report.process.backtraces.iter().take_while(|backtrace| !std::ptr::eq(*backtrace, cause));
    backtraces.filter(|backtrace| is_outside(backtrace)).last().unwrap_or(cause)
}

/// Finds the frame of `frames` to suspect. `stack` is the label by which evidence cites it.
pub(crate) fn suspect_on<'r>(report: &'r Report, stack: &str, frames: &'r [Frame]) -> Option<Suspect<'r>> {
    let mut passed = Vec::new();
    let start = behind_signal_handler(report, stack, frames, &mut passed)
        .max(behind_throw(frames))
        .max(at_terminate(frames));
    // What counts only where nothing better is found: a language's library in the app's image before frames whose image's owner nobody
    // knows.
    let (mut of_library, mut unknown, mut unknown_library) = (None, None, None);
    for (position, frame) in frames.iter().enumerate().take(MAX_FRAMES).skip(start) {
        if frame.trust == Trust::Scan {
            continue;
        }
        match kind_of(report, frame) {
            OwnerKind::System => continue,
            // Crash reporters are linked into apps, also where nothing tells whose the image is.
            OwnerKind::Unknown => {
                if image_name(report, frame).is_some() && passing_reason(report, frame).is_none() {
                    let place = if is_library_only(frame) { &mut unknown_library } else { &mut unknown };
                    *place = place.or(Some((position, frame)));
                }
                continue;
            }
            OwnerKind::App | OwnerKind::Sdk => {}
        }
        if let Some(reason) = passing_reason(report, frame) {
            if passed.len() < MAX_CITED {
                passed.push(format!("{}: passed over, it {reason}", cite(report, stack, frame)));
            }
            continue;
        }
        if is_library_only(frame) {
            of_library = of_library.or(Some((position, frame)));
            continue;
        }
        return Some(Suspect { frame, position, passed, is_entry: is_entry(frames, position) });
    }
    let (position, frame) = of_library.or(unknown).or(unknown_library)?;
    Some(Suspect { frame, position, passed, is_entry: is_entry(frames, position) })
}

/// How many frames are a signal handler's: the crash reporter at work.
pub(crate) fn handlers_frames(frames: &[Frame]) -> usize {
    /// What systems put on the stack where they call a signal's handler: Apple's, the C library's on Linux, as gdb calls it;
    /// and the handlers of Chromium and Ruby, where that has no name.
    const HANDLERS: [&str; 6] = [
        "_sigtramp",
        "__restore_rt",
        "__kernel_rt_sigreturn",
        "<signal handler called>",
        "sigsegv",
        "sigbus",
    ];
    let is_chromiums = |frame: &Frame| frame.names().any(|name| name.contains("::StackDumpSignalHandler("));
    let is_handler = |frame: &Frame| is_any_of(frame, &HANDLERS) || is_chromiums(frame);
    frames.iter().take(MAX_FRAMES).rposition(is_handler).map_or(0, |at| at + 1)
}

/// Where nobody caught an exception, what the runtime then calls lies further in than the throw: the handler of a crash reporter.
pub(crate) fn behind_throw(frames: &[Frame]) -> usize {
    /// A handler, the runtime and the throw take this many frames at most.
    const DEPTH: usize = 24;
    const ENDS: [&str; 6] = [
        "_objc_terminate",
        "std::terminate",
        "std::__terminate",
        "__handleUncaughtException",
        "handleUncaughtException",
        "demangling_terminate_handler",
    ];
    const THROWS: [&str; 4] =
        ["objc_exception_throw", "__cxa_throw", "objc_exception_rethrow", "__cxa_rethrow"];
    let innermost = frames.get(..DEPTH.min(frames.len())).unwrap_or_default();
    let Some(throw) = innermost.iter().rposition(|frame| is_any_of(frame, &THROWS)) else { return 0 };
    let has_ended = innermost.iter().take(throw).any(|frame| is_any_of(frame, &ENDS));
    if has_ended { throw + 1 } else { 0 }
}

/// Where C++ ended the process by std::terminate, what is further in is the handler that it called and that aborted: the program's, or a
/// crash reporter's. The frame itself stays: what calls std::terminate may be inlined there.
pub(crate) fn at_terminate(frames: &[Frame]) -> usize {
    /// A handler that only aborts takes this many frames at most.
    const DEPTH: usize = 24;
    const TERMINATE: [&str; 2] = ["std::terminate", "std::__terminate"];
    let innermost = frames.get(..DEPTH.min(frames.len())).unwrap_or_default();
    let terminate = innermost.iter().rposition(|frame| is_any_of(frame, &TERMINATE));
    let aborts = |at: &usize| has_abort(innermost.get(..*at).unwrap_or_default());
    terminate.filter(aborts).unwrap_or(0)
}

/// Frames inside of `_sigtramp` are the crash reporter at work: what was interrupted begins behind it.
fn behind_signal_handler(report: &Report, stack: &str, frames: &[Frame], passed: &mut Vec<String>) -> usize {
    let start = handlers_frames(frames);
    if let Some(frame) = start.checked_sub(1).and_then(|at| frames.get(at)) {
        passed.push(format!("{}: the frames up to here are a signal handler", cite(report, stack, frame)));
    }
    start
}

/// Why the code at `frame` is no suspect although its image is the app's or an SDK's. Every function inlined there
/// has to be passed over; otherwise the frame stays.
fn passing_reason(report: &Report, frame: &Frame) -> Option<&'static str> {
    if is_reporters(report, frame) {
        return Some("is a crash reporter's");
    }
    if tells_for_module(report, frame) {
        return Some("tells for its module that this has no such member");
    }
    let mut reason = None;
    for name in frame.names() {
        reason = Some(skip_reason(base_name(name))?);
    }
    reason
}

/// Whether a module of Python says by its own `__getattr__` (PEP 562) that it has no such member: whoever asked for it names something
/// that is not there, or no longer.
fn tells_for_module(report: &Report, frame: &Frame) -> bool {
    let message = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
    let is_modules =
        |message: &str| message.starts_with("module '") && message.contains("' has no attribute '");
    report.source == Source::PythonTraceback
        && message.is_some_and(is_modules)
        && frame.names().next().is_some_and(|name| name == "__getattr__" || name.ends_with(".__getattr__"))
}

/// Directories of Sentry's own clients, whose frames are on the stacks of messages.
const SENTRYS_CLIENTS: [&str; 5] =
    ["/sentry_sdk/", "/sentry-ruby", "/node_modules/@sentry/", "/getsentry/sentry-go", "/sentry/sentry/src/"];

/// Whether the frame is a crash reporter's, by its image or its source's directory.
pub(crate) fn is_reporters(report: &Report, frame: &Frame) -> bool {
    if is_of_sentrys_script(report, frame) {
        let file = frame.reported.as_ref().and_then(|reported| reported.file.as_deref()).unwrap_or_default();
        return SENTRYS_CLIENTS.iter().any(|part| file.contains(part));
    }
    let image = image_name(report, frame).unwrap_or_default();
    REPORTER_IMAGES.iter().any(|name| image.starts_with(name))
}
