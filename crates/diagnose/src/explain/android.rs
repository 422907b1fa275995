//! What Android's signals, causes and abort messages say, and Java's exceptions.
//!
//! Sources: `debuggerd/libdebuggerd/tombstone_proto.cpp` (causes), bionic's `fdsan.md`, `malloc_info`, the C library's and
//! ART's texts, Android's pages on debugging native crashes.

use super::android_codes::code_name;
use super::draft::Draft;
use super::facts::{Facts, field};
use super::sender::sent_from_outside;
use super::tables::exceptions::signal_by_name;
use super::tables::java_exceptions::{EXCEPTIONS, SAID_BY_LIBRARIES};
use super::words::one_line;
use crate::names::{cite, describe, image_name, image_of};
use crate::suspect::{hides_script, is_system, is_web_view};
use backtrail_model::Source;

/// A text that tells what it was.
struct Text {
    /// A part of the text, in small letters.
    part: &'static str,
    title: &'static str,
    meaning: &'static str,
    causes: &'static [&'static str],
    next: &'static [&'static str],
}

const TOOLS: [Text; 5] = [
    Text {
        part: "use after free",
        title: "Use after free",
        meaning: "Memory was used after it had been freed.",
        causes: &[
            "A pointer outlived what it pointed to: an object that another owner or thread deleted, or a view into a container that changed.",
        ],
        next: &["Compare the stacks of the deallocation and of the allocation with that of the access."],
    },
    Text {
        part: "double free",
        title: "Double free",
        meaning: "Memory was freed that had been freed before.",
        causes: &["Two owners of the same memory, each of which frees it."],
        next: &["Compare the stack of the first deallocation with that of the crash."],
    },
    Text {
        part: "buffer overflow",
        title: "Buffer overflow",
        meaning: "Memory behind the end of an allocation was accessed.",
        causes: &["An index or a length that is larger than the allocation."],
        next: &["Look at the sizes at the place of the allocation and at that of the access."],
    },
    Text {
        part: "buffer underflow",
        title: "Buffer underflow",
        meaning: "Memory before the start of an allocation was accessed.",
        causes: &["A negative index, or a pointer that went back too far."],
        next: &["Look at the arithmetic at the place of the access."],
    },
    Text {
        part: "invalid free",
        title: "Invalid free",
        meaning: "What was freed is not the start of an allocation.",
        causes: &[
            "A pointer into the middle of an allocation, to the stack, or to memory of another allocator.",
        ],
        next: &["Look at where the pointer comes from."],
    },
];

/// GWP-ASan, scudo or the processor's tags say what was wrong with which memory.
pub(super) fn memory_tool(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(cause) = field(&facts.report.fields, "Cause") else { return false };
    let tool = ["[GWP-ASan]", "[MTE]", "[scudo]", "[SCUDO]"].iter().find(|tool| cause.contains(**tool));
    let lower = cause.to_lowercase();
    let Some(tool) = tool else { return false };
    let found = TOOLS.iter().find(|text| lower.contains(text.part));
    let tool = tool.trim_matches(['[', ']']);
    match found {
        Some(text) => {
            draft.lead(format!("{} ({tool})", text.title), text.meaning);
            draft.causes(text.causes);
            draft.nexts(text.next);
        }
        None => draft.lead(
            format!("Memory error ({tool})"),
            "The allocator or the processor found a wrong use of memory.",
        ),
    }
    draft.evidence(format!("Cause: {cause}"));
    if tool == "GWP-ASan" {
        draft.say("GWP-ASan guards few allocations, chosen at random: the bug may be far more frequent than these reports.");
    }
    for backtrace in facts.report.process.backtraces.iter().filter(|it| it.title.contains("allocated by")) {
        let frame = backtrace.frames.iter().find(|frame| !is_system(facts.report, frame));
        if let Some(frame) = frame {
            draft.evidence(cite(facts.report, &backtrace.title, frame));
        }
    }
    true
}

