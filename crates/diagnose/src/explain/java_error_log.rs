//! The log of a Java virtual machine that crashed (`hs_err_pid`).

use super::draft::Draft;
use super::facts::Facts;
use backtrail_model::{Language, Source};

/// A Java virtual machine crashed, or ran out of memory.
pub(super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::JavaErrorLog {
        return false;
    }
    let exception = facts.exception();
    let is_memory = exception.kind.as_deref() == Some("Out of Memory Error");
    let said = facts.report.app_info.iter().flat_map(|info| &info.lines);
    let frame = facts.fault_frames.first();
    let title = match (&exception.signal, exception.kind.as_deref()) {
        _ if is_memory => "The Java virtual machine got no memory from the system".to_owned(),
        (Some(signal), _) => format!("The Java virtual machine crashed by {signal}"),
        (None, Some(kind)) => format!("The Java virtual machine crashed: {kind}"),
        (None, None) => "The Java virtual machine crashed".to_owned(),
    };
    let what = if is_memory {
        "The system gave the virtual machine no more memory of its own, which is not the Java heap."
    } else if exception.kind.as_deref() == Some("Internal Error") {
        "The virtual machine found itself in a state that cannot be."
    } else {
        "Machine code in the process of the virtual machine met a fault."
    };
    draft.lead(title, what);
    if let Some(message) = &exception.message {
        draft.evidence(message);
    }
    let mut said = said.skip_while(|line| !line.starts_with("Problematic frame"));
    if let (Some(_), Some(problem)) = (said.next(), said.next()) {
        draft.evidence(format!("Problematic frame: {problem}"));
    }
    if is_memory {
        draft.cause("The machine or its container is out of memory: heap, threads' stacks, metaspace and direct buffers together need more than there is.");
        draft.next("Add up -Xmx, stacks, metaspace and direct buffers against the container's limit; then lower one, or raise the limit.");
        return true;
    }
    let image = frame.and_then(|frame| crate::names::image_name(facts.report, frame)).unwrap_or_default();
    // HotSpot writes that file where a thread of its compilers crashed, and only there (`VMError::report_and_die`).
    let mut lines = facts.report.app_info.iter().flat_map(|info| &info.lines);
    if lines.any(|line| line.starts_with("Compiler replay data is saved as")) {
        draft
            .say("It crashed while it compiled a method: it saved what its compiler needs to do that again.");
        draft.cause("A fault of the virtual machine's compiler (JIT). The program's own code has no part in it, unless native code broke memory.");
        draft.next("Try the newest version of that virtual machine. Until then exclude the method that was compiled (`Current CompileTask` in the log): -XX:CompileCommand=exclude,CLASS::METHOD.");
        draft.next("Report it with the hs_err log and the replay file.");
        return true;
    }
    if frame.is_some_and(|frame| frame.language == Some(Language::Java)) {
        draft.cause("Code that the virtual machine compiled from Java is wrong, or was given a broken object by native code.");
        draft.next("Look whether a newer version of the virtual machine knows the fault; `-Xint` or an exclusion of the method tells whether the compiler is at fault.");
    } else if image.starts_with("libjvm") || image.starts_with("jvm") {
        draft.cause("A fault of the virtual machine, a broken heap (native code, Unsafe), or bad memory of the machine.");
        draft.next("Look for the innermost functions among the virtual machine's known faults, and try its newest version.");
    } else if !image.is_empty() {
        draft.cause("Native code that Java called is at fault.");
        draft.next(format!("Look at {image}: the Java frames show who called it."));
    }
    true
}
