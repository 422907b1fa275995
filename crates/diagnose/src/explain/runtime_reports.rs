//! Rules for what runtimes, sanitizers, debuggers and Linux's kernel wrote: they say themselves what happened.

use super::blamed::{NODE_ASSERTION, V8_FATAL};
use super::debugger_stop::{NULL_PAGE, recursion, said};
use super::draft::Draft;
use super::facts::{Facts, field};
use super::failed_instruction::aligned_move;
use super::tables::exceptions::signal_by_name;
use super::tables::runtime_reports::{EXCEPTIONS, GO, KERNEL};
use super::tables::sanitizer_findings::FINDINGS;
use super::words::one_line;
use crate::names::{describe, source_of};
use backtrail_model::{Exception, Language, Report, Source};

/// A sanitizer, or the fuzzer, found something.
pub(super) fn sanitizer(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::Sanitizer {
        return false;
    }
    let exception = facts.exception();
    let tool = exception.kind.as_deref().unwrap_or("A sanitizer");
    let what = exception.subtype.as_deref().unwrap_or_default();
    let finding = FINDINGS.iter().find(|(name, ..)| what.starts_with(name));
    let undefined = "The code did something that the language does not define, so that anything may follow.";
    let generic =
        if tool == "UndefinedBehaviorSanitizer" { undefined } else { "The sanitizer found a mistake." };
    if matches!(what, "ABRT" | "Process terminating") && said(facts, draft) {
        return true;
    }
    let fault = (what == "SEGV").then(|| Fault::of(exception)).flatten();
    let title = fault
        .as_ref()
        .map_or_else(|| format!("{tool}: {what}"), |fault| format!("{tool}: {what}: {}", fault.title));
    // Valgrind's words for an address of which it knows nothing, null among them.
    let is_no_block = what.ends_with("where there is no block");
    let is_null = is_no_block && exception.address.is_some_and(|address| address.get() < 0x1000);
    let title = if is_null { format!("{title}, next to null") } else { title };
    draft.lead(title, finding.map_or(generic, |finding| finding.1));
    if let Some(place) = facts.report.fields.iter().find(|field| field.key == "place") {
        draft.say(format!("It happened at {}.", place.value));
    }
    if let Some(access) = &exception.codes {
        draft.evidence(access);
    }
    draft.evidence(exception.message.as_deref().unwrap_or_default());
    for stack in facts.report.process.backtraces.iter().take(8) {
        let Some(frame) = innermost_own(facts.report, &stack.frames) else { continue };
        draft.evidence(format!("{}: {}", stack.title, describe(facts.report, frame)));
    }
    match (fault, finding) {
        (fault, _) if is_null || fault.as_ref().is_some_and(|fault| fault.is_null) => {
            draft.cause("A pointer that was never set, was cleared, or is the unchecked result of a call that failed.");
            draft.next(
                "See which pointer the named line uses: it is null, and the address is the member's offset.",
            );
        }
        (_, Some((_, _, cause, next))) => {
            draft.cause(cause);
            draft.next(next);
        }
        (_, None) => {}
    }
    true
}

/// A signal for an access to memory, as sanitizers word it.
struct Fault {
    /// `null pointer, write at 0x178`.
    title: String,
    is_null: bool,
}

impl Fault {
    fn of(exception: &Exception) -> Option<Self> {
        let address = exception.address?;
        let codes = exception.codes.as_deref().unwrap_or_default();
        let how = match codes.rsplit_once("caused by a ").map_or("", |(_, how)| how) {
            how if how.starts_with("WRITE") => "write at",
            how if how.starts_with("READ") => "read at",
            _ => "access to",
        };
        let is_null = address.get() < NULL_PAGE;
        let null = if is_null { "null pointer, " } else { "" };
        Some(Self { title: format!("{null}{how} {address}"), is_null })
    }
}

/// The innermost frame of a stack that is the program's or a library's.
fn innermost_own<'r>(
    report: &'r Report,
    frames: &'r [backtrail_model::Frame],
) -> Option<&'r backtrail_model::Frame> {
    let own = frames.iter().take(256).find(|frame| !crate::suspect::is_system(report, frame));
    own.or(frames.first())
}

