//! Lines that a program, its runtime or Xcode's console shows right before the end, and that are often all that is pasted:
//! `libc++abi: terminating …`, `Fatal error: …`, `malloc: *** error …`, `Thread 1: EXC_BAD_ACCESS (code=1, address=0x10)`.
//!
//! Nearly every other kind of report may quote such a line, so they tell a text's kind only where nothing else does. So may
//! sentences about them: a line has to be the message, not to have it somewhere, where its words are not sure.

mod apple_log;
mod ended_by;
mod exit_code;
mod java_memory;
mod libraries;
mod loader;
mod logged;

use crate::numbers::{fault_named, hex, is_number, signal_in_words};
use crate::words::Words;
use backtrail_core::Avma;
use backtrail_model::{AppInfo, Exception, Field, Report, Termination};
use logged::Logged;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// What Foundation logs of an exception that nobody caught.
pub(crate) const ANNOUNCED: &str = "Terminating app due to uncaught exception '";

/// What Foundation logs, with the stack, of auto layout off the main thread. The process goes on.
pub(crate) const AUTO_LAYOUT: &str = "modifying the autolayout engine from a background thread";

/// Words that stand somewhere in such a line.
const WORDS: [&str; 7] = [
    ANNOUNCED,
    "Main Thread Checker: UI API called on a background thread",
    AUTO_LAYOUT,
    // Foundation's `NSAssertionHandler`.
    "*** Assertion failure in ",
    "malloc: *** error for object ",
    "BUG IN CLIENT OF ",
    "Simultaneous accesses to 0x",
];

/// A line longer than this is none.
const MAX_LINE: usize = 2048;

/// Whether a line is one of these.
pub(crate) fn is(line: &str) -> bool {
    let line = line.trim();
    if !(8..=MAX_LINE).contains(&line.len()) {
        return false;
    }
    static ANY: LazyLock<Words> = LazyLock::new(|| Words::new(&WORDS));
    let is_known = ANY.any_in(line)
        || is_foundations(line)
        || swift(line).is_some()
        || stop(line).is_some()
        || thrown(line).is_some();
    if is_known {
        return true;
    }
    let logged = Logged::read(line);
    libraries::read(&logged).is_some()
        || loader::read(&logged).is_some()
        || apple_log::read(&logged).is_some()
        || java_memory::read(&logged).is_some()
        || ended_by::read(&logged).is_some()
        || exit_code::read(&logged).is_some()
}

/// Whether a line is the reason of an exception that Foundation raised, and nothing else: `*** -[__NSArrayM objectAtIndex:]: index 0 beyond
/// bounds for empty array`.
fn is_foundations(line: &str) -> bool {
    let rest = line.strip_prefix("*** ").unwrap_or_default();
    let Some((method, why)) = rest.split_once("]: ").filter(|_| rest.starts_with(['-', '+'])) else {
        return false;
    };
    let is_method = method.get(1..2) == Some("[") && method.contains(' ') && !method.contains(['`', '"']);
    is_method && !why.trim().is_empty()
}

/// Whether a name is that of one of Foundation's exceptions.
pub(crate) fn is_objcs(name: &str) -> bool {
    name.starts_with("NS")
        && name.ends_with("Exception")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The exception that a line names, where it is one of Objective-C: `'NSX', reason: 'why'` without Foundation's words before it,
/// `Fatal Exception: NSX`, `NSX: why`. The reason may stand in the lines that follow.
pub(crate) fn thrown(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.trim().trim_start_matches(['`', '>', ' ']);
    if let Some((name, reason)) = line.strip_prefix('\'').and_then(|rest| rest.split_once("', reason: '")) {
        return is_objcs(name).then_some((name, Some(reason)));
    }
    let rest =
        ["Fatal Exception: ", "Non-fatal Exception: "].iter().find_map(|begin| line.strip_prefix(begin));
    let (name, reason) = match rest.unwrap_or(line).split_once(": ") {
        Some((name, reason)) => (name, Some(reason)),
        // Pages of reporters have the name on a line of its own, the reason below.
        None => (rest.unwrap_or(line).trim(), None),
    };
    if is_objcs(name) {
        return Some((name, reason));
    }
    reason_alone(line)
}

/// Reasons that stand alone: how they begin, what they have in them, and the exception that is raised with them.
///
/// Sources: the messages of CoreFoundation (`NSObject`, collections), Foundation (key-value observing and coding) and UIKit.
const REASONS: [(&str, &str, &str); 7] = [
    ("-[", "]: unrecognized selector sent to ", "NSInvalidArgumentException"),
    ("+[", "]: unrecognized selector sent to ", "NSInvalidArgumentException"),
    ("*** Collection <", "> was mutated while being enumerated", "NSGenericException"),
    (
        "An instance 0x",
        " was deallocated while key value observers were still registered with it. Current",
        KVO,
    ),
    ("Cannot remove an observer <", " because it is not registered as an observer", "NSRangeException"),
    ("[<", "this class is not key value coding-compliant for the key ", "NSUnknownKeyException"),
    ("Invalid update: invalid number of ", " must be equal to the number of ", KVO),
];
const KVO: &str = "NSInternalInconsistencyException";
/// What those have in them, made ready once.
static INSIDE: LazyLock<[Finder<'static>; 6]> = LazyLock::new(|| {
    let [_, selector, collection, instance, observer, key, update] = REASONS;
    [selector, collection, instance, observer, key, update].map(|(_, inside, _)| Finder::new(inside))
});

