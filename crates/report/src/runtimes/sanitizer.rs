//! Reports of sanitizers: AddressSanitizer, HWAddressSanitizer, LeakSanitizer, MemorySanitizer, ThreadSanitizer,
//! UndefinedBehaviorSanitizer; and libFuzzer's, which have the same rows, and GWP-ASan's of its own, whose rows may be those
//! of the C library.
//!
//! A row whose number does not go on begins a new stack; the line before it is its title. The first stack is that of the
//! thread at fault, the others say where memory was allocated and freed, threads made, values stored. Leaks are stacks of
//! no thread. Programs that print such stacks of their own get the same treatment.
//!
//! The printed addresses are those of the call already, on the first row too; the offset beside a file is the address as the
//! file states it (`dlpi_addr` is taken off), so that it needs no load address.

use super::log::{Log, Reader, between, drive, hex, named, place, word};
use super::native_row::NativeRow;
use crate::Limits;
use crate::apple_text::Line;
use crate::last_words;
use backtrail_core::{Avma, FrameAddress, ImageId, Svma};
use backtrail_model::{AppInfo, Exception, Frame, Report, Source, Thread};

/// Reads such a report.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader =
        Sanitizer { log: Log::new(Source::Sanitizer, limits), title: String::new(), has_header: false };
    drive(&mut reader, input, start);
    let mut report = reader.log.finish();
    report.exception.as_ref()?;
    report.process.crashed_thread = (!report.process.threads.is_empty()).then_some(0);
    Some(report)
}

struct Sanitizer<'l> {
    log: Log<'l>,
    /// The last line that may be a stack's title.
    title: String,
    /// Whether the sanitizer's own first line was seen, not only its last words.
    has_header: bool,
}

/// What the first line of a report says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'t> {
    pid: Option<u64>,
    /// `AddressSanitizer`.
    tool: &'t str,
    /// `heap-use-after-free`, and what follows.
    what: &'t str,
}

impl<'t> Header<'t> {
    /// Reads `==12==ERROR: AddressSanitizer: heap-use-after-free on …`, `WARNING: ThreadSanitizer: data race (pid=12)`,
    /// `==12== ERROR: libFuzzer: timeout after 90 seconds`.
    /// `Use After Free at 0x5b1000 (0 bytes into a 64-byte allocation at 0x5b1000) by thread 7 here:`.
    pub(super) fn read(line: &'t str) -> Option<Self> {
        if let Some(what) = gwp_asans(line) {
            return Some(Self { pid: None, tool: GWP_ASAN, what });
        }
        let at = line.find("ERROR: ").map(|at| (at, 7)).or_else(|| line.find("WARNING: ").map(|at| (at, 9)));
        let (at, length) = at?;
        let rest = line.get(at + length..)?;
        let (tool, what) = rest.split_once(": ")?;
        let is_tool = tool == "libFuzzer" || tool.ends_with("Sanitizer");
        let before = line.get(..at)?.trim_end();
        let before = before.rsplit_once(char::is_whitespace).map_or(before, |(_, last)| last);
        let pid = between(before, "==", "==").and_then(|pid| pid.parse().ok());
        // Other lines speak about reports: only the mark or nothing stands before one.
        let is_marked = before.is_empty() || pid.is_some();
        // It warns that it found nothing, or cannot say.
        let is_aside = what.starts_with("failed to ")
            || what.starts_with("ASan is ignoring")
            || what.starts_with("ASan doesn't");
        (is_tool && is_marked && !is_aside && !tool.contains(' ')).then_some(Self { pid, tool, what })
    }

    /// Whether it begins a report of its own. libFuzzer speaks of what a sanitizer or the program told right before.
    pub(super) fn is_report(&self) -> bool {
        self.tool != "libFuzzer"
    }
}

const GWP_ASAN: &str = "GWP-ASan";

/// What GWP-ASan's line says. It names itself in the line before only.
fn gwp_asans(line: &str) -> Option<&str> {
    let line = line.strip_suffix(" here:")?;
    let (what, thread) = line.rsplit_once(" by thread ")?;
    let errors =
        ["Use After Free", "Double Free", "Invalid (Wild) Free", "Buffer Overflow", "Buffer Underflow"];
    let is_number = thread == "<unknown>" || thread.bytes().all(|byte| byte.is_ascii_digit());
    let is_error = errors
        .iter()
        .any(|error| what.strip_prefix(error).and_then(|rest| rest.strip_prefix(" at 0x")).is_some());
    (is_number && is_error).then_some(line)
}