const MESSAGES: [Text; 15] = [
    Text {
        part: "attempted to close file descriptor",
        title: "File descriptor closed by code that does not own it (fdsan)",
        meaning: "Code closed a file descriptor that belongs to somebody else, or that it had given away.",
        causes: &[
            "A file descriptor that is closed twice: after the first time its number belongs to somebody else's file.",
            "Code that closes a number which another owner (unique_fd, FILE, ParcelFileDescriptor) manages.",
        ],
        next: &[
            "The stack shows who closed; look in that code for an earlier close() of the same number, on any thread.",
        ],
    },
    Text {
        part: "failed to exchange ownership of file descriptor",
        title: "File descriptor whose ownership was lost (fdsan)",
        meaning: "Code gave away or took a file descriptor that belongs to somebody else.",
        causes: &[
            "A file descriptor that was closed before, so that its number belongs to somebody else's file.",
        ],
        next: &["Look for an earlier close() of the same number, on any thread."],
    },
    // bionic checks this itself, whether or not the caller was compiled with FORTIFY.
    Text {
        part: "called on a destroyed",
        title: "Lock used after it was destroyed",
        meaning: "The C library found that a lock was used after pthread_mutex_destroy() or its like.",
        causes: &["An object that was destroyed while a thread still used its lock."],
        next: &["Look at the lifetime of what holds the lock, in the frame that called the C library."],
    },
    Text {
        part: "fortify:",
        title: "Misuse of a C function found by FORTIFY",
        meaning: "A check that the compiler added to a call of the C library failed.",
        causes: &[
            "A buffer that is smaller than what is written to it; a file descriptor that is too large for select().",
        ],
        next: &["The frame that called the checked function has the wrong size."],
    },
    Text {
        part: "jni error (app bug)",
        title: "Misuse of JNI",
        meaning: "The runtime found a use of JNI that is wrong.",
        causes: &["Local references that are never deleted in a loop; weak references used as strong ones."],
        next: &["The message names the rule; the stack shows the native function that broke it."],
    },
    Text {
        part: "reference table overflow",
        title: "Too many JNI references",
        meaning: "A table of JNI references is full.",
        causes: &["References that are made in a loop and never deleted."],
        next: &["Look in the log for the summary of what the table holds."],
    },
    Text {
        part: "scudo error:",
        title: "Heap error found by scudo",
        meaning: "The allocator found its bookkeeping damaged, or a pointer that it never gave out.",
        causes: &["A write to freed memory or beyond the end of a block.", "Memory freed twice."],
        next: &[
            "Run with HWASan or with GWP-ASan at a higher rate: they stop where the memory is damaged, not later.",
        ],
    },
    Text {
        part: "uncaught exception",
        title: "Uncaught C++ exception",
        meaning: "An exception was thrown and nobody caught it.",
        causes: &["The message names the exception's type, and often what it says."],
        next: &[
            "Look at the frames below the throw; a handler that was expected may be above a function that may not throw.",
        ],
    },
    Text {
        part: "pure virtual function call",
        title: "Pure virtual function called",
        meaning: "A virtual function was called that only a derived class has.",
        causes: &[
            "An object used while it is constructed or after it was destroyed, often by another thread.",
        ],
        next: &["Look at the lifetime of the object in the calling frame."],
    },
    Text {
        part: "stack corruption detected",
        title: "Stack overwritten",
        meaning: "The mark that the compiler put behind a function's variables was overwritten.",
        causes: &[
            "A write beyond the end of an array in the function of the frame above __stack_chk_fail, or in what it called.",
        ],
        next: &["Run with AddressSanitizer or HWASan: they stop at the write."],
    },
    // Chromium's `android_webview/browser/aw_browser_terminator.cc`; Android's "Handling renderer terminations".
    Text {
        part: "crash wasn't handled by all associated",
        title: "The WebView's renderer crashed, and the app does not handle it",
        meaning: "A process of the system's web view that renders pages ended, and WebView ended the app since no onRenderProcessGone took care of it.",
        causes: &[
            "A page that crashed the renderer: a defect of WebView, or a page that takes too much memory.",
            "The app does not override WebViewClient.onRenderProcessGone in each of its web views.",
        ],
        next: &[
            "Return true from onRenderProcessGone, remove that WebView and make a new one.",
            "Look for the renderer's own tombstone: it has another process id, which the message names.",
        ],
    },
    Text {
        part: "assertion \"",
        title: "Assertion failed",
        meaning: "A condition that the code takes for granted did not hold.",
        causes: &["Something that was thought impossible happened; the condition names it."],
        next: &["Look at the file, line and condition that the message names."],
    },
    Text {
        part: "check failed:",
        title: "Check failed",
        meaning: "A condition that the code takes for granted did not hold.",
        causes: &["Something that was thought impossible happened; the condition names it."],
        next: &["Look at the file, line and condition that the message names."],
    },
    Text {
        part: "pthread_mutex_",
        title: "Misuse of a lock",
        meaning: "A lock was used that is destroyed or of another thread.",
        causes: &["An object that was destroyed while a thread still used its lock."],
        next: &["Look at the lifetime of what holds the lock."],
    },
    Text {
        part: "outofmemory",
        title: "Out of memory",
        meaning: "No memory was left for an allocation.",
        causes: &["A leak, or one allocation that is far too large."],
        next: &["Look at the size in the message and at the memory of the process over time."],
    },
];