/// The exception that a line gives the reason of, and nothing else; a log's words may stand before it. Xcode shows any reason as
/// `Thread 1: "…"`.
fn reason_alone(line: &str) -> Option<(&str, Option<&str>)> {
    // This is asked of every line.
    let is_known = INSIDE.iter().any(|inside| inside.find(line.as_bytes()).is_some());
    let shown = line.strip_prefix("Thread ").and_then(|rest| rest.split_once(": \""));
    let shown = shown.filter(|(number, _)| is_number(number)).map(|(_, reason)| reason.trim_end_matches('"'));
    let message = match shown {
        Some(reason) => reason,
        None if is_known => crate::log_prefix::plain(line).trim(),
        None => return None,
    };
    let class = REASONS
        .iter()
        .find(|(begin, inside, _)| message.starts_with(begin) && message.contains(inside))
        .map(|(_, _, class)| *class);
    let class = class.or_else(|| shown.map(|_| ""))?;
    (!message.is_empty()).then_some((class, Some(message)))
}

/// Whether a line names the class of an exception, and says nothing of why.
pub(crate) fn is_class_alone(line: &str) -> bool {
    thrown(line).is_some_and(|(_, reason)| reason.is_none())
}

/// Whether a line is a library's accusation, which stands by itself where its section's title was cut away.
pub(crate) fn is_own(line: &str) -> bool {
    line.starts_with("BUG IN CLIENT OF ")
}

/// Whether a line is a message of C's or C++'s libraries.
pub(crate) fn is_librarys(line: &str) -> bool {
    (8..=MAX_LINE).contains(&line.len()) && libraries::read(&Logged::read(line)).is_some()
}

/// What Swift's library prints: `App/Main.swift:42: Fatal error: …` and, up to Swift 5.3, `Fatal error: …: file …, line 42`.
/// Xcode puts `Thread 1: ` in front.
pub(crate) fn swift(line: &str) -> Option<&str> {
    const BEGIN: &str = "Fatal error: ";
    let thread = line.strip_prefix("Thread ").and_then(|rest| rest.split_once(": "));
    let bare = thread.filter(|(number, _)| is_number(number)).map_or(line, |(_, rest)| rest);
    if is_swifts_own(bare) {
        return Some(bare);
    }
    const ITS_OWN: [&str; 4] = [
        "Index out of range: file ",
        "Array index is out of range",
        "Can't form Range with upperBound < lowerBound",
        "Dictionary literal contains duplicate keys",
    ];
    // Up to Swift 2.
    if line.starts_with("fatal error: ") && line.contains("Optional value") {
        return Some(line);
    }
    // The line was broken behind the words, which no other language has.
    if line.starts_with(BEGIN) && ITS_OWN.iter().any(|own| line.contains(own)) {
        return Some(line);
    }
    let at = line.find(BEGIN)?;
    let (before, words) = line.split_at_checked(at)?;
    let is_swifts = before.ends_with(": ") && (before.contains(".swift:") || before.starts_with("Thread "))
        || (before.is_empty() && (words.contains(".swift, line ") || words.contains("Optional value")));
    is_swifts.then_some(words)
}

/// Words that nothing else writes, and that tell enough without `Fatal error: ` before them.
///
/// Sources: Swift's `stdlib/public/runtime/Casting.cpp`, `stdlib/public/core/Optional.swift`, and the names that its compiler gives
/// traps (`lib/IRGen`).
fn is_swifts_own(words: &str) -> bool {
    words.starts_with("Could not cast value of type '") && words.contains(" to '")
        || words.starts_with("Unexpectedly found nil while ") && words.contains("Optional value")
        || words.strip_prefix("Swift runtime failure: ").is_some_and(|what| !what.is_empty())
}

