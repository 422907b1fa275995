//! Stacks as debuggers print them: gdb's `bt` and `thread apply all bt`, with locals or without; LLDB's `bt`; eu-stack.

use super::log::{Log, Reader, between, drive, hex, named, place, settle_walked, split_arguments, word};
use super::native_row::{NativeRow, is_signal};
use crate::Limits;
use crate::apple_text::Line;
use crate::last_words;
use crate::signal_words::said_of_signal;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{AppInfo, Backtrace, Exception, Frame, Report, Source, Thread};

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Debugger::new(Log::new(Source::DebuggerBacktrace, limits));
    drive(&mut reader, input, start);
    reader.finish()
}

pub(super) struct Debugger<'l> {
    pub(super) log: Log<'l>,
    /// The thread that the debugger says it stands in, as it numbers it.
    current: Option<u64>,
    /// Whether rows of the program's own stand in the stack.
    is_native: bool,
    /// A row that may go on in the next line, which the width of the terminal broke.
    open: Option<String>,
    span: std::ops::Range<usize>,
    /// Whether the debugger said that the program stopped, and not yet where.
    has_stopped: bool,
}

/// What a line begins.
struct Head<'t> {
    number: u64,
    id: Option<u64>,
    name: Option<&'t str>,
    is_current: bool,
    state: Option<&'t str>,
}

impl<'l> Reader<'l> for Debugger<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        let said = self.log.report.app_info.last_mut();
        if last_words::goes_on(said.and_then(|info| info.lines.last_mut()), trimmed) {
            return false;
        }
        // Markdown takes the `#` of rows for that of headings.
        let marked = self.log.is_in_stack().then(|| unmarked_row(trimmed)).flatten();
        let trimmed = marked.as_deref().unwrap_or(trimmed);
        if let Some(head) = head(trimmed) {
            self.close_row();
            if head.is_current {
                self.current = Some(head.number);
            }
            let state = head.state.map(str::to_owned);
            let name = head.name.map(str::to_owned);
            if let Some(reason) = state.as_deref().and_then(|state| state.strip_prefix("stop reason = ")) {
                self.stopped(reason);
            }
            // What else stands there is kept with the line.
            self.log.begin_thread(Thread {
                number: head.number,
                id: head.id,
                name,
                state,
                ..Thread::default()
            });
            return false;
        }
        // Where it stopped gdb prints the frame without a number.
        let bare = bare_row(trimmed).filter(|_| self.has_stopped);
        let trimmed = bare.as_deref().unwrap_or(trimmed);
        if is_row(trimmed) {
            self.has_stopped = false;
            self.close_row();
            let starts_anew = trimmed.starts_with("#0 ") || trimmed.contains("frame #0: ");
            let has_frames = self.log.frames().is_some_and(|frames| !frames.is_empty());
            // What stands between rows that count on does not end a stack: a width that broke a row, a pager's words.
            if let Some(index) = index_of(trimmed).filter(|_| !starts_anew) {
                self.log.go_on(index);
            }
            if (!self.log.is_in_stack() || (starts_anew && has_frames)) && !self.begin_bare() {
                return false;
            }
            self.span = line.span.clone();
            self.open = Some(trimmed.to_owned());
            return true;
        }
        if let Some(open) = self.open.as_mut().filter(|open| {
            let is_unfinished = open.matches('(').count() > open.matches(')').count();
            let goes_on = text.starts_with("\tat ")
                || text.starts_with("    at ")
                || text.starts_with("    from ")
                || text.starts_with("   from ");
            open.len() < 16 << 10
                && !trimmed.is_empty()
                && (goes_on || (is_unfinished && text.starts_with("    ")))
        }) {
            open.push(' ');
            open.push_str(trimmed);
            return true;
        }
        self.close_row();
        // People write the stop down in a sentence above the rows.
        if let Some(reason) = last_words::stop_within(trimmed) {
            self.stopped(reason);
        }
        if let Some(row) =
            NativeRow::read(trimmed).filter(|row| row.is_sure() || self.is_native && self.log.is_in_stack())
        {
            return self.native(&row, line);
        }
        if text.starts_with(' ')
            && !trimmed.is_empty()
            && self.log.frames().is_some_and(|frames| !frames.is_empty())
        {
            return self.eu_place(trimmed) || self.log.annotate(trimmed);
        }
        let is_margin = !text.starts_with(char::is_whitespace) || trimmed.starts_with("Signal: ");
        if trimmed.is_empty() || is_margin || said_of_signal(trimmed).is_some() {
            self.facts(trimmed);
        }
        false
    }
}

