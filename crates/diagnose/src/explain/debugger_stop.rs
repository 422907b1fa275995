//! What debuggers and CASR say of a program that stopped.

use super::draft::Draft;
use super::facts::Facts;
use super::failed_instruction::illegal;
use super::tables::exceptions::signal_by_name;
use super::thrown::cpp;
use super::{abort, captures, stack, trap};
use crate::names::describe;
use backtrail_model::Source;

/// A debugger's stacks, or CASR's report: the signal, or CASR's judgement.
pub(super) fn stopped(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    match facts.report.source {
        Source::Casr => {
            let kind = exception.kind.as_deref().unwrap_or("a crash");
            let meaning = exception.message.as_deref().unwrap_or("CASR does not say what happened");
            draft.lead(format!("CASR: {kind}"), format!("{}.", meaning.trim_end_matches('.')));
            let severity = facts.report.fields.iter().find(|field| field.key == "CrashSeverity.Type");
            severity
                .into_iter()
                .for_each(|field| draft.evidence(format!("CASR's judgement: {}", field.value)));
            true
        }
        Source::DebuggerBacktrace => {
            if said(facts, draft) || recursion(facts, draft) {
                return true;
            }
            if exception.kind.as_deref() == Some("EXCEPTION_ILLEGAL_INSTRUCTION") && illegal(facts, draft) {
                return true;
            }
            let Some(signal) = exception.signal.as_deref().or(exception.kind.as_deref()) else {
                return false;
            };
            if matches!(signal, "SIGTRAP" | "SIGILL" | "EXC_BREAKPOINT" | "EXC_BAD_INSTRUCTION")
                && super::swift::runtime_failure(facts, draft)
            {
                return true;
            }
            let meaning =
                signal_by_name(signal).map(|known| format!(": {}", known.meaning)).unwrap_or_default();
            let null = exception.address.filter(|address| address.get() < NULL_PAGE && signal == "SIGSEGV");
            if null.is_none() && in_allocator(facts, signal, draft) {
                return true;
            }
            match null {
                Some(address) => {
                    draft.lead(
                        format!("Null pointer access at {address} ({signal})"),
                        format!("The program got {signal}: it used memory at {address}, next to null."),
                    );
                    draft.cause("A pointer that was never set, was cleared, or is the unchecked result of a call that failed.");
                }
                None => draft.lead(
                    format!("The program got {signal}"),
                    format!("It was stopped by {signal}{meaning}."),
                ),
            }
            draft.evidence(exception.codes.as_deref().unwrap_or_default());
            if null.is_none() && signal == "SIGSEGV" {
                null_arguments(facts, draft);
            }
            true
        }
        _ => false,
    }
}

/// Pointers that are null among the arguments of the innermost function whose arguments the debugger knows: mostly the program's own,
/// which called a library that has none.
fn null_arguments(facts: &Facts<'_>, draft: &mut Draft) {
    const DEPTH: usize = 4;
    let arguments = |frame: &'_ backtrail_model::Frame| {
        let inside = frame.annotations.iter().find_map(|note| note.strip_prefix('(')?.strip_suffix(')'))?;
        let nulls: Vec<String> = inside
            .split(", ")
            .filter_map(|argument| {
                argument
                    .split_once('=')
                    .filter(|(_, value)| matches!(*value, "0x0" | "NULL" | "0x0000000000000000"))
            })
            .map(|(name, _)| format!("`{}`", name.trim()))
            .collect();
        Some(nulls)
    };
    let frames = facts.interrupted().iter().take(DEPTH);
    let Some((frame, nulls)) = frames.filter_map(|frame| Some((frame, arguments(frame)?))).next() else {
        return;
    };
    if nulls.is_empty() {
        return;
    }
    let are = if nulls.len() == 1 { "is" } else { "are" };
    draft.say(format!(
        "Of the arguments of {}, {} {are} null.",
        describe(facts.report, frame),
        nulls.join(", ")
    ));
    draft.cause("A null pointer that was handed on and followed: never set, cleared, or the unchecked result of a call that failed.");
}

/// How the title of a bad access inside of the allocator begins.
pub(crate) const DAMAGED_HEAP: &str = "Damaged heap, or a pointer that is no block of it";

/// Functions of C libraries' allocators that go through their own lists of blocks. glibc's `malloc.c`, musl's `malloc.c`, jemalloc,
/// tcmalloc. A bad access there is one through a list that was overwritten, or through a pointer that is no block.
const ALLOCATORS: [&str; 12] = [
    "_int_malloc",
    "_int_free",
    "_int_realloc",
    "_int_memalign",
    "malloc_consolidate",
    "unlink_chunk",
    "sysmalloc",
    "tcache_get",
    "tcache_put",
    "dlmalloc",
    "dlfree",
    "je_free",
];

/// A bad access inside of the allocator.
fn in_allocator(facts: &Facts<'_>, signal: &str, draft: &mut Draft) -> bool {
    let first = facts.interrupted().first().filter(|frame| crate::names::is_any_of(frame, &ALLOCATORS));
    let Some(frame) = first.filter(|_| matches!(signal, "SIGSEGV" | "SIGBUS")) else { return false };
    draft.lead(
        format!("{DAMAGED_HEAP} ({signal} in the allocator)"),
        "The allocator came upon a pointer that leads nowhere, in its own lists or in what it was to free. Who wrote it there is seldom on the stack.",
    );
    draft.evidence(facts.cite(frame));
    draft.causes(&[
        "Something wrote beyond a block, or into one that was free already.",
        "A block was freed twice, or used by two threads at once.",
    ]);
    draft.next("Run it with AddressSanitizer or Valgrind: they stop at the write, not where it is noticed.");
    true
}

/// No system maps anything below.
pub(super) const NULL_PAGE: u64 = 0x1000;

/// What the program had printed of its end before the debugger stopped it.
pub(super) fn said(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let has_said = !facts.said.is_empty()
        && (captures::c_library_message(facts, draft)
            || super::swift::message(facts, draft)
            || abort::assertion(facts, draft)
            || cpp(facts, draft));
    // musl ends by a fault where others abort.
    let ends_itself = matches!(facts.signal(), "SIGABRT" | "") || facts.top_is(&["a_crash"]).is_some();
    has_said || ends_itself && trap::telling_frame(facts, draft)
}

/// A stack of thousands of frames, or one that repeats.
pub(super) fn recursion(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    /// No program calls so deep without a loop in it.
    const DEPTH: u32 = 1000;
    let frames = facts.fault_frames;
    let deepest = frames.iter().map(|frame| frame.index).max().unwrap_or_default();
    let is_fault = matches!(facts.signal(), "" | "SIGSEGV" | "SIGBUS");
    if !is_fault || deepest < DEPTH && stack::repeat(frames).is_none() {
        return false;
    }
    draft.lead(
        "Stack overflow, very probably",
        format!("The stack has more than {deepest} frames: calls that lead back to themselves used it up."),
    );
    let cited = frames.first().into_iter().chain(frames.get(1));
    cited.for_each(|frame| draft.evidence(facts.cite(frame)));
    draft.cause("A recursion without an end: a function, property or observer that leads back to itself; methods that were exchanged twice.");
    draft.next("Look at the frames that repeat and at the condition that should end them.");
    true
}