/// A line without the mark of a heading (`## `), which Markdown makes of the sanitizer's `====`. Rows have none.
pub(super) fn without_heading(line: &str) -> &str {
    line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')).unwrap_or(line)
}

/// `FILE:LINE:COLUMN: runtime error: TEXT`, split.
pub(super) fn runtime_error(line: &str) -> Option<(&str, &str)> {
    let (before, what) = line.split_once(": runtime error: ")?;
    let before = before.trim_start();
    (place(before).is_some() || before == "<unknown>").then_some((before, what))
}

impl<'l> Reader<'l> for Sanitizer<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = without_heading(text.trim());
        if let Some(row) = Row::read(trimmed) {
            return self.row(&row, line);
        }
        if let Some(frame) = self.native_row(trimmed) {
            let span = Some(line.span.clone());
            return self.place(frame.index) && self.log.push(Frame { span, ..frame });
        }
        self.log.end_stack();
        if trimmed.is_empty() {
            return false;
        }
        if let Some(header) = Header::read(trimmed) {
            self.header(&header, trimmed);
        } else if let Some((at, what)) = runtime_error(trimmed) {
            self.runtime_error(at, what, trimmed);
        } else if let Some(at) = trimmed.find("SUMMARY: ") {
            self.summary(trimmed.get(at..).unwrap_or_default());
        } else {
            self.facts(trimmed);
        }
        trimmed.clone_into(&mut self.title);
        false
    }
}