impl<'l> Debugger<'l> {
    pub(super) fn new(log: Log<'l>) -> Self {
        Self { log, current: None, is_native: false, open: None, span: 0..0, has_stopped: false }
    }

    /// A row that the program printed itself.
    fn native(&mut self, row: &NativeRow<'_>, line: &Line<'_>) -> bool {
        if !self.log.is_in_stack() && !self.begin_bare() {
            return false;
        }
        self.is_native = true;
        let index = self.log.next_index();
        self.log.push(Frame { span: Some(line.span.clone()), ..row.frame(index) })
    }

    /// A stack without a head: that of the thread which the debugger stands in.
    fn begin_bare(&mut self) -> bool {
        self.log.begin_backtrace("Stack where it stopped", false)
    }

    fn stopped(&mut self, reason: &str) {
        if self.log.report.exception.is_some() {
            return;
        }
        // LLDB's `EXC_BAD_ACCESS (code=1, address=0x10)`.
        if let Some(exception) = last_words::stop(reason) {
            self.log.report.exception = Some(exception);
            return;
        }
        // `SIGSEGV, Segmentation fault.`, `11, Segmentation fault`, `signal SIGSEGV: address not mapped …`.
        let reason = reason.trim_end_matches('.');
        let (first, rest) = word(reason.strip_prefix("signal ").unwrap_or(reason));
        let name = first.trim_end_matches([',', ':']);
        let signal = match name.parse() {
            Ok(number) => crate::numbers::signal(number, true).map(str::to_owned),
            Err(_) => Some(name.to_owned()).filter(|name| name.starts_with("SIG")),
        };
        let address = reason.split_once("address=").or_else(|| reason.split_once("fault address: "));
        let address = address.and_then(|(_, rest)| hex(word(rest).0.trim_end_matches([')', ','])));
        if signal.is_some() || name.starts_with("EXC_") {
            self.log.report.exception = Some(Exception {
                signal,
                kind: Some(name.to_owned()).filter(|name| name.starts_with("EXC_")),
                codes: Some(rest.to_owned()).filter(|rest| !rest.is_empty()),
                address: address.map(Avma::new),
                ..Exception::default()
            });
        }
    }

    /// Lines at the margin.
    fn facts(&mut self, line: &str) {
        for mark in [" received signal ", "terminated with signal "] {
            if let Some((before, reason)) = line.split_once(mark) {
                let number = before.strip_prefix("Thread ").and_then(|rest| word(rest).0.parse().ok());
                self.current = self.current.or(number);
                self.stopped(reason);
                self.has_stopped = true;
            }
        }
        if let Some((signal, address)) = said_of_signal(line) {
            let exception = self.log.report.exception.get_or_insert_with(Exception::default);
            exception.signal = exception.signal.take().or(signal.map(str::to_owned));
            exception.address = exception.address.or(address.map(Avma::new));
        }
        if let Some(command) = between(line, "Core was generated by `", "'") {
            let program = command.split_whitespace().next().unwrap_or(command);
            let process = &mut self.log.report.process;
            process.command_line.get_or_insert_with(|| command.to_owned());
            process.name.get_or_insert_with(|| super::log::file_name(program).to_owned());
        }
        // `coredumpctl info`: `Signal: 6 (ABRT)`.
        if let Some((number, name)) = line.strip_prefix("Signal: ").and_then(|rest| rest.split_once(" ("))
            && number.parse::<u64>().is_ok()
            && self.log.report.exception.is_none()
        {
            self.stopped(&format!("SIG{}", name.trim_end_matches(')')));
        }
        if let Some((program, pid)) = dumped(line) {
            self.log.report.process.pid = Some(pid);
            self.log.report.process.name.get_or_insert_with(|| program.to_owned());
        }
        if let Some(rest) = line.strip_prefix("[Current thread is ") {
            self.current = self.current.or(word(rest).0.parse().ok());
        }
        if let Some(rest) = line.strip_prefix("PID ") {
            let (pid, rest) = rest.split_once(" - ").unwrap_or((rest, ""));
            if let Ok(pid) = pid.trim().parse() {
                self.log.report.process.pid = Some(pid);
                let name = rest.split_whitespace().next();
                self.log.report.process.name = name.map(|name| super::log::file_name(name).to_owned());
            }
        }
        // What the program itself had printed before.
        if last_words::is_librarys(line) || last_words::swift(line).is_some() {
            last_words::add(&mut self.log.report, line);
        }
        // Whatever stands at the margin ends a stack.
        let is_aside = line.starts_with("No locals") || line.starts_with("No symbol table");
        // Between rows of their own programs say that they failed to name one.
        let ends = if self.is_native {
            line.is_empty() || line.ends_with(':')
        } else {
            !line.is_empty() && !is_aside
        };
        if ends {
            self.log.end_stack();
        }
    }

