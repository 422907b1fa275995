//! Go: panics, fatal errors, dumps of all goroutines, and the race detector's reports.
//!
//! A frame is two lines: the function with its arguments' words, and below it file, line and the distance from the
//! function's start. `created by` is no frame of that stack, and stays a fact of the goroutine.

use super::log::{Log, Reader, between, drive, file_name, hex, named, place, word};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::Avma;
use backtrail_model::{Exception, Field, Language, Report, Source, Thread};
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// What the runtime says where it cannot go on, behind `fatal error: `. Compilers begin lines so, too.
const FATAL: [&str; 13] = [
    "all goroutines are asleep - deadlock!",
    "no goroutines (main called runtime.Goexit) - deadlock!",
    "unexpected signal during runtime execution",
    "concurrent map ",
    "stack overflow",
    "out of memory",
    "runtime: out of memory",
    "runtime: cannot allocate memory",
    "sync: ",
    "checkptr: ",
    "found bad pointer in Go heap",
    "fault",
    "malloc deadlock",
];

/// What the runtime says behind `runtime error: `.
const RUNTIME_ERRORS: [&str; 9] = [
    "invalid memory address or nil pointer dereference",
    "index out of range",
    "slice bounds out of range",
    "integer divide by zero",
    "integer overflow",
    "hash of unhashable type ",
    "comparing uncomparable type ",
    "makeslice: ",
    "negative shift amount",
];

/// Whether a line is one of the runtime's, of which no stack may follow.
pub(super) fn is_fatal(line: &str) -> bool {
    let said = line.strip_prefix("fatal error: ");
    said.is_some_and(|said| {
        FATAL.iter().any(|known| match known.ends_with(' ') {
            true => said.starts_with(known),
            false => said.split(" (").next() == Some(known),
        })
    })
}

/// What programs print that recover from a panic and write its stack down: `…: runtime error: index out of range: goroutine 7
/// [running]:`, or without the stack in that line. The first part is what the runtime said, the second the stack's head.
pub(super) fn recovered(line: &str) -> Option<(&str, Option<&str>)> {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("runtime error: "));
    let said = line.get(MARK.find(line.as_bytes())?..)?;
    let (said, head) = match said.find(": goroutine ").and_then(|at| said.split_at_checked(at)) {
        Some((said, head)) => (said, Some(head.trim_start_matches([':', ' ']))),
        None => (said, None),
    };
    let is_known = RUNTIME_ERRORS.iter().any(|known| said.contains(known));
    is_known.then_some((said, head.filter(|head| Head::read(head).is_some())))
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::GoTrace, limits);
    let mut reader = Go { log, open: None, created: None, in_race: false };
    drive(&mut reader, input, start);
    reader.close();
    let mut report = reader.log.finish();
    if report.process.threads.is_empty() && report.exception.is_none() {
        return None;
    }
    // The runtime prints the goroutine that panicked first.
    let has_failed = report.exception.is_some();
    let crashed = report.process.threads.iter().position(|thread| !thread.frames.is_empty());
    if let Some(at) = crashed.filter(|_| has_failed) {
        report.process.crashed_thread = Some(at);
        if let Some(thread) = report.process.threads.get_mut(at) {
            thread.crashed = true;
        }
    }
    Some(report)
}

struct Go<'l> {
    log: Log<'l>,
    /// A function whose file stands in the next line.
    open: Option<(String, std::ops::Range<usize>)>,
    /// The same of the function that made the goroutine.
    created: Option<String>,
    in_race: bool,
}