impl Sanitizer<'_> {
    fn header(&mut self, header: &Header<'_>, line: &str) {
        let report = &mut self.log.report;
        // libFuzzer reports what a sanitizer told before; the first is what happened.
        if self.has_header {
            return;
        }
        self.has_header = true;
        report.process.pid =
            header.pid.or_else(|| between(header.what, "(pid=", ")").and_then(|pid| pid.parse().ok()));
        let address = ["on address ", "on unknown address ", "address ", " at "].iter().find_map(|mark| {
            let (number, _) = word(header.what.split_once(mark)?.1);
            hex(number.trim_end_matches([',', ')', ':', ';']))
        });
        report.exception = Some(Exception {
            kind: Some(header.tool.to_owned()),
            signal: signal(header.what).map(str::to_owned),
            subtype: Some(short(header.what).to_owned()),
            address: address.map(Avma::new),
            message: Some(line.get(line.find(header.tool).unwrap_or(0)..).unwrap_or(line).to_owned()),
            ..Exception::default()
        });
        let at = line.find(header.tool).unwrap_or(0);
        let said = line.get(at..).unwrap_or(line).to_owned();
        report.app_info.push(AppInfo { image: None, lines: vec![said] });
    }

    fn runtime_error(&mut self, at: &str, what: &str, line: &str) {
        let report = &mut self.log.report;
        if report.exception.is_some() {
            return;
        }
        report.exception = Some(Exception {
            kind: Some("UndefinedBehaviorSanitizer".to_owned()),
            subtype: Some(what.to_owned()),
            message: Some(line.to_owned()),
            ..Exception::default()
        });
        report.app_info.push(AppInfo { image: None, lines: vec![line.to_owned()] });
        report.fields.push(backtrail_model::Field { key: "place".to_owned(), value: at.to_owned() });
    }

    /// The last line, for reports whose beginning was cut.
    fn summary(&mut self, line: &str) {
        let report = &mut self.log.report;
        let Some((tool, what)) = line.strip_prefix("SUMMARY: ").and_then(|rest| rest.split_once(": ")) else {
            return;
        };
        if report.exception.is_none() && (tool.ends_with("Sanitizer") || tool == "libFuzzer") {
            report.exception = Some(Exception {
                kind: Some(tool.to_owned()),
                subtype: Some(short(what).to_owned()),
                message: Some(format!("{tool}: {what}")),
                ..Exception::default()
            });
        }
    }

    fn facts(&mut self, line: &str) {
        // What the program itself had printed before its end.
        if last_words::is_librarys(line) {
            last_words::add(&mut self.log.report, line);
        }
        let Some(exception) = &mut self.log.report.exception else { return };
        let access = [
            "READ of size ",
            "WRITE of size ",
            "Write of size ",
            "Read of size ",
            "Atomic write of size ",
            "Atomic read of size ",
        ];
        let rest =
            line.strip_prefix("==").and_then(|rest| rest.split_once("==")).map_or(line, |(_, rest)| rest);
        if access.iter().any(|begin| line.starts_with(begin)) {
            exception.codes.get_or_insert_with(|| line.trim_end_matches(':').to_owned());
            if exception.address.is_none() {
                let number = line.split_once(" at 0x").map(|(_, rest)| word(rest).0);
                exception.address =
                    number.and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(Avma::new);
            }
        } else if rest.starts_with("The signal is caused by a ") {
            exception.codes.get_or_insert_with(|| rest.to_owned());
        }
    }

    /// `#4 app(main+0x2e) [0x5555555a115e]`, as GWP-ASan prints them where the C library words its rows.
    fn native_row(&self, line: &str) -> Option<Frame> {
        let (number, rest) = word(line.strip_prefix('#')?);
        let row = NativeRow::read(rest).filter(NativeRow::is_sure)?;
        Some(row.frame(number.parse().ok()?))
    }

    /// Whether a row of such a number has a stack that it belongs to; it may begin one.
    fn place(&mut self, index: u32) -> bool {
        // A stack of something else is kept as text.
        if self.log.report.exception.is_none() {
            return false;
        }
        let last = self.log.frames().and_then(|frames| frames.last().map(|frame| frame.index));
        let goes_on = last.is_some_and(|last| index == last || index == last.saturating_add(1));
        goes_on || self.begin(index)
    }

    fn row(&mut self, row: &Row<'_>, line: &Line<'_>) -> bool {
        if !self.place(row.index) {
            return false;
        }
        let image = row.module.and_then(|module| {
            let load_address =
                row.address.zip(row.offset).and_then(|(address, offset)| address.checked_sub(offset));
            self.log.image(module, load_address.map(Avma::new), row.id)
        });
        let mut frame = row.frame();
        frame.image = image;
        frame.span = Some(line.span.clone());
        // Several functions at one address: the inner ones are inlined.
        let is_same = row.address.is_some_and(|address| address != 0);
        if let Some(before) = self.log.frames().and_then(|frames| frames.last_mut())
            && is_same
            && before.address == frame.address
        {
            before.inlined = true;
        }
        let pushed = self.log.push(frame);
        if pushed && !row.rest.is_empty() {
            return self.log.annotate(row.rest);
        }
        pushed
    }

    /// Begins the stack whose title was read last.
    fn begin(&mut self, index: u32) -> bool {
        let title = std::mem::take(&mut self.title);
        let is_first =
            self.log.report.process.threads.is_empty() && self.log.report.process.backtraces.is_empty();
        let is_leak = self
            .log
            .report
            .exception
            .as_ref()
            .is_some_and(|exception| exception.kind.as_deref() == Some("LeakSanitizer"));
        if index != 0 && title.is_empty() && is_first {
            return false;
        }
        if is_first && !is_leak {
            let number = thread_number(&title).unwrap_or(0);
            let name = between(&title, " (", ")").filter(|_| title.contains(" thread T")).map(str::to_owned);
            return self.log.begin_thread(Thread { number, name, crashed: true, ..Thread::default() });
        }
        let title = title.trim_end_matches(':');
        self.log.begin_backtrace(if title.is_empty() { "Stack" } else { title }, false)
    }
}

/// The number of the thread that a title speaks of.
fn thread_number(title: &str) -> Option<u64> {
    let (_, rest) = title.split_once("thread T")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}

/// The mistake, without the addresses that follow.
fn short(what: &str) -> &str {
    let what = what.split_once(" at 0x").map_or(what, |(what, _)| what);
    let what = what.split_once(" on unknown address").map_or(what, |(what, _)| what);
    let what = what.split_once(" on address").map_or(what, |(what, _)| what);
    let what = what.split_once(" (pid=").map_or(what, |(what, _)| what);
    let what = what.split_once(" (0x").map_or(what, |(what, _)| what);
    let what = what.split_once(" /").map_or(what, |(what, _)| what);
    let what = what.split_once(" 0x").map_or(what, |(what, _)| what);
    what.trim_end_matches([':', ' '])
}