    /// The file and line that eu-stack prints below a row.
    fn eu_place(&mut self, line: &str) -> bool {
        let Some(found) = place(line).filter(|found| !found.file.contains(' ')) else { return false };
        let Some(frame) = self.log.frames().and_then(|frames| frames.last_mut()) else { return false };
        let Some(symbol) = frame.reported.as_mut().filter(|symbol| symbol.file.is_none()) else {
            return false;
        };
        (symbol.file, symbol.line, symbol.column) =
            (Some(found.file.to_owned()), Some(found.line), found.column);
        true
    }

    fn close_row(&mut self) {
        let Some(row) = self.open.take() else { return };
        let Some((mut frame, notes)) = read_row(&row) else {
            self.log.keep(&row);
            return;
        };
        frame.span = Some(self.span.clone());
        if !self.log.push(frame) {
            self.log.keep(&row);
            return;
        }
        for note in notes {
            if !self.log.annotate(&note) {
                self.log.keep(&note);
            }
        }
    }

    pub(super) fn finish(mut self) -> Option<Report> {
        self.close_row();
        let current = self.current;
        let mut report = self.log.finish();
        let has_dumped = report.sections.iter().any(|section| section.text.contains(" dumped core."));
        let process = &mut report.process;
        for frames in process.threads.iter_mut().map(|thread| &mut thread.frames) {
            settle_walked(frames, is_signal);
        }
        for backtrace in &mut process.backtraces {
            settle_walked(&mut backtrace.frames, is_signal);
        }
        if process.threads.is_empty() {
            // The debugger's word of a signal may be all that there is.
            if process.backtraces.is_empty() {
                return report.exception.is_some().then_some(report);
            }
            // Some programs print the innermost row once more before the stack.
            let is_repeated = |one: &Backtrace, other: &Backtrace| match one.frames.as_slice() {
                [only] => {
                    let at = only.address.map(FrameAddress::raw);
                    other.frames.iter().any(|frame| frame.address.map(FrameAddress::raw) == at)
                }
                _ => false,
            };
            if let [first, second, ..] = process.backtraces.as_slice()
                && is_repeated(first, second)
            {
                process.backtraces.remove(0);
            }
            // The only stack is the thread's.
            let first = process.backtraces.remove(0);
            process.threads.push(Thread {
                number: current.unwrap_or(1),
                frames: first.frames,
                ..Thread::default()
            });
            process.crashed_thread = Some(0);
        } else {
            let same = |thread: &Thread| {
                process
                    .backtraces
                    .first()
                    .is_some_and(|backtrace| is_same_place(&backtrace.frames, &thread.frames))
            };
            let by_number =
                current.and_then(|number| process.threads.iter().position(|thread| thread.number == number));
            let by_place = process.threads.iter().position(same);
            let only = (process.threads.len() == 1 || has_dumped).then_some(0);
            process.crashed_thread = by_place.or(by_number).or(only);
            // The row that gdb prints when it stops is that thread's first.
            let is_repeated =
                by_place.is_some() && process.backtraces.first().is_some_and(|it| it.frames.len() == 1);
            if is_repeated {
                process.backtraces.remove(0);
            }
        }
        if let Some(thread) = process.crashed_thread.and_then(|at| process.threads.get_mut(at)) {
            thread.crashed = true;
        }
        if let Some(said) = said_by_arguments(&report).filter(|_| report.app_info.is_empty()) {
            report.app_info.push(AppInfo { image: Some("libc".to_owned()), lines: vec![said] });
        }
        Some(report)
    }
}

