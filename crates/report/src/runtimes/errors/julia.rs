//! Julia: errors with their stack, and what the runtime prints when a signal ends the program.
//!
//! Sources: Julia `base/errorshow.jl` (`show_backtrace`), `src/signal-handling.c`, `src/stackwalk.c` (`jl_print_native_codeloc`).

use super::super::log::{Log, Reader, SourcePlace, drive, hex, place};
use super::Text;
use crate::Limits;
use crate::apple_text::Line;
use crate::numbers::{is_number, signal, signal_in_words};
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Exception, Frame, Language, Report, Thread};

/// The signal of `[123] signal 11 (1): Segmentation fault`, `signal (11.1): Segmentation fault: 11`, and the process.
fn stopped(text: &str) -> Option<(Option<u64>, &str, &str)> {
    let (pid, rest) = match text.split_once("] signal ") {
        Some((pid, rest)) => (pid.trim_start_matches('[').parse().ok(), rest),
        None => (None, text.strip_prefix("signal ")?),
    };
    let (number, words) = rest.split_once(": ")?;
    let digits = number.trim_start_matches('(');
    let digits = digits.get(..digits.bytes().take_while(u8::is_ascii_digit).count())?;
    let is_number_of_one = is_number(digits) && number.len() <= 12;
    (is_number_of_one && signal_in_words(words).is_some()).then_some((pid, digits, words))
}

/// `function at FILE:LINE [inlined]`, `f at /lib/x.so (unknown line)`, `unknown function (ip: 0x1234)`.
struct Row<'t> {
    name: &'t str,
    place: Option<SourcePlace<'t>>,
    file: Option<&'t str>,
    address: Option<u64>,
    is_inlined: bool,
}

impl<'t> Row<'t> {
    fn read(text: &'t str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("unknown function (ip: ") {
            let (address, rest) = rest.split_once(')')?;
            let file = rest.trim().strip_prefix("at ");
            return Some(Self {
                name: "",
                place: None,
                file,
                address: Some(hex(address)?),
                is_inlined: false,
            });
        }
        let (name, at) = text.rsplit_once(" at ")?;
        let (at, is_inlined) = at.strip_suffix(" [inlined]").map_or((at, false), |at| (at, true));
        if let Some(file) = at.strip_suffix(" (unknown line)") {
            return Some(Self { name, place: None, file: Some(file), address: None, is_inlined });
        }
        let found = place(at).filter(|found| !found.file.is_empty())?;
        Some(Self { name, place: Some(found), file: None, address: None, is_inlined })
    }
}

/// `ERROR: LoadError: UndefVarError: x not defined`.
fn error(text: &str) -> Option<(&str, &str)> {
    let mut rest = text.strip_prefix("ERROR: ")?;
    // What was being loaded only hands it on.
    while let Some(inner) = ["LoadError: ", "InitError: ", "TaskFailedException: "]
        .iter()
        .find_map(|outer| rest.strip_prefix(outer))
    {
        rest = inner;
    }
    let (kind, message) = rest.split_once(['(', ':']).unwrap_or((rest, ""));
    let is_kind = kind.ends_with("Error") || kind.ends_with("Exception");
    Some(if is_kind { (kind, message) } else { ("error", rest) })
}

/// `[2] total(x::Int64)` in a stack; its place stands in the next line, in old versions on the same.
fn numbered(text: &str) -> Option<(&str, Option<&str>)> {
    let (number, rest) = text.strip_prefix('[')?.split_once("] ")?;
    let (name, at) = rest.rsplit_once(" at ").map_or((rest, None), |(name, at)| (name, Some(at)));
    is_number(number).then(|| (name.trim(), at))
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    (line.starts_with("signal ") || line.starts_with('[') && line.contains("] signal "))
        && stopped(line).is_some()
}

/// Whether a line heads a stack, as people head those of other kinds, too.
pub(super) fn is_head(line: &str) -> bool {
    line == "Stacktrace:"
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Julia { text: Text::new(Language::Julia, limits), part: Part::Before };
    drive(&mut reader, input, start);
    let mut report = reader.text.finish()?;
    // The heading alone is anybody's.
    if report.process.backtraces.is_empty() && report.process.threads.is_empty() {
        return None;
    }
    report.process.crashed_thread = (!report.process.threads.is_empty()).then_some(0);
    Some(report)
}

#[derive(PartialEq, Eq)]
enum Part {
    Before,
    /// Rows behind a signal.
    Signal,
    /// Rows of an error.
    Stack,
}

struct Julia<'l> {
    text: Text<'l>,
    part: Part,
}

impl<'l> Reader<'l> for Julia<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if let Some((pid, number, words)) = stopped(text) {
            // The process id looks like what logs put before a line.
            let raw = line.text();
            let pid = pid.or_else(|| raw.trim().strip_prefix('[')?.split_once(']')?.0.parse().ok());
            self.stopped(pid, number, words);
            return false;
        }
        if let Some((kind, message)) = error(text) {
            self.text.raise(kind, message.trim_end_matches(')'));
            return false;
        }
        if text == "Stacktrace:" {
            if self.part != Part::Signal {
                self.part = Part::Stack;
                self.text.log.begin_backtrace("", false);
            }
            return false;
        }
        match self.part {
            Part::Before => false,
            Part::Signal => self.native(text, line),
            Part::Stack => self.row(text, line),
        }
    }
}