impl<'l> Reader<'l> for Go<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        if self.created.is_some() && text.starts_with(char::is_whitespace) && self.created_at(trimmed) {
            return true;
        }
        if let Some((function, span)) = self.open.take() {
            if text.starts_with(char::is_whitespace)
                && let Some(at) = source_line(trimmed)
            {
                if !self.frame(&function, span, &at) {
                    self.log.keep(&function);
                }
                return true;
            }
            self.log.keep(&function);
        }
        self.close();
        if trimmed.is_empty() {
            if !self.in_race {
                self.log.end_stack();
            }
            return false;
        }
        let recovered = trimmed.ends_with("]:").then(|| recovered(trimmed)).flatten();
        if let Some((said, Some(head))) = recovered
            && let Some(head) = Head::read(head)
        {
            self.raise("panic", said, None);
            head.begin(&mut self.log);
            return false;
        }
        if let Some(head) = Head::read(trimmed) {
            let has_all = head.begin(&mut self.log);
            return has_all;
        }
        if trimmed == "WARNING: DATA RACE" {
            self.in_race = true;
            self.raise("data race", trimmed, None);
            return false;
        }
        if self.in_race && trimmed.ends_with(':') && text.starts_with(char::is_alphabetic) {
            return self.race_stack(trimmed);
        }
        if let Some(rest) = trimmed.strip_prefix("created by ").filter(|_| self.log.is_in_stack()) {
            self.created = Some(rest.to_owned());
            return true;
        }
        if self.log.is_in_stack() {
            if trimmed.starts_with("...") && trimmed.ends_with("frames elided...") {
                return self.log.annotate(trimmed);
            }
            if is_function(trimmed) {
                self.open = Some((trimmed.to_owned(), line.span.clone()));
                return true;
            }
            if !trimmed.starts_with('[') && !self.in_race && !trimmed.starts_with("goroutine ") {
                self.log.end_stack();
            }
        }
        self.message(trimmed);
        false
    }
}

impl Go<'_> {
    fn raise(&mut self, kind: &str, message: &str, signal: Option<&str>) {
        let exception = self.log.report.exception.get_or_insert_with(Exception::default);
        if exception.kind.is_none() {
            exception.kind = Some(kind.to_owned());
            exception.message = Some(message.to_owned());
        }
        exception.signal = exception.signal.take().or(signal.map(str::to_owned));
    }

    /// What the runtime says before the stacks.
    fn message(&mut self, line: &str) {
        if let Some((said, _)) = recovered(line) {
            self.raise("panic", said, None);
        } else if let Some(rest) = line.strip_prefix("panic: ") {
            self.raise("panic", rest, None);
        } else if let Some(rest) = line.strip_prefix("fatal error: ") {
            self.raise("fatal error", rest, None);
        } else if let Some(rest) = line.strip_prefix("[signal ") {
            let (name, _) = word(rest);
            let name = name.trim_end_matches(':');
            let address = between(rest, "addr=", " ").and_then(hex);
            self.raise("panic", line, Some(name));
            if let Some(exception) = &mut self.log.report.exception {
                exception.codes = Some(rest.trim_end_matches(']').to_owned());
                exception.address = address.map(Avma::new);
            }
        } else if let Some((name, what)) = line.split_once(": ")
            && name.starts_with("SIG")
            && name.bytes().all(|byte| byte.is_ascii_uppercase())
        {
            self.raise("signal", what, Some(name));
        }
    }

    fn frame(&mut self, function: &str, span: std::ops::Range<usize>, at: &SourceLine<'_>) -> bool {
        let index = self.log.next_index();
        let (name, arguments) = split_call(function);
        let mut frame = named(index, name, place(at.place));
        frame.language = Some(Language::Go);
        frame.span = Some(span);
        if let Some(symbol) = &mut frame.reported {
            symbol.offset = at.offset;
        }
        frame.annotations.extend(at.rest.map(str::to_owned));
        if !self.log.push(frame) {
            self.log.keep(at.place);
            return false;
        }
        // Words of arguments are the values of registers and of the stack: they stay in the log.
        arguments.is_none_or(|arguments| matches!(arguments, "()" | "(...)"))
    }

    fn created_at(&mut self, line: &str) -> bool {
        let Some(at) = source_line(line) else { return false };
        let Some(created) = self.created.take() else { return false };
        let offset = at.offset.map(|offset| format!(" +{offset:#x}")).unwrap_or_default();
        let value = format!("{created} at {}{offset}", at.place);
        match self.log.thread() {
            Some(thread) => thread.fields.push(Field { key: "created by".to_owned(), value }),
            None => self.log.keep(&format!("created by {value}")),
        }
        true
    }

    /// Ends what waits for its second line.
    fn close(&mut self) {
        if let Some((function, _)) = self.open.take() {
            self.log.keep(&function);
        }
        if let Some(created) = self.created.take() {
            self.log.keep(&format!("created by {created}"));
        }
    }

    /// A stack of the race detector, by its title.
    fn race_stack(&mut self, line: &str) -> bool {
        let title = line.trim_end_matches(':');
        let is_access = title.contains(" by ") && (title.contains(" at 0x"));
        if is_access && self.log.report.process.threads.is_empty() {
            let number = title.rsplit_once("by goroutine ").and_then(|(_, id)| id.parse().ok()).unwrap_or(1);
            if let Some(exception) = &mut self.log.report.exception {
                exception.subtype = Some(title.to_owned());
                let number = title.split_once(" at 0x").map(|(_, rest)| word(rest).0);
                exception.address =
                    number.and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(Avma::new);
            }
            return self.log.begin_thread(Thread { number, ..Thread::default() });
        }
        self.log.begin_backtrace(title, false)
    }
}

