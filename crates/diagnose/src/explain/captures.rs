//! What cores, minidumps and reporters tell that Apple's reports do not: glibc's last words, Rust's and Go's panics, exceptions
//! of Windows, kills for memory.

use super::abort::tell_assertion;
use super::draft::Draft;
use super::facts::{Class, Facts};
use super::words::one_line;
use crate::names::{base_name, image_name};
use backtrail_model::{Frame, Source};

/// A reporter found out at the next start that the process had been killed for its memory.
pub(super) fn memory_limit(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::KsCrash {
        return false;
    }
    let reason = facts.report.termination.as_ref().and_then(|termination| termination.reason.as_deref());
    let fields = &facts.report.fields;
    let limit = fields
        .iter()
        .find(|field| field.key == "crash.error.termination_reason" && field.value.starts_with("memory"));
    if reason != Some("memory_termination") && limit.is_none() {
        return false;
    }
    draft.lead(
        "Killed for using too much memory",
        "The system killed the process since it used more memory than it may, or since memory was short.",
    );
    draft.evidence(format!("crash.error.type: {}", reason.unwrap_or_default()));
    limit.into_iter().for_each(|field| draft.evidence(format!("{}: {}", field.key, field.value)));
    let sections = facts.report.sections.iter().map(|section| (&section.title, &section.text));
    let about = fields.iter().map(|field| (&field.key, &field.value)).chain(sections);
    for (key, value) in about.filter(|(key, _)| key.starts_with("crash.error.memory")) {
        draft.evidence(format!("{key}: {}", one_line(value)));
    }
    draft.say("The reporter concluded that at the next start: there is no stack of that moment.");
    draft.causes(&[
        "Memory that grows without bound: a leak, a cache without limit.",
        "One large allocation: images at full size, a file read as a whole.",
    ]);
    draft
        .next("Look at the app's memory in Instruments (Allocations, Leaks) while it does what it did then.");
    true
}

/// What glibc's messages mean: a part of the text, the title, what happened, a cause, what to do.
const C_LIBRARY: [(&str, &str, &str, &str, &str); 5] = [
    (
        "stack smashing detected",
        "Stack buffer overflow",
        "A function wrote beyond the end of a buffer on its stack; the guard value behind it was found changed when the function returned.",
        "A fixed-size array or C string that was given more than it holds.",
        "Look at the local arrays of the function that called __stack_chk_fail.",
    ),
    (
        "called on a destroyed mutex",
        "Lock used after it was destroyed",
        "The C library found that a lock was used after pthread_mutex_destroy().",
        "An object that was destroyed while a thread still used its lock.",
        "Look at the lifetime of what holds the lock.",
    ),
    (
        "FORTIFY: ",
        "Buffer overflow prevented by a checked copy (FORTIFY)",
        "A call of the C library would have gone beyond the end of a buffer whose size the compiler knew, so the C library stopped the process. The message names the function and both sizes.",
        "A length that is not checked against the buffer's size; a file descriptor that is too large for select().",
        "Look at the calls of the named function, and at how the length comes about.",
    ),
    (
        "overflow detected",
        "Buffer overflow prevented by a checked copy",
        "A copy into a buffer of known size would have gone beyond its end, so the C library stopped the process.",
        "A length that is not checked against the buffer's size.",
        "Look at the lengths at the frame that calls the copy.",
    ),
    (
        "%n in writable segment",
        "Format string with %n refused",
        "A format string that can be changed had a %n, which would write to memory, so the C library stopped the process.",
        "Input that is used as a format string.",
        "Use \"%s\" with the text as argument.",
    ),
];

