//! `hs_err_pid*.log`: what HotSpot writes when it crashes or runs out of memory.
//!
//! Rows state an offset from where their library was loaded, which for shared libraries is the address as the file states
//! it; the memory map, where the log has one, gives the address in the process.

use super::log::{Log, Reader, between, drive, file_name, hex, named, word};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Arch, Avma, FrameAddress, Svma};
use backtrail_model::{AppInfo, Exception, Field, Frame, Language, Register, Report, Source, Thread};

/// Lines that only such a log has.
const TELLING: [&str; 2] = [
    "A fatal error has been detected by the Java Runtime Environment:",
    "There is insufficient memory for the Java Runtime Environment to continue.",
];

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    // Pages take `#` for a heading; some builds' logs put words before it.
    let line = sentence_of(line);
    TELLING.iter().any(|telling| line.starts_with(telling))
}

/// A line without the mark that sentences of the head have, and what a build's log puts before it.
fn sentence_of(line: &str) -> &str {
    let line = line.trim_start();
    let marked = line.split_once('#').and_then(|(before, rest)| Some((before, rest.strip_prefix(' ')?)));
    let behind = marked.filter(|(before, _)| {
        before.is_empty()
            || *before == "//"
            || before.ends_with(": ") && before.len() <= 20 && !before.trim().contains(' ')
    });
    behind.map_or(line, |(_, rest)| rest.trim_start())
}

/// Reads such a log.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::JavaErrorLog, limits);
    let mut reader = HsErr { log, part: Part::Head, head: Vec::new(), is_unmarked: false, problem: None };
    drive(&mut reader, input, start);
    let HsErr { mut log, head, problem, .. } = reader;
    if head.is_empty() && log.report.exception.is_none() && log.report.process.threads.is_empty() {
        return None;
    }
    log.report.app_info.push(AppInfo { image: None, lines: head });
    let process = &mut log.report.process;
    let mut stacks = process.threads.iter().map(|thread| &thread.frames);
    if let Some(frame) = problem.filter(|_| process.backtraces.is_empty() && stacks.all(Vec::is_empty)) {
        if process.threads.is_empty() {
            process.threads.push(Thread { crashed: true, ..Thread::default() });
        }
        process.threads.iter_mut().take(1).for_each(|thread| thread.frames.push(frame.clone()));
    }
    process.name.get_or_insert_with(|| "java".to_owned());
    process.crashed_thread = (!process.threads.is_empty()).then_some(0);
    let mut report = log.finish();
    place(&mut report);
    Some(report)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Other,
    Registers,
    Frames,
    Libraries,
}

struct HsErr<'l> {
    log: Log<'l>,
    part: Part,
    /// The sentences behind `#`.
    head: Vec<String>,
    /// Whether the head's sentences have no mark: a page took them for headings.
    is_unmarked: bool,
    /// The frame that the head names, which is all there is of a stack where the log itself is not given.
    problem: Option<Frame>,
}

impl<'l> Reader<'l> for HsErr<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        let marked = trimmed.strip_prefix('#').map(str::trim).or_else(|| {
            let sentence = sentence_of(trimmed);
            (sentence.len() < trimmed.len()).then_some(sentence)
        });
        self.is_unmarked |= marked.is_none() && self.head.is_empty() && is_sure(trimmed);
        let is_head = self.is_unmarked && self.part == Part::Head && !trimmed.starts_with("---");
        if let Some(sentence) = marked.or_else(|| is_head.then_some(trimmed)) {
            if self.head.last().is_some_and(|last| last.starts_with("Problematic frame")) {
                self.problem = row(sentence, line, &mut self.log).map(|frame| Frame { index: 0, ..frame });
            }
            self.sentence(sentence);
            return false;
        }
        // Pages and issues leave blank lines between the sentences of the head.
        if trimmed.is_empty() && self.part == Part::Head {
            return false;
        }
        if trimmed.is_empty() || trimmed.starts_with("------") {
            self.part = Part::Other;
            self.log.end_stack();
            return false;
        }
        if trimmed.starts_with("Native frames:") || trimmed.starts_with("Java frames:") {
            self.frames(trimmed);
            return false;
        }
        match (trimmed, self.part) {
            ("Registers:", _) => self.part = Part::Registers,
            ("Dynamic libraries:", _) => self.part = Part::Libraries,
            (_, Part::Registers) => return self.registers(trimmed),
            (_, Part::Libraries) => return self.library(trimmed),
            (_, Part::Frames) => {
                if let Some(frame) = row(trimmed, line, &mut self.log) {
                    return self.log.push(frame);
                }
            }
            _ => self.facts(trimmed),
        }
        false
    }
}

