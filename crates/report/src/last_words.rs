//! Lines that a program, its runtime or Xcode's console shows right before the end, and that are often all that is pasted:
//! `libc++abi: terminating …`, `Fatal error: …`, `malloc: *** error …`, `Thread 1: EXC_BAD_ACCESS (code=1, address=0x10)`.
//!
//! Nearly every other kind of report may quote such a line, so they tell a text's kind only where nothing else does.

use backtrail_core::Avma;
use backtrail_model::{Exception, Report};

/// What Foundation logs of an exception that nobody caught.
pub(crate) const ANNOUNCED: &str = "Terminating app due to uncaught exception '";

/// Words that stand somewhere in such a line.
const WORDS: [&str; 8] = [
    ANNOUNCED,
    "Main Thread Checker: UI API called on a background thread",
    "libc++abi: terminating ",
    "libc++abi.dylib: terminating ",
    "terminate called after throwing an instance of ",
    "malloc: *** error for object ",
    "BUG IN CLIENT OF ",
    "Simultaneous accesses to 0x",
];

/// A line longer than this is none.
const MAX_LINE: usize = 2048;

/// Whether a line is one of these.
pub(crate) fn is(line: &str) -> bool {
    let line = line.trim();
    (8..=MAX_LINE).contains(&line.len())
        && (WORDS.iter().any(|words| line.contains(words)) || swift(line).is_some() || stop(line).is_some())
}

/// What Swift's library prints: `App/Main.swift:42: Fatal error: …` and, up to Swift 5.3, `Fatal error: …: file …, line 42`.
/// Xcode puts `Thread 1: ` in front.
pub(crate) fn swift(line: &str) -> Option<&str> {
    const BEGIN: &str = "Fatal error: ";
    let at = line.find(BEGIN)?;
    let (before, words) = line.split_at_checked(at)?;
    let is_swifts = before.ends_with(": ") && (before.contains(".swift:") || before.starts_with("Thread "))
        || (before.is_empty() && (words.contains(".swift, line ") || words.contains("Optional value")));
    is_swifts.then_some(words)
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

/// A message of Swift's without the thread that Xcode puts in front.
fn without_thread(line: &str) -> &str {
    swift(line).filter(|_| line.starts_with("Thread ")).unwrap_or(line)
}

/// Puts a line into the report.
pub(crate) fn add(report: &mut Report, line: &str) {
    let line = line.trim();
    match stop(line) {
        Some(exception) if report.exception.is_none() => report.exception = Some(exception),
        _ => report
            .app_info
            .push(backtrail_model::AppInfo { image: None, lines: vec![without_thread(line).to_owned()] }),
    }
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

    /// They are quoted by other kinds, which say more.
    #[test]
    fn other_kinds_come_first() {
        let text = b"terminate called after throwing an instance of 'E'\n#0  0x0001 in f (x=1) at a.c:3\n#1  0x0002 in main () at a.c:9\n";
        let report = parse(text, &Limits::default()).unwrap();
        assert_eq!(report.source, backtrail_model::Source::DebuggerBacktrace);
    }
}