/// `goroutine 7 [chan receive, 5 minutes, locked to thread]:`.
pub(super) struct Head<'t> {
    number: u64,
    state: &'t str,
    /// `gp=0xc0000061c0 m=0 mp=0x55`, in what crashes print since Go 1.23.
    facts: &'t str,
    /// The goroutine that made this one, where the debugger shows ancestors.
    originating: Option<&'t str>,
}

impl<'t> Head<'t> {
    pub(super) fn read(line: &'t str) -> Option<Self> {
        if let Some(rest) = line.strip_prefix("[originating from goroutine ") {
            let number = rest.strip_suffix("]:")?;
            return Some(Self {
                number: number.parse().ok()?,
                state: "",
                facts: "",
                originating: Some(line),
            });
        }
        let (number, rest) = word(line.strip_prefix("goroutine ")?);
        // Some put letters in its place before they publish it.
        let is_masked =
            || !number.is_empty() && number.bytes().all(|byte| matches!(byte, b'X' | b'x' | b'N' | b'?'));
        let number = number.parse().ok().or_else(|| is_masked().then_some(0))?;
        let (facts, state) = rest.split_once('[')?;
        let state = state.strip_suffix(':')?.strip_suffix(']')?;
        Some(Self { number, state, facts: facts.trim(), originating: None })
    }

    fn begin(&self, log: &mut Log<'_>) -> bool {
        if let Some(line) = self.originating {
            let title = line.trim_matches(['[', ']', ':']);
            return log.begin_backtrace(title, false);
        }
        let mut parts = self.state.split(", ");
        let mut thread = Thread { number: self.number, ..Thread::default() };
        thread.state = parts.next().map(str::to_owned);
        for part in parts {
            let key = if part.ends_with("minutes") { "waits for" } else { "" };
            thread.fields.push(Field { key: key.to_owned(), value: part.to_owned() });
        }
        if !self.facts.is_empty() {
            thread.fields.push(Field { key: String::new(), value: self.facts.to_owned() });
        }
        log.begin_thread(thread)
    }
}

struct SourceLine<'t> {
    place: &'t str,
    offset: Option<u64>,
    rest: Option<&'t str>,
}

/// `/src/main.go:9 +0x44 fp=0xc000 sp=0xc000 pc=0x45`.
fn source_line(line: &str) -> Option<SourceLine<'_>> {
    let (at, rest) = match line.split_once(" +0x") {
        Some((at, rest)) => (at, Some(rest)),
        None => (line, None),
    };
    let found = place(at).filter(|found| found.column.is_none())?;
    let name = file_name(found.file);
    // Files of Go, C and assembly; `_cgo_gotypes.go`, `<autogenerated>`, `??`.
    if !(name.contains('.') || name.starts_with('<') || name.starts_with('?')) {
        return None;
    }
    let (offset, rest) = rest.map_or(("", ""), word);
    let rest = Some(rest).filter(|rest| !rest.is_empty());
    let offset = Some(offset).filter(|offset| !offset.is_empty());
    Some(SourceLine {
        place: at,
        offset: offset.and_then(|digits| u64::from_str_radix(digits, 16).ok()),
        rest,
    })
}

