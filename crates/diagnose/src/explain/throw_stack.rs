//! What the stack of the throw of an Objective-C exception tells.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::tables::throwers::{THROWERS, Thrower};
use crate::names::{base_name, cite, describe, is_any_of};
use crate::suspect::handlers_frames;
use backtrail_model::{Frame, Source};

/// Where a throw is looked for. What a crash reporter's signal handler raises itself is none: the signal is what happened.
pub(super) fn throw_frames<'r>(facts: &Facts<'r>) -> &'r [Frame] {
    facts.fault_frames.get(handlers_frames(facts.fault_frames)..).unwrap_or_default()
}

/// `Last Exception Backtrace` of a report without symbols: Apple's systems write it for exceptions of Objective-C alone.
pub(super) fn is_unnamed_throw(facts: &Facts<'_>) -> bool {
    let is_apples = matches!(facts.report.source, Source::AppleText | Source::AppleIps);
    let is_unnamed = |frame: &Frame| frame.names().next().is_none();
    is_apples
        && facts.class == Class::Abort
        && facts.report.process.backtraces.iter().any(|backtrace| {
            backtrace.is_exception && backtrace.frames.iter().take(THROW_DEPTH).all(is_unnamed)
        })
}

/// A throw is this far in at most.
pub(super) const THROW_DEPTH: usize = 12;

/// How far behind a throw a bridge that throws for others is.
const BRIDGE_DEPTH: usize = 5;

/// Functions that throw an Objective-C exception.
const OBJC_THROW: [&str; 6] = [
    "objc_exception_throw",
    "__exceptionPreprocess",
    "-[NSException raise]",
    "+[NSException raise:format:]",
    "+[NSException raise:format:arguments:]",
    "-[NSApplication _crashOnException:]",
];

pub(super) fn is_objc_throw(frame: &Frame) -> bool {
    is_any_of(frame, &OBJC_THROW)
}

/// What the stack of the throw tells of the reason: the first known method behind the throw, not behind the code that
/// called it.
pub(super) fn thrower<'r>(facts: &Facts<'r>) -> Option<(&'static Thrower, &'r Frame)> {
    let frames = throw_frames(facts);
    let throw = frames.iter().take(THROW_DEPTH).rposition(is_objc_throw)?;
    // A runtime's bridge that raises what it was told of is linked into the app.
    let bridge = frames.iter().skip(throw + 1).take(BRIDGE_DEPTH);
    let of_bridge = |thrower: &&Thrower, frame: &Frame| {
        thrower.is_bridge() && frame.names().any(|name| thrower.is(base_name(name)))
    };
    let bridged = bridge
        .clone()
        .find_map(|frame| Some((THROWERS.iter().find(|thrower| of_bridge(thrower, frame))?, frame)));
    if bridged.is_some() {
        return bridged;
    }
    // Forwarding throws for one reason, and its helper's name is not always right in stripped systems.
    if let Some(frame) = bridge.take(2).find(|frame| is_any_of(frame, &["___forwarding___"])) {
        return Some((THROWERS.iter().find(|thrower| thrower.is_unknown_message())?, frame));
    }
    let passed = facts.fault_frames.len() - frames.len();
    let suspect = facts.suspect.as_ref().and_then(|suspect| suspect.position.checked_sub(passed));
    let end = suspect.unwrap_or(frames.len()).min(throw + 24);
    let behind = frames.get(throw + 1..end)?;
    let is = |thrower: &Thrower, frame: &Frame| frame.names().any(|name| thrower.is(base_name(name)));
    // An assertion's handler stands in front of the method that made the check, which tells more.
    THROWERS.iter().find_map(|thrower| Some((thrower, behind.iter().find(|frame| is(thrower, frame))?)))
}

