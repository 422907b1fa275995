//! Python: tracebacks with causes, contexts and groups of exceptions, and what the fault handler writes.
//!
//! A traceback ends with the innermost call, the model begins with it: rows are turned around. The exception that nobody
//! caught comes last in a chain, and first here.

use super::log::{Log, Reader, drive, named};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{AppInfo, Backtrace, Exception, Frame, Language, Report, Source, Thread};

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::PythonTraceback, limits);
    let mut reader = Python {
        log,
        part: Part::Outside,
        chain: Vec::new(),
        link: None,
        depth: 0,
        indent: 0,
        in_row: false,
        is_numbered: false,
        lone: None,
        broken: String::new(),
    };
    drive(&mut reader, input, start);
    if matches!(reader.part, Part::Traceback | Part::Box) {
        reader.raised(String::new());
    }
    let Python { mut log, chain, lone, .. } = reader;
    order(&mut log.report, &chain, lone.as_deref());
    let report = log.finish();
    let is_empty = report.process.threads.is_empty() && report.process.backtraces.is_empty();
    if is_empty && report.exception.is_none() { None } else { Some(report) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Outside,
    /// The rows of a traceback, the exception still to come.
    Traceback,
    /// Rows of the fault handler, innermost first.
    Fault,
    /// Inside of a box of the library rich, outermost first.
    Box,
}

struct Python<'l> {
    log: Log<'l>,
    part: Part,
    chain: Vec<Raised>,
    /// How the next exception comes to follow the last.
    link: Option<&'static str>,
    /// How deep in groups of exceptions.
    depth: usize,
    /// How far the traceback is indented.
    indent: usize,
    /// Whether the last line was a row, which its line of source follows.
    in_row: bool,
    /// Whether the last line numbered an exception of a group.
    is_numbered: bool,
    /// An exception of a group that has no traceback.
    lone: Option<String>,
    /// The first part of a row that the width of a box broke.
    broken: String,
}

/// An exception of a chain, whose stack is the backtrace at the same place.
struct Raised {
    /// As printed: `ValueError: message`.
    text: String,
    /// How it comes to be followed by the next.
    link: Option<&'static str>,
    depth: usize,
}

impl Raised {
    /// Whether it is a group that has one exception.
    fn is_group_of_one(&self) -> bool {
        self.text.ends_with(" (1 sub-exception)")
    }
}

/// The exception that a group of one hands on, through groups of one.
fn carried(chain: &[Raised], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(group) = chain.get(at).filter(|raised| raised.is_group_of_one()) {
        let inner = chain.get(at + 1..)?.iter().position(|raised| raised.depth > group.depth);
        match inner {
            Some(inner) => at += 1 + inner,
            None => break,
        }
    }
    (at != from).then_some(at)
}

const CAUSE: &str = "The above exception was the direct cause of the following exception:";
const CONTEXT: &str = "During handling of the above exception, another exception occurred:";

/// What a line says without the marks of a group of exceptions, and how many of these it has.
fn in_group(text: &str) -> (usize, &str) {
    let start = text.trim_start();
    let mark = start.strip_prefix(['|', '+']);
    match mark {
        Some(rest) if rest.is_empty() || rest.starts_with([' ', '-']) => {
            let indent = text.len() - start.len();
            (indent / 2 + 1, rest.strip_prefix(' ').unwrap_or(rest))
        }
        _ => (0, text),
    }
}

/// Lines by which a text is told to be of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    let line = in_group(line).1.trim_start();
    line.ends_with("Traceback (most recent call last):")
        || is_box(line)
        || line.starts_with("Fatal Python error: ")
        || line.ends_with(" (most recent call first):")
}

/// The head of the box in which the library rich draws a traceback: `╭──── Traceback (most recent call last) ────╮`, with square corners
/// in old terminals of Windows.
///
/// Source: rich's `traceback.py`, `Traceback.__rich_console__`.
fn is_box(line: &str) -> bool {
    line.starts_with(['\u{256d}', '\u{250c}']) && line.contains("Traceback (most recent call last)")
}

/// The line that closes a box.
fn closes_box(line: &str) -> bool {
    line.starts_with(['\u{2570}', '\u{2514}'])
}

/// What a line of a box has between its borders.
fn in_box(line: &str) -> Option<&str> {
    let inside = line.strip_prefix('\u{2502}')?;
    Some(inside.strip_suffix('\u{2502}').unwrap_or(inside).trim())
}