/// What glibc wrote down before it called abort().
pub(super) fn c_library_message(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    // A crash file's writer is asked for what the C library says, and does not know by which name it is loaded.
    let is_libc = |place: &str| ["(libc.so", "(libc-2.", "(libc)"].iter().any(|name| place.contains(name));
    const SOURCES: [Source; 6] = [
        Source::Sanitizer,
        Source::ElfCore,
        Source::CrashFile,
        Source::Process,
        Source::ExceptionLog,
        Source::DebuggerBacktrace,
    ];
    if !SOURCES.contains(&facts.report.source) {
        return false;
    }
    let Some(said) = facts.said.iter().find(|said| is_libc(&said.place)) else { return false };
    let text = one_line(&said.text);
    if text.contains("Assertion `") {
        tell_assertion(draft, &text);
    } else if let Some((_, title, what, cause, next)) =
        C_LIBRARY.iter().find(|(part, ..)| text.contains(part))
    {
        draft.lead(title, what);
        draft.cause(cause);
        draft.next(next);
    } else if is_about_heap(&text) {
        draft.lead(
            format!("Heap error found by malloc: {text}"),
            "malloc's bookkeeping is damaged, or it was asked to free what it never gave out.",
        );
        draft.say("The code that notices such damage is often not the code that did it.");
        draft.causes(&[
            "Memory freed twice, or not allocated by malloc.",
            "A write to freed memory, or beyond the end of a block.",
        ]);
        draft.next(
            "Run with Address Sanitizer or valgrind: they stop where the memory is damaged, not later.",
        );
    } else {
        draft.lead(
            format!("Ended by the C library: {text}"),
            "The C library ended the process, and wrote down why.",
        );
    }
    draft.evidence(said.cite());
    true
}

/// Messages of glibc's `malloc_printerr`.
fn is_about_heap(text: &str) -> bool {
    const PARTS: [&str; 10] = [
        "free invalid pointer",
        "free()",
        "malloc()",
        "realloc()",
        "calloc()",
        "munmap_chunk()",
        "mremap_chunk()",
        "double free",
        "corrupted",
        "chunk",
    ];
    PARTS.iter().any(|part| text.contains(part))
}

/// Functions of Rust's that panic, and what they say; the more telling come first.
const RUST: [(&str, &str); 23] = [
    ("core::panicking::panic_bounds_check", "index out of bounds"),
    ("core::slice::index::slice_", "a range lies outside of a slice"),
    ("core::str::slice_error_fail", "a range lies outside of a str, or inside of a character"),
    ("core::option::unwrap_failed", "unwrap of None"),
    ("core::option::expect_failed", "expect of None"),
    ("core::result::unwrap_failed", "unwrap or expect of an Err"),
    ("core::cell::panic_already_", "a RefCell that is borrowed already"),
    ("core::panicking::panic_const::panic_const_div_by_zero", "division by zero"),
    ("core::panicking::panic_const::panic_const_rem_by_zero", "remainder by zero"),
    ("core::panicking::panic_const", "arithmetic overflow"),
    ("core::panicking::assert_failed", "assertion failed"),
    ("core::panicking::panic_in_cleanup", IN_CLEANUP),
    ("core::panicking::panic_cannot_unwind", "a panic that may not leave its function"),
    ("core::panicking::panic_nounwind", "a check that may not unwind failed"),
    (
        "<std::sys::thread_local::abort_on_dtor_unwind::DtorUnwindGuard",
        "a panic in the destructor of a thread local",
    ),
    ("std::sys::thread_local::abort_on_dtor_unwind", "a panic in the destructor of a thread local"),
    ("core::panicking::panic_misaligned_pointer", "a pointer that is not aligned"),
    (ALLOCATION, "out of memory: an allocation failed"),
    ("alloc::raw_vec::handle_error", "out of memory, or a capacity that overflows"),
    ("core::panicking::panic", ""),
    ("std::panicking::begin_panic", ""),
    ("rust_panic", ""),
    ("__rustc::rust_panic", ""),
];

const IN_CLEANUP: &str = "a panic in a destructor while another was under way";