/// Somebody said why it ended the process.
pub(super) fn abort_message(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    // The runtime's words of a wrong call of JNI stand in the log before any signal does.
    let is_end = |message: &&str| facts.exception().signal.is_some() || message.starts_with("JNI DETECTED ");
    let Some(message) = facts.exception().message.as_deref().filter(is_end) else { return false };
    let lower = message.to_lowercase();
    if lower.contains("jni detected error in application") {
        draft.lead(
            format!("Misuse of JNI: {}", super::jni::words(message)),
            "The runtime found an invalid JNI call.",
        );
        if !super::jni::tell(message, draft) {
            draft.cause("A reference that was deleted or is of another thread; a call while an exception is pending; a wrong signature.");
        }
        draft.next("The stack shows the native function that made the call.");
        return true;
    }
    let shown = one_line(message.lines().next().unwrap_or(message));
    // Chromium's place in its own source.
    let shown = shown
        .strip_prefix("[FATAL:")
        .and_then(|rest| rest.split_once("] "))
        .map_or(shown.as_str(), |(_, rest)| rest);
    match MESSAGES.iter().find(|text| lower.contains(text.part)) {
        Some(text) => {
            draft.lead(format!("{}: {shown}", text.title), text.meaning);
            draft.causes(text.causes);
            draft.nexts(text.next);
        }
        None => {
            draft.lead(format!("Aborted: {shown}"), format!("The process ended itself and said: {shown}."));
            draft.next("Look for the message in the source: the code that has it is what gave up.");
        }
    }
    true
}

const CAUSES: [Text; 6] = [
    Text {
        part: "null pointer dereference",
        title: "Null pointer access",
        meaning: "A null pointer was used.",
        causes: &["A pointer that was never set or that was cleared, in the innermost frame or given to it."],
        next: &[
            "Look at which pointer the innermost frame's line uses; the fault address is the member's offset.",
        ],
    },
    Text {
        part: "call to kernel thread",
        title: "Jump to a null address",
        meaning: "A function was called through a pointer that is null.",
        causes: &["A callback that was never set."],
        next: &["Look at the frame that made the call."],
    },
    Text {
        part: "stack overflow",
        title: "Stack overflow",
        meaning: "The stack of the thread is used up.",
        causes: &[
            "A recursion without an end.",
            "Large arrays on the stack of a thread that has a small one.",
        ],
        next: &["Look for frames that repeat; count the size of the thread's stack."],
    },
    Text {
        part: "execute-only",
        title: "Code read as data",
        meaning: "Code was read that may only be executed.",
        causes: &[
            "Hooking or checking code that reads the instructions of system libraries; a wild pointer.",
        ],
        next: &["Look at what the innermost frame reads."],
    },
    Text {
        part: "seccomp prevented call",
        title: "System call that apps may not make",
        meaning: "The process made a system call that Android's filter forbids.",
        causes: &[
            "Native code, often of a library, that makes a call which the C library of this version does not make.",
        ],
        next: &["The cause names the number of the call; the frame above the C library made it."],
    },
    Text {
        part: "trying to execute non-executable memory",
        title: "Jump to data",
        meaning: "The process jumped to memory that holds no code.",
        causes: &["A function pointer or return address that was overwritten."],
        next: &["Look at the caller: frame 1, or the link register."],
    },
];

