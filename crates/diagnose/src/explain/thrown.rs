//! Exceptions that nobody caught: Objective-C's and C++'s, by the texts that they leave.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::tables::messages::{CPP_TYPES, EXCEPTION_NAMES, Hint, REASONS};
use super::tables::telling::TELLING;
use super::throw_stack::{
    LOCK_FAILED, LOCKS, THROW_DEPTH, is_objc_throw, is_unnamed_throw, of_library, tell_throw, tell_thrower,
    throw_frames, thrower,
};
use super::words::one_line;
use crate::names::{base_name, is_any_of};
use backtrail_model::{Frame, Report, Source, ThrowingRuntime};

/// An exception's name and reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Thrown {
    /// Empty where only the reason is told.
    pub(crate) name: String,
    pub(crate) reason: Option<String>,
}

/// Words by which texts announce an exception's name. The name follows in quotes of either kind.
const ANNOUNCED: [&str; 3] =
    ["due to uncaught exception ", "due to uncaught exception of class ", "Uncaught exception of class "];

/// How AppKit writes down what it ended the process for: the reason alone follows.
const CRASHING: &str = "Crashing on exception:";

/// Reads `*** Terminating app due to uncaught exception 'NSX', reason: '…'` in its spellings, and AppKit's `Crashing on
/// exception: …`.
pub(crate) fn parse_objc(text: &str) -> Option<Thrown> {
    if let Some((_, reason)) = text.split_once(CRASHING) {
        let reason = Some(one_line(reason)).filter(|reason| !reason.is_empty());
        return Some(Thrown { name: String::new(), reason });
    }
    let rest = ANNOUNCED.iter().rev().find_map(|words| text.split_once(words)).map(|(_, rest)| rest)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let rest = rest.get(1..)?;
    let (name, rest) = in_full(rest, quote).or_else(|| rest.split_once(quote))?;
    // React Native puts the message behind the name, too.
    let name = name.split_once(": ").map_or(name, |(name, _)| name);
    if name.is_empty() || name.contains('\n') {
        return None;
    }
    Some(Thrown { name: name.to_owned(), reason: reason(rest) })
}

/// A name up to where the reason begins: it may hold quotes itself.
fn in_full(rest: &str, quote: char) -> Option<(&str, &str)> {
    let line = rest.lines().next()?;
    let at = line.find("reason:")?;
    let (before, reason) = rest.split_at_checked(at)?;
    let name = before.trim_end().trim_end_matches(',').strip_suffix(quote)?;
    Some((name, reason))
}

/// The quoted text behind `reason:`. It may hold quotes itself, so the last one ends it.
fn reason(rest: &str) -> Option<String> {
    let (_, rest) = rest.split_once("reason:")?;
    let rest = rest.trim();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
    let Some(quote) = quote else { return (!rest.is_empty()).then(|| one_line(rest)) };
    let inner = rest.get(1..)?;
    // Older systems append the stack: `reason: '…'\n*** Call stack at first throw:`.
    let inner = inner.split_once("\n*** ").map_or(inner, |(inner, _)| inner);
    let inner = inner.rsplit_once(quote).map_or(inner, |(inner, _)| inner);
    Some(one_line(without_stack(inner))).filter(|reason| !reason.is_empty() && reason != "(null)")
}

/// React Native's reason has the stack of JavaScript behind it, which is one of the report's stacks, and before that the engine's name.
fn without_stack(reason: &str) -> &str {
    let Some((words, _)) = reason.split_once(", stack:\n") else { return reason };
    words.rsplit_once(", js engine: ").map_or(words, |(words, _)| words)
}

/// Reads the member `exceptionReason` of newer `.ips` reports, which readers keep as a field or, where it is long, as a
/// section.
pub(crate) fn from_field(report: &Report) -> Option<Thrown> {
    let object: serde_json::Value = serde_json::from_str(report.text_of("exceptionReason")?).ok()?;
    let text = |key: &str| {
        let text = object.get(key).and_then(serde_json::Value::as_str)?;
        Some(one_line(without_stack(text)))
    };
    let said = |keys: &[&str]| keys.iter().find_map(|key| text(key).filter(|text| !text.is_empty()));
    let name = said(&["name", "class", "exceptionName", "className"]);
    let reason = said(&["composed_message", "composedMessage"]);
    (name.is_some() || reason.is_some()).then(|| Thrown { name: name.unwrap_or_default(), reason })
}