/// Xcode's word of why a thread stopped, wherever it stands: `EXC_BAD_ACCESS (code=1, address=0x10)`.
pub(crate) fn stop_within(line: &str) -> Option<&str> {
    // This is asked of every line of a debugger's text.
    let rest = line.get(memchr::memmem::find(line.as_bytes(), b"EXC_")?..)?;
    let inner = rest.get(..=rest.find(')')?)?;
    let is_whole = inner.contains(" (code=") || inner.contains(" (limit=");
    (is_whole && stop(inner).is_some()).then_some(inner)
}

/// How Xcode shows why a thread stopped: `Thread 1: EXC_BAD_ACCESS (code=1, address=0x10)`, `EXC_RESOURCE RESOURCE_TYPE_MEMORY
/// (limit=650 MB, unused=0x0)`, `EXC_RESOURCE -> App[478] exceeded mem limit: ActiveHard 24 MB (fatal)`.
pub(crate) fn stop(line: &str) -> Option<Exception> {
    let thread = line.strip_prefix("Thread ").and_then(|rest| rest.split_once(": "));
    let line = match thread {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    };
    let (kind, rest) = line.split_once(' ')?;
    let rest = rest.trim().trim_end_matches('`');
    let exception = Exception { kind: Some(kind.to_owned()), ..Exception::default() };
    if kind == "EXC_RESOURCE" && (rest.starts_with("RESOURCE_TYPE_") || rest.contains("exceeded mem limit")) {
        let (subtype, message) = match rest.strip_prefix("RESOURCE_TYPE_") {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => ("MEMORY", rest.trim_start_matches("-> ")),
        };
        return Some(Exception {
            subtype: Some(subtype.to_owned()),
            message: Some(message.to_owned()).filter(|message| !message.is_empty()),
            ..exception
        });
    }
    if let Some(exception) = headed(kind, rest) {
        return Some(exception);
    }
    let is_exception = kind.starts_with("EXC_") && kind.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let (_, inside) = rest.split_once('(').filter(|_| is_exception && rest.starts_with("(code="))?;
    let inside = inside.split(')').next().unwrap_or_default();
    let mut raw_codes = Vec::new();
    let mut address = None;
    for part in inside.split(", ") {
        let (name, value) = part.split_once('=')?;
        let number = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        let Some(number) = number else { break };
        if name == "address" {
            address = Some(Avma::new(number));
        }
        raw_codes.push(number);
    }
    let codes = Some(inside.to_owned());
    Some(Exception { codes, raw_codes, address: address.filter(|_| kind == "EXC_BAD_ACCESS"), ..exception })
}