impl HsErr<'_> {
    fn sentence(&mut self, sentence: &str) {
        let report = &mut self.log.report;
        if sentence.is_empty() {
            return;
        }
        if let Some((key, value)) =
            sentence.split_once(": ").filter(|(key, _)| matches!(*key, "JRE version" | "Java VM"))
        {
            let value = value.trim();
            match key {
                "JRE version" => report.process.version = Some(value.to_owned()),
                _ => {
                    report.process.arch = arch(value);
                    report.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
                }
            }
            return;
        }
        if self.part == Part::Head && self.head.len() < 40 && !sentence.starts_with("http") {
            self.head.push(sentence.to_owned());
        }
        let (first, rest) = word(sentence);
        let number = |name: &str| between(rest, name, ",").or(rest.split_once(name).map(|(_, rest)| rest));
        let pid = number("pid=").and_then(|pid| word(pid).0.trim_end_matches(',').parse().ok());
        report.process.pid = report.process.pid.or(pid);
        if report.exception.is_some() && !first.starts_with("SIG") && !sentence.contains(", pid=") {
            return;
        }
        if first.starts_with("SIG") || first.starts_with("EXCEPTION_") {
            report.exception = Some(Exception {
                signal: Some(first.to_owned()).filter(|name| name.starts_with("SIG")),
                kind: Some(first.to_owned()).filter(|name| name.starts_with("EXCEPTION_")),
                codes: Some(rest.to_owned()),
                ..Exception::default()
            });
        } else if first == "Internal" || sentence.starts_with("Out of Memory Error") {
            let (what, _) = sentence.split_once(", pid=").unwrap_or((sentence, ""));
            let exception = report.exception.get_or_insert_with(Exception::default);
            exception.kind =
                Some(if first == "Internal" { "Internal Error" } else { "Out of Memory Error" }.to_owned());
            exception.message.get_or_insert_with(|| what.to_owned());
        } else if sentence.starts_with("Native memory allocation") {
            let exception = report.exception.get_or_insert_with(Exception::default);
            exception.kind = Some("Out of Memory Error".to_owned());
            exception.message = Some(sentence.to_owned());
        } else if ["Error: ", "assert(", "guarantee(", "fatal error: "]
            .iter()
            .any(|it| sentence.starts_with(it))
            && let Some(exception) = &mut report.exception
        {
            exception.message = Some(sentence.to_owned());
        }
    }

    fn frames(&mut self, title: &str) {
        self.part = Part::Frames;
        let (title, _) = title.split_once(':').unwrap_or((title, ""));
        // A thread may have been named before its stack.
        let begun = match self.log.report.process.threads.first() {
            Some(thread) if thread.frames.is_empty() && title == "Native frames" => {
                self.log.resume();
                return;
            }
            Some(_) => self.log.begin_backtrace(title, false),
            None => self.log.begin_thread(Thread { crashed: true, ..Thread::default() }),
        };
        if !begun {
            self.part = Part::Other;
        }
    }

    fn facts(&mut self, line: &str) {
        let report = &mut self.log.report;
        if let Some(rest) = line.strip_prefix("Current thread (").or(line.strip_prefix("Current thread is "))
        {
            // `0x7f):  JavaThread "main" [_thread_in_native, id=12, stack(…)]`
            let what = rest.split_once("):").map_or(rest, |(_, what)| what).trim();
            let name = between(what, "\"", "\"").or(what.split(['[', ' ']).next());
            let id = what.split_once("id=").and_then(|(_, id)| {
                let digits = id.bytes().take_while(u8::is_ascii_digit).count();
                id.get(..digits)?.parse().ok()
            });
            let state = between(what, "[_", ",").map(|state| format!("_{state}"));
            let name = name.map(str::to_owned).filter(|name| !name.is_empty());
            if report.process.threads.is_empty() {
                self.log.begin_thread(Thread { id, name, state, crashed: true, ..Thread::default() });
            }
            return;
        }
        if let Some(rest) = line.strip_prefix("siginfo:") {
            if let Some(exception) = &mut report.exception {
                // Up to Java 8: `siginfo:si_signo=SIGSEGV: si_errno=0, si_code=1 (SEGV_MAPERR), si_addr=0x8`.
                let address = rest.split_once("si_addr: ").or_else(|| rest.split_once("si_addr="));
                let address = address.and_then(|(_, rest)| hex(word(rest).0));
                exception.address = exception.address.or(address.map(Avma::new));
                let code = between(rest, "si_code: ", ",").or_else(|| between(rest, "si_code=", ","));
                exception.subtype = code.map(str::to_owned);
            }
            return;
        }
        let set = |place: &mut Option<String>, value: &str| {
            place.get_or_insert_with(|| value.trim().to_owned());
        };
        if let Some(value) = line.strip_prefix("OS:") {
            set(&mut report.os, value);
        } else if let Some(value) = line.strip_prefix("java_command: ") {
            set(&mut report.process.command_line, value);
        } else if let Some(value) = line.strip_prefix("time: ").or(line.strip_prefix("Time: ")) {
            set(&mut report.time, value);
        }
    }

    /// `RAX=0x0000000000000000, RBX=0x00007f4a896a1000`.
    fn registers(&mut self, line: &str) -> bool {
        let mut registers = Vec::new();
        for part in line.split([',', ' ']).filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else { return false };
            let Some(value) = hex(value) else { return false };
            registers.push(Register { name: name.to_owned(), value, note: None });
        }
        let Some(thread) = self.log.report.process.threads.first_mut() else { return false };
        if registers.is_empty() || thread.registers.len() > 256 {
            return false;
        }
        thread.registers.append(&mut registers);
        true
    }

    /// A line of `/proc/PID/maps`; `0x00007ff6 - 0x00007ff7  C:\jvm.dll`. What it says of each mapping stays in the log.
    fn library(&mut self, line: &str) -> bool {
        let windows = line.split_once(" - ").and_then(|(start, rest)| Some((hex(start)?, word(rest).1)));
        let linux = || {
            let (range, rest) = line.split_once(' ')?;
            let (start, _) = range.split_once('-')?;
            Some((u64::from_str_radix(start, 16).ok()?, rest.get(rest.find('/')?..)?.trim()))
        };
        if let Some((start, path)) = windows.or_else(linux).filter(|(_, path)| !path.is_empty()) {
            self.log.image(path, Some(Avma::new(start)), None);
        }
        false
    }
}