/// What Linux's kernel says of itself.
pub(super) fn linux_kernel(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::LinuxKernel {
        return false;
    }
    let exception = facts.exception();
    let kind = exception.kind.as_deref().unwrap_or_default();
    let known = KERNEL.iter().find(|(name, ..)| *name == kind);
    let message = exception.message.as_deref().unwrap_or("Stacks of Linux's kernel");
    draft.lead(
        kernel_title(message),
        known.map_or("The kernel reported an error of its own.", |known| known.1),
    );
    if let Some(thread) = facts.thread
        && let Some(name) = &thread.name
    {
        let id = thread.id.map(|id| format!(" ({id})")).unwrap_or_default();
        draft.say(format!("The task that ran was {name}{id}."));
    }
    draft.evidence(message);
    for info in facts.report.app_info.iter().skip(1).take(6) {
        info.lines.iter().for_each(|line| draft.evidence(line));
    }
    page_fault(facts, draft);
    let is_told = kind == "general protection fault" && aligned_move(facts, draft);
    let guesses = facts.frames.iter().filter(|frame| frame.trust == backtrail_core::Trust::Scan).count();
    if guesses > 0 {
        draft.say(format!(
            "{guesses} rows of its stack are guesses of the kernel (`?`), on which nothing here rests."
        ));
    }
    if !is_told {
        draft.next(known.map_or("Look at the innermost function.", |known| known.2));
    }
    true
}

/// What x86's kernel says beside the address of a fault, and which oops since the start it is.
///
/// Source: Linux `arch/x86/mm/fault.c` (`show_fault_oops`), `arch/x86/kernel/dumpstack.c` (`__die_header`).
fn page_fault(facts: &Facts<'_>, draft: &mut Draft) {
    let text = || facts.report.sections.iter().flat_map(|section| section.text.lines());
    let said = || facts.report.app_info.iter().flat_map(|info| info.lines.iter().map(String::as_str));
    let lines = || said().chain(text()).take(MAX_LINES);
    if lines().any(|line| line.contains("#PF: error_code(") && line.contains("reserved bit violation")) {
        draft.say(
            "A table of pages has bits set that must be clear: the table itself was overwritten, or is none.",
        );
    }
    // `Oops: 0002 [#3] SMP`: the first since the start is 1.
    let number = |line: &str| {
        let (_, rest) = line.split_once("Oops: ").or_else(|| line.split_once("Internal error: "))?;
        rest.split_once("[#")?.1.split_once(']')?.0.parse::<u32>().ok()
    };
    if let Some(number) = lines().find_map(number).filter(|number| *number > 1) {
        draft.say(format!("It is oops {number} since the start: the first one tells more, since this one may follow from it."));
        draft.next("Look for the first oops in the log.");
    }
}

/// So many lines of a kernel's log are searched.
const MAX_LINES: usize = 4096;

/// The message without what differs from one time to the next: processor, task, address, time.
fn kernel_title(message: &str) -> String {
    let end =
        [" at addr ", ", address: ", " at virtual address ", " by task ", " for more than ", " stuck for "];
    let mut title = message;
    for mark in end {
        title = title.split_once(mark).map_or(title, |(title, _)| title);
    }
    let title = match title.split_once("CPU: ").filter(|(before, _)| *before == "WARNING: ") {
        Some((_, rest)) => format!(
            "WARNING{}",
            rest.split_once(" at ").map(|(_, at)| format!(" at {at}")).unwrap_or_default()
        ),
        None => title.to_owned(),
    };
    let words: Vec<&str> = title.split_whitespace().filter(|word| !word.starts_with("CPU#")).collect();
    if words.is_empty() { message.to_owned() } else { words.join(" ") }
}

