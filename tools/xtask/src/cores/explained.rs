//! Differences between tools that are known and explained; each is also in `docs/stacks.md`.

use stacks_compared::compare::{GO_THREAD_START, Rule, ZERO_FRAME};
use stacks_compared::{gdb, ours};

/// Whether what the source says of a case must be found.
pub(super) fn is_to_be_told(case: &str) -> bool {
    // `abort` never comes back: what follows the call tells nothing of how the function would return, and the frame pointer
    // that `middle` keeps for its `alloca` leads past `middle` itself.
    let never_returns = ["/abort", "/twice", "/twice-nowhere"].iter().any(|way| case.ends_with(way));
    let is_skipped = case.starts_with("c without tables/no-fp") && never_returns;
    // Nor does musl's.
    let is_skipped = is_skipped || case.starts_with("c musl/") && never_returns;
    // What Go's runtime makes a fault call keeps no frame pointer there, and without symbols there are no tables.
    let is_behind_fault = case.starts_with("go/stripped/");
    !is_skipped && !is_behind_fault && !ends_in_abort_on_arm(case)
}

/// Debian's C library for ARM has no tables for `abort`, and the linker marks the gap as not to be unwound.
fn ends_in_abort_on_arm(case: &str) -> bool {
    let is_arm = case.starts_with("c arm/") || case.starts_with("c++ arm/");
    is_arm && ["abort", "twice", "uncaught", "noexcept"].iter().any(|way| case.contains(way))
}

pub(super) const RULES: [Rule; 15] = [
    ZERO_FRAME,
    GO_THREAD_START,
    (
        |difference| {
            let partly = difference.case.contains("/cut-") || difference.case.ends_with("/gone");
            partly && difference.is_given_up()
        },
        "the core is cut off or the program gone; the peer has all of it",
    ),
    (
        |difference| {
            let is_nameless =
                |frame: &ours::Frame| frame.trust == "frame-pointer" && frame.functions.is_empty();
            difference.case.ends_with("/gone") && difference.ours().is_some_and(is_nameless)
        },
        "the program is gone, with its tables; we follow its frame pointers, the peer has all of it",
    ),
    (
        |difference| {
            let is_signed = difference.is_of("c arm64/signed-returns/") && difference.peer == "gdb";
            is_signed && difference.ours().is_some() && difference.theirs().is_none()
        },
        "gdb lacks the registers of pointer authentication, which qemu does not save",
    ),
    (
        |difference| {
            let wild = ["call-null", "call-wild", "call-data", "nowhere"];
            let is_wild = wild.iter().any(|way| difference.case.contains(way)) && difference.is_wild_call();
            difference.peer == "eu-stack" && is_wild
        },
        "eu-stack looks for tables where the call went, and skips or loses the caller",
    ),
    (
        |difference| {
            let is_ours = difference.is_found_without_tables() || difference.is_given_up();
            difference.is_of("go/stripped") && is_ours
        },
        "a stripped Go program has no tables; we follow its frame pointers",
    ),
    (
        |difference| {
            let below_signal = difference.ours().is_some_and(|frame| frame.trust == "analysis");
            difference.is_of("go/") && below_signal
        },
        "the peer does not know Go's return code of signals",
    ),
    (
        |difference| difference.is_of("c without tables/") && difference.is_found_without_tables(),
        "no tables: gdb reads prologues, eu-stack takes any frame pointer",
    ),
    (
        |difference| {
            let is_bare = difference.is_of("c without tables/no-fp") || difference.is_of("c musl/");
            is_bare && (difference.is_found_without_tables() || difference.is_given_up())
        },
        "neither tables nor frame pointers: everyone guesses",
    ),
    (
        |difference| {
            let gave_up = difference.theirs().is_none() && !difference.stack.stopped.is_empty();
            difference.peer == "eu-stack" && gave_up && difference.is_found_without_tables()
        },
        "eu-stack needs tables for every frame",
    ),
    (
        |difference| {
            let is_end = difference.ours().is_none() || difference.is_found_without_tables();
            ends_in_abort_on_arm(difference.case) && is_end
        },
        "no tables for abort on ARM: gdb reads its prologue",
    ),
    (
        |difference| {
            let handled = difference.case.starts_with("c arm/") && difference.case.contains("/handler");
            let is_lost = |frame: &gdb::Frame| frame.address == 0 || frame.name.starts_with("crash_");
            let is_lost = difference.theirs().is_some_and(is_lost);
            let is_restored = difference.ours().is_some_and(|frame| frame.trust == "analysis");
            difference.peer == "gdb" && handled && is_lost && is_restored
        },
        "gdb takes a signal's frame for another kind: it finds address zero, or leaves out what was interrupted",
    ),
    (
        |difference| {
            let is_restored = |frame: &ours::Frame| frame.address == 0 && frame.trust == "analysis";
            let is_restored = difference.ours().is_some_and(is_restored) && difference.theirs().is_none();
            difference.peer == "eu-stack" && difference.case.ends_with("/twice-nowhere") && is_restored
        },
        "eu-stack takes the address zero that a signal interrupted for the end of the stack",
    ),
    (
        |difference| {
            let has_ended = difference.ours().is_none() && difference.thread.ended == "end-of-stack";
            difference.peer == "eu-stack" && difference.is_of("go/stripped") && has_ended
        },
        "eu-stack takes any value of rbp for a frame pointer, and goes on behind the end",
    ),
];