/// What containers call where the allocator has nothing. It does not panic: it writes to the standard error and aborts.
const ALLOCATION: &str = "alloc::alloc::handle_alloc_error";

/// What a panic said, and where: our own crash handler keeps it. The words are those of the thread's last panic; where the program's
/// frames have names, one of them has to panic.
struct PanicWords<'r> {
    message: String,
    place: Option<&'r str>,
    line: &'r str,
}

fn words_of_panic<'r>(facts: &Facts<'r>) -> Option<PanicWords<'r>> {
    if facts.report.source != Source::CrashFile {
        return None;
    }
    let info = facts.report.app_info.iter().find(|info| info.image.as_deref() == Some("Rust"))?;
    let line = info.lines.first()?;
    let (_, place) = line.split_once(" panicked at ")?;
    let message = info.lines.get(1..).unwrap_or_default().join(" ");
    let place = Some(place.trim_end_matches(':')).filter(|place| !place.is_empty());
    Some(PanicWords { message: one_line(&message), place, line })
}

/// What the panic said whose unwinding called a destructor that panicked: the second that a crash file has.
fn words_of_first<'r>(facts: &Facts<'r>) -> Option<&'r [String]> {
    let mut said = facts.report.app_info.iter().filter(|info| info.image.as_deref() == Some("Rust"));
    said.nth(1).map(|info| info.lines.as_slice()).filter(|_| facts.report.source == Source::CrashFile)
}

/// Whether names tell how the program itself came to its end, beside those that the C library has in any case.
fn has_names_of_program(facts: &Facts<'_>) -> bool {
    const C_LIBRARY: [&str; 4] = ["libc.", "libc-", "ld-", "libpthread"];
    let is_c_library = |frame: &Frame| {
        let name = image_name(facts.report, frame).map(base_name);
        name.is_some_and(|name| C_LIBRARY.iter().any(|known| name.starts_with(known)))
    };
    facts.fault_frames.iter().any(|frame| !is_c_library(frame) && frame.names().next().is_some())
}

/// A message of Rust's library that a reporter gives beside its own stack, as Sentry's text does.
///
/// Source: Rust's `core::result::unwrap_failed`, `core::option::unwrap_failed`.
fn said_by_rust(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    const BEGINS: [&str; 3] = [
        "called `Result::unwrap()` on an `Err` value",
        "called `Option::unwrap()` on a `None` value",
        "called `Result::expect_err()` on an `Ok` value",
    ];
    let is_rusts = |text: &str| BEGINS.iter().any(|begin| text.starts_with(begin));
    let Some(said) = facts.find_said(is_rusts).filter(|_| facts.class == Class::Unknown) else {
        return false;
    };
    draft.lead(format!("Rust panic: {}", one_line(&said.text)), "Code in Rust panicked.");
    draft.cause("A condition that the code takes for granted did not hold; the message names it.");
    draft.next("Look at the innermost frame behind the functions that panic and report.");
    draft.evidence(said.cite());
    true
}

