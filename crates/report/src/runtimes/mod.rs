//! What servers leave in their logs: reports of sanitizers, debuggers' stacks, panics and tracebacks of languages' runtimes,
//! logs of Java virtual machines, messages of Linux's kernel.
//!
//! Each kind has a reader of its own. All of them keep the lines that are no rows of stacks, so that nothing is lost, and
//! read through what a log puts before each line (`log_prefix`).

mod abrt;
mod casr;
mod dart;
mod debugger;
mod dotnet;
mod errors;
mod go;
mod hs_err;
mod ipython;
mod javascript;
mod kernel;
mod kernel_log;
mod log;
mod minidump_walk;
mod native_row;
mod node_report;
mod python;
mod rust_panic;
mod sanitizer;
mod v8_fatal;
mod valgrind;
mod windows_debugger;
mod windows_event;

pub(crate) use abrt::is_abrt;
pub(crate) use casr::is_casr;
pub(crate) use node_report::is_node_report;

use crate::apple_text::Lines;
use crate::log_prefix::plain;
use crate::{Error, Limits};
use backtrail_model::{Frame, Report, Source};

/// A row of a stack in JavaScript or of Mono, which reports of other runtimes quote.
pub(crate) fn foreign_row(line: &str) -> Option<Frame> {
    javascript::row_within(line).or_else(|| dotnet::mono_row(line))
}

/// Whether words are an exception of .NET's library and what it says.
pub(crate) fn is_dotnet_head(words: &str) -> bool {
    words.contains("Exception: ") && dotnet::head(words).is_some()
}

/// Reads a report of such a kind; `None` where the text is none.
pub(crate) fn read(
    kind: Source,
    input: &[u8],
    start: usize,
    limits: &Limits,
) -> Result<Option<Report>, Error> {
    Ok(match kind {
        Source::Sanitizer => {
            sanitizer::read(input, start, limits).or_else(|| valgrind::read(input, start, limits))
        }
        Source::DebuggerBacktrace if is_json(input, start) => Some(abrt::read(input, start, limits)?),
        Source::DebuggerBacktrace if has_walk(input) => minidump_walk::read(input, start, limits),
        Source::DebuggerBacktrace => debugger::read(input, start, limits),
        Source::DartTrace => dart::read(input, start, limits),
        Source::GoTrace => go::read(input, start, limits),
        Source::RustPanic => rust_panic::read(input, start, limits),
        Source::JavaErrorLog => hs_err::read(input, start, limits),
        Source::PythonTraceback => {
            let report = ipython::read(input, start, limits);
            let report = report.or_else(|| python::read(input, start, limits));
            let is_stack = report.as_ref().is_some_and(has_frames);
            // Ruby's tracebacks once began with the same words.
            if is_stack { report } else { errors::read(input, start, limits).or(report) }
        }
        Source::RuntimeError => errors::read(input, start, limits),
        Source::JavaScriptError => {
            v8_fatal::read(input, start, limits).or_else(|| javascript::read(input, start, limits))
        }
        Source::DotNetException => dotnet::read(input, start, limits),
        Source::WindowsEvent => {
            windows_event::read(input, start, limits).or_else(|| windows_debugger::read(input, start, limits))
        }
        Source::LinuxKernel => kernel::read(input, start, limits),
        Source::KernelLog => kernel_log::read(input, start, limits),
        Source::NodeReport => Some(node_report::read(input, start, limits)?),
        Source::Casr => Some(casr::read(input, start, limits)?),
        _ => None,
    })
}

/// Whether a text says how frames were found.
fn has_walk(input: &[u8]) -> bool {
    let mut lines = Lines::new(input, 0..input.len(), 1).filter(|line| line.bytes.len() <= 256);
    lines.any(|line| is_walk(line.text().trim()))
}

/// Whether a line is one of those by which `minidump_stackwalk` says how it found a frame.
pub(crate) fn is_walk(line: &str) -> bool {
    minidump_walk::is_sure(line)
}

fn has_frames(report: &Report) -> bool {
    let process = &report.process;
    let threads = process.threads.iter().map(|thread| &thread.frames);
    threads.chain(process.backtraces.iter().map(|stack| &stack.frames)).any(|frames| !frames.is_empty())
}

fn is_json(input: &[u8], start: usize) -> bool {
    input.get(start..).unwrap_or_default().trim_ascii_start().first() == Some(&b'{')
}

/// What a line tells of the text that it stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Telling {
    No,
    /// It may be quoted by another kind, or be a part of one.
    Likely(Source),
    Sure(Source),
}

