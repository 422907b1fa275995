//! Rust: panics with their backtraces in either form, and errors that `main` gave back with their causes.

use super::log::{Log, Reader, between, drive, hex, named, place, word};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{AppInfo, Exception, Field, Frame, Report, Source, Thread};

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::RustPanic, limits);
    let mut reader = Panic { log, part: Part::Before, causes: Vec::new() };
    drive(&mut reader, input, start);
    let Panic { mut log, causes, .. } = reader;
    let Some(exception) = &mut log.report.exception else { return None };
    let said = exception.message.clone().unwrap_or_default();
    let mut lines = vec![said];
    lines.extend(causes.iter().map(|cause| format!("caused by: {cause}")));
    log.report.app_info.push(AppInfo { image: None, lines });
    let mut report = log.finish();
    report.process.crashed_thread = (!report.process.threads.is_empty()).then_some(0);
    Some(report)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    /// Lines of the message.
    Message,
    /// Lines of a message in quotes, behind which the place stands.
    Quoted,
    Causes,
    Stack,
    After,
}

struct Panic<'l> {
    log: Log<'l>,
    part: Part,
    causes: Vec<String>,
}

/// What `thread 'main' (12) panicked at src/main.rs:2:5:` says.
pub(super) struct Head<'t> {
    thread: &'t str,
    id: Option<u64>,
    place: &'t str,
    message: Option<&'t str>,
}

impl<'t> Head<'t> {
    pub(super) fn read(line: &'t str) -> Option<Self> {
        let rest = line.get(line.find("thread '")?..)?.strip_prefix("thread '")?;
        let (thread, rest) = rest.split_once('\'')?;
        let (before, rest) = rest.split_once("panicked at ")?;
        let id = between(before, "(", ")").and_then(|id| id.parse().ok());
        // Before Rust 1.73: `panicked at 'message', src/main.rs:2:5`.
        match rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
            Some((message, place)) => Some(Self { thread, id, place, message: Some(message) }),
            None if rest.starts_with('\'') => {
                Some(Self { thread, id, place: "", message: rest.strip_prefix('\'') })
            }
            None => Some(Self { thread, id, place: rest.trim_end_matches(':'), message: None }),
        }
    }
}

/// A row that a runtime of WebAssembly prints behind the panic: `at shop::price::h12ab (<module>[9542]:0x9c5e94)`.
fn wasm_row(line: &str) -> Option<(&str, &str)> {
    let (name, at) = line.strip_prefix("at ")?.rsplit_once(" (")?;
    at.starts_with("<module>[").then(|| Some((name, at.strip_suffix(')')?)))?
}

/// What Rust's library says in a panic, where programs print the message alone.
pub(super) fn is_message(line: &str) -> bool {
    line.starts_with("called `Result::unwrap()` on an `Err` value: ")
        || line.starts_with("called `Result::unwrap_err()` on an `Ok` value: ")
        || line.starts_with("called `Option::unwrap()` on a `None` value")
}

/// Whether a line begins a panic.
pub(super) fn is_head(line: &str) -> bool {
    line.starts_with("thread '") && Head::read(line).is_some()
}

/// `0: rust_begin_unwind`: the innermost row of a panic's stack, where the words before it were left out.
pub(super) fn is_first_row(line: &str) -> bool {
    line.strip_prefix("0: ").is_some_and(|name| name.ends_with("rust_begin_unwind"))
}

/// Lines by which a text is told to be of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    line.contains("thread '") && Head::read(line).is_some() || line == "The application panicked (crashed)."
}

impl<'l> Reader<'l> for Panic<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        if let Some(head) = Head::read(trimmed) {
            self.head(&head);
            return false;
        }
        if trimmed == "The application panicked (crashed)." {
            self.raise("");
            return false;
        }
        let message = trimmed.trim_start_matches(['│', ' ']);
        if is_message(message) && self.log.report.exception.is_none() {
            self.raise(message);
            return false;
        }
        if let Some(rest) = trimmed.strip_prefix("Message: ") {
            self.set_message(rest.trim());
        }
        if let Some(rest) = trimmed.strip_prefix("Error: ").filter(|_| self.log.report.exception.is_none()) {
            self.raise(rest);
            if let Some(exception) = &mut self.log.report.exception {
                exception.kind = Some("error".to_owned());
            }
            self.part = Part::After;
            return false;
        }
        if self.log.report.exception.is_none() {
            if !is_first_row(trimmed) {
                return false;
            }
            self.raise("");
            self.log.begin_thread(Thread { crashed: true, ..Thread::default() });
            self.part = Part::Stack;
        }
        self.after_head(trimmed, text, line)
    }
}