/// The exception that ended the process, with the line that tells of it.
pub(super) fn find(facts: &Facts<'_>) -> Option<(Thrown, String)> {
    let said = facts.said.iter().find_map(|said| Some((parse_objc(&said.text)?, said.cite())));
    let from_member = || {
        let thrown = from_field(facts.report)?;
        let reason = thrown.reason.as_deref().unwrap_or("none");
        let name = if thrown.name.is_empty() { "" } else { ", " };
        let line = format!("exceptionReason: {}{name}reason: {reason}", thrown.name);
        Some((thrown, line))
    };
    said.or_else(from_member)
        .or_else(|| from_reason(facts))
        .or_else(|| from_termination(facts))
        .or_else(|| stated(facts, ThrowingRuntime::ObjectiveC))
}

/// The line `Exception Reason:` of newer text reports, which names no class.
fn from_reason(facts: &Facts<'_>) -> Option<(Thrown, String)> {
    let reason = facts.exception().message.as_deref().map(one_line).filter(|reason| !reason.is_empty())?;
    let is_thrown = facts.report.source == Source::AppleText
        && facts.report.process.backtraces.iter().any(|stack| stack.is_exception)
        && facts.fault_frames.iter().take(THROW_DEPTH).any(is_objc_throw);
    if !is_thrown {
        return None;
    }
    let by_stack = thrower(facts).map(|(thrower, _)| thrower.exception.to_owned());
    let by_reason =
        || reason.contains("unrecognized selector sent to").then(|| "NSInvalidArgumentException".to_owned());
    let name = by_stack.filter(|name| !name.is_empty()).or_else(by_reason).unwrap_or_default();
    let line = format!("Exception Reason: {reason}");
    Some((Thrown { name, reason: Some(reason) }, line))
}

/// What a reporter inside of the program states of the exception, with the line that tells of it.
fn stated(facts: &Facts<'_>, runtime: ThrowingRuntime) -> Option<(Thrown, String)> {
    let stated = facts.report.thrown.as_ref().filter(|thrown| thrown.runtime == runtime)?;
    let reason = stated.reason.as_deref().map(one_line).filter(|reason| !reason.is_empty());
    let thrown = Thrown { name: one_line(&stated.name), reason };
    let says_something = !thrown.name.is_empty() || thrown.reason.is_some();
    let thrown = match runtime {
        ThrowingRuntime::Cpp if thrown.name.is_empty() => {
            Thrown { name: "of an unknown type".to_owned(), ..thrown }
        }
        _ => thrown,
    };
    says_something.then(|| (thrown, format!("Exception: {}", stated.text())))
}

/// Whether the program caught what was thrown, and went on.
fn is_handled(facts: &Facts<'_>) -> bool {
    facts.report.thrown.as_ref().is_some_and(|thrown| thrown.is_handled)
}

/// How the title begins, and what happened to the exception.
fn fate(facts: &Facts<'_>) -> (&'static str, &'static str) {
    match is_handled(facts) {
        true => ("Handled", "The app caught it, reported it and went on: nothing was ended by it"),
        false => ("Uncaught", "An exception was thrown and nobody caught it"),
    }
}

/// Some systems and libraries hand the words to abort_with_reason.
fn from_termination(facts: &Facts<'_>) -> Option<(Thrown, String)> {
    let text = super::kill::account(facts.report);
    Some((parse_objc(&text)?, format!("Termination Reason: {}", one_line(&text))))
}