impl Julia<'_> {
    fn stopped(&mut self, pid: Option<u64>, number: &str, words: &str) {
        if self.text.has_raised() {
            return;
        }
        let name = signal_in_words(words).or_else(|| signal(number.parse().ok()?, true));
        self.text.log.report.process.pid = pid;
        self.text.log.report.exception = Some(Exception {
            kind: Some("Julia crashed".to_owned()),
            signal: name.map(str::to_owned),
            message: Some(words.to_owned()),
            ..Exception::default()
        });
        self.text.log.begin_thread(Thread { crashed: true, ..Thread::default() });
        self.part = Part::Signal;
    }

    /// A row behind a signal, and the line that says what was run.
    fn native(&mut self, text: &str, line: &Line<'_>) -> bool {
        let Some(row) = Row::read(text) else {
            if text.starts_with("Allocations: ") {
                self.text.log.end_stack();
            }
            return false;
        };
        if text.starts_with("in expression starting at ") || text.starts_with("while loading ") {
            return false;
        }
        if !self.text.push(row.name, row.place, line) {
            return false;
        }
        let Some(frame) = self.text.log.frames().and_then(|frames| frames.last_mut()) else { return true };
        let is_julias =
            row.place.is_some_and(|place| place.file.ends_with(".jl") || place.file.starts_with("REPL["));
        *frame = Frame {
            language: frame.language.filter(|_| is_julias),
            address: row.address.map(|address| FrameAddress::Return(Avma::new(address))),
            image_name: row.file.map(|file| super::super::log::file_name(file).to_owned()),
            inlined: row.is_inlined,
            ..frame.clone()
        };
        match row.file {
            Some(file) if file.contains('/') => self.text.log.annotate(&format!("from {file}")),
            _ => true,
        }
    }

    /// A row of an error, or the place of the row before.
    fn row(&mut self, text: &str, line: &Line<'_>) -> bool {
        if let Some((name, at)) = numbered(text) {
            return self.text.push(name, at.and_then(place), line);
        }
        let Some(at) = text.strip_prefix("@ ") else { return false };
        let at = at.strip_suffix(" [inlined]").unwrap_or(at);
        let found = place(at.rsplit_once(' ').map_or(at, |(_, at)| at));
        let Some(symbol) = self.text.log.frames().and_then(|frames| frames.last_mut()?.reported.as_mut())
        else {
            return false;
        };
        let Some(found) = found.filter(|_| symbol.file.is_none()) else { return false };
        (symbol.file, symbol.line) = (Some(found.file.to_owned()), Some(found.line));
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};
    use backtrail_model::{Frame, Language};

    fn rows(frames: &[Frame]) -> Vec<String> {
        let row = |frame: &Frame| {
            let symbol = frame.reported.clone().unwrap_or_default();
            format!("{} {}:{}", symbol.name, symbol.file.unwrap_or_default(), symbol.line.unwrap_or(0))
        };
        frames.iter().map(row).collect()
    }

    #[test]
    fn a_signal_and_its_rows() {
        let text = "[234122] signal 11 (1): Segmentation fault\nin expression starting at REPL[5]:1\nshop_price at /a/shop.c:12 [inlined]\nshop_total at /a/shop.c:20\ntotal at /home/u/Shop.jl/src/total.jl:9\nunknown function (ip: 0x7f20c343d51d)\nf at /a/libshop.so (unknown line)\nAllocations: 1 (Pool: 1; Big: 0); GC: 0\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.as_ref().unwrap().signal.as_deref(), Some("SIGSEGV"));
        let frames = &report.crashed().unwrap().frames;
        assert_eq!(
            rows(frames),
            [
                "shop_price /a/shop.c:12",
                "shop_total /a/shop.c:20",
                "total /home/u/Shop.jl/src/total.jl:9",
                " :0",
                "f :0"
            ]
        );
        assert_eq!((frames[2].language, frames[1].language), (Some(Language::Julia), None));
        assert_eq!(frames[4].image_name.as_deref(), Some("libshop.so"));
        assert!(frames[0].inlined && report.process.pid == Some(234_122));
    }

    #[test]
    fn an_error_and_its_stack() {
        let text = "ERROR: LoadError: UndefVarError: price not defined\nStacktrace:\n [1] total(x::Int64)\n   @ Main /a/shop.jl:12\n [2] top-level scope\n   @ /a/shop.jl:20\nin expression starting at /a/shop.jl:20\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.kind.as_deref(), Some("UndefVarError"));
        assert_eq!(
            rows(&report.process.backtraces[0].frames),
            ["total(x::Int64) /a/shop.jl:12", "top-level scope /a/shop.jl:20"]
        );
        for text in ["Stacktrace:\nsee above\n", "it got signal 11: help\n"] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