/// The number of a row: `#5  0x… in f ()`, `frame #5: 0x…`.
fn index_of(row: &str) -> Option<u32> {
    let (_, rest) = row.split_once('#')?;
    rest.split([' ', ':']).next()?.parse().ok()
}

/// What the C library was about to print, as gdb shows it among the arguments of its functions:
/// `malloc_printerr (str=0x7f… "double free or corruption (out)")`, `__assert_fail (assertion=0x4… "x > 0", file=…, line=12, …)`.
fn said_by_arguments(report: &Report) -> Option<String> {
    /// Functions of the C library lie this far in at most.
    const DEPTH: usize = 12;
    let thread = report.crashed()?;
    thread.frames.iter().take(DEPTH).find_map(|frame| {
        let name = &frame.reported.as_ref()?.name;
        let arguments = frame.annotations.iter().find(|note| note.starts_with('('))?;
        let text = |key: &str| {
            let (_, rest) = arguments.split_once(key)?;
            let (value, _) = rest.split_once(", ").unwrap_or((rest, ""));
            let quoted = rest.split_once('"').filter(|(before, _)| before.len() < value.len())?.1;
            Some(quoted.split_once('"')?.0)
        };
        match name.as_str() {
            "malloc_printerr" => text("str=").map(str::to_owned),
            "__fortify_fail" => Some(format!("*** {} ***: terminated", text("msg=")?)),
            "__assert_fail" | "__assert_fail_base" | "__GI___assert_fail" => {
                let line = arguments.split_once("line=")?.1.split(", ").next()?;
                let line = line.rsplit_once('=').map_or(line, |(_, line)| line);
                let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
                let (file, function) = (text("file=").unwrap_or("?"), text("function=").unwrap_or("?"));
                Some(format!("{file}:{digits}: {function}: Assertion `{}' failed.", text("assertion=")?))
            }
            _ => None,
        }
    })
}

fn is_same_place(one: &[Frame], other: &[Frame]) -> bool {
    let (Some(one), Some(other)) = (one.first(), other.first()) else { return false };
    let name = |frame: &Frame| frame.reported.as_ref().map(|symbol| symbol.name.clone());
    one.address == other.address && name(one) == name(other)
}

/// What gdb prints where the kernel called a signal's handler.
const SIGNAL_HANDLER: &str = "<signal handler called>";

/// `Thread 1 (Thread 0x7f7badf717e0 (LWP 10303)):`, `Thread 2 (LWP 12 "name"):`, `* thread #1, name = 'x', stop reason = …`,
/// `TID 12:`, systemd-coredump's `Stack trace of thread 12:`.
fn head(line: &str) -> Option<Head<'_>> {
    if let Some(rest) = line.strip_prefix("Stack trace of thread ") {
        let id = rest.strip_suffix(':')?.parse().ok()?;
        return Some(Head { number: id, id: Some(id), name: None, is_current: false, state: None });
    }
    if let Some(rest) = line.strip_prefix("TID ") {
        let id = rest.strip_suffix(':')?.parse().ok()?;
        return Some(Head { number: id, id: Some(id), name: None, is_current: false, state: None });
    }
    if let Some(rest) = line.strip_prefix("Thread ") {
        let (number, rest) = word(rest);
        let number = number.parse().ok()?;
        if !rest.starts_with('(') && !rest.starts_with('"') || !line.ends_with(':') {
            return None;
        }
        let id = rest.split_once("LWP ").and_then(|(_, id)| {
            let digits = id.bytes().take_while(u8::is_ascii_digit).count();
            id.get(..digits)?.parse().ok()
        });
        let name = between(rest, "\"", "\"");
        return Some(Head { number, id, name, is_current: false, state: None });
    }
    let is_current = line.starts_with("* thread #");
    let rest = line.strip_prefix("* ").unwrap_or(line).strip_prefix("thread #")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest.get(..digits)?.parse().ok()?;
    let name = between(rest, "name = '", "'");
    let state = rest.find("stop reason = ").and_then(|at| rest.get(at..));
    Some(Head { number, id: None, name, is_current, state })
}