/// An Objective-C exception with its name or reason.
pub(super) fn objc(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some((mut thrown, line)) = find(facts) else { return false };
    if thrown.reason.is_none() && thrown.name == "NSInvalidArgumentException" {
        thrown.reason = said_selector(facts).map(|(reason, _)| reason);
    }
    let reason = thrown.reason.as_deref();
    let name = if thrown.name.is_empty() { "exception" } else { &thrown.name };
    let (caught, fate) = fate(facts);
    let hint = reason.and_then(|reason| hint_for(&REASONS, reason));
    let thrower = thrower(facts).filter(|_| hint.is_none());
    let title = match (reason, thrower) {
        (Some(reason), _) => format!("{caught} {name}: {reason}"),
        (None, Some((thrower, _))) => format!("{caught} {name}: {}", thrower.title),
        (None, None) => format!("{caught} {name}"),
    };
    let known = EXCEPTION_NAMES.iter().find(|(known, _)| *known == thrown.name).map(|(_, meaning)| *meaning);
    // What the reason means says more than what the name means.
    let known = known.filter(|_| hint.is_none() && thrower.is_none());
    let meaning = known.map(|meaning| format!(": {meaning}")).unwrap_or_default();
    draft.lead(title, format!("{fate}{meaning}."));
    draft.evidence(line);
    match (hint, thrower) {
        (Some(hint), _) => tell(hint, draft),
        (None, Some((thrower, frame))) => tell_thrower(facts, draft, thrower, frame),
        (None, None) if reason.is_none() => draft.say("The report does not tell the reason."),
        (None, None) => {
            draft.cause("A condition that the code which throws checks for; the reason names it.");
        }
    }
    tell_throw(facts, draft);
    true
}

/// An Objective-C exception of which the report has the stack of the throw, and no word.
pub(super) fn objc_throw(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    // Abort: the default handler. A trap: AppKit's own. Reporters inside of the app give neither.
    if !matches!(facts.class, Class::Abort | Class::Unknown | Class::Breakpoint | Class::BadInstruction) {
        return false;
    }
    let is_thrown = throw_frames(facts).iter().take(THROW_DEPTH).any(is_objc_throw);
    if !is_thrown && !is_unnamed_throw(facts) {
        return false;
    }
    if let Some((reason, line)) = said_selector(facts) {
        draft.lead(
            format!("Uncaught NSInvalidArgumentException: {reason}"),
            "An exception was thrown and nobody caught it.",
        );
        draft.evidence(line);
        hint_for(&REASONS, &reason).iter().for_each(|hint| tell(hint, draft));
        tell_throw(facts, draft);
        return true;
    }
    match thrower(facts) {
        Some((thrower, frame)) => {
            let name = if thrower.exception.is_empty() { "exception" } else { thrower.exception };
            draft.lead(
                format!("Uncaught {name}: {}", thrower.title),
                "An Objective-C exception was thrown and nobody caught it; the stack of the throw tells which.",
            );
            tell_thrower(facts, draft, thrower, frame);
        }
        None => {
            draft.lead(
                "Uncaught Objective-C exception",
                "An Objective-C exception was thrown and nobody caught it.",
            );
            draft.say("The report tells neither its name nor its reason.");
            draft.cause("A condition that the code which throws checks for.");
        }
    }
    tell_throw(facts, draft);
    true
}

/// `-[NSNull length]: unrecognized selector sent to instance 0x34d16c8`, as loggers and reporters write it before a stack, in
/// words of their own.
fn said_selector(facts: &Facts<'_>) -> Option<(String, String)> {
    const WORDS: &str = ": unrecognized selector sent to ";
    let said = facts.find_said(|text| text.contains(WORDS))?;
    let at = said.text.find(WORDS)?;
    let before = said.text.get(..at)?;
    let start = before.rfind("-[").max(before.rfind("+["))?;
    let rest = said.text.get(start..)?;
    let end = rest.find(WORDS)? + WORDS.len();
    // `instance 0x34d16c8` or `class 0x34d16c8`, and nothing behind it.
    let end = rest.get(end..)?.split(' ').take(2).map(|word| word.len() + 1).sum::<usize>() + end - 1;
    let reason = rest.get(..end.min(rest.len())).map(one_line)?;
    Some((reason, said.cite()))
}

/// Adds what a table knows of a text.
pub(super) fn tell(hint: &Hint, draft: &mut Draft) {
    draft.say(hint.meaning);
    draft.causes(hint.causes);
    draft.nexts(hint.next);
}

/// The first entry whose text is a part of `text`.
pub(super) fn hint_for<'t>(table: &'t [Hint], text: &str) -> Option<&'t Hint> {
    table.iter().find(|hint| text.contains(hint.text))
}

/// Texts that announce a C++ exception's type, and how they end.
const CPP: [&str; 6] = [
    "terminating with uncaught exception of type ",
    "terminating due to uncaught exception of type ",
    "terminating with unexpected exception of type ",
    "terminating due to unexpected exception of type ",
    "terminate called after throwing an instance of ",
    "terminating due to exception of type ",
];