impl Panic<'_> {
    fn raise(&mut self, message: &str) {
        let message = Some(message.to_owned()).filter(|message| !message.is_empty());
        let exception = Exception { kind: Some("panic".to_owned()), message, ..Exception::default() };
        self.log.report.exception.get_or_insert(exception);
    }

    fn set_message(&mut self, message: &str) {
        if let Some(exception) = self.log.report.exception.as_mut().filter(|it| it.message.is_none()) {
            exception.message = Some(message.to_owned());
        }
    }

    fn head(&mut self, head: &Head<'_>) {
        if self.log.report.exception.is_some() {
            // A panic while panicking: the first is what happened.
            self.part = Part::After;
            return;
        }
        self.raise(head.message.unwrap_or_default());
        let at = head.place.to_owned();
        self.log.report.fields.push(Field { key: "place".to_owned(), value: at });
        let name = Some(head.thread.to_owned());
        self.log.begin_thread(Thread { number: 0, id: head.id, name, crashed: true, ..Thread::default() });
        // Before 1.73 a message of several lines ended with a quote and the place.
        let is_open = head.message.is_some() && head.place.is_empty();
        self.part = match () {
            () if is_open => Part::Quoted,
            () if head.message.is_some() => Part::After,
            () => Part::Message,
        };
    }

    fn after_head(&mut self, trimmed: &str, text: &str, line: &Line<'_>) -> bool {
        let ends_message = trimmed.starts_with("note: ") || trimmed.eq_ignore_ascii_case("stack backtrace:");
        if trimmed.eq_ignore_ascii_case("stack backtrace:") || trimmed.contains(" BACKTRACE ") {
            self.part = Part::Stack;
            if self.log.report.process.threads.is_empty() {
                self.log.begin_thread(Thread { crashed: true, ..Thread::default() });
            }
            return false;
        }
        if trimmed == "Caused by:" {
            self.part = Part::Causes;
            return false;
        }
        if let Some((name, at)) = wasm_row(trimmed) {
            self.part = Part::After;
            let index = self.log.next_index();
            let frame = Frame { span: Some(line.span.clone()), ..named(index, name, None) };
            return self.log.push(frame) && self.log.annotate(at);
        }
        match self.part {
            Part::Message | Part::Quoted if ends_message => self.part = Part::After,
            Part::Message | Part::Quoted => {
                let ends = text.trim_end().rsplit_once("', ").filter(|(_, at)| place(at).is_some());
                let mut text = text;
                if self.part == Part::Quoted
                    && let Some((last, at)) = ends
                    && let Some(field) = self.log.report.fields.iter_mut().find(|field| field.key == "place")
                {
                    at.clone_into(&mut field.value);
                    text = last;
                    self.part = Part::After;
                }
                if let Some(exception) = &mut self.log.report.exception {
                    let message = exception.message.get_or_insert_with(String::new);
                    if message.len() < MAX_MESSAGE {
                        if !message.is_empty() {
                            message.push('\n');
                        }
                        message.push_str(text.trim_end());
                    }
                }
            }
            Part::Causes if text.starts_with(char::is_whitespace) && !trimmed.is_empty() => {
                let cause = trimmed.split_once(": ").filter(|(number, _)| number.parse::<u32>().is_ok());
                if self.causes.len() < 100 {
                    self.causes.push(cause.map_or(trimmed, |(_, cause)| cause).to_owned());
                }
            }
            Part::Causes if trimmed.is_empty() => self.part = Part::After,
            Part::Stack => return self.row(trimmed, text, line),
            _ => {}
        }
        false
    }

    fn row(&mut self, trimmed: &str, text: &str, line: &Line<'_>) -> bool {
        if let Some(at) = trimmed.strip_prefix("at ") {
            let Some(found) = place(at) else { return self.log.annotate(trimmed) };
            let Some(frame) = self.log.frames().and_then(|frames| frames.last_mut()) else { return false };
            let Some(symbol) = &mut frame.reported else { return false };
            if symbol.file.is_some() {
                return self.log.annotate(trimmed);
            }
            symbol.file = Some(found.file.to_owned());
            (symbol.line, symbol.column) = (Some(found.line), found.column);
            return true;
        }
        let numbered =
            trimmed.split_once(':').and_then(|(number, rest)| Some((number.parse().ok()?, rest.trim())));
        let Some((index, rest)) = numbered.filter(|(_, rest)| !rest.is_empty()) else {
            // A function that is inlined there has a row without a number: `            std::rt::lang_start`.
            let is_inlined = text.starts_with("       ")
                && !trimmed.starts_with('[')
                && !trimmed.contains("frames hidden");
            let last =
                self.log.frames().and_then(|frames| frames.last().map(|frame| (frame.index, frame.address)));
            let Some((index, address)) = last.filter(|_| is_inlined && !trimmed.is_empty()) else {
                if !trimmed.is_empty() && !text.starts_with(' ') {
                    self.part = Part::After;
                }
                return false;
            };
            if let Some(before) = self.log.frames().and_then(|frames| frames.last_mut()) {
                before.inlined = true;
            }
            let name = trimmed.strip_prefix("- ").unwrap_or(trimmed);
            let frame =
                backtrail_model::Frame { address, span: Some(line.span.clone()), ..named(index, name, None) };
            return self.log.push(frame);
        };
        // With RUST_BACKTRACE=full an address stands before the name.
        let (first, behind) = word(rest);
        let address = hex(first);
        let name = if address.is_some() { behind.strip_prefix("- ").unwrap_or(behind) } else { rest };
        let mut frame = named(index, if name == "<unknown>" { "" } else { name }, None);
        frame.reported = frame.reported.filter(|symbol| !symbol.name.is_empty());
        frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
        frame.span = Some(line.span.clone());
        self.log.push(frame)
    }
}