/// How pages of Crashlytics, Bugsnag, App Center and their kin head a crash: `EXC_BAD_ACCESS KERN_INVALID_ADDRESS 0x0000000000000010`,
/// `EXC_BREAKPOINT 0x00000001a1b2c3d4`, `SIGABRT: ABORT`, `SIGSEGV: SEGV_MAPERR at 0x10`, `EXC_BAD_ACCESS: Attempted to dereference null
/// pointer at 0x10.`
fn headed(kind: &str, rest: &str) -> Option<Exception> {
    let is_code = |word: &str| {
        word.len() >= 4 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let name = kind.strip_suffix(':').unwrap_or(kind);
    let signal = fault_named(name);
    if signal.is_none() && !(name.starts_with("EXC_") && is_code(name)) {
        return None;
    }
    let rest = rest.trim_end_matches('.');
    // Pages have a colon there; without it backtrail writes so itself.
    if signal.is_some() && !kind.ends_with(':') && rest.contains(" at 0x") {
        return None;
    }
    let (what, address) = match rest.rsplit_once(" at 0x") {
        Some((what, digits)) => (what, Some(format!("0x{digits}"))),
        None => match rest.rsplit_once(' ').unwrap_or(("", rest)) {
            (what, digits) if digits.starts_with("0x") && digits.len() >= 10 => {
                (what, Some(digits.to_owned()))
            }
            _ => (rest, None),
        },
    };
    if let Some(address) = &address {
        hex(address)?;
    }
    // Of a signal its code alone is a whole head, behind a colon.
    let is_said = is_code(what) && (address.is_some() || kind.ends_with(':'))
        || what.is_empty() && address.is_some()
        || what.starts_with("Attempted to dereference ") && address.is_some()
        || kind.ends_with(':') && signal.is_some() && signal_in_words(what) == signal;
    if !is_said {
        return None;
    }
    let is_access = matches!(signal.unwrap_or(name), "EXC_BAD_ACCESS" | "SIGSEGV" | "SIGBUS")
        || what.starts_with("KERN_")
        || what.starts_with("EXC_");
    let accessed = address.as_deref().and_then(hex).filter(|_| is_access && !what.is_empty());
    let codes = match (what, address) {
        ("", Some(address)) => address,
        (what, Some(address)) => format!("{what} at {address}"),
        (what, None) => what.to_owned(),
    };
    let mut exception = Exception { codes: Some(codes), ..Exception::default() };
    match signal {
        Some(signal) => exception.signal = Some(signal.to_owned()),
        None => exception.kind = Some(name.to_owned()),
    }
    exception.address = accessed.map(Avma::new);
    Some(exception)
}

/// A message of Swift's without the thread that Xcode puts in front.
fn without_thread(line: &str) -> &str {
    swift(line).filter(|_| line.starts_with("Thread ")).unwrap_or(line)
}

/// Puts a line into the report.
pub(crate) fn add(report: &mut Report, line: &str) {
    let line = line.trim();
    let logged = Logged::read(line);
    if let Some(exception) = stop(line) {
        report.exception.get_or_insert(exception);
    } else if let Some(message) = libraries::read(&logged) {
        let image = message.by.map(str::to_owned);
        report.app_info.push(AppInfo { image, lines: vec![message.text.to_owned()] });
        name_process(report, message.program, None);
    } else if let Some(message) = loader::read(&logged) {
        if let Some(name) = loader::readable_symbol(message.text) {
            report.fields.push(Field { key: loader::SYMBOL.to_owned(), value: name });
        }
        report
            .app_info
            .push(AppInfo { image: Some(loader::LOADER.to_owned()), lines: vec![message.text.to_owned()] });
        name_process(report, message.program, None);
    } else if let Some(told) = apple_log::read(&logged) {
        add_apple_log(report, told);
    } else if let Some(message) = java_memory::read(&logged) {
        report
            .app_info
            .push(AppInfo { image: Some(java_memory::JAVA.to_owned()), lines: vec![message.to_owned()] });
    } else if let Some(exit) = exit_code::read(&logged) {
        let exception = report.exception.get_or_insert_with(Exception::default);
        if exception.signal.is_none() && exception.kind.is_none() {
            exception.kind = Some("exit code".to_owned());
            exception.signal = exit.signal.map(str::to_owned);
            exception.codes = Some(code_as_printed(exit.code));
            exception.message = Some(line.to_owned());
        }
        name_process(report, exit.program, None);
    } else if let Some(ended) = ended_by::read(&logged) {
        let exception = report.exception.get_or_insert_with(Exception::default);
        exception.signal.get_or_insert_with(|| ended.signal.to_owned());
        name_process(report, ended.program, ended.pid);
        return;
    } else {
        report
            .app_info
            .push(AppInfo { image: None, lines: vec![without_thread(line.trim_matches('`')).to_owned()] });
    }
    if let Some((program, pid)) = logged.program {
        name_process(report, Some(program), Some(pid));
    }
}

fn add_apple_log(report: &mut Report, told: apple_log::Told<'_>) {
    use apple_log::Told;
    match told {
        Told::Limit { resource, words, program, pid } => {
            report.exception.get_or_insert_with(|| Exception {
                kind: Some("EXC_RESOURCE".to_owned()),
                subtype: Some(resource.to_owned()),
                message: Some(words.to_owned()),
                ..Exception::default()
            });
            name_process(report, program, pid);
        }
        Told::Jetsam { code, words, program, pid } => {
            report.termination.get_or_insert_with(|| Termination {
                namespace: Some("JETSAM".to_owned()),
                code: Some(code),
                reason: Some(words.to_owned()),
                ..Termination::default()
            });
            name_process(report, program, pid);
        }
        Told::Guard { code, subcode, words, program, pid } => {
            report.exception.get_or_insert_with(|| Exception {
                kind: Some("EXC_GUARD".to_owned()),
                raw_codes: vec![code, subcode],
                codes: Some(format!("{code:#x}, {subcode:#x}")),
                // The kernel logs them whether or not the process is ended for it.
                note: Some("the kernel's log does not tell whether the process was ended for it".to_owned()),
                ..Exception::default()
            });
            report.app_info.push(AppInfo { image: None, lines: vec![words.to_owned()] });
            name_process(report, program, pid);
        }
        Told::Lock { words, program, pid } => {
            let mut lines = words.lines();
            report.termination.get_or_insert_with(|| Termination {
                namespace: Some("RUNNINGBOARD".to_owned()),
                code: Some(0xdead_10cc),
                reason: lines.next().map(str::to_owned),
                details: lines.map(str::to_owned).collect(),
                ..Termination::default()
            });
            name_process(report, program, pid);
        }
        Told::Crash { exception, program } => {
            report.exception.get_or_insert(exception);
            name_process(report, program, None);
        }
        Told::Privacy { words } => {
            report.termination.get_or_insert_with(|| Termination {
                namespace: Some("TCC".to_owned()),
                reason: Some(words.to_owned()),
                ..Termination::default()
            });
        }
        Told::Key { words } => match &mut report.termination {
            Some(termination) => termination.details.push(words.to_owned()),
            None => report.app_info.push(AppInfo { image: None, lines: vec![words.to_owned()] }),
        },
    }
}

/// Shells' codes as decimals, Windows' as hexadecimal digits.
fn code_as_printed(code: u32) -> String {
    if code < 256 { code.to_string() } else { format!("{code:#x}") }
}

/// A message of Metal's validation has no more lines than these.
const MAX_METAL_LINES: usize = 8;

/// A process that was suspended with locked files has no more of them told than these.
const MAX_FILES: usize = 16;

/// Adds the second line of what GNU's library prints of an exception, which has its text, to the first one. Says whether it is that.
pub(crate) fn goes_on(said: Option<&mut String>, line: &str) -> bool {
    let Some(said) = said else { return false };
    // Metal's: a title, and a line for each thing that is wrong.
    if libraries::is_open(said) && said.lines().count() < MAX_METAL_LINES && !line.trim().is_empty() {
        said.push('\n');
        said.push_str(line.trim());
        return true;
    }
    // The files that a process held when it was suspended.
    if apple_log::names_files(said) && line.trim_start().starts_with('/') && said.lines().count() < MAX_FILES
    {
        said.push('\n');
        said.push_str(line.trim());
        return true;
    }
    if said.contains('\n') || !said.contains("terminate called after throwing an instance of ") {
        return false;
    }
    let text = Logged::read(line).text;
    let is_text = text.starts_with("what(): ");
    if is_text {
        said.push('\n');
        said.push_str(text);
    }
    is_text
}

fn name_process(report: &mut Report, name: Option<&str>, pid: Option<u64>) {
    let process = &mut report.process;
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        let name = name.rsplit('/').next().unwrap_or(name);
        process.name.get_or_insert_with(|| name.to_owned());
    }
    process.pid = process.pid.or(pid);
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn lines_that_are_all_there_is() {
        let said = |text: &str| {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            report.app_info.iter().flat_map(|info| info.lines.clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            said("It ends so:\nApp/Main.swift:42: Fatal error: Index out of range\nhelp\n"),
            ["App/Main.swift:42: Fatal error: Index out of range"]
        );
        assert_eq!(
            said("app(1,0x2) malloc: *** error for object 0x7f8: pointer being freed was not allocated\n")
                .len(),
            1
        );
        let report = parse(b"Thread 1: EXC_BAD_ACCESS (code=1, address=0x10)\n", &Limits::default()).unwrap();
        let exception = report.exception.unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.raw_codes.as_slice()),
            (Some("EXC_BAD_ACCESS"), &[1, 16][..])
        );
        for text in ["PHP Fatal error: x\n", "fatal error: all goroutines are asleep\n", "Thread 1: waits\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_pages_head_a_crash_with() {
        let report =
            parse(b"words\nEXC_BAD_ACCESS KERN_INVALID_ADDRESS 0x0000000000000010\n", &Limits::default())
                .unwrap();
        let exception = report.exception.unwrap();
        assert_eq!(exception.kind.as_deref(), Some("EXC_BAD_ACCESS"));
        assert_eq!(exception.address.map(backtrail_core::Avma::get), Some(16));
        let report = parse(b"SIGABRT ABORT 0x00000001e4b2c3d4\n", &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().signal.as_deref(), Some("SIGABRT"));
        for text in
            ["EXC_BAD_ACCESS is raised 0x00000010\n", "EXC_BAD_ACCESS 0x1\n", "SIGSEGV means 0x0000000010\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    /// They are quoted by other kinds, which say more.
    #[test]
    fn other_kinds_come_first() {
        let text = b"terminate called after throwing an instance of 'E'\n#0  0x0001 in f (x=1) at a.c:3\n#1  0x0002 in main () at a.c:9\n";
        let report = parse(text, &Limits::default()).unwrap();
        assert_eq!(report.source, backtrail_model::Source::DebuggerBacktrace);
    }
}