/// Go's runtime or race detector ended the program, or its goroutines were asked for.
pub(super) fn go(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::GoTrace {
        return false;
    }
    let exception = facts.exception();
    let Some(kind) = exception.kind.as_deref() else {
        let threads = facts.report.process.threads.len();
        draft.lead(
            "Stacks of a Go program",
            match threads {
                1 => "The report has the stack of a goroutine, and names no error.".to_owned(),
                _ => format!("The report has the stacks of {threads} goroutines, and names no error."),
            },
        );
        let mut states: Vec<(&str, usize)> = Vec::new();
        for state in facts.report.process.threads.iter().filter_map(|thread| thread.state.as_deref()) {
            match states.iter_mut().find(|(known, _)| *known == state) {
                Some((_, count)) => *count += 1,
                None => states.push((state, 1)),
            }
        }
        states.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        states.iter().take(8).for_each(|(state, count)| draft.evidence(format!("{count} in: {state}")));
        return true;
    };
    let message = exception.message.as_deref().unwrap_or_default();
    // Go's runtime says it of each signal for an address in the first page (`sigpanic` in `runtime/signal_unix.go`); that line may
    // have been cut.
    let is_nil =
        message.starts_with("[signal SIG") && exception.address.is_some_and(|it| it.get() < NULL_PAGE);
    let message = if is_nil { "invalid memory address or nil pointer dereference" } else { message };
    let title =
        if kind == "data race" { "Go: data race".to_owned() } else { format!("Go {kind}: {message}") };
    let known = GO.iter().find(|(text, ..)| message.contains(text) || kind == *text);
    let plain = match kind {
        "signal" => "A signal ended the program; its goroutines' stacks were printed.",
        "fatal error" => "Go's runtime ended the program, since it could not go on.",
        _ => "A goroutine panicked, and nothing recovered it.",
    };
    draft.lead(title, known.map_or(plain, |known| known.1));
    if let Some(codes) = &exception.codes {
        draft.evidence(codes);
    }
    for stack in facts.report.process.backtraces.iter().take(6) {
        if let Some(frame) = innermost_own(facts.report, &stack.frames) {
            draft.evidence(format!("{}: {}", stack.title, describe(facts.report, frame)));
        }
    }
    if let Some((_, _, next)) = known {
        draft.next(next);
    }
    true
}

/// A panic of Rust, with its message.
pub(super) fn rust(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::RustPanic {
        return false;
    }
    let exception = facts.exception();
    let message = exception.message.as_deref().unwrap_or_default();
    let is_error = exception.kind.as_deref() == Some("error");
    let (kind, what) = match is_error {
        true => ("Rust error", "The program's main function gave an error back."),
        false => ("Rust panic", "Code in Rust panicked: a condition that it takes for granted did not hold."),
    };
    let first = message.lines().next().unwrap_or_default();
    draft.lead(if first.is_empty() { kind.to_owned() } else { format!("{kind}: {first}") }, what);
    if let Some(place) = facts.report.fields.iter().find(|field| field.key == "place") {
        draft.say(format!("It happened at {}.", place.value));
    }
    for line in facts.report.app_info.iter().flat_map(|info| &info.lines).skip(1).take(8) {
        draft.evidence(line);
    }
    if facts.fault_frames.is_empty() && !is_error {
        draft.next("RUST_BACKTRACE=1 in the environment makes the program print its stack.");
    }
    true
}

/// The title of a full heap of JavaScript.
pub(crate) const FULL_HEAP: &str = "JavaScript's heap is full";