/// Texts of a std::terminate whose exception has no type to tell.
const CPP_PLAIN: [&str; 7] = [
    "terminating with uncaught foreign exception",
    "terminating due to uncaught foreign exception",
    "terminate_handler unexpectedly returned",
    "terminate called without an active exception",
    "terminate called recursively",
    "libc++abi.dylib: terminating",
    "libc++abi: terminating",
];

/// Reads `terminating with uncaught exception of type std::out_of_range: vector`.
pub(crate) fn parse_cpp(text: &str) -> Option<Thrown> {
    let rest = CPP.iter().find_map(|words| text.split_once(words)).map(|(_, rest)| rest)?;
    // GNU's library puts the text into a line of its own, unless something joined them.
    let (first, more) = match rest.split_once("what():").filter(|(first, _)| !first.contains('\n')) {
        Some((first, _)) => (first, rest.get(first.len()..).unwrap_or_default()),
        None => rest.split_once('\n').unwrap_or((rest, "")),
    };
    let first = first.trim().trim_matches('\'');
    // A colon that is not part of `::` ends the type.
    let bytes = first.as_bytes();
    let ends = |at: &usize| {
        let near = |offset: Option<usize>| offset.and_then(|at| bytes.get(at)) == Some(&b':');
        bytes.get(*at) == Some(&b':') && !near(at.checked_add(1)) && !near(at.checked_sub(1))
    };
    let end = (0..bytes.len()).find(ends).unwrap_or(bytes.len());
    let name = first.get(..end)?.trim();
    let what = first.get(end + 1..).map(str::trim).filter(|what| !what.is_empty());
    let what = what.or_else(|| more.split_once("what():").map(|(_, what)| what.trim()));
    (!name.is_empty()).then(|| Thrown { name: name.to_owned(), reason: what.map(one_line) })
}

/// An exception of another language, or what a reporter words as one.
pub(super) fn others(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some((thrown, line)) = stated(facts, ThrowingRuntime::Other) else { return false };
    let Thrown { name, reason } = thrown;
    let title = match reason {
        Some(reason) if name.is_empty() => reason,
        Some(reason) => format!("{name}: {reason}"),
        None => name.clone(),
    };
    let noted = if name.is_empty() { "something without a name" } else { &name };
    let handled = if is_handled(facts) { " It did not end the app." } else { "" };
    if facts.report.source == Source::ExceptionLog {
        draft.lead(
            format!("Uncaught {title}"),
            format!("Kotlin/Native ended the process since nobody caught {noted}."),
        );
        draft.cause("An exception that leaves Kotlin for Swift or Objective-C by a function without @Throws, or that nobody catches in a coroutine or worker.");
        if name.ends_with("IrLinkageError") {
            draft.say("A declaration that a library was compiled against is missing, or has another form, in the version that it was linked with.");
            draft.next("Bring the versions together: the library, its dependencies and Kotlin itself.");
        }
    } else {
        draft.lead(title, format!("The reporter inside of the app noted {noted}.{handled}"));
    }
    draft.evidence(line);
    if facts.fault_frames.is_empty() {
        draft.say("The report has no stack of it.");
    } else {
        draft.next("Look at the innermost frames that are the app's own.");
    }
    true
}