/// `/app/cart.py:12 in total`, the row of a box.
fn box_row(inside: &str, at: &Line<'_>) -> Option<Frame> {
    let (found, name) = inside.rsplit_once(" in ")?;
    let found = super::log::place(found)
        .filter(|found| found.column.is_none() && !found.file.contains('\u{2502}'))?;
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let mut frame = named(0, name, Some(found));
    frame.language = Some(Language::Python);
    frame.span = Some(at.span.clone());
    Some(frame)
}

fn indentation(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// `+-+---------------- 1 ----------------`, without its first mark.
fn is_number_of_group(line: &str) -> bool {
    let line = line.trim_matches(['+', '-']);
    line.starts_with(' ') && line.ends_with(' ') && line.trim().bytes().all(|byte| byte.is_ascii_digit())
}

/// A line that a chain of exceptions goes on with.
pub(super) fn is_link(line: &str) -> bool {
    let line = in_group(line).1.trim();
    line == CAUSE || line == CONTEXT
}

impl<'l> Reader<'l> for Python<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let (depth, text) = in_group(text);
        let trimmed = text.trim();
        let is_box = is_box(trimmed);
        if is_box || trimmed.ends_with("Traceback (most recent call last):") {
            if matches!(self.part, Part::Traceback | Part::Box) {
                self.raised(String::new());
            }
            self.depth = depth;
            self.indent = indentation(text);
            self.part = if is_box { Part::Box } else { Part::Traceback };
            self.broken.clear();
            if !self.log.begin_backtrace("", false) {
                self.part = Part::Outside;
            }
            return false;
        }
        if trimmed.starts_with("Fatal Python error: ") {
            self.fatal(trimmed);
            return false;
        }
        if let Some(head) = trimmed.strip_suffix("(most recent call first):") {
            self.fault_stack(head.trim());
            return false;
        }
        if trimmed == CAUSE || trimmed == CONTEXT {
            self.link = Some(if trimmed == CAUSE { CAUSE } else { CONTEXT });
            return false;
        }
        let is_numbered = std::mem::replace(&mut self.is_numbered, depth > 0 && is_number_of_group(trimmed));
        match self.part {
            Part::Outside => {
                if is_numbered && depth > 0 && trimmed.contains(|c: char| c.is_ascii_alphabetic()) {
                    self.lone.get_or_insert_with(|| trimmed.to_owned());
                }
                // The head was cut away.
                let is_first = self.chain.is_empty() && self.log.report.process.backtraces.is_empty();
                if is_first && text.starts_with(' ') && is_row(trimmed) && self.log.begin_backtrace("", false)
                {
                    self.part = Part::Traceback;
                    self.indent = indentation(text) - 1;
                    return self.inside(trimmed, line);
                }
                false
            }
            Part::Traceback if indentation(text) > self.indent => self.inside(trimmed, line),
            Part::Traceback if trimmed.is_empty() => false,
            Part::Traceback => {
                self.raised(trimmed.to_owned());
                false
            }
            Part::Box if in_box(trimmed).is_some() => self.boxed(in_box(trimmed).unwrap_or_default(), line),
            // The exception stands below the box.
            Part::Box if closes_box(trimmed) || trimmed.is_empty() => {
                self.part = Part::Traceback;
                false
            }
            Part::Box => {
                self.raised(trimmed.to_owned());
                false
            }
            // Some logs put an empty line behind each.
            Part::Fault if trimmed.is_empty() => false,
            Part::Fault => {
                let row = row(trimmed, line);
                if row.is_none() {
                    self.part = Part::Outside;
                    self.log.end_stack();
                }
                row.is_some_and(|frame| self.push(frame))
            }
        }
    }
}