/// V8 ended the program, nearly always since its heap was full.
pub(super) fn v8_fatal(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let kind = exception.kind.as_deref().filter(|_| facts.report.source == Source::JavaScriptError);
    let message = exception.message.as_deref().unwrap_or_default();
    if kind == Some(NODE_ASSERTION) {
        super::abort::tell_assertion(draft, message);
        draft.say("It is an assertion of Node.js's own, in C++.");
        draft.causes(&[
            "A fault of Node.js, or a call from JavaScript with arguments or at a time that its C++ code does not expect.",
            "An addon in machine code that was built for another version.",
        ]);
        draft.next("Look for the condition among the known faults of Node.js, and try its newest version.");
        draft.evidence(message);
        return true;
    }
    if kind != Some(V8_FATAL) {
        return false;
    }
    if !message.contains("heap out of memory") {
        let is_check = message.starts_with("Check failed: ") || message.starts_with("Debug check failed: ");
        let what = if is_check {
            "A check of V8's own failed, so that the engine of JavaScript could not go on."
        } else {
            "The engine of JavaScript could not go on."
        };
        draft.lead(format!("V8 ended the program: {message}"), what);
        if is_check {
            draft.causes(&[
                "An addon in machine code that uses V8 or Node-API wrongly: a handle that is empty or of another thread, memory that is given to two buffers.",
                "A value that is larger than V8 can have.",
                "A fault of V8 or Node.js.",
            ]);
            draft.next("Look at the native stack: the functions right below V8_Fatal are those whose check failed, the first file that is not Node.js itself is an addon.");
        }
        draft.evidence(message);
        return true;
    }
    let field = |key| field(&facts.report.fields, key);
    draft.lead(
        FULL_HEAP,
        "V8 ended the program: its heap had reached its limit, and collecting garbage freed too little. That is V8's own limit, not the machine's memory.",
    );
    draft.evidence(message);
    if let (Some(left), Some(of)) = (field("heap after the last collection"), field("heap size")) {
        draft.say(format!(
            "After the last collection {left} MB were still in use, of {of} MB that the heap took."
        ));
    }
    if let Some(line) = field("last collection") {
        draft.evidence(line);
    }
    if message.contains("invalid array length") || message.contains("invalid table size") {
        draft.cause("One array, map or set that grew beyond what V8 can hold.");
    }
    draft.causes(&[
        "Objects that are kept for ever: a cache without a limit, listeners and closures that are never removed, results that are collected in one array.",
        "A job that needs more than the limit: bundlers, type checkers and tests of large projects.",
    ]);
    draft.next("Find out which: the limit is raised by `NODE_OPTIONS=--max-old-space-size=MEGABYTES`; where memory then grows on, it is a leak.");
    draft.next("Of a leak take snapshots: `node --heapsnapshot-near-heap-limit=2`, and compare them in Chromium's tools by what retains most.");
    if !facts.fault_frames.is_empty() {
        draft.say(
            "The native stack is V8's own way to the end; it does not tell whose objects fill the heap.",
        );
    }
    true
}

/// An exception of Python, JavaScript or .NET, as its runtime prints it, and what may have caused it.
pub(super) fn thrown(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let what = match facts.report.source {
        Source::PythonTraceback => "Python",
        Source::JavaScriptError | Source::NodeReport => "JavaScript",
        Source::DotNetException => ".NET",
        Source::DartTrace => "Dart",
        Source::RuntimeError => language(facts.report),
        _ => return false,
    };
    let Some(exception) = &facts.report.exception else { return false };
    let kind = exception.kind.as_deref().unwrap_or_default();
    let message = exception.message.as_deref().map(one_line).unwrap_or_default();
    // Words that every such error has are no part of its title.
    let is_plain =
        facts.report.source == Source::RuntimeError && matches!(kind, "error" | "stop" | "exit" | "throw");
    // An exit tells whose answer did not come; why stands behind it.
    let why = exception.codes.as_deref().filter(|_| facts.report.source == Source::RuntimeError);
    let title = match (kind.is_empty() || is_plain, message.is_empty()) {
        (_, true) => kind.to_owned(),
        (true, false) => why.map_or_else(|| message.clone(), |why| format!("{}: {message}", one_line(why))),
        (false, false) => format!("{kind}: {message}"),
    };
    if let Some(inner) = carried(facts.report) {
        let told = meaning(inner.split(": ").next().unwrap_or(inner)).map(str::to_owned);
        draft.lead(
            inner,
            told.unwrap_or_else(|| format!("An exception was raised in {what}, and nothing caught it.")),
        );
        draft.say(format!("{kind} only handed it on."));
        draft.evidence(title);
        return true;
    }
    let told = match (exception.signal.as_deref(), meaning(kind)) {
        (Some(signal), _) => {
            let meaning =
                signal_by_name(signal).map(|known| format!(" ({})", known.meaning)).unwrap_or_default();
            format!(
                "The interpreter got {signal}{meaning}: the fault is in machine code, the stack shows what called it."
            )
        }
        (None, Some(meaning)) => meaning.to_owned(),
        (None, _) if kind.ends_with(" crashed") => {
            "The interpreter itself crashed: the fault is in machine code, the stack shows what called it."
                .to_owned()
        }
        (None, None) if kind.is_empty() || is_plain || kind == "Unhandled exception" => {
            let class = message.split(['(', ':']).next().unwrap_or_default();
            meaning(class).map_or_else(
                || format!("An exception was raised in {what}, and nothing caught it."),
                str::to_owned,
            )
        }
        (None, None) => format!("{kind} was raised in {what}, and nothing caught it."),
    };
    draft.lead(title, told);
    if what == ".NET" && message.starts_with("Could not load file or assembly") {
        draft.cause("An assembly that the program needs is not there, or in another version: not shipped, or of a newer framework than the one that runs it.");
        draft.next(
            "Look which version the message names, and which one is installed or lies beside the program.",
        );
    }
    if let Some(command) = field(&facts.report.fields, "command").filter(|_| what == "Tcl") {
        draft.evidence(format!("It was executing: {command}"));
    }
    // What a runtime found of the process that was called.
    if facts.report.source == Source::RuntimeError
        && let Some(codes) = &exception.codes
    {
        draft.say(format!("The process that was called ended: {}.", one_line(codes).trim_end_matches('.')));
    }
    told_by_runtime(facts, what, &message, draft);
    if is_never_retrieved(facts.report) {
        draft.say("It was raised in a task of asyncio whose result nobody asked for: the program went on without it.");
        draft.next("Await the task, or give it a callback that looks at its exception.");
    }
    for stack in facts.report.process.backtraces.iter().skip(1).take(6) {
        let place = innermost_own(facts.report, &stack.frames);
        let place = place.map(|frame| format!(", in {}", describe(facts.report, frame))).unwrap_or_default();
        draft.evidence(format!("{}{place}", stack.title));
    }
    let has_cause = facts
        .report
        .process
        .backtraces
        .iter()
        .any(|stack| stack.title.starts_with("Cause: ") || stack.title.starts_with("Inner "));
    if has_cause {
        draft.next("Look at the cause first: the exceptions above it only pass it on.");
    }
    true
}