/// A C++ exception, or std::terminate without one.
pub(super) fn cpp(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let thrown = facts.said.iter().find_map(|said| Some((parse_cpp(&said.text)?, said.cite())));
    let thrown = thrown.or_else(|| stated(facts, ThrowingRuntime::Cpp));
    if let Some((thrown, line)) = thrown {
        if thrown.name == "NSException" {
            foreign(facts, draft, &line);
            return true;
        }
        let what = thrown.reason.as_deref().map(|what| format!(": {what}")).unwrap_or_default();
        let (caught, fate) = fate(facts);
        draft.lead(
            format!("{caught} C++ exception: {}{what}", thrown.name),
            format!("{fate}: a C++ exception of type {}.", thrown.name),
        );
        draft.evidence(line);
        if facts.class == Class::BadAccess && facts.report.source.is_capture() {
            draft.say("While the runtime told of it, what it called accessed memory that it may not: the exception's own `what()` or a handler of std::terminate.");
        }
        // A library's words say more than the type.
        if let Some(hint) = thrown.reason.as_deref().and_then(|what| hint_for(&REASONS, what)) {
            tell(hint, draft);
            return true;
        }
        if let Some(hint) = hint_for(&CPP_TYPES, &thrown.name) {
            tell(hint, draft);
        }
    } else if without_exception(facts, draft) {
        return true;
    } else if let Some(said) = facts.find_said(|text| CPP_PLAIN.iter().any(|words| text.contains(words))) {
        draft.lead("std::terminate was called", "C++ ended the process by std::terminate: an exception that nobody caught or that may not leave its function.");
        draft.evidence(said.cite());
        draft.say("The report does not tell the exception's type.");
    } else if let Some((frame, name)) = terminate_frame(facts).and_then(|_| of_library(facts)) {
        draft.lead(
            format!("Uncaught C++ exception: {name}"),
            format!("A function of C++'s library threw {name}, and nobody caught it."),
        );
        draft.evidence(facts.cite(frame));
        draft.say("The report does not tell its text.");
        let locked = facts.find_frame(&LOCKS, THROW_DEPTH).and_then(|_| hint_for(&REASONS, LOCK_FAILED));
        locked.or_else(|| hint_for(&CPP_TYPES, name)).iter().for_each(|hint| tell(hint, draft));
        return true;
    } else if let Some(frame) = terminate_frame(facts) {
        terminated(facts, draft, frame);
        return true;
    } else {
        return false;
    }
    draft.causes(&[
        "An exception that no caller handles.",
        "An exception that leaves a noexcept function, a destructor or a thread's function, or a std::thread that was not joined.",
    ]);
    if !facts.fault_frames.iter().take(THROW_DEPTH).any(|frame| is_any_of(frame, &["__cxa_throw"])) {
        draft.say("The report has no stack of the place where it was thrown.");
        draft.next("Set an exception breakpoint (__cxa_throw) to stop where it is thrown.");
    }
    true
}

/// std::terminate of which GNU's library says that nothing was thrown, and calls of functions without a body.
fn without_exception(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    const VIRTUAL: [&str; 4] = [
        "pure virtual method called",
        "deleted virtual method called",
        "Pure virtual function called!",
        "Deleted virtual function called!",
    ];
    let telling = || TELLING.iter().find(|telling| telling.functions.contains(&"__cxa_pure_virtual"));
    if let Some(said) = facts.find_said(|text| VIRTUAL.iter().any(|words| text.contains(words)))
        && let Some(telling) = telling()
    {
        draft.lead(telling.title, telling.meaning);
        draft.evidence(said.cite());
        draft.causes(telling.causes);
        draft.nexts(telling.next);
        return true;
    }
    let is_plain = |text: &str| text.contains("terminate called without an active exception");
    let Some(said) = facts.find_said(is_plain) else { return false };
    draft.lead(
        "std::terminate was called, and nothing was thrown",
        "C++ ended the process by std::terminate while no exception was under way.",
    );
    draft.evidence(said.cite());
    draft.causes(&[
        "A std::thread that was destroyed or assigned to before join() or detach().",
        "`throw;` outside of a catch block, or a call of std::terminate.",
    ]);
    draft.next(
        "Look at the std::thread objects whose scope ends there; std::jthread joins in its destructor.",
    );
    true
}

/// An Objective-C exception that C++'s runtime names by its class only: nothing of C++ applies to it.
fn foreign(facts: &Facts<'_>, draft: &mut Draft, line: &str) {
    draft.lead(
        "Uncaught Objective-C exception (NSException)",
        "An Objective-C exception was thrown and nobody caught it.",
    );
    draft.evidence(line);
    match thrower(facts) {
        Some((thrower, frame)) => tell_thrower(facts, draft, thrower, frame),
        None => {
            draft.say("The report tells neither its name nor its reason; the device's log has both.");
            draft.cause("A condition that the code which throws checks for.");
        }
    }
    tell_throw(facts, draft);
}