impl Python<'_> {
    fn inside(&mut self, trimmed: &str, line: &Line<'_>) -> bool {
        if let Some(frame) = row(trimmed, line) {
            self.in_row = true;
            return self.push(frame);
        }
        let was_row = std::mem::take(&mut self.in_row);
        let is_mark = trimmed.bytes().all(|byte| matches!(byte, b'^' | b'~' | b' '));
        (was_row || trimmed.starts_with("[Previous line repeated")) && !is_mark && self.log.annotate(trimmed)
    }

    /// A line inside of a box: a row, a part of one, or a line of the source.
    fn boxed(&mut self, inside: &str, line: &Line<'_>) -> bool {
        const LONGEST: usize = 4096;
        let broken = std::mem::take(&mut self.broken);
        let joined = format!("{broken}{inside}");
        let row = box_row(inside, line).filter(|_| broken.is_empty()).or_else(|| box_row(&joined, line));
        if let Some(frame) = row {
            return self.push(frame);
        }
        // Paths are broken where the width ends, names behind the word before them.
        let is_path = joined.starts_with(['/', '<']) || joined.get(1..3) == Some(":\\");
        if is_path && joined.len() < LONGEST {
            self.broken = if joined.ends_with(" in") { format!("{joined} ") } else { joined };
        }
        false
    }

    fn push(&mut self, frame: Frame) -> bool {
        let index = self.log.next_index();
        self.log.push(Frame { index, ..frame })
    }

    /// The line that ends a traceback.
    fn raised(&mut self, text: String) {
        if let Some(frames) = self.log.frames() {
            frames.reverse();
            for (frame, index) in frames.iter_mut().zip(0..) {
                frame.index = index;
            }
        }
        self.log.end_stack();
        self.part = Part::Outside;
        let link = self.link.take();
        if let Some(before) = self.chain.iter_mut().rfind(|raised| raised.depth == self.depth) {
            before.link = link;
        }
        self.chain.push(Raised { text, link: None, depth: self.depth });
    }

    fn fatal(&mut self, line: &str) {
        let what = line.strip_prefix("Fatal Python error: ").unwrap_or(line);
        let signal = match what {
            _ if what.starts_with("Segmentation fault") => Some("SIGSEGV"),
            _ if what.starts_with("Aborted") => Some("SIGABRT"),
            _ if what.starts_with("Bus error") => Some("SIGBUS"),
            _ if what.starts_with("Floating") => Some("SIGFPE"),
            _ if what.starts_with("Illegal instruction") => Some("SIGILL"),
            _ => None,
        };
        self.log.report.exception.get_or_insert_with(|| Exception {
            kind: Some("Fatal Python error".to_owned()),
            signal: signal.map(str::to_owned),
            message: Some(what.to_owned()),
            ..Exception::default()
        });
        self.log.report.app_info.push(AppInfo { image: None, lines: vec![line.to_owned()] });
    }

    /// `Current thread 0x00007f [name]`, `Thread 0x00007f`, `Stack`.
    fn fault_stack(&mut self, head: &str) {
        let is_current = head.starts_with("Current thread");
        let (_, rest) = head.split_once("hread ").unwrap_or(("", head));
        let (id, name) = super::log::word(rest);
        let name = name.trim_matches(['[', ']']);
        let process = &mut self.log.report.process;
        let number = process.threads.len() as u64;
        let at = process.threads.len();
        let thread = Thread {
            number,
            id: super::log::hex(id),
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            crashed: is_current && self.log.report.exception.is_some(),
            ..Thread::default()
        };
        let process = &mut self.log.report.process;
        if thread.crashed && process.crashed_thread.is_none() {
            process.crashed_thread = Some(at);
        }
        self.part = if self.log.begin_thread(thread) { Part::Fault } else { Part::Outside };
    }
}

/// `File "x.py", line 3, in f`; the fault handler writes no second comma.
/// Whether a line is a row of a traceback whose head may have been cut away.
pub(super) fn is_row(line: &str) -> bool {
    let rest = line.strip_prefix("File \"").and_then(|rest| rest.rsplit_once("\", line "));
    rest.and_then(|(_, rest)| rest.split_once(", in "))
        .is_some_and(|(line, name)| crate::numbers::is_number(line) && !name.is_empty())
}

fn row(line: &str, at: &Line<'_>) -> Option<Frame> {
    let (file, rest) = line.strip_prefix("File \"")?.rsplit_once("\", line ")?;
    let (number, rest) = rest.split_once(|c: char| !c.is_ascii_digit()).unwrap_or((rest, ""));
    let name = rest.trim_start().strip_prefix("in ").unwrap_or_default();
    let number = number.parse().ok();
    let place = super::log::SourcePlace { file, line: number.unwrap_or(0), column: None };
    let mut frame = named(0, if name.is_empty() { "<module>" } else { name }, Some(place));
    frame.language = Some(Language::Python);
    frame.span = Some(at.span.clone());
    Some(frame)
}