/// A panic of Rust that ended the process.
pub(super) fn rust_panic(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let found = telling(facts, &RUST);
    if found.is_none() && said_by_rust(facts, draft) {
        return true;
    }
    let words = words_of_panic(facts).filter(|_| found.is_some() || !has_names_of_program(facts));
    if found.is_none() && words.is_none() {
        return false;
    }
    if let Some((frame, _)) = found.filter(|(frame, _)| calls(frame, ALLOCATION)) {
        failed_allocation(draft);
        draft.evidence(facts.cite(frame));
        return true;
    }
    let meaning = found.map_or("", |(_, meaning)| meaning);
    let what =
        words.as_ref().map(|words| words.message.as_str()).filter(|what| !what.is_empty()).unwrap_or(meaning);
    let (title, colon) = if what.is_empty() { ("Rust panic", "") } else { ("Rust panic: ", what) };
    draft.lead(format!("{title}{colon}"), "Code in Rust panicked, and the panic ended the process.");
    if let Some(words) = &words {
        draft.evidence(words.line.trim_end_matches(':'));
    }
    if let Some([line, message @ ..]) = words_of_first(facts) {
        let message = one_line(&message.join(" "));
        draft.say(format!("A destructor panicked while an earlier panic of the thread ran it: {message}."));
        draft.evidence(line.trim_end_matches(':'));
    }
    if let Some((frame, _)) = found {
        draft.evidence(facts.cite(frame));
    }
    match words {
        Some(words) => {
            draft.cause(match words.message.is_empty() {
                false => "A condition that the code takes for granted did not hold; the message names it.",
                true => "A panic with a value that is no text (`std::panic::panic_any`): what it says is not known.",
            });
            let place = words.place.unwrap_or("the place that the message names");
            draft.next(format!("Look at {place}."));
        }
        None => {
            draft.say("The panic's message went to the standard error.");
            draft.cause("A condition that the code takes for granted did not hold; the function that panics tells which kind.");
            draft.next(
                "Look at the frame that calls the panicking function, and at the standard error for the message.",
            );
        }
    }
    true
}

/// Whether one of the functions at the frame has a name that begins so.
fn calls(frame: &Frame, begin: &str) -> bool {
    frame.names().any(|name| base_name(name).starts_with(begin))
}

fn failed_allocation(draft: &mut Draft) {
    draft.lead(
        "Out of memory: an allocation in Rust failed",
        "The allocator did not give what was asked for, and Rust ended the process.",
    );
    draft.say("How many bytes they were went to the standard error.");
    draft.causes(&[
        "A size that is wrong: a length that was not checked, or that was computed with an overflow.",
        "The process has no memory left, by a limit or because the machine has none.",
    ]);
    draft.next("Look at the frame that allocates, and at the standard error for the number of bytes.");
}

/// Functions of Go's runtime that panic, and what they say.
const GO: [(&str, &str); 14] = [
    ("runtime.goPanicIndex", "index out of range"),
    ("runtime.panicIndex", "index out of range"),
    ("runtime.goPanicSlice", "slice bounds out of range"),
    ("runtime.panicSlice", "slice bounds out of range"),
    ("runtime.panicdivide", "integer divide by zero"),
    ("runtime.panicmem", "invalid memory address or nil pointer dereference"),
    ("runtime.sigpanic", "invalid memory address or nil pointer dereference"),
    ("runtime.panicdottype", "interface conversion"),
    ("runtime.panicshift", "negative shift amount"),
    ("runtime.panicwrap", "value method called with a nil pointer"),
    ("runtime.fatalthrow", "fatal error of the runtime"),
    ("runtime.throw", "fatal error of the runtime"),
    ("runtime.fatalpanic", ""),
    ("runtime.gopanic", ""),
];

/// A panic of Go that ended the process.
pub(super) fn go_panic(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some((frame, meaning)) = telling(facts, &GO) else { return false };
    let title = if meaning.is_empty() { "Go panic".to_owned() } else { format!("Go panic: {meaning}") };
    draft.lead(title, "Go's runtime ended the process: a goroutine panicked and did not recover, or the runtime found itself broken.");
    draft.evidence(facts.cite(frame));
    draft.say("The message and the goroutines' stacks went to the standard error.");
    draft.next(
        "Look at the frame that calls the panicking function, and at the standard error for the message.",
    );
    true
}

/// Frames from the innermost on that are looked at.
const DEPTH: usize = 40;