/// Whether a line is a call: `main.(*T).f(0x1, {0x2, 0x3})`, `main.f[...](...)`, the race detector's `main.f()`.
fn is_function(line: &str) -> bool {
    let Some(name) = line.split('(').next() else { return false };
    let has_end = line.ends_with(')');
    has_end && !name.contains(": ") && (name.contains('.') || !name.contains(' ') && !name.is_empty())
}

/// The function, and its arguments in their parentheses.
fn split_call(call: &str) -> (&str, Option<&str>) {
    let mut depth = 0_usize;
    let opening = call.bytes().enumerate().rev().find(|(_, byte)| {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    match opening.and_then(|(at, _)| call.split_at_checked(at)).filter(|(name, _)| !name.is_empty()) {
        Some((name, arguments)) => (name, Some(arguments)),
        None => (call, None),
    }
}

/// Whether a frame is a function of the package or of another; used by tests.
#[cfg(test)]
fn name_of(frame: &backtrail_model::Frame) -> &str {
    frame.reported.as_ref().map(|symbol| symbol.name.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn report(text: &str) -> Report {
        parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn a_panic_with_two_goroutines() {
        let report = report(
            "panic: runtime error: invalid memory address or nil pointer dereference\n\
             [signal SIGSEGV: segmentation violation code=0x1 addr=0x10 pc=0x45]\n\n\
             goroutine 1 [running]:\nmain.(*T).f(0x0, {0x1, 0x2})\n\t/src/main.go:9 +0x44\nmain.main()\n\t/src/main.go:3 +0x1d\n\n\
             goroutine 7 [chan receive, 5 minutes, locked to thread]:\nmain.wait(...)\n\t/src/w.go:4\n\
             created by main.main in goroutine 1\n\t/src/main.go:8 +0xa4\nexit status 2\n",
        );
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.signal.as_deref()),
            (Some("panic"), Some("SIGSEGV"))
        );
        assert_eq!(exception.address, Some(Avma::new(0x10)));
        let threads = &report.process.threads;
        assert_eq!(
            threads.iter().map(|it| (it.number, it.frames.len(), it.crashed)).collect::<Vec<_>>(),
            [(1, 2, true), (7, 1, false)]
        );
        assert_eq!(name_of(&threads[0].frames[0]), "main.(*T).f");
        assert!(report.sections[0].text.contains("main.(*T).f(0x0, {0x1, 0x2})"));
        assert_eq!(threads[0].frames[0].reported.as_ref().unwrap().offset, Some(0x44));
        assert_eq!(threads[1].state.as_deref(), Some("chan receive"));
        assert_eq!(threads[1].fields[2].value, "main.main in goroutine 1 at /src/main.go:8 +0xa4");
    }

    #[test]
    fn a_data_race() {
        let report = report(
            "==================\nWARNING: DATA RACE\nWrite at 0x00c00001c0a8 by goroutine 7:\n  main.main.func1()\n      /tmp/x.go:9 +0x44\n\n\
             Previous write at 0x00c00001c0a8 by main goroutine:\n  main.main()\n      /tmp/x.go:12 +0xc\n\n\
             Goroutine 7 (running) created at:\n  main.main()\n      /tmp/x.go:8 +0xa4\n==================\n",
        );
        assert_eq!(report.process.threads[0].number, 7);
        let titles: Vec<_> =
            report.process.backtraces.iter().map(|it| (it.title.as_str(), it.frames.len())).collect();
        assert_eq!(
            titles,
            [
                ("Previous write at 0x00c00001c0a8 by main goroutine", 1),
                ("Goroutine 7 (running) created at", 1)
            ]
        );
    }
}