/// What PHP, JavaScript's engines, Flutter and Node.js tell in some of their messages.
fn told_by_runtime(facts: &Facts<'_>, what: &str, message: &str, draft: &mut Draft) {
    if what == "Dart" && message.starts_with("MissingPluginException(") {
        draft.causes(&[
            "The app was not stopped and built anew after the plugin was added: a hot restart does not add code of the phone's side.",
            "The plugin has no code for this system, or none for this method.",
            "The plugins are not registered: Flutter in an app of somebody else's, another isolate or engine; or a release build took the class away.",
        ]);
        draft.next("Stop the app, clean, and build it anew; then look at the plugin's code of the phone's side for that method and channel.");
    }
    if what == "JavaScript" && reads_of_nothing(message) {
        draft.say("A member was read or set, or a method called, of something that is undefined or null.");
    }
    // PHP names the call that handed over a value of a wrong type.
    if what == "PHP"
        && let Some((_, call)) = message.split_once(", called in ")
    {
        let call = call.split(" and defined").next().unwrap_or(call);
        draft.say(format!("The call that passed the wrong argument is in {call}."));
        draft.next(
            "Look at that call: where the argument comes from, and why it is not what the function takes.",
        );
    }
    if facts.exception().codes.as_deref() == Some("ERR_INTERNAL_ASSERTION") {
        draft.say("A check inside of Node.js itself failed.");
        let has_others =
            facts.fault_frames.iter().any(|frame| !crate::suspect::is_system(facts.report, frame));
        let own = "A fault of this version of Node.js: all of the stack is Node's own.";
        let others = "A package that uses what is inside of Node.js, or hands events to it out of order: the stack names it.";
        if has_others {
            draft.causes(&[others, "A fault of this version of Node.js."]);
        } else {
            draft.cause(own);
        }
        draft.next("Try the newest release of that line of Node.js, and search its issues for the innermost functions.");
    }
}

/// Whether a TypeError is of a value that is not there: V8's words, old and new, JavaScriptCore's, Firefox's.
fn reads_of_nothing(message: &str) -> bool {
    let is_none = |text: &str| text.contains("undefined") || text.contains("null");
    (message.starts_with("Cannot read propert") || message.starts_with("Cannot set propert"))
        && is_none(message)
        || ["undefined is not an object", "null is not an object"]
            .iter()
            .any(|begin| message.starts_with(begin))
        || message.ends_with(" is undefined")
        || message.ends_with(" is null")
}