/// `debuggerd` found a cause.
pub(super) fn stated_cause(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(cause) = field(&facts.report.fields, "Cause") else { return false };
    let lower = cause.to_lowercase();
    let shown = one_line(cause);
    match CAUSES.iter().find(|text| lower.contains(text.part)) {
        Some(text) => {
            draft.lead(with_address(facts, text.title), text.meaning);
            draft.causes(text.causes);
            draft.nexts(text.next);
        }
        None => draft
            .lead(format!("{}: {shown}", facts.signal()), format!("The system found this cause: {shown}.")),
    }
    draft.evidence(format!("Cause: {cause}"));
    true
}

fn with_address(facts: &Facts<'_>, title: &str) -> String {
    match facts.exception().address {
        Some(address) if title.contains("access") => format!("{title} at {address}"),
        _ => title.to_owned(),
    }
}

/// Addresses below a page are null pointers with an offset.
pub(super) fn null_access(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let address = facts.exception().address;
    // The kernel has no address for a general protection fault, and says 0.
    let is_untold = code_name(facts) == Some("SI_KERNEL");
    if facts.signal() != "SIGSEGV" || is_untold || address.is_none_or(|address| address.get() >= 4096) {
        return false;
    }
    draft.lead(
        with_address(facts, "Null pointer access"),
        "A null pointer was used, or one that is next to null.",
    );
    draft.cause("A pointer that was never set or that was cleared, in the innermost frame or given to it.");
    draft.next(
        "Look at which pointer the innermost frame's line uses; the fault address is the member's offset.",
    );
    true
}

/// A Java exception that nobody caught.
pub(super) fn java_exception(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let Some(class) = exception.kind.as_deref().filter(|_| exception.signal.is_none()) else { return false };
    if class == crate::suspect::SCRIPT_CARRIER {
        script(facts, draft);
        return true;
    }
    let message = exception.message.as_deref().map(one_line);
    let title = match &message {
        Some(message) => format!("{class}: {message}"),
        None => class.to_owned(),
    };
    draft.lead(&title, format!("{} was thrown and nobody caught it.", article(class)));
    let backtraces = &facts.report.process.backtraces;
    let is_cause = |title: &str| {
        // The framework marks so where a service was started last; nothing was thrown there.
        title.starts_with("Caused by") && !title.contains("android.app.StackTrace")
    };
    let root = backtraces.iter().find(|it| it.is_exception && is_cause(it.title.trim_start()));
    let mut explained = class;
    if let Some(root) = root {
        let head = root.title.lines().next().unwrap_or_default().trim();
        let cause = head.trim_start_matches("Caused by").trim_start_matches(':').trim_start();
        draft.say(format!("Its root cause is {}.", one_line(cause)));
        draft.evidence(head);
        explained = cause.split(": ").next().unwrap_or(cause);
    }
    let told = root
        .map_or(message.as_deref().unwrap_or_default(), |root| root.title.lines().next().unwrap_or_default());
    let is_told = explained == "java.lang.UnsatisfiedLinkError" && super::link_error::tell(told, draft);
    // A cause whose own stack is not there stands in the message of what wraps it: `… ComponentInfo{…}: android.view.InflateException: …`.
    let of_wrapped = || {
        let (_, inner) = message.as_deref().filter(|_| root.is_none())?.split_once("}: ")?;
        let name = inner.split(": ").next()?;
        EXCEPTIONS.iter().find(|(known, _)| *known == name)
    };
    // Sentry leaves the package out. What wraps a cause explains nothing.
    let is_it = |known: &str| {
        known == explained || known.rsplit('.').next() == Some(explained) && !explained.contains('.')
    };
    let known = EXCEPTIONS.iter().find(|(known, _)| is_it(known)).or_else(of_wrapped).filter(|_| !is_told);
    let of_library = SAID_BY_LIBRARIES.iter().find(|(begin, _)| told.contains(begin));
    match of_library {
        Some((_, meaning)) => draft.say(*meaning),
        None => known.iter().for_each(|(_, meaning)| draft.say(*meaning)),
    }
    if let Some(call) = other_process(facts) {
        draft.say(format!("It was thrown in the process that `{call}` called, mostly the system's, and handed back from there (`Parcel.readException`): its own stack is not in this text."));
    }
    if explained == "java.lang.OutOfMemoryError" {
        super::java_memory::tell(told, draft);
    }
    draft.next("Look at the innermost frame of the root cause that is the app's own.");
    true
}