/// systemd-coredump's `Process 12 (program) of user 1000 dumped core.`; it shows the thread that crashed first.
fn dumped(line: &str) -> Option<(&str, u64)> {
    let at = line.find("Process ")?;
    let (pid, rest) = word(line.get(at + "Process ".len()..)?);
    let (program, _) = rest.strip_prefix('(')?.split_once(") of user ")?;
    Some((program, pid.parse().ok().filter(|_| line.contains(" dumped core"))?))
}

/// Whether a line is a row of a stack.
pub(super) fn is_row(line: &str) -> bool {
    let line = line.strip_prefix("* ").unwrap_or(line);
    if let Some(rest) = line.strip_prefix("frame #") {
        return rest.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    }
    let Some((number, rest)) = line.strip_prefix('#').map(word) else { return false };
    if number.parse::<u32>().is_err() {
        return false;
    }
    let (first, behind) = word(rest);
    let has_address = hex(first).is_some();
    rest == SIGNAL_HANDLER
        || (has_address && !behind.starts_with('('))
        || (rest.contains(" (") && rest.contains(')'))
}

/// A row of gdb's without its `#`, with it: `0  0x00007f in raise () from /lib/libc.so.6`.
fn unmarked_row(line: &str) -> Option<String> {
    let (number, rest) = word(line);
    number.parse::<u16>().ok()?;
    let (address, rest) = word(rest);
    let is_row =
        hex(address).is_some() && rest.starts_with("in ") && rest.contains(" (") && rest.contains(')');
    is_row.then(|| format!("#{line}"))
}

/// The frame that gdb prints where the program stopped, as a row: `total (cart=0x0) at shop.c:44`, `0x7f5 in total () from /lib/x.so`.
fn bare_row(line: &str) -> Option<String> {
    let has_place = line.contains(") at ") || line.contains(") from ");
    let (first, _) = word(line);
    let is_name = hex(first).is_some() || !line.starts_with(['#', '[', '(', '*']) && line.contains(" (");
    (has_place && is_name).then(|| format!("#0  {line}"))
}

/// How surely a line is one of a debugger's.
pub(super) fn is_sure(line: &str) -> bool {
    let is_gdb_row = || {
        // `#1  0x5 in f (x=1) at a.c:3`; a sanitizer's row has no argument with a value.
        is_row(line) && (line.contains(") at ") || line.contains(") from ") || line.contains(" ()"))
            || line.ends_with(SIGNAL_HANDLER) && line.starts_with('#')
    };
    let is_lldb_row = || is_row(line) && line.contains("frame #") && line.contains('`');
    head(line).is_some()
        || is_gdb_row()
        || is_lldb_row()
        || is_row(line)
            && (line.contains(" base::debug::StackTrace::StackTrace()") || line.ends_with(" <unknown>"))
        || line.starts_with("Program received signal ")
        || is_threads_stop(line)
        || line.starts_with("Program terminated with signal ")
        || line.starts_with("Core was generated by `")
}

/// gdb's `Thread 1 "name" received signal SIGSEGV, Segmentation fault.`
fn is_threads_stop(line: &str) -> bool {
    let stop = line.strip_prefix("Thread ").and_then(|rest| rest.split_once(" received signal SIG"));
    stop.is_some_and(|(thread, _)| thread.starts_with(|c: char| c.is_ascii_digit()))
}

