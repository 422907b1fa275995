//! What a stack does not decide, and where not the code that stopped is to blame but who called it.

use super::Layer;
use crate::Explanation;
use crate::explain::android::RUNTIMES_END;
use crate::explain::debugger_stop::DAMAGED_HEAP;
use crate::explain::objc::POOL_TITLE;
use crate::explain::runtime_reports::FULL_HEAP;
use crate::names::{base_name, cite};
use crate::owners::of_frame;
use crate::suspect::Suspect;
use crate::suspect::skip::is_end_or_throw;
use backtrail_core::{Confidence, Trust};
use backtrail_model::{Frame, Owner, OwnerKind, Report};

/// Rules of explanation by which an allocator found something wrong.
const ALLOCATORS: [&str; 3] = ["malloc-message", "c-library-message", "abort-message"];

/// Words by which an allocator says that its caller handed it something wrong: that caller is on the stack.
const MISUSE: [&str; 6] = [
    "being freed was not allocated",
    "double free",
    "on-aligned pointer",
    "can't allocate region",
    "mach_vm_map(size=",
    "invalid pointer",
];

/// Words by which an allocator says that its own bookkeeping was overwritten.
const DAMAGE: [&str; 9] = [
    "incorrect checksum",
    "modified after being freed",
    "free list is damaged",
    "memory corruption of free block",
    "Heap corruption",
    "Incorrect guard value",
    "orruption of",
    "orrupted",
    "invalid next size",
];

/// Why nobody can be blamed: memory was damaged, or used up, by code that is not on the stack.
pub(super) fn undecidable(explanation: &Explanation, has_suspect: bool) -> Option<&'static str> {
    // The frames of a pool that is emptied are the system's.
    if explanation.title == POOL_TITLE && !has_suspect {
        return Some("not decidable: who released the object once too often is not on the stack");
    }
    // Nothing but the way to the end; who used the runtime wrongly is not among these frames.
    if explanation.title == RUNTIMES_END && !has_suspect {
        return Some("not decidable: Android's runtime says why it ended the process in the log alone");
    }
    if explanation.rule == "v8-fatal" && explanation.title == FULL_HEAP {
        return Some(
            "not decidable: the stack is the engine's own way to the end; whose objects fill the heap is not on it",
        );
    }
    // An addon on the stack called the engine wrongly.
    if explanation.rule == "v8-fatal" && !has_suspect {
        return Some(
            "not decidable: the check is the engine's own; whose call it refused the stack does not show",
        );
    }
    if explanation.rule == "debugger-stop" && explanation.title.starts_with(DAMAGED_HEAP) {
        return Some(
            "not decidable: who wrote the pointer that the allocator came upon is seldom on the stack",
        );
    }
    let is_of = |words: &[&str]| words.iter().any(|word| explanation.title.contains(word));
    let found = ALLOCATORS.contains(&explanation.rule) && is_of(&DAMAGE) && !is_of(&MISUSE);
    found.then_some(
        "not decidable: the heap was damaged before, by code that is not on the stack; the code on it only came across the damage",
    )
}

/// Why a verdict is less sure than its frame.
pub(super) fn caution(explanation: &Explanation) -> Option<&'static str> {
    match explanation.rule {
        "reference-counting" | "objc-message" | "weak-reference" => Some(
            "caution: the object was gone, or damaged, before it was used here; who released it too often is not on the stack",
        ),
        // Its frames alone tell of no more than that something was wrong.
        "malloc-frames" => Some(
            "caution: the allocator does not say whether it was handed something wrong here, or the heap was damaged before by other code",
        ),
        rule if ALLOCATORS.contains(&rule) && MISUSE.iter().any(|word| explanation.title.contains(word)) => {
            Some("caution: the block may have been freed before by other code, which is not on the stack")
        }
        _ => None,
    }
}

/// Names of exceptions by which code refuses what it was called with.
const REFUSALS: [&str; 7] = [
    "NSInvalidArgumentException",
    "NSRangeException",
    "std::invalid_argument",
    "std::out_of_range",
    "std::domain_error",
    "std::length_error",
    "IllegalArgumentException",
];