/// A message that goes on for longer is in the log.
const MAX_MESSAGE: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_panic_of_each_form() {
        for (text, names) in [
            (
                "thread 'worker' panicked at src/main.rs:2:5:\nindex out of bounds\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/1/std/src/panicking.rs:597:5\n   1: app::f\n             at ./src/main.rs:2:5\nnote: Some details are omitted\n",
                2,
            ),
            (
                "thread 'worker' panicked at 'index out of bounds', src/main.rs:2:5\nstack backtrace:\n   0:     0x55d0 - std::f\n   1:     0x55d1 - app::f\n                               at /src/main.rs:2:5\n",
                2,
            ),
            (
                "web-1  | thread 'worker' (12) panicked at src/main.rs:2:5:\nweb-1  | index out of bounds\nweb-1  | note: run with\n",
                0,
            ),
        ] {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(report.source, Source::RustPanic);
            assert_eq!(report.exception.as_ref().unwrap().message.as_deref(), Some("index out of bounds"));
            let thread = report.crashed().unwrap();
            assert_eq!((thread.name.as_deref(), thread.frames.len()), (Some("worker"), names), "{text}");
            assert_eq!(report.fields[0].value, "src/main.rs:2:5");
            if let Some(frame) = thread.frames.last() {
                let symbol = frame.reported.as_ref().unwrap();
                assert_eq!((symbol.name.as_str(), symbol.line, symbol.column), ("app::f", Some(2), Some(5)));
            }
        }
    }

    #[test]
    fn a_stack_alone() {
        let text = "It ends so:\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/1/library/std/src/panicking.rs:584:5\n   1: core::result::unwrap_failed\n             at /rustc/1/library/core/src/result.rs:1785:5\n   2: shop::price\n             at ./src/shop.rs:17:19\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.source, Source::RustPanic);
        assert_eq!(report.exception.as_ref().unwrap().message, None);
        let frames = &report.crashed().unwrap().frames;
        let symbol = frames[2].reported.as_ref().unwrap();
        assert_eq!((frames.len(), symbol.name.as_str(), symbol.line), (3, "shop::price", Some(17)));
    }

    #[test]
    fn a_quoted_message_of_several_lines() {
        let text = "thread 'main' panicked at 'assertion failed: `(left == right)`\n  left: `1`,\n right: `2`', src/shop.rs:12:5\nstack backtrace:\n   0: shop::price\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let message = report.exception.as_ref().unwrap().message.clone().unwrap();
        assert_eq!(message, "assertion failed: `(left == right)`\n  left: `1`,\n right: `2`");
        assert_eq!(report.fields[0].value, "src/shop.rs:12:5");
        assert_eq!(report.process.threads[0].frames.len(), 1);
    }

    #[test]
    fn rows_of_webassembly() {
        let text = "thread 'main' panicked at src/shop.rs:12:5:\nno price\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\nerror: RuntimeError: unreachable\n    at __rust_start_panic (<module>[9542]:0x9c5e94)\n    at shop::price::h0123456789abcdef (<module>[12]:0x12)\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.process.threads[0].frames[1].annotations, ["<module>[12]:0x12"]);
    }
}