/// Puts the exception that nobody caught first, and titles each stack by its exception.
fn order(report: &mut Report, chain: &[Raised], lone: Option<&str>) {
    // Where the beginning was cut, what is left of a group may stand deep in it.
    let outermost = chain.iter().map(|raised| raised.depth).min().unwrap_or_default();
    let Some(last) = chain.iter().rposition(|raised| raised.depth == outermost) else { return };
    let mut stacks: Vec<Backtrace> = std::mem::take(&mut report.process.backtraces);
    for (stack, raised) in stacks.iter_mut().zip(chain) {
        let text = if raised.text.is_empty() { "Traceback" } else { &raised.text };
        stack.title = match raised.link {
            Some(CAUSE) => format!("Cause: {text}"),
            Some(_) => format!("While this was handled: {text}"),
            None if raised.depth > outermost => format!("In the group: {text}"),
            None => text.to_owned(),
        };
    }
    // A group of one exception only hands that one on; so do groups inside of it.
    let inner = carried(chain, last);
    if let Some(stack) = stacks.get_mut(inner.unwrap_or(last)) {
        stack.is_exception = true;
    }
    if last < stacks.len() {
        let first = stacks.remove(last);
        report.process.backtraces.push(first);
    }
    report.process.backtraces.append(&mut stacks);
    let is_lone = inner.or(Some(last)).and_then(|at| chain.get(at)).is_some_and(Raised::is_group_of_one);
    let texts = inner.and_then(|at| chain.get(at)).map(|raised| raised.text.as_str());
    let texts = lone.filter(|_| is_lone).or(texts);
    if let Some((outer, inner)) = chain.get(last).map(|raised| &raised.text).zip(texts) {
        report.app_info.push(AppInfo { image: None, lines: vec![outer.clone(), inner.to_owned()] });
    }
    let Some(raised) = chain.get(last).filter(|raised| !raised.text.is_empty()) else { return };
    let (kind, message) = raised.text.split_once(": ").unwrap_or((raised.text.trim_end_matches(':'), ""));
    report.exception.get_or_insert_with(|| Exception {
        kind: Some(kind.to_owned()),
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        ..Exception::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn report(text: &str) -> Report {
        parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    /// The library rich draws boxes, and breaks rows where their width ends.
    #[test]
    fn boxes_of_rich() {
        let text = "\u{256d}\u{2500}\u{2500} Traceback (most recent call last) \u{2500}\u{2500}\u{256e}\n\
             \u{2502} /app/main.py:9 in <module>       \u{2502}\n\u{2502}                                  \u{2502}\n\
             \u{2502} \u{2771} 9 total(cart)                  \u{2502}\n\
             \u{2502} /app/venv/lib/python3.12/site-pac \u{2502}\n\u{2502} kages/shop/cart.py:34 in total   \u{2502}\n\
             \u{2502} /app/lib/price.py:3 in           \u{2502}\n\u{2502} price                            \u{2502}\n\
             \u{2570}\u{2500}\u{2500}\u{256f}\nKeyError: 'cents'\n";
        let read = report(text);
        let exception = read.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.message.as_deref()),
            (Some("KeyError"), Some("'cents'"))
        );
        let frames = &read.process.backtraces[0].frames;
        let rows: Vec<_> = frames
            .iter()
            .map(|frame| frame.reported.as_ref().unwrap())
            .map(|symbol| (symbol.name.as_str(), symbol.file.as_deref().unwrap(), symbol.line.unwrap()))
            .collect();
        assert_eq!(
            rows,
            [
                ("price", "/app/lib/price.py", 3),
                ("total", "/app/venv/lib/python3.12/site-packages/shop/cart.py", 34),
                ("<module>", "/app/main.py", 9),
            ]
        );
        // Without its end.
        let cut = report(text.split('\u{2570}').next().unwrap());
        assert_eq!(cut.process.backtraces[0].frames.len(), 3);
    }

    #[test]
    fn chains_end_with_what_nobody_caught() {
        let report = report(
            "Traceback (most recent call last):\n  File \"/a/x.py\", line 3, in f\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n\n\
             The above exception was the direct cause of the following exception:\n\n\
             Traceback (most recent call last):\n  File \"/a/x.py\", line 9, in <module>\n    main()\n  File \"/a/x.py\", line 5, in main\n    raise ValueError() from e\n  [Previous line repeated 2 more times]\nValueError: bad: thing\n",
        );
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.message.as_deref()),
            (Some("ValueError"), Some("bad: thing"))
        );
        let stacks = &report.process.backtraces;
        assert_eq!(
            stacks.iter().map(|it| (it.title.as_str(), it.is_exception)).collect::<Vec<_>>(),
            [("ValueError: bad: thing", true), ("Cause: ZeroDivisionError: division by zero", false)]
        );
        let names: Vec<_> = stacks[0]
            .frames
            .iter()
            .map(|it| (it.index, it.reported.as_ref().unwrap().name.as_str()))
            .collect();
        assert_eq!(names, [(0, "main"), (1, "<module>")]);
        assert_eq!(
            stacks[0].frames[0].annotations,
            ["raise ValueError() from e", "[Previous line repeated 2 more times]"]
        );
    }

    #[test]
    fn groups() {
        let report = report(
            "  + Exception Group Traceback (most recent call last):\n  |   File \"x.py\", line 1, in <module>\n  |     raise g\n  | ExceptionGroup: many (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"x.py\", line 2, in a\n    | ValueError: 1\n    +---------------- 2 ----------------\n    | TypeError: 2\n    +------------------------------------\n",
        );
        assert_eq!(report.exception.as_ref().unwrap().kind.as_deref(), Some("ExceptionGroup"));
        let titles: Vec<_> = report.process.backtraces.iter().map(|it| it.title.as_str()).collect();
        assert_eq!(titles, ["ExceptionGroup: many (2 sub-exceptions)", "In the group: ValueError: 1"]);
    }

    #[test]
    fn a_group_of_one_hands_its_exception_on() {
        let text = "  + Exception Group Traceback (most recent call last):\n  |   File \"x.py\", line 1, in <module>\n  | ExceptionGroup: tasks (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"x.py\", line 2, in a\n    | ValueError: bad\n    +------------------------------------\n";
        let read = report(text);
        assert_eq!(read.app_info[0].lines, ["ExceptionGroup: tasks (1 sub-exception)", "ValueError: bad"]);
        let stacks: Vec<_> = read.process.backtraces.iter().map(|it| it.is_exception).collect();
        assert_eq!(stacks, [false, true]);
        // The inner one may have no traceback, and the beginning may be cut.
        let lone = text
            .replace("    | Traceback (most recent call last):\n    |   File \"x.py\", line 2, in a\n", "");
        assert_eq!(report(&lone).app_info[0].lines[1], "ValueError: bad");
        let cut = text.split_once("+-+").unwrap().1;
        assert_eq!(report(cut).exception.unwrap().kind.as_deref(), Some("ValueError"));
    }

    #[test]
    fn an_indented_traceback() {
        let read = report(
            " Task exception was never retrieved\n Traceback (most recent call last):\n   File \"/a/x.py\", line 3, in f\n     g()\n KeyError: 7\n 12:00 done\n",
        );
        assert_eq!(read.exception.unwrap().kind.as_deref(), Some("KeyError"));
        assert_eq!(read.process.backtraces[0].frames.len(), 1);
    }

    #[test]
    fn stacks_with_empty_lines_between() {
        let read = report(
            "Fatal Python error: Aborted\n\nCurrent thread 0x00007f02 (most recent call first):\n\n  File \"/a/x.py\", line 3 in f\n\n  File \"/a/x.py\", line 5 in <module>\n\nExtension modules: a\n",
        );
        assert_eq!(read.crashed().unwrap().frames.len(), 2);
    }

    #[test]
    fn the_fault_handlers_stacks() {
        let report = report(
            "Fatal Python error: Segmentation fault\n\nThread 0x00007f01 (most recent call first):\n  File \"/a/t.py\", line 4 in wait\n\nCurrent thread 0x00007f02 (most recent call first):\n  File \"/a/x.py\", line 3 in f\n  File \"/a/x.py\", line 5 in <module>\n\nExtension modules: a\n",
        );
        assert_eq!(report.exception.as_ref().unwrap().signal.as_deref(), Some("SIGSEGV"));
        let crashed = report.crashed().unwrap();
        assert_eq!((crashed.id, crashed.frames.len()), (Some(0x7f02), 2));
        assert_eq!(crashed.frames[0].reported.as_ref().unwrap().name, "f");
    }
}