/// The caller whose arguments the library at `suspect` refused: the library itself throws, and its caller is on the stack right
/// behind it.
pub(super) fn refused<'r>(
    report: &'r Report,
    explanation: &Explanation,
    frames: &'r [Frame],
    suspect: &Suspect<'_>,
) -> Option<&'r Frame> {
    let thrower = of_frame(report, suspect.frame);
    let is_refusal = REFUSALS.iter().any(|name| explanation.title.contains(name));
    if thrower.kind != OwnerKind::Sdk || !is_refusal || explanation.title.contains("unrecognized selector") {
        return None;
    }
    // What lies before only throws for it (in Java nothing does); a function of the system in between refused the library's
    // own arguments.
    let before = frames.get(..suspect.position)?;
    let throws = |frame: &Frame| frame.names().all(|name| is_end_or_throw(base_name(name)));
    if !before.iter().all(|frame| throws(frame) && frame.names().next().is_some()) {
        return None;
    }
    let rest = frames.get(suspect.position + 1..)?;
    let caller = rest.iter().find(|frame| !is_same(&of_frame(report, frame), &thrower))?;
    let kind = of_frame(report, caller).kind;
    matches!(kind, OwnerKind::App | OwnerKind::Sdk).then_some(caller)
}

/// Who called the blamed code, where that says something: a library that called back, or code that called a library.
pub(super) fn caller(
    report: &Report,
    stack: &str,
    frames: &[Frame],
    suspect: &Suspect<'_>,
) -> Option<String> {
    let owner = of_frame(report, suspect.frame);
    let rest = frames.get(suspect.position + 1..)?;
    // Past the system, a library is not its caller: it may have asked for the call long before.
    let caller = rest.iter().find(|frame| !is_same(&of_frame(report, frame), &owner))?;
    let by = of_frame(report, caller);
    let place = cite(report, stack, caller);
    let name = by.name.as_deref().unwrap_or("a library");
    match (owner.kind, by.kind) {
        (OwnerKind::App, OwnerKind::Sdk) => {
            Some(format!("{place}: {name} called back; what ran is the app's own code"))
        }
        (OwnerKind::Sdk, OwnerKind::App) => {
            Some(format!("{place}: the app called it; whether with wrong arguments the stack does not tell"))
        }
        (OwnerKind::Sdk, OwnerKind::Sdk) => Some(format!("{place}: {name} called it")),
        _ => None,
    }
}

/// Whether two frames' owners are one.
fn is_same(one: &Owner, other: &Owner) -> bool {
    one.kind == other.kind && (one.kind == OwnerKind::App || one.name == other.name)
}

/// Whose code is innermost, and whose called that.
pub(super) fn layers(report: &Report, frames: &[Frame]) -> (Option<Layer>, Option<Layer>) {
    let Some(innermost) = frames.first() else { return (None, None) };
    let crashed = of_frame(report, innermost);
    // The system's images call each other: their caller is who is not the system.
    let is_other = |frame: &&Frame| {
        let owner = of_frame(report, frame);
        frame.trust != Trust::Scan
            && !(is_same(&owner, &crashed)
                || owner.kind == OwnerKind::System && crashed.kind == OwnerKind::System)
    };
    let called = frames.iter().skip(1).take(MAX_FRAMES).find(is_other);
    (Some(layer(report, innermost)), called.map(|frame| layer(report, frame)))
}

/// Deeper frames have no say.
const MAX_FRAMES: usize = 4096;

pub(super) fn layer(report: &Report, frame: &Frame) -> Layer {
    let owner = of_frame(report, frame);
    Layer { kind: owner.kind, name: owner.name.clone(), frame: frame.index }
}

/// How sure a verdict on a frame is: as sure as its owner, and less so the more of the system lies on top.
pub(super) fn confidence(owner: &Owner, suspect: &Suspect<'_>, is_doubtful: bool) -> Option<Confidence> {
    let most = match suspect.position {
        _ if is_doubtful => Confidence::Likely,
        0 => Confidence::Certain,
        _ => Confidence::Strong,
    };
    Some(owner.confidence?.min(most))
}