/// The call into another process that handed an exception back.
///
/// Source: Android's `Parcel.readException`, "Special function for reading an exception result from the header of a parcel, to be used
/// after receiving the result of a transaction".
fn other_process<'r>(facts: &Facts<'r>) -> Option<&'r str> {
    /// `createExceptionOrNull`, `createException`, `readException` twice, and `DatabaseUtils` before them.
    const DEPTH: usize = 6;
    let name = |frame: &'r backtrail_model::Frame| frame.names().next();
    let at = facts.fault_frames.iter().take(DEPTH).rposition(|frame| {
        name(frame).is_some_and(|name| name.starts_with("android.os.Parcel.readException"))
    })?;
    facts.fault_frames.get(at + 1).and_then(name)
}

/// React Native throws this in Java for an error of JavaScript that nobody caught: its message is that error, and perhaps its stack.
fn script(facts: &Facts<'_>, draft: &mut Draft) {
    let message = facts.exception().message.as_deref().unwrap_or_default();
    let message = message.split("stack:").next().unwrap_or_default();
    let message =
        message.split(", js engine:").next().unwrap_or_default().trim().trim_end_matches([',', ' ']);
    draft.lead(
        match message {
            "" => "Uncaught error of JavaScript (React Native); its message is not in the report".to_owned(),
            _ => one_line(message),
        },
        "An error was thrown in JavaScript and nobody caught it: React Native ended the app. The rows in Java are its way to do so, and have no part in it.",
    );
    let is_script =
        |frame: &backtrail_model::Frame| frame.language == Some(backtrail_model::Language::JavaScript);
    if facts.fault_frames.iter().any(is_script) {
        draft
            .next("The positions are those of the bundle: the source map of that build tells file and line.");
    } else {
        draft.next("Get the error's message and its stack of JavaScript: the line of the tag ReactNativeJS in logcat, or a reporter inside of the app's JavaScript.");
    }
}

fn article(class: &str) -> String {
    let an = class.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    format!("{} {class}", if an { "An" } else { "A" })
}

/// What only its signal tells, or nothing.
pub(super) fn anything(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let signal = facts.signal();
    match signal_by_name(signal) {
        Some(known) => {
            draft.lead(
                format!("The process ended by {signal}"),
                format!("The process ended by {signal}: {}.", known.meaning),
            );
            if signal == "SIGABRT" {
                draft.say("The report has no abort message.");
                draft.next("Look at the frame that called abort().");
            }
        }
        None if !signal.is_empty() => {
            draft.lead(
                format!("The process got {signal}"),
                format!("The process got {signal}. The report does not tell why."),
            );
        }
        None if runtimes_abort(facts, draft) => {}
        None if facts.report.source == Source::AndroidTombstone => {
            draft.lead(
                "Stacks without a signal",
                "The report has stacks, and names neither signal nor exception.",
            );
        }
        None => draft.lead("Stacks of a Java program", "The report has stacks, and names no exception."),
    }
    true
}