/// The signal that was caught, by the sanitizer's word for it.
fn signal(what: &str) -> Option<&'static str> {
    let (first, _) = word(what);
    Some(match first {
        "SEGV" | "access-violation" | "stack-overflow" => "SIGSEGV",
        "BUS" => "SIGBUS",
        "FPE" | "int-divide-by-zero" => "SIGFPE",
        "ILL" | "illegal-instruction" => "SIGILL",
        "ABRT" => "SIGABRT",
        "TRAP" | "breakpoint" => "SIGTRAP",
        _ => return None,
    })
}

/// One row: `#1 0x4f6b78 in f(int) /src/f.cc:76:7`, `#0 0x7f3a  (/lib/libc.so.6+0x38d7f) (BuildId: 0a1b)`,
/// `#0 main /src/f.c:12 (a.out+0x1234)`.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Row<'t> {
    pub(super) index: u32,
    address: Option<u64>,
    name: Option<&'t str>,
    place: Option<super::log::SourcePlace<'t>>,
    module: Option<&'t str>,
    offset: Option<u64>,
    id: Option<ImageId>,
    /// What else it says.
    rest: &'t str,
}

impl<'t> Row<'t> {
    pub(super) fn read(line: &'t str) -> Option<Self> {
        let (number, rest) = word(line.strip_prefix('#')?);
        let index = number.parse().ok()?;
        let mut row = Self { index, ..Self::default() };
        let (first, behind) = word(rest);
        let mut rest = rest;
        if let Some(address) = hex(first) {
            row.address = Some(address);
            rest = behind;
            rest = rest.strip_prefix("in ").unwrap_or(rest);
        } else if rest.is_empty() {
            return None;
        }
        rest = rest.trim();
        if let Some((before, id)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once("(BuildId: ")) {
            row.id = ImageId::parse_build_id(id).ok();
            if row.id.is_some() {
                rest = before.trim_end();
            }
        }
        if let Some((before, module)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('('))
            && let Some((module, offset)) = module.rsplit_once("+0x")
            && let Ok(offset) = u64::from_str_radix(offset, 16)
        {
            (row.module, row.offset) = (Some(module), Some(offset));
            rest = before.trim_end();
        }
        // Chromium's Windows builds print a distance in the function: `f+0x123 (C:\src\f.cc:12)`.
        if let Some((before, inside)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("))
            && let Some(found) = place(inside)
        {
            row.place = Some(found);
            rest = before.trim_end();
        }
        if matches!(rest, "(<unknown module>)" | "<unknown module>") {
            (row.rest, rest) = ("<unknown module>", "");
        }
        if row.place.is_none()
            && let Some((before, last)) = rest.rsplit_once(char::is_whitespace)
        {
            // A path may stand without a line where debug info has none.
            let is_path = last.starts_with('/')
                || (last.contains('/') && !last.contains(['(', '<', ',', '>', '&', '*']));
            if last == "<null>" || last == "??:0" || last == "??" {
                rest = before;
            } else if let Some(found) = place(last) {
                row.place = Some(found);
                rest = before;
            } else if is_path {
                row.place = Some(super::log::SourcePlace { file: last, line: 0, column: None });
                rest = before;
            }
        }
        let rest = rest.trim();
        row.name = Some(rest).filter(|name| !name.is_empty() && *name != "??");
        let says = row.address.is_some() || row.module.is_some() || row.place.is_some();
        says.then_some(row)
    }

    /// The frame, without its image.
    pub(super) fn frame(&self) -> Frame {
        let mut frame = named(self.index, self.name.unwrap_or_default(), self.place);
        frame.reported = frame.reported.filter(|symbol| !symbol.name.is_empty() || symbol.file.is_some());
        frame.address = self.address.map(|address| FrameAddress::Exact(Avma::new(address)));
        frame.relative_pc = self.offset.map(Svma::new);
        frame.image_offset = self.offset;
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_forms() {
        let row = Row::read("#1 0x4f6b78 in f(int) const /src/f.cc:76:7").unwrap();
        assert_eq!((row.index, row.address, row.name), (1, Some(0x4f_6b78), Some("f(int) const")));
        let at = row.place.unwrap();
        assert_eq!((at.file, at.line, at.column), ("/src/f.cc", 76, Some(7)));
        let row = Row::read("#0 0x7f3a38d7f  (/lib/libc.so.6+0x38d7f) (BuildId: 0a1b2c3d0a1b2c3d)").unwrap();
        assert_eq!((row.name, row.module, row.offset), (None, Some("/lib/libc.so.6"), Some(0x38d7f)));
        assert!(row.id.is_some());
        let row = Row::read("#0 main /tmp/x.c:12 (a.out+0x1234)").unwrap();
        assert_eq!((row.address, row.name, row.module), (None, Some("main"), Some("a.out")));
        let row = Row::read("#1 malloc <null> (a.out+0x51ed)").unwrap();
        assert_eq!((row.name, row.place), (Some("malloc"), None));
        let row = Row::read("#0 0x631000001000  (<unknown module>)").unwrap();
        assert_eq!((row.name, row.rest), (None, "<unknown module>"));
        for line in ["#2\tINITED cov: 7 ft: 7", "#include <a.h>", "# words", "#", "#1"] {
            assert_eq!(Row::read(line), None, "{line}");
        }
    }

    #[test]
    fn gwp_asans_reports() {
        let text = "*** GWP-ASan detected a memory error ***\n\
            Buffer Overflow at 0x7bfff7a41000 (96 bytes to the right of a 4000-byte allocation at 0x7bfff7a40000) by thread 235485 here:\n  \
              #0 heap_overflow(+0x290b9) [0x55555557d0b9]\n  \
              #1 /lib/libpthread.so.0(+0x12730) [0x7ffff7ca0730]\n  \
              #2 heap_overflow(main+0x2e) [0x5555555a115e]\n\n\
            0x7bfff7a41000 was allocated by thread 235485 here:\n  \
              #0 0x5cad4c7ba4  (/data/libsample.so+0x7ba4) (BuildId: 2a3f1826c75a903f89c46b8ffcd1846295fdebcf)\n\n\
            *** End GWP-ASan report ***\n";
        let report = read(text.as_bytes(), 0, &Limits::default()).unwrap();
        let exception = report.exception.unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.subtype.as_deref()),
            (Some("GWP-ASan"), Some("Buffer Overflow"))
        );
        assert_eq!(exception.address, Some(Avma::new(0x7bff_f7a4_1000)));
        let frames = &report.process.threads[0].frames;
        let files: Vec<_> =
            frames.iter().map(|frame| frame.image_name.as_deref().unwrap_or_default()).collect();
        assert_eq!(files, ["heap_overflow", "libpthread.so.0", "heap_overflow"]);
        assert_eq!(frames[2].reported.as_ref().unwrap().name, "main");
        let allocated = &report.process.backtraces[0];
        assert_eq!(allocated.title, "0x7bfff7a41000 was allocated by thread 235485 here");
        assert_eq!(allocated.frames[0].image_offset, Some(0x7ba4));
    }

    #[test]
    fn first_lines() {
        let header =
            Header::read("==12==ERROR: AddressSanitizer: SEGV on unknown address 0x0 (pc 0x1 T0)").unwrap();
        assert_eq!((header.pid, header.tool, short(header.what)), (Some(12), "AddressSanitizer", "SEGV"));
        let header = Header::read("WARNING: ThreadSanitizer: data race (pid=77)").unwrap();
        assert_eq!((header.pid, header.tool, short(header.what)), (None, "ThreadSanitizer", "data race"));
        let line =
            "Use After Free at 0x5b1000 (0 bytes into a 64-byte allocation at 0x5b1000) by thread 7 here:";
        let header = Header::read(line).unwrap();
        assert_eq!((header.tool, short(header.what)), ("GWP-ASan", "Use After Free"));
        assert!(Header::read("It is used at 0x5b1000 by thread 7 here:").is_none());
        assert!(Header::read("ERROR: it broke: badly").is_none());
        assert_eq!(runtime_error("a.c:1:2: runtime error: x"), Some(("a.c:1:2", "x")));
        assert_eq!(runtime_error("panic: runtime error: index out of range"), None);
    }
}