/// `V  [libjvm.so+0xb93199]  VMError::report_and_die()+0x239`, `j  Main.f(Ljava/lang/String;)V+5`,
/// `J 12 c2 java.util.List.of()V (8 bytes) @ 0x00007f [0x00007e+0x1c]`, `v  ~StubRoutines::call_stub`.
fn row(line: &str, at: &Line<'_>, log: &mut Log<'_>) -> Option<Frame> {
    let (kind, rest) = word(line);
    if !matches!(kind, "C" | "V" | "J" | "j" | "v" | "A" | "C*") {
        return None;
    }
    let index = log.next_index();
    let mut frame = match kind {
        "j" | "J" | "A" => {
            let mut words = rest.split_whitespace().filter(|word| word.contains('(') && word.contains('.'));
            let call = words.next()?;
            let (name, _) = call.split_once('(')?;
            let mut frame = named(index, name, None);
            frame.language = Some(Language::Java);
            let address = rest.split_once(" @ ").and_then(|(_, rest)| hex(word(rest).0));
            frame.address = address.map(|address| FrameAddress::Return(Avma::new(address)));
            // Signature, bytecode, compiler, size.
            frame.annotations.push(line.to_owned());
            frame
        }
        _ => {
            let mut frame = Frame::new(index);
            let (image, symbol) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((image, symbol)) => (Some(image), symbol.trim()),
                None => (None, rest),
            };
            let (image, offset) = image.map_or((None, None), |image| match image.rsplit_once("+0x") {
                Some((image, offset)) => (Some(image), u64::from_str_radix(offset, 16).ok()),
                None => (Some(image), None),
            });
            frame.image_name = image.map(str::to_owned);
            frame.image_offset = offset;
            let (name, distance) = match symbol.rsplit_once("+0x") {
                Some((name, distance)) => (name, u64::from_str_radix(distance, 16).ok()),
                None => (symbol, None),
            };
            if name.starts_with("0x") {
                frame.address = hex(word(name).0).map(|address| FrameAddress::Return(Avma::new(address)));
            } else if !name.is_empty() {
                frame.reported = named(index, name, None).reported;
                if let Some(symbol) = &mut frame.reported {
                    symbol.offset = distance;
                }
            }
            frame
        }
    };
    frame.span = Some(at.span.clone());
    Some(frame)
}

/// Finds the image of each native row, and its addresses.
fn place(report: &mut Report) {
    let process = &mut report.process;
    let stacks = process.threads.iter_mut().map(|thread| &mut thread.frames);
    let stacks: Vec<_> = stacks.chain(process.backtraces.iter_mut().map(|stack| &mut stack.frames)).collect();
    let mut by_name = std::collections::HashMap::new();
    for (position, image) in process.images.iter().enumerate() {
        by_name.entry(image.name.clone()).or_insert(position);
    }
    for frames in stacks {
        let mut is_first = true;
        for frame in frames.iter_mut() {
            let was_first = std::mem::take(&mut is_first);
            let (Some(name), Some(offset)) = (frame.image_name.clone(), frame.image_offset) else { continue };
            let name = file_name(&name).to_owned();
            let position = *by_name.entry(name.clone()).or_insert_with(|| {
                process.images.push(backtrail_model::Image { name, ..backtrail_model::Image::default() });
                process.images.len() - 1
            });
            frame.image = Some(position);
            let load = process.images.get(position).map_or(Avma::new(0), |image| image.load_address);
            let address = load.get().checked_add(offset).map(Avma::new).filter(|_| load.get() != 0);
            frame.address = address
                .map(|avma| if was_first { FrameAddress::Exact(avma) } else { FrameAddress::Return(avma) });
            // The call before a return address.
            frame.relative_pc = offset.checked_sub(u64::from(!was_first)).map(Svma::new);
        }
    }
}

fn arch(vm: &str) -> Option<Arch> {
    let known = [
        ("-amd64", Arch::X86_64),
        ("-aarch64", Arch::Arm64),
        ("-x86", Arch::X86),
        ("-arm", Arch::Arm),
        ("-ppc64", Arch::Ppc64),
    ];
    known.iter().find(|(name, _)| vm.contains(name)).map(|(_, arch)| *arch)
}