/// The title where Android's runtime ended the process and the text does not say why.
pub(crate) const RUNTIMES_END: &str = "Ended by Android's runtime";

/// Android's runtime ended the process, in a report whose signal and message were cut away.
fn runtimes_abort(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(abort) = facts.find_frame(&["art::Runtime::Abort"], 12) else { return false };
    if let Some(table) = facts.find_frame(&["art::IndirectReferenceTable::Add"], 16) {
        draft.lead(
            "Table of JNI references full",
            "Android's runtime ended the process: its table of JNI references has no room for another one.",
        );
        draft.evidence(facts.cite(table));
        draft.causes(&[
            "Native code that makes local references in a loop, or on a thread that never returns to Java, and does not delete them.",
            "Global references that are never deleted.",
        ]);
        draft.next("Call DeleteLocalRef, or PushLocalFrame and PopLocalFrame, around what makes them; the log before the end lists which classes fill the table.");
        return true;
    }
    draft.lead(RUNTIMES_END, "Android's runtime ended the process, and wrote why into the log.");
    draft.evidence(facts.cite(abort));
    draft.next(
        "Look in the log before the end for lines of the tag art, or at the tombstone's abort message.",
    );
    true
}

/// Where it happened: the innermost function that is not the system's.
pub(super) fn place(facts: &Facts<'_>, draft: &mut Draft) {
    let has_no_place = matches!(facts.report.source, Source::AndroidAnr | Source::JavaThreadDump);
    if has_no_place || sent_from_outside(facts.report).is_some() || hides_script(facts.report) {
        return;
    }
    let Some(suspect) = &facts.suspect else {
        if facts.thread.is_some_and(|thread| thread.frames.is_empty()) {
            draft.place("The text has no stack.");
            draft.next("Get the tombstone: the lines of the tag DEBUG behind this one, `adb bugreport`, or /data/tombstones.");
        } else if !facts.stack.is_empty() {
            draft.place(match facts.fault_frames.is_empty() {
                true => "The report has no stack.".to_owned(),
                false => format!("No frame of {} lies outside of the system.", one_line(&facts.stack)),
            });
            if facts.fault_frames.first().is_some_and(|frame| is_web_view(facts.report, frame)) {
                draft.say("The code is the system's web view (Chromium): what a page did, or a defect of its version on the device.");
                draft.next(
                    "Count by the web view's version, and look which pages the app shows at that time.",
                );
            }
        }
        return;
    };
    let place = describe(facts.report, suspect.frame);
    let is_thrown =
        facts.report.process.backtraces.iter().any(|it| it.is_exception) && facts.signal().is_empty();
    // The stack is that of the root cause, where there is one: what wraps it was thrown elsewhere.
    let what = if facts.stack.trim_start().starts_with("Caused by") { "The root cause" } else { "It" };
    draft.place(match (is_thrown, suspect.position) {
        (true, 0) => format!("{what} was thrown in {place}."),
        (true, _) => format!("{what} was thrown below {place}."),
        (false, 0) => format!("It happened in {place}."),
        (false, _) => format!("The innermost code that is not the system's is {place}."),
    });
    if suspect.frame.names().next().is_none() {
        let image = image_name(facts.report, suspect.frame).unwrap_or("the library");
        let id = image_of(facts.report, suspect.frame)
            .and_then(|image| image.id)
            .map(|id| format!(" ({} {id})", id.kind()));
        draft.next(format!("Get the unstripped {image}{} to see function and line.", id.unwrap_or_default()));
    }
}

/// Causes behind the first, which the report lists by their likelihood.
pub(super) fn other_causes(facts: &Facts<'_>, draft: &mut Draft) {
    let causes = facts.report.fields.iter().filter(|field| field.key == "Cause").skip(1);
    causes.for_each(|field| draft.evidence(format!("Less likely cause: {}", field.value)));
}