/// The innermost exception of .NET where the outermost only hands it on: the reader marks its stack. Of Python, the only exception
/// of a group.
fn carried(report: &Report) -> Option<&str> {
    let lines = &report.app_info.first()?.lines;
    match report.source {
        Source::DotNetException => {
            let is_first = report.process.backtraces.first().is_none_or(|stack| stack.is_exception);
            lines.last().filter(|_| !is_first).map(String::as_str)
        }
        Source::PythonTraceback => {
            let is_of_one = lines.first().is_some_and(|line| line.ends_with(" (1 sub-exception)"));
            lines.get(1).filter(|_| is_of_one).map(String::as_str)
        }
        _ => None,
    }
}

/// Whether asyncio logged an exception when the task was thrown away.
fn is_never_retrieved(report: &Report) -> bool {
    report.source == Source::PythonTraceback
        && report.sections.iter().any(|section| section.text.contains(" exception was never retrieved"))
}

/// The language of a report's runtime, by its frames.
fn language(report: &Report) -> &'static str {
    let stacks = report.process.backtraces.iter().map(|stack| &stack.frames);
    let frames = stacks.chain(report.process.threads.iter().map(|thread| &thread.frames)).flatten();
    match frames.filter_map(|frame| frame.language).next() {
        Some(Language::Php) => "PHP",
        Some(Language::Ruby) => "Ruby",
        Some(Language::Beam) => "Erlang's virtual machine",
        Some(Language::OCaml) => "OCaml",
        Some(Language::Haskell) => "Haskell",
        Some(Language::Lua) => "Lua",
        Some(Language::Julia) => "Julia",
        Some(Language::Tcl) => "Tcl",
        Some(Language::Perl) => "Perl",
        _ => "the program",
    }
}

/// What a well-known exception says.
fn meaning(kind: &str) -> Option<&'static str> {
    // Unity's log leaves the namespace out.
    let is_it = |name: &str| name == kind || name.strip_prefix("System.") == Some(kind);
    EXCEPTIONS.iter().find(|(name, _)| is_it(name)).map(|(_, meaning)| *meaning)
}

/// Stacks, and nothing that says why they were taken.
pub(super) fn anything(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source == Source::DebuggerBacktrace
        && (recursion(facts, draft)
            || super::swift::runtime_failure(facts, draft)
            || super::thrown::objc_throw(facts, draft))
    {
        return true;
    }
    let process = &facts.report.process;
    let stacks = process.threads.len() + process.backtraces.len();
    // systemd's journal: the signal stands in `coredumpctl info`, which people often leave out.
    let has_dumped = facts.report.source == Source::DebuggerBacktrace
        && facts.report.sections.iter().any(|section| section.text.contains(" dumped core."));
    if has_dumped {
        draft.lead(
            "The program crashed and dumped core; no signal is named",
            "systemd wrote down its stacks.",
        );
        draft.next("`coredumpctl info PID` names the signal.");
        return true;
    }
    draft.lead(
        "Stacks without an error",
        match stacks {
            1 => "The report has a stack, and names no error.".to_owned(),
            _ => format!("The report has {stacks} stacks, and names no error."),
        },
    );
    if let Some(event) = &facts.report.event {
        draft.evidence(event);
    }
    true
}

/// Where it happened: the innermost function that is neither the system's nor the runtime's.
pub(super) fn place(facts: &Facts<'_>, draft: &mut Draft) {
    if facts.report.exception.is_none() {
        return;
    }
    let Some(suspect) = facts.suspect.as_ref().filter(|suspect| suspect.frame.names().next().is_some())
    else {
        return;
    };
    let place = describe(facts.report, suspect.frame);
    let at = if suspect.position == 0 { "in" } else { "below" };
    draft.place(format!("It happened {at} {place}."));
    if source_of(suspect.frame).is_none()
        && suspect.frame.language.is_none()
        && facts.report.source == Source::Sanitizer
    {
        draft.next("Symbols (-s) give file and line; llvm-symbolizer in the program's path makes the sanitizer print them itself.");
    }
}