pub(super) fn tell_thrower(facts: &Facts<'_>, draft: &mut Draft, thrower: &Thrower, frame: &Frame) {
    draft.say(thrower.meaning);
    draft.evidence(cite(facts.report, &facts.stack, frame));
    if thrower.is_unknown_message()
        && let Some(sender) = sender(facts, frame)
    {
        draft.say(format!("The message was sent by {}.", describe(facts.report, sender)));
    }
    draft.causes(thrower.causes);
    draft.nexts(thrower.next);
}

/// Who sent a message that was forwarded in vain, where it is the system: the place tells of other code.
fn sender<'r>(facts: &Facts<'r>, from: &Frame) -> Option<&'r Frame> {
    const FORWARDING: [&str; 3] = ["___forwarding___", "_CF_forwarding_prep_0", "__forwarding_prep_0___"];
    let at = facts.fault_frames.iter().position(|frame| std::ptr::eq(frame, from))?;
    let end = facts.suspect.as_ref().map_or(usize::MAX, |suspect| suspect.position);
    if is_any_of(from, &FORWARDING) {
        let rest = facts.fault_frames.iter().take(end).skip(at + 1);
        return { rest }.find(|frame| !is_any_of(frame, &FORWARDING) && frame.names().next().is_some());
    }
    let rest = facts.fault_frames.iter().take(end).skip(at + 1);
    rest.clone().next().filter(|frame| is_any_of(frame, &FORWARDING))?;
    rest.into_iter().find(|frame| !is_any_of(frame, &FORWARDING) && frame.names().next().is_some())
}

/// Whether the report has the place of the throw, and how to find it.
pub(super) fn tell_throw(facts: &Facts<'_>, draft: &mut Draft) {
    let has_stack = facts.report.process.backtraces.iter().any(|backtrace| backtrace.is_exception)
        || throw_frames(facts).iter().take(THROW_DEPTH).any(is_objc_throw);
    if !has_stack {
        if facts.thread.is_some() {
            draft.say("The report has no stack of the place where it was thrown; the crashed thread shows where the process ended.");
        }
        draft.next("Set an exception breakpoint (objc_exception_throw) to stop where it is thrown.");
    }
}

/// What libc++ says of a mutex that the system refused to lock (`src/mutex.cpp`).
pub(super) const LOCK_FAILED: &str = "mutex lock failed";
/// The functions that throw so.
pub(super) const LOCKS: [&str; 4] = [
    "std::__1::mutex::lock",
    "std::mutex::lock",
    "std::__1::recursive_mutex::lock",
    "std::recursive_mutex::lock",
];

/// The function of C++'s library that threw for its caller, and the exception that it throws: libc++'s `stdexcept` and libstdc++'s
/// `functexcept` have one for each.
pub(super) fn of_library<'r>(facts: &Facts<'r>) -> Option<(&'r Frame, &'static str)> {
    const THROWERS: [(&str, &str); 12] = [
        ("system_error", "std::system_error"),
        ("bad_alloc", "std::bad_alloc"),
        ("out_of_range", "std::out_of_range"),
        ("out_of_range_fmt", "std::out_of_range"),
        ("length_error", "std::length_error"),
        ("logic_error", "std::logic_error"),
        ("invalid_argument", "std::invalid_argument"),
        ("runtime_error", "std::runtime_error"),
        ("bad_function_call", "std::bad_function_call"),
        ("bad_optional_access", "std::bad_optional_access"),
        ("bad_variant_access", "std::bad_variant_access"),
        ("bad_weak_ptr", "std::bad_weak_ptr"),
    ];
    let thrown_by = |frame: &Frame| {
        frame.names().find_map(|name| {
            let name = base_name(name);
            let name = name.strip_prefix("std::__1::").or_else(|| name.strip_prefix("std::"))?;
            let name = name.strip_prefix("__throw_")?.split('[').next()?;
            THROWERS.iter().find(|(known, _)| *known == name).map(|(_, thrown)| *thrown)
        })
    };
    facts.frames.iter().take(THROW_DEPTH).find_map(|frame| Some((frame, thrown_by(frame)?)))
}