/// std::terminate or a throw on the stack, and no word of the exception.
fn terminated(facts: &Facts<'_>, draft: &mut Draft, frame: &Frame) {
    let is_cpp = has_no_objc(facts.report);
    let is_thrown = facts.frames.iter().take(THROW_DEPTH).any(is_throw);
    if is_cpp && is_thrown && !facts.frames.iter().take(THROW_DEPTH).any(|frame| is_any_of(frame, &RAISES)) {
        thrown_again(facts, draft, frame);
        return;
    }
    // Of a capture the stack is whole: std::terminate without a throw above it was called for another reason.
    if is_cpp && !is_thrown {
        draft.lead("std::terminate was called", "C++ ended the process by std::terminate.");
        draft.evidence(facts.cite(frame));
        draft.say("No throw is on the stack: std::terminate was called directly, or the frames of the throw have no names.");
        draft.causes(&[
            "A call of std::terminate.",
            "A throw without an exception to throw again (`throw;`).",
        ]);
        draft.next("Look at the frame that called std::terminate.");
        return;
    }
    let (what, which) = match is_cpp {
        true => ("Uncaught C++ exception", "The report tells neither the exception's type nor its reason."),
        false => (
            "Uncaught exception",
            "The report tells neither the exception's type nor its reason, nor whether it was Objective-C's or C++'s.",
        ),
    };
    draft.lead(what, "The runtime ended the process since an exception was not caught.");
    draft.evidence(facts.cite(frame));
    draft.say(which);
    match is_cpp {
        true => {
            draft.cause("A C++ exception that no caller handles, or that leaves a noexcept function, a destructor or a thread's function.");
            draft.next("Look at the frame that throws (below __cxa_throw); the standard error has the exception's type and text.");
        }
        false => {
            draft.cause("An Objective-C or C++ exception that no caller handles.");
            draft.next("Set breakpoints on objc_exception_throw and __cxa_throw to stop where it is thrown.");
        }
    }
}

/// What throws an exception of its own, other than `__cxa_rethrow`.
const RAISES: [&str; 4] =
    ["__cxa_throw", "_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow"];

/// `throw;`: without an exception the runtime calls std::terminate, as it does where nobody catches what is thrown again.
fn thrown_again(facts: &Facts<'_>, draft: &mut Draft, frame: &Frame) {
    draft.lead(
        "std::terminate was called by `throw;`",
        "C++ ended the process: code was to throw an exception again, and there was none, or nobody caught it.",
    );
    draft.evidence(facts.cite(frame));
    draft.say("The report has no exception, which says that there was none if its writer looked for one.");
    draft.causes(&[
        "`throw;` outside of a catch block, or in a function that is called outside of one.",
        "An exception that was thrown again, and that no caller handles.",
    ]);
    draft.next("Look at the frame that calls __cxa_rethrow, and at the standard error: `terminate called without an active exception` says that there was none.");
}

fn is_throw(frame: &Frame) -> bool {
    is_any_of(frame, &RAISES) || is_any_of(frame, &["__cxa_rethrow"])
}

/// Whether a process certainly had no Objective-C: captures list all that was loaded.
fn has_no_objc(report: &Report) -> bool {
    let images = &report.process.images;
    report.source.is_capture()
        && !images.is_empty()
        && !images.iter().any(|image| image.name.starts_with("libobjc"))
}

/// A std::thread that was destroyed, or assigned to, while its thread could still be joined: C++ calls std::terminate, and
/// nothing was thrown. C++20, [thread.thread.destr].
pub(super) fn joinable_thread(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if !matches!(facts.class, Class::Abort | Class::Unknown) {
        return false;
    }
    let innermost = facts.frames.get(..THROW_DEPTH.min(facts.frames.len())).unwrap_or_default();
    let terminates = |frame: &Frame| {
        frame.names().any(|name| {
            let name = base_name(name);
            name.starts_with("std::terminate") || name.starts_with("std::__terminate")
        })
    };
    let is_thread = |name: &str| {
        let name = base_name(name);
        let member = ["std::thread::", "std::__1::thread::", "std::__ndk1::thread::"];
        member
            .iter()
            .any(|class| name.strip_prefix(class).is_some_and(|it| matches!(it, "~thread" | "operator=")))
    };
    let Some(at) = innermost.iter().position(|frame| frame.names().any(is_thread)) else { return false };
    let behind = innermost.get(..=at).unwrap_or_default();
    if !behind.iter().any(terminates) || behind.iter().any(is_throw) {
        return false;
    }
    draft.lead(
        "A std::thread was destroyed while its thread could still be joined",
        "A std::thread was destroyed or assigned to before join() or detach(), so C++ ended the process by std::terminate. Nothing was thrown.",
    );
    innermost.get(at).iter().for_each(|frame| draft.evidence(facts.cite(frame)));
    draft.causes(&[
        "A way out of the function (return, exception) that passes by the join().",
        "A member std::thread of an object that is destroyed while its thread runs.",
    ]);
    draft.next("Join the thread on every way, or use std::jthread, which joins in its destructor.");
    true
}