/// Says what a line tells.
pub(crate) fn telling(line: &str) -> Telling {
    let line = plain(line).trim();
    // This is asked of every line of a text: most have none of these.
    if line.len() < 5 {
        return Telling::No;
    }
    let sure = |is: bool, source| is.then_some(Telling::Sure(source));
    let likely = |is: bool, source| is.then_some(Telling::Likely(source));
    sure(
        sanitizer::Header::read(sanitizer::without_heading(line)).is_some() || valgrind::is_head(line),
        Source::Sanitizer,
    )
    .or_else(|| sure(sanitizer::runtime_error(line).is_some(), Source::Sanitizer))
    .or_else(|| sure(hs_err::is_sure(line), Source::JavaErrorLog))
    .or_else(|| sure(python::is_sure(line) || ipython::is_head(line), Source::PythonTraceback))
    .or_else(|| sure(rust_panic::is_sure(line), Source::RustPanic))
    .or_else(|| sure(errors::is_sure(line), Source::RuntimeError))
    .or_else(|| sure(dart::is_sure(line), Source::DartTrace))
    .or_else(|| sure(windows_event::is_sure(line) || windows_debugger::is_sure(line), Source::WindowsEvent))
    .or_else(|| sure(dotnet::is_sure(line), Source::DotNetException))
    .or_else(|| sure(line == "WARNING: DATA RACE" || go::Head::read(line).is_some(), Source::GoTrace))
    .or_else(|| {
        let has_head = || go::recovered(line).is_some_and(|(_, head)| head.is_some());
        sure(line.ends_with("]:") && has_head(), Source::GoTrace)
    })
    .or_else(|| sure(kernel::is_sure(line), Source::LinuxKernel))
    .or_else(|| sure(debugger::is_sure(line), Source::DebuggerBacktrace))
    .or_else(|| likely(line.starts_with("SUMMARY: ") && line.contains("Sanitizer: "), Source::Sanitizer))
    .or_else(|| sure(v8_fatal::is_check(line), Source::JavaScriptError))
    .or_else(|| {
        let is_engines = v8_fatal::message(line).is_some() || v8_fatal::is_first_row(line);
        likely(is_engines, Source::JavaScriptError)
    })
    .or_else(|| {
        let is_panics =
            rust_panic::is_first_row(line) || rust_panic::is_message(line.trim_start_matches(['│', ' ']));
        likely(is_panics, Source::RustPanic)
    })
    .or_else(|| likely(dotnet::local_row(line).is_some(), Source::DotNetException))
    .or_else(|| likely(javascript::row(line).is_some(), Source::JavaScriptError))
    .or_else(|| likely(errors::is_likely(line), Source::RuntimeError))
    .or_else(|| likely(python::is_row(line), Source::PythonTraceback))
    .or_else(|| likely(dotnet::mono_row(line).is_some(), Source::DotNetException))
    .or_else(|| likely(line.starts_with("panic: ") || go::is_fatal(line), Source::GoTrace))
    .or_else(|| likely(native_row::is_likely(line), Source::DebuggerBacktrace))
    .or_else(|| likely(kernel_log::is_event(line), Source::KernelLog))
    .or_else(|| likely(kernel::event(line).is_some() || kernel::is_part(line), Source::LinuxKernel))
    .unwrap_or(Telling::No)
}

/// Where the reports of a text of such a kind begin; the first at its beginning.
pub(crate) fn starts(kind: Source, text: &[u8]) -> Vec<usize> {
    if kind == Source::WindowsEvent {
        return windows_event::starts(text);
    }
    if kind == Source::KernelLog {
        return kernel_log::starts(text);
    }
    let mut starts = vec![0];
    let mut divider = Divider { kind, has_begun: false, is_linked: false, is_over: false };
    let mut rule = None;
    for line in Lines::new(text, 0..text.len(), 1).filter(|line| line.bytes.len() <= 4096) {
        let raw = line.text();
        let plain = plain(&raw);
        if divider.begins(plain) {
            starts.push(rule.unwrap_or(line.span.start));
        }
        let is_rule = plain.len() >= 10 && plain.trim().bytes().all(|byte| byte == b'=');
        rule = is_rule.then_some(line.span.start);
    }
    starts
}

/// Finds where one report of a log ends and the next begins.
struct Divider {
    kind: Source,
    /// Whether the first report was seen.
    has_begun: bool,
    /// Python: whether the next traceback belongs to the same chain.
    is_linked: bool,
    /// The kernel: whether the report has ended.
    is_over: bool,
}

impl Divider {
    /// Whether a line begins a further report.
    fn begins(&mut self, text: &str) -> bool {
        let line = text.trim();
        let is_head = match self.kind {
            // libFuzzer has the last word on what a sanitizer found, and a deadly signal follows what was undefined.
            Source::Sanitizer => {
                sanitizer::Header::read(sanitizer::without_heading(line))
                    .is_some_and(|header| header.is_report())
                    || sanitizer::runtime_error(line).is_some()
                    || valgrind::is_head(line)
            }
            Source::RustPanic => rust_panic::is_head(line),
            Source::GoTrace => line == "WARNING: DATA RACE",
            Source::PythonTraceback => self.python(text),
            Source::LinuxKernel => {
                self.is_over |= line.starts_with("---[ end trace");
                let begins =
                    self.is_over && kernel::event(line).is_some() && !line.starts_with("Kernel panic");
                self.is_over &= !begins;
                return begins;
            }
            _ => false,
        };
        let is_further = is_head && self.has_begun;
        self.has_begun |= is_head;
        is_further
    }

    fn python(&mut self, text: &str) -> bool {
        if python::is_link(text) {
            self.is_linked = true;
            return false;
        }
        // Those of a group stand behind marks, and nested ones behind blanks.
        let is_head = text == "Traceback (most recent call last):";
        is_head && !std::mem::take(&mut self.is_linked)
    }
}