/// A row, and what it says besides the frame.
pub(super) fn read_row(row: &str) -> Option<(Frame, Vec<String>)> {
    let row = row.strip_prefix("* ").unwrap_or(row);
    if let Some(rest) = row.strip_prefix("frame #") {
        return lldb_row(rest);
    }
    let (number, rest) = word(row.strip_prefix('#')?);
    let index = number.parse().ok()?;
    let (first, behind) = word(rest);
    let address = hex(first);
    // Xcode's list of frames has it so for functions that are inlined.
    let is_inlined = first == "(null)" && behind.starts_with("in ");
    let rest = if address.is_some() || is_inlined { behind } else { rest };
    let rest = rest.strip_prefix("in ").unwrap_or(rest).trim();
    let mut notes = Vec::new();
    let at = rest
        .rfind(") at ")
        .map(|at| (at + 1, 4))
        .or_else(|| rest.rfind(") from ").map(|at| (at + 1, 6)))
        // gfortran's rows have no arguments.
        .or_else(|| {
            let at = rest.rfind(" at ")?;
            place(rest.get(at + " at ".len()..)?).map(|_| (at, 0))
        });
    let (head, tail) = at.and_then(|(at, _)| rest.split_at_checked(at)).unwrap_or((rest, ""));
    let (name, arguments) = if head == SIGNAL_HANDLER { (head, None) } else { split_arguments(head) };
    let tail = tail.trim();
    // systemd-coredump: `raise (libc.so.6 + 0x3dbc5)`, `n/a (n/a + 0x0)`.
    if let Some((module, offset)) = module_of(arguments.unwrap_or_default()) {
        let mut frame = named(index, if name == "n/a" { "" } else { name.trim() }, None);
        if name.trim() == "n/a" {
            frame.reported = None;
        }
        frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
        frame.image_name = Some(module.to_owned()).filter(|module| module != "n/a");
        frame.image_offset = frame.image_name.as_ref().map(|_| offset);
        return Some((frame, Vec::new()));
    }
    // eu-stack with -m: `read+0x10 - /lib/libc.so.6`.
    let (name, module) = match name.split_once(" - ").filter(|_| arguments.is_none()) {
        Some((name, module)) => (name, Some(module)),
        None => (name, None),
    };
    // systemd-coredump's older rows have no offset: `raise (libc.so.6)`.
    if let Some(module) = arguments.and_then(|arguments| bare_module(arguments, address)) {
        let mut frame = named(index, name.trim(), None);
        frame.reported = frame.reported.filter(|symbol| symbol.name != "n/a");
        frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
        frame.image_name = Some(super::log::file_name(module).to_owned()).filter(|module| module != "n/a");
        let notes = Some(format!("from {module}")).filter(|_| module.contains('/'));
        return Some((frame, notes.into_iter().collect()));
    }
    let found = tail.strip_prefix("at ").and_then(place);
    let is_unknown = matches!(name, "??" | "???" | "<unknown>");
    let mut frame = named(index, if is_unknown { "" } else { name }, found);
    if is_unknown {
        frame.reported = None;
    }
    frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
    let file = tail.strip_prefix("from ").or(module);
    frame.image_name = file.map(|path| super::log::file_name(path).to_owned());
    // The whole path, and arguments, are said of the frame.
    notes.extend(file.filter(|path| path.contains('/')).map(|path| format!("from {path}")));
    notes.extend(arguments.filter(|arguments| *arguments != "()").map(str::to_owned));
    if found.is_none() && tail.starts_with("at ") {
        notes.push(tail.to_owned());
    }
    Some((frame, notes))
}

/// `(libc.so.6 + 0x3dbc5)`.
fn module_of(arguments: &str) -> Option<(&str, u64)> {
    let (module, offset) = arguments.strip_prefix('(')?.strip_suffix(')')?.rsplit_once(" + ")?;
    let is_module = !module.is_empty() && !module.contains([' ', '=', ',']);
    hex(offset).filter(|_| is_module && offset.starts_with("0x")).map(|offset| (module, offset))
}

/// `(libc.so.6)`, `(/usr/bin/program)`, `(n/a)` behind an address; arguments have values.
fn bare_module(arguments: &str, address: Option<u64>) -> Option<&str> {
    let module = arguments.strip_prefix('(')?.strip_suffix(')')?;
    let is_module = module == "n/a" || module.starts_with('/') || module.contains(".so");
    (address.is_some() && is_module && !module.contains([' ', '=', ','])).then_some(module)
}