fn terminate_frame<'r>(facts: &Facts<'r>) -> Option<&'r Frame> {
    const TERMINATE: [&str; 8] = [
        "std::terminate",
        "std::__terminate",
        "demangling_terminate_handler",
        "default_terminate_handler",
        "_objc_terminate",
        "abort_message",
        "objc_exception_throw",
        "__cxa_throw",
    ];
    let ended = matches!(facts.class, Class::Abort | Class::Unknown);
    facts.find_frame(&TERMINATE, 12).filter(|_| ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::Field;

    fn thrown(name: &str, reason: Option<&str>) -> Option<Thrown> {
        Some(Thrown { name: name.to_owned(), reason: reason.map(str::to_owned) })
    }

    #[test]
    fn objective_c_texts_in_their_spellings() {
        for (text, expected) in [
            (
                "*** Terminating app due to uncaught exception 'NSRangeException', reason: '*** -[__NSArrayM objectAtIndex:]: index 3 beyond bounds [0 .. 2]'",
                thrown(
                    "NSRangeException",
                    Some("*** -[__NSArrayM objectAtIndex:]: index 3 beyond bounds [0 .. 2]"),
                ),
            ),
            (
                "Terminating app due to uncaught exception \"MyException\", reason: \"it's over\"",
                thrown("MyException", Some("it's over")),
            ),
            (
                "*** Terminating app due to uncaught exception 'A', reason: 'can't do 'this''",
                thrown("A", Some("can't do 'this'")),
            ),
            (
                "*** Terminating app due to uncaught exception 'A', reason: 'x'\n*** Call stack at first throw:\n('y')",
                thrown("A", Some("x")),
            ),
            (
                "*** Terminating app due to uncaught exception 'A', reason: 'cut off",
                thrown("A", Some("cut off")),
            ),
            ("*** Terminating app due to uncaught exception of class 'B'", thrown("B", None)),
            ("*** Terminating app due to uncaught exception 'A', reason: '(null)'", thrown("A", None)),
            (
                "Crashing on exception: -[MSStyle hasMarkers]: unrecognized selector sent to instance 0x608",
                thrown("", Some("-[MSStyle hasMarkers]: unrecognized selector sent to instance 0x608")),
            ),
            ("abort() called", None),
            ("due to uncaught exception ", None),
        ] {
            assert_eq!(parse_objc(text), expected, "{text}");
        }
    }

    #[test]
    fn cpp_texts_in_their_spellings() {
        for (text, expected) in [
            (
                "libc++abi.dylib: terminating with uncaught exception of type std::out_of_range: vector",
                thrown("std::out_of_range", Some("vector")),
            ),
            ("terminating due to uncaught exception of type NSException", thrown("NSException", None)),
            (
                "terminate called after throwing an instance of 'std::logic_error'\n  what():  basic_string",
                thrown("std::logic_error", Some("basic_string")),
            ),
            ("terminating with uncaught exception of type ", None),
            ("all is well", None),
        ] {
            assert_eq!(parse_cpp(text), expected, "{text}");
        }
    }

    #[test]
    fn the_member_of_newer_reports() {
        let value = r#"{"arguments":["NSNull"],"name":"NSInvalidArgumentException","type":"objc-exception","composed_message":"-[NSNull length]: unrecognized selector","class":"NSException"}"#;
        let field = |value: &str| Report {
            fields: vec![Field { key: "exceptionReason".to_owned(), value: value.to_owned() }],
            ..Report::default()
        };
        assert_eq!(
            from_field(&field(value)),
            thrown("NSInvalidArgumentException", Some("-[NSNull length]: unrecognized selector"))
        );
        let section =
            backtrail_model::Section { title: "exceptionReason".to_owned(), text: value.to_owned() };
        let report = Report { sections: vec![section], ..Report::default() };
        assert_eq!(from_field(&report), from_field(&field(value)));
        assert_eq!(from_field(&field("not json")), None);
        assert_eq!(from_field(&field("{}")), None);
    }
}