/// The frame whose function tells most, and what it tells. Only where the process ended itself: a frame of the like may be
/// on the stack of a fault.
fn telling<'r>(facts: &Facts<'r>, table: &[(&str, &'static str)]) -> Option<(&'r Frame, &'static str)> {
    if !matches!(facts.class, Class::Abort | Class::BadInstruction | Class::Breakpoint | Class::Unknown) {
        return None;
    }
    let frames = facts.frames.iter().take(DEPTH);
    let named = frames.flat_map(|frame| frame.names().map(move |name| (frame, base_name(name))));
    let named: Vec<(&Frame, &str)> = named.collect();
    table.iter().find_map(|(begin, meaning)| {
        let found = named.iter().find(|(_, name)| name.starts_with(begin))?;
        Some((found.0, *meaning))
    })
}

#[cfg(test)]
mod tests {
    use super::super::blamed::blamed;
    use super::super::explain;
    use super::super::facts::{class_of_windows, is_windows};
    use super::super::testing::report;
    use super::*;
    use backtrail_core::Function;
    use backtrail_model::{AppInfo, Field, Report, ReportedSymbol, Termination};

    fn core(names: &[&str]) -> Report {
        let mut report = report("", "SIGABRT").done();
        report.source = Source::ElfCore;
        report.exception.iter_mut().for_each(|exception| exception.kind = None);
        let frame = |(index, name): (usize, &&str)| Frame {
            reported: Some(ReportedSymbol { name: (*name).to_owned(), ..ReportedSymbol::default() }),
            ..Frame::new(u32::try_from(index).unwrap())
        };
        report.process.threads[0].frames = names.iter().enumerate().map(frame).collect();
        report
    }

    fn with_message(message: &str) -> Report {
        let mut report = core(&["raise", "abort", "main"]);
        report.app_info =
            vec![AppInfo { image: Some("libc.so.6".to_owned()), lines: vec![message.to_owned()] }];
        report
    }

    #[test]
    fn glibcs_last_words() {
        for (message, title) in [
            ("prog: a.c:4: main: Assertion `c == 77' failed.", "Assertion failed: c == 77"),
            (
                "free(): double free detected in tcache 2",
                "Heap error found by malloc: free(): double free detected in tcache 2",
            ),
            ("*** stack smashing detected ***: terminated", "Stack buffer overflow"),
            ("*** buffer overflow detected ***: terminated", "Buffer overflow prevented by a checked copy"),
            (
                "The futex facility returned an unexpected error code.",
                "Ended by the C library: The futex facility returned an unexpected error code.",
            ),
        ] {
            let explanation = explain(&with_message(message));
            assert_eq!((explanation.rule, explanation.title.as_str()), ("c-library-message", title));
            assert!(explanation.evidence.iter().any(|line| line.contains(message)), "{message}");
        }
        // The same words in another report are no library's.
        let mut other = with_message("free(): invalid pointer");
        other.app_info[0].image = Some("libother.so".to_owned());
        assert_ne!(explain(&other).rule, "c-library-message");
    }

    #[test]
    fn panics_by_the_functions_that_panic() {
        let rust = core(&[
            "raise",
            "abort",
            "rust_panic",
            "core::panicking::panic_fmt",
            "core::panicking::panic_bounds_check",
            "app::main",
        ]);
        assert_eq!(explain(&rust).title, "Rust panic: index out of bounds");
        let mut said = rust.clone();
        said.source = Source::CrashFile;
        let lines = ["thread 'main' panicked at src/orders.rs:17:5:", "no order 17"].map(str::to_owned);
        said.app_info = vec![AppInfo { image: Some("Rust".to_owned()), lines: lines.to_vec() }];
        let explanation = explain(&said);
        assert_eq!(explanation.title, "Rust panic: no order 17");
        assert_eq!(explanation.next_steps, ["Look at src/orders.rs:17:5."]);
        // Before there are symbols the words alone tell it; where there are, and nothing panics, they are of an earlier panic.
        let mut nameless = said.clone();
        nameless.process.threads[0].frames.iter_mut().for_each(|frame| frame.reported = None);
        assert_eq!(explain(&nameless).title, "Rust panic: no order 17");
        said.process.threads[0].frames =
            core(&["raise", "abort", "app::main"]).process.threads[0].frames.clone();
        assert_ne!(explain(&said).rule, "rust-panic");
        let plain = core(&["raise", "abort", "rust_panic", "app::main"]);
        assert_eq!(explain(&plain).title, "Rust panic");
        for (function, title) in [
            ("__rustc::rust_panic", "Rust panic"),
            (
                "<std::sys::thread_local::abort_on_dtor_unwind::DtorUnwindGuard as core::ops::drop::Drop>::drop",
                "Rust panic: a panic in the destructor of a thread local",
            ),
            ("alloc::alloc::handle_alloc_error::rt_error", "Out of memory: an allocation in Rust failed"),
        ] {
            let names = ["raise", "abort", "core::panicking::panic_fmt", function, "app::main"];
            let explanation = explain(&core(&names));
            assert_eq!((explanation.rule, explanation.title.as_str()), ("rust-panic", title));
        }
        let go = core(&[
            "runtime.raise",
            "runtime.dieFromSignal",
            "runtime.fatalpanic",
            "runtime.gopanic",
            "runtime.goPanicIndex",
            "main.main",
        ]);
        assert_eq!(explain(&go).title, "Go panic: index out of range");
        let mut fault = core(&["app::f", "core::panicking::panic_fmt"]);
        fault.exception.as_mut().unwrap().signal = Some("SIGSEGV".to_owned());
        assert_ne!(explain(&fault).rule, "rust-panic");
    }

    /// Seen with Ruby and OpenJDK under `watch`.
    #[test]
    fn a_handler_that_aborts_tells_what_it_interrupted() {
        let mut report = core(&["raise", "abort", "rb_bug", "sigsegv", "__restore_rt", "app::total", "main"]);
        let explanation = explain(&report);
        assert_eq!(explanation.title, "A signal's handler ended the process with abort()");
        assert!(explanation.evidence.iter().any(|line| line.contains("app::total")));
        // A handler of SIGABRT that aborts again: the first abort is the one.
        let names = ["raise", "abort", "on_abort", "__restore_rt", "raise", "abort", "app::total", "main"];
        assert_eq!(explain(&core(&names)).title, "The process ended itself with abort()");
        report = core(&["raise", "abort", "app::total", "main"]);
        assert_eq!(explain(&report).title, "The process ended itself with abort()");
    }

    #[test]
    fn a_panic_of_gos_that_ends_by_an_exit_code_is_told() {
        let mut report =
            core(&["runtime.exit", "runtime.gopanic", "runtime.panicmem", "main.inner", "main.main"]);
        report.source = Source::CrashFile;
        report.exception = None;
        report.event = Some("exit".to_owned());
        let field = |key: &str, value: &str| Field { key: key.to_owned(), value: value.to_owned() };
        report.fields = vec![field("Exit code", "2"), field("Ended by thread", "8")];
        let mut ended = report.process.threads[0].clone();
        report.process.threads[0].crashed = false;
        report.process.crashed_thread = None;
        report.process.threads[0].frames.clear();
        (ended.crashed, ended.id, ended.number) = (false, Some(8), 1);
        report.process.threads.push(ended);
        let explanation = explain(&report);
        assert_eq!(
            (explanation.rule, explanation.title.as_str()),
            ("failing-exit", "Go panic: invalid memory address or nil pointer dereference")
        );
        assert!(explanation.summary.contains("The exit code is 2."), "{}", explanation.summary);
        report.fields.pop();
        assert_eq!(explain(&report).title, "The process ended with exit code 2");
    }

    #[test]
    fn both_panics_are_told_where_a_destructor_panics() {
        let mut report = core(&[
            "raise",
            "abort",
            "core::panicking::panic_nounwind_nobacktrace",
            "core::panicking::panic_in_cleanup",
            "app::main",
        ]);
        assert_eq!(explain(&report).title, "Rust panic: a panic in a destructor while another was under way");
        report.source = Source::CrashFile;
        let said = |lines: [&str; 2]| AppInfo {
            image: Some("Rust".to_owned()),
            lines: lines.map(str::to_owned).to_vec(),
        };
        report.app_info = vec![
            said(["thread 'main' panicked at src/guard.rs:9:5:", "still locked"]),
            said(["thread 'main' panicked at src/orders.rs:17:5:", "no order 17"]),
        ];
        let explanation = explain(&report);
        assert_eq!(explanation.title, "Rust panic: still locked");
        let says = "A destructor panicked while an earlier panic of the thread ran it: no order 17.";
        assert!(explanation.summary.contains(says), "{}", explanation.summary);
        assert!(explanation.evidence.iter().any(|line| line.contains("src/orders.rs:17:5")));
        // What `panic_any` was given need not be text.
        report.app_info = vec![AppInfo {
            image: Some("Rust".to_owned()),
            lines: vec!["thread 'main' panicked at src/guard.rs:9:5".to_owned()],
        }];
        assert!(explain(&report).causes[0].contains("panic_any"));
    }

    /// Seen with a crash file of 1.95: the place was `std::sys::pal::unix::abort_internal`, and that of a write the library's `write_volatile`.
    #[test]
    fn the_place_is_not_in_rusts_library() {
        let mut report = core(&[
            "raise",
            "abort",
            "std::sys::pal::unix::abort_internal",
            "std::process::abort",
            "std::panicking::panic_handler::{closure#0}",
            "__rustc::rust_begin_unwind",
            "core::panicking::panic_nounwind",
            "app::total",
            "app::main",
        ]);
        let place = blamed(&report).unwrap();
        assert_eq!((place.frame.index, place.passed), (7, 0));
        let function = |name: &str, file: &str| Function {
            name: name.to_owned(),
            file: Some(file.to_owned()),
            ..Function::default()
        };
        let inlined = function("write_volatile<u32>", "/rustc/59807616/library/core/src/ptr/mod.rs");
        report.process.threads[0].frames[7].functions =
            vec![inlined.clone(), function("app::total", "src/orders.rs")];
        assert_eq!(blamed(&report).unwrap().passed, 1);
        report.process.threads[0].frames[7].functions = vec![inlined];
        let place = blamed(&report).unwrap();
        assert_eq!((place.frame.index, place.passed), (8, 0), "no frame of the library's own");
        report.process.threads[0].frames.truncate(8);
        let place = blamed(&report).unwrap();
        assert_eq!((place.frame.index, place.passed), (7, 0), "there is nothing behind it");
    }

    #[test]
    fn exceptions_of_windows_are_of_the_known_families() {
        for (name, class) in [
            ("EXCEPTION_ACCESS_VIOLATION_WRITE", Class::BadAccess),
            ("EXCEPTION_INT_DIVIDE_BY_ZERO", Class::Arithmetic),
            ("EXCEPTION_BREAKPOINT", Class::Breakpoint),
            ("EXCEPTION_ILLEGAL_INSTRUCTION", Class::BadInstruction),
            ("STATUS_INVALID_PARAMETER", Class::Unknown),
        ] {
            assert!(is_windows(name) && class_of_windows(name) == class, "{name}");
        }
    }

    #[test]
    fn kills_for_memory() {
        let mut report = report("", "SIGKILL").done();
        report.source = Source::KsCrash;
        report.termination =
            Some(Termination { reason: Some("memory_termination".to_owned()), ..Termination::default() });
        let value = r#"{"memory_limit": 5}"#.to_owned();
        report.fields.push(Field { key: "crash.error.memory_termination".to_owned(), value });
        let explanation = explain(&report);
        assert_eq!(explanation.rule, "memory-limit");
        assert!(explanation.evidence.iter().any(|line| line.contains("memory_limit")));
        report.termination = None;
        assert_ne!(explain(&report).rule, "memory-limit");
    }
}