/// `1: 0x00007fff a.out`main(argc=1) + 12 at x.c:3:5`.
fn lldb_row(rest: &str) -> Option<(Frame, Vec<String>)> {
    let (number, rest) = rest.split_once(": ")?;
    let index = number.parse().ok()?;
    let (first, behind) = word(rest);
    // Rows that somebody shortened have no address.
    let address = hex(first);
    let rest = if address.is_some() { behind } else { rest };
    if address.is_none() && !first.contains('`') {
        return None;
    }
    let mut notes = Vec::new();
    let (module, rest) = rest.split_once('`').unwrap_or(("", rest));
    let (head, at) = rest.rsplit_once(" at ").unwrap_or((rest, ""));
    let found = place(at);
    let (name, offset) = match head.rsplit_once(" + ") {
        Some((name, offset)) => (name, offset.trim().parse().ok()),
        None => (head, None),
    };
    let mut frame = named(index, name.trim(), found);
    if let Some(symbol) = &mut frame.reported {
        symbol.offset = offset;
    }
    frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
    frame.image_name = Some(module.to_owned()).filter(|module| !module.is_empty());
    if found.is_none() && !at.is_empty() {
        notes.push(format!("at {at}"));
    }
    Some((frame, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_debuggers() {
        let read = |row: &str| {
            let (frame, notes) = read_row(row).unwrap();
            let symbol = frame.reported.clone().unwrap_or_default();
            (
                symbol.name,
                symbol.file,
                symbol.line,
                frame.address.map(|it| it.raw().get()),
                frame.image_name,
                notes,
            )
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("#1  0x0000000000420240 in a::b (this=0x12, f=@0x1: (1, 2)) at screen.C:3047"),
            (
                "a::b".to_owned(),
                text("screen.C"),
                Some(3047),
                Some(0x42_0240),
                None,
                vec!["(this=0x12, f=@0x1: (1, 2))".to_owned()]
            )
        );
        assert_eq!(
            read("#2  0x00007ffff7c6b859 in __GI_abort () from /lib/libc.so.6"),
            (
                "__GI_abort".to_owned(),
                None,
                None,
                Some(0x7fff_f7c6_b859),
                text("libc.so.6"),
                vec!["from /lib/libc.so.6".to_owned()]
            )
        );
        assert_eq!(
            read("#5  std::function<void (int)>::operator() (this=0x1) at f.h:1").0,
            "std::function<void (int)>::operator()"
        );
        assert_eq!(read("#3  (anonymous namespace)::f (x=1) at f.c:1").0, "(anonymous namespace)::f");
        let gfortran = read("#1  0x410323 in __shop_MOD_price at ../shop.f90:426");
        assert_eq!((gfortran.0.as_str(), gfortran.2), ("__shop_MOD_price", Some(426)));
        assert_eq!(read("#1  0x410323 in raise (libc.so.6)").4, text("libc.so.6"));
        assert_eq!(read("#3  <signal handler called>").0, "<signal handler called>");
        assert_eq!(
            read("frame #0: 0x0000000100003f64 a.out`main(argc=1) at x.c:3:5"),
            ("main(argc=1)".to_owned(), text("x.c"), Some(3), Some(0x1_0000_3f64), text("a.out"), Vec::new())
        );
        assert_eq!(read("#0  0x00007f3a read+0x10 - /lib/libc.so.6").0, "read+0x10");
    }

    #[test]
    fn heads() {
        assert_eq!(head("Thread 1 (Thread 0x7f7badf717e0 (LWP 10303)):").unwrap().id, Some(10303));
        assert_eq!(head("Thread 2 (LWP 12 \"name\"):").unwrap().name, Some("name"));
        assert_eq!(head("* thread #1, name = 'x', stop reason = signal SIGSEGV").unwrap().name, Some("x"));
        assert_eq!(head("TID 12:").unwrap().number, 12);
        assert!(head("Thread 0 Crashed:").is_none() && head("Thread 0:").is_none());
    }

    #[test]
    fn stacks_that_programs_print() {
        let text = "7:M 07 Jan 2025 12:58:10.527 # Redis 7.0 crashed by signal: 11, si_code: 1\n7:M 07 Jan 2025 12:58:10.527 # Accessing address: 0x8\n\n------ STACK TRACE ------\nEIP:\n./shop *:6379(price+0x1fc)[0x59e41e]\n\nBacktrace:\n/lib/libc.so.6(+0x45320)[0x798fd5]\nPrinting to addr2line failed\n./shop *:6379(price+0x1fc)[0x59e41e]\n./shop(main+0x46d)[0x59e955]\n";
        let report = crate::parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!((exception.signal.as_deref(), exception.address), (Some("SIGSEGV"), Some(Avma::new(8))));
        assert_eq!(report.crashed().unwrap().frames.len(), 3);
        assert!(report.process.backtraces.is_empty());
    }
}
