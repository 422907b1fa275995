//! Crashlytics' text export for Apple's systems, and the part of it that people paste: threads without "Thread N".
//!
//! A stack stands behind a line with the thread's or queue's name, `Crashed: ` before that of the thread that crashed, or
//! behind `Fatal Exception: NAME` and the reason. The exports of Fabric, its predecessor, number these lines
//! (`#0. Crashed: com.apple.main-thread`) and state addresses; later ones state offsets from the image's start.
//!
//! No public document describes the format. The rules here are those of exports in public issues:
//!
//! - Behind a name with a place in the source ` + 57` is the line once more, not an offset.
//! - Where there is no line, Crashlytics writes an address in its place: `main + 4337335188 (AppDelegate.swift:4337335188)`.
//! - Nothing is known of a frame where a single word stands in parentheses, in the reader's language: `(Missing)`, `(누락)`.
//! - `(Missing UUID 4c4c…)` states the build of the image, whose symbols Crashlytics was not given.

use crate::Limits;
use crate::apple_text::{FrameRow, Lines, mark_throw};
use crate::last_words;
use crate::members::note_thrown;
use crate::notes::Notes;
use crate::numbers::{hex, is_number};
use crate::stack::{Origin, settle};
use crate::text::lossy;
use backtrail_core::ImageId;
use backtrail_model::{
    Backtrace, Field, Frame, Image, Process, Report, ReportedSymbol, Section, Source, Thread,
    ThrowingRuntime, ThrownException,
};

/// Whether a line begins the stack of what ended the process. Java's exceptions, which begin so too, have a package.
pub(crate) fn is_head(line: &str) -> bool {
    let name = without_number(line);
    name.starts_with(CRASHED)
        || ThrownLine::read(name).is_some_and(|thrown| {
            thrown.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
}

/// Whether a line of the export's head says that it is one of an Apple system.
pub(crate) fn is_platform(line: &str) -> bool {
    line.strip_prefix("# Platform:")
        .is_some_and(|name| matches!(name.trim(), "apple" | "ios" | "mac" | "tvos"))
}

/// Whether a line is one of Apple's own reports, which quote what reporters log.
pub(crate) fn is_apples(line: &str) -> bool {
    let is_thread =
        || line.strip_prefix("Thread ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    line.starts_with("Incident Identifier:") || line.starts_with("Process:") || is_thread()
}

const CRASHED: &str = "Crashed: ";

/// An exception's name, the beginning of its reason where that stands on the line too, and whether it was caught.
struct ThrownLine<'t> {
    name: &'t str,
    reason: &'t str,
    is_handled: bool,
}

impl<'t> ThrownLine<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let fatal = line.strip_prefix("Fatal Exception: ").map(|rest| (rest, false));
        let words = ["Non-fatal Exception: ", "Non-Fatal Exception: "];
        let caught = || words.iter().find_map(|word| line.strip_prefix(word)).map(|rest| (rest, true));
        let (rest, is_handled) = fatal.or_else(caught)?;
        let (name, reason) = rest.split_once(": ").unwrap_or((rest, ""));
        let (name, reason) = (name.trim(), reason.trim());
        (!name.is_empty()).then_some(Self { name, reason, is_handled })
    }
}

/// A line without `#0. `, `19. ` or `Thread : ` before it.
fn without_number(line: &str) -> &str {
    // Fabric's pages have the heading of a thread before it.
    let line = match line.strip_prefix("Thread : ") {
        Some(rest) if rest.starts_with(CRASHED) || ThrownLine::read(rest).is_some() => rest,
        _ => line,
    };
    number(line).map_or(line, |(_, rest)| rest)
}

fn number(line: &str) -> Option<(u64, &str)> {
    let (number, rest) = line.split_once(". ")?;
    Some((number.strip_prefix('#').unwrap_or(number).parse().ok()?, rest))
}

/// Whether a line is the name of a thread or queue alone: `Thread`, `Crashed: com.example.queue`, `com.apple.main-thread`.
fn names_thread(line: &str) -> bool {
    let name = without_number(line);
    let is_name = |name: &str| {
        name.matches('.').count() >= 2
            && !name.ends_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
    };
    name == "Thread" || name.starts_with(CRASHED) || is_name(name)
}

/// Whether a line behind an exception's name is no part of its reason: the exception once more, or a row that lost its number.
fn ends_reason(line: &str) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let mut is_row =
        || words.next().and_then(hex).is_some_and(|address| address > 0xff) && words.next().is_some();
    ThrownLine::read(without_number(line)).is_some() || line.starts_with(CRASHED) || is_row()
}

/// Reads an export; `None` where there is no stack in it.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Reader {
        limits,
        notes: Notes::new(limits.max_notes),
        report: Report { source: Source::AppleText, ..Report::default() },
        head: Vec::new(),
        text: Vec::new(),
        stack: None,
        is_numbered: false,
        thrown: None,
        open: None,
        is_page: false,
        frames: 0,
    };
    for line in Lines::new(input, start..input.len(), 1) {
        if line.bytes.len() > limits.max_line {
            reader.notes.add(|| format!("line {} is long and was left out", line.number));
            continue;
        }
        let row = FrameRow::read(without_address_as_line(line.bytes));
        match row {
            Some(row) => {
                let mut frame = row.frame();
                frame.span = Some(line.span.clone());
                reader.row(frame);
            }
            None => {
                let text = lossy(line.bytes);
                match reader.page(&text) {
                    Some(frame) => reader.row(Frame { span: Some(line.span.clone()), ..frame }),
                    None if reader.open.is_none() => reader.line(text.trim()),
                    None => {}
                }
            }
        }
    }
    reader.finish()
}

/// A row without the place that has an address instead of a line.
fn without_address_as_line(row: &[u8]) -> &[u8] {
    let row = row.trim_ascii_end();
    let rest = || {
        let inside = row.strip_suffix(b")")?;
        let at = inside.iter().rposition(|byte| *byte == b':')?;
        let digits = inside.get(at + 1..)?;
        let is_address = digits.len() >= 10 && digits.iter().all(u8::is_ascii_digit);
        let opening = inside.get(..at)?.iter().rposition(|byte| *byte == b'(')?;
        row.get(..opening).filter(|_| is_address)
    };
    rest().unwrap_or(row)
}

/// Larger offsets from a symbol's start are not of that function. The largest in real programs, generated ones, are about this long.
const FAR: u64 = 1 << 18;

/// Larger offsets from a function's start are addresses.
const MAX_OFFSET: u64 = 1 << 31;

struct Reader<'l> {
    limits: &'l Limits,
    notes: Notes,
    report: Report,
    /// Lines in front of the next stack.
    head: Vec<String>,
    /// Lines that belong to no stack.
    text: Vec<String>,
    stack: Option<Stack>,
    /// Whether lines with names are numbered, as in exports that state addresses.
    is_numbered: bool,
    thrown: Option<ThrownException>,
    /// A row of Crashlytics' page whose function stands in the next line.
    open: Option<PageRow>,
    /// Whether the stack is one of that page.
    is_page: bool,
    frames: usize,
}

/// `0 Shop Cart.swift - Line 560`: a row as the page shows it, above its function.
struct PageRow {
    index: u32,
    image: String,
    file: String,
    line: u32,
}

impl PageRow {
    fn read(text: &str) -> Option<Self> {
        let (before, line) = text.trim().rsplit_once(" - Line ")?;
        let (index, rest) = before.split_once(' ')?;
        let (image, file) = rest.trim().split_once(' ')?;
        let (image, file) = (image.to_owned(), file.trim().to_owned());
        Some(Self { index: index.parse().ok()?, image, file, line: line.parse().ok()? })
    }

    fn frame(self, function: &str) -> Frame {
        // Behind the function the page has the line once more.
        let (name, _) =
            function.rsplit_once(" + ").filter(|(_, line)| is_number(line)).unwrap_or((function, ""));
        let (file, line) = (Some(self.file), Some(self.line).filter(|line| *line > 0));
        let symbol = ReportedSymbol { name: name.to_owned(), file, line, ..ReportedSymbol::default() };
        Frame { image_name: Some(self.image), reported: Some(symbol), ..Frame::new(self.index) }
    }
}

/// Whether a line is a row of Crashlytics' page.
pub(crate) fn is_page_row(line: &str) -> bool {
    line.contains(" - Line ") && PageRow::read(line).is_some()
}

/// A row of the page that has no place: `8 libswiftObjectiveC.dylib autoreleasepool<A>(invoking:) + 64`.
fn bare_row(text: &str) -> Option<Frame> {
    let (index, rest) = text.trim().split_once(' ')?;
    let (image, rest) = rest.trim().split_once(' ')?;
    let (name, offset) = rest.rsplit_once(" + ")?;
    let offset = Some(offset.parse().ok()?);
    let symbol = ReportedSymbol { name: name.trim().to_owned(), offset, ..ReportedSymbol::default() };
    let index = index.parse().ok().filter(|_| is_number(index))?;
    Some(Frame { image_name: Some(image.to_owned()), reported: Some(symbol), ..Frame::new(index) })
}

/// Where rows go.
#[derive(Clone, Copy)]
enum Stack {
    Thread(usize),
    Backtrace(usize),
    /// A stack too many.
    Nowhere,
}

impl Reader<'_> {
    /// A row of Crashlytics' page, once all of it is there. The lines between are no others'.
    fn page(&mut self, text: &str) -> Option<Frame> {
        if let Some(row) = PageRow::read(text) {
            (self.open, self.is_page) = (Some(row), true);
            return None;
        }
        match self.open.take() {
            Some(row) if text.starts_with(char::is_whitespace) && !text.trim().is_empty() => {
                Some(row.frame(text.trim()))
            }
            _ if self.is_page => bare_row(text),
            _ => None,
        }
    }

    fn line(&mut self, text: &str) {
        if text.is_empty() || text == "--" {
            self.stack = None;
            // The reason of an exception may have blank lines; a name has none behind it.
            if self.head.first().is_none_or(|head| ThrownLine::read(without_number(head)).is_none()) {
                self.text.append(&mut self.head);
            }
        } else if last_words::stop(text).is_some() {
            // The page has the exception below the name of the queue.
            self.text.push(text.to_owned());
        } else if text.starts_with("##") {
            // A heading of Markdown.
            self.text.push(text.to_owned());
        } else if let Some((key, value)) = text.strip_prefix("# ").and_then(|rest| rest.split_once(':')) {
            self.key(key.trim(), value.trim());
        } else if self.head.len() < MAX_HEAD {
            self.head.push(text.to_owned());
        } else {
            self.text.push(text.to_owned());
        }
    }

    fn key(&mut self, key: &str, value: &str) {
        let report = &mut self.report;
        let place = match key {
            "Application" => &mut report.process.name,
            "Bundle Identifier" => &mut report.process.identifier,
            "Version" => &mut report.process.version,
            "Date" => &mut report.time,
            "OS Version" => &mut report.os,
            "Device" => &mut report.device,
            "Session" | "Session ID" => &mut report.incident,
            _ => {
                if report.fields.len() < self.limits.max_items {
                    report.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
                }
                return;
            }
        };
        if !value.is_empty() && value != "N/A" {
            *place = Some(value.to_owned());
        }
    }

    fn row(&mut self, mut frame: Frame) {
        let stack = match self.stack {
            // A line behind rows begins another stack, also without a blank line between.
            Some(stack) if self.head.is_empty() && frame.index != 0 => stack,
            _ => self.begin(),
        };
        self.stack = Some(stack);
        if self.frames >= self.limits.max_frames {
            return;
        }
        let id = missing_id(&frame);
        settle_row(&mut frame, self.is_numbered);
        frame.image = id.and_then(|id| self.image(id, &frame));
        let process = &mut self.report.process;
        let frames = match stack {
            Stack::Thread(at) => process.threads.get_mut(at).map(|thread| &mut thread.frames),
            Stack::Backtrace(at) => process.backtraces.get_mut(at).map(|backtrace| &mut backtrace.frames),
            Stack::Nowhere => None,
        };
        if let Some(frames) = frames {
            frames.push(frame);
            self.frames += 1;
        }
    }

    /// The image of that identity. Where it lay in the process is not told.
    fn image(&mut self, id: ImageId, frame: &Frame) -> Option<usize> {
        let images = &mut self.report.process.images;
        let known = images.iter().position(|image| image.id == Some(id));
        if known.is_some() || images.len() >= MAX_IMAGES {
            return known;
        }
        let name = frame.image_name.clone().unwrap_or_default();
        images.push(Image { name, id: Some(id), ..Image::default() });
        Some(images.len() - 1)
    }

    /// Begins a stack behind the lines that stand in front of it.
    fn begin(&mut self) -> Stack {
        let mut head = std::mem::take(&mut self.head);
        let thrown = head.iter().position(|line| ThrownLine::read(without_number(line)).is_some());
        // What stands before the line that names the thread is prose.
        let at = thrown.unwrap_or(head.len().saturating_sub(1));
        self.text.extend(head.drain(..at.min(head.len())));
        let mut line = head.first().cloned().unwrap_or_default();
        if ThrownLine::read(without_number(&line)).is_some() {
            // The name of a thread right before the rows says that they are that thread's, not the throw's.
            let of_thread = head.pop_if(|last| names_thread(last));
            let end = head.iter().skip(1).position(|line| ends_reason(line)).map_or(head.len(), |at| at + 1);
            self.text.extend(head.drain(end..));
            if let Some(name) = of_thread {
                self.throw(&head);
                line = name;
            }
        }
        let numbered = number(&line).map(|(number, _)| number);
        self.is_numbered |= numbered.is_some();
        let name = without_number(&line);
        let process = &mut self.report.process;
        if process.threads.len() + process.backtraces.len() >= self.limits.max_threads {
            self.notes.add(|| format!("more than {} stacks: the rest was left out", self.limits.max_threads));
            return Stack::Nowhere;
        }
        if ThrownLine::read(name).is_some() {
            self.throw(&head);
            let title = name.to_owned();
            let process = &mut self.report.process;
            process.backtraces.push(Backtrace { title, is_exception: true, frames: Vec::new() });
            return Stack::Backtrace(process.backtraces.len() - 1);
        }
        let crashed = name.starts_with(CRASHED);
        let name = name.strip_prefix(CRASHED).unwrap_or(name).trim();
        let name = Some(name.to_owned()).filter(|name| !name.is_empty() && name != "Thread");
        let number = numbered.unwrap_or(process.threads.len() as u64);
        process.threads.push(Thread { number, name, crashed, ..Thread::default() });
        let at = process.threads.len() - 1;
        if crashed {
            process.crashed_thread.get_or_insert(at);
        }
        Stack::Thread(at)
    }

    /// Keeps the exception that the first of these lines names; the others are its reason. The first exception counts.
    fn throw(&mut self, head: &[String]) {
        let Some((first, lines)) = head.split_first() else { return };
        let Some(ThrownLine { name, reason, is_handled }) = ThrownLine::read(without_number(first)) else {
            return;
        };
        let said = Some(reason).filter(|reason| !reason.is_empty());
        let reason = said.into_iter().chain(lines.iter().map(String::as_str)).collect::<Vec<_>>().join("\n");
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let runtime = ThrowingRuntime::ObjectiveC;
        self.thrown.get_or_insert(ThrownException { runtime, name: name.to_owned(), reason, is_handled });
    }

    fn finish(mut self) -> Option<Report> {
        // The rows of the last stack were cut off.
        let head = std::mem::take(&mut self.head);
        if let Some(at) = head.iter().position(|line| ThrownLine::read(without_number(line)).is_some()) {
            let lines = head.get(at..).unwrap_or_default();
            let end =
                lines.iter().skip(1).position(|line| ends_reason(line)).map_or(lines.len(), |at| at + 1);
            self.throw(lines.get(..end).unwrap_or_default());
        }
        self.text.extend(head);
        let process = &mut self.report.process;
        if process.threads.is_empty() && process.backtraces.is_empty() && self.thrown.is_none() {
            return None;
        }
        without_repetition(process);
        for thread in &mut process.threads {
            settle(&mut thread.frames, Origin::Thread);
        }
        for backtrace in &mut process.backtraces {
            settle(&mut backtrace.frames, Origin::Backtrace);
        }
        if let Some(thrown) = self.thrown {
            note_thrown(&mut self.report, thrown);
        }
        mark_throw(&mut self.report);
        self.report.process.place_frames();
        // What the program said stands before the stack, or behind it among the keys.
        let said = self.text.iter().filter(|line| last_words::is(line)).take(MAX_SAID);
        said.for_each(|line| last_words::add(&mut self.report, line));
        if !self.text.is_empty() {
            self.report.sections.push(Section { title: "Text".to_owned(), text: self.text.join("\n") });
        }
        self.report.notes.extend(self.notes.finish());
        Some(self.report)
    }
}

/// So many lines of what the program said are kept apart.
const MAX_SAID: usize = 16;

/// Lines in front of a stack that are kept as its head.
const MAX_HEAD: usize = 200;

/// Images of known builds, of which an export has a handful.
const MAX_IMAGES: usize = 1000;

/// The build of an image whose symbols Crashlytics was not given.
fn missing_id(frame: &Frame) -> Option<ImageId> {
    let name = frame.reported.as_ref()?.name.as_str();
    ImageId::parse_uuid(name.strip_prefix("(Missing UUID ")?.strip_suffix(')')?).ok()
}

/// Takes what a row says as Crashlytics means it.
fn settle_row(frame: &mut Frame, states_addresses: bool) {
    let offset = frame.address.map(|address| address.raw().get()).filter(|offset| *offset < 1 << 32);
    if let Some(offset) = offset.filter(|_| !states_addresses) {
        frame.address = None;
        frame.image_offset = Some(offset);
    }
    if let Some(symbol) = &mut frame.reported {
        let is_line = symbol.line.is_some() && symbol.offset == symbol.line.map(u64::from);
        symbol.offset = symbol.offset.filter(|offset| !is_line && *offset < MAX_OFFSET);
    }
    // No function is so long: the name is that of the nearest symbol, far away from the code.
    let is_far = |symbol: &mut ReportedSymbol| {
        symbol.file.is_none() && symbol.offset.is_some_and(|offset| offset > FAR)
    };
    if let Some(symbol) = frame.reported.take_if(is_far) {
        let offset = symbol.offset.unwrap_or_default();
        frame.annotations.push(format!("nearest symbol: {} + {offset}", symbol.name));
    }
    let is_nothing = |name: &str| {
        let inside = name.strip_prefix('(').and_then(|name| name.strip_suffix(')'));
        inside.is_some_and(|word| !word.contains([' ', '(', ')']) || word.starts_with("Missing UUID "))
            || name == "<redacted>"
    };
    if frame.reported.as_ref().is_some_and(|symbol| is_nothing(&symbol.name)) {
        frame.reported = None;
    }
}

/// Fabric's exports show the thread that crashed once before all threads.
fn without_repetition(process: &mut Process) {
    let [first, second, ..] = process.threads.as_slice() else { return };
    let rows = |thread: &Thread| -> Vec<_> {
        thread.frames.iter().map(|frame| (frame.index, frame.address, frame.reported.clone())).collect()
    };
    if first.crashed && second.crashed && first.number == second.number && rows(first) == rows(second) {
        process.threads.remove(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn read_text(text: &str) -> Report {
        parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    fn name_of(frame: &Frame) -> (&str, Option<u64>, Option<u32>) {
        let symbol = frame.reported.as_ref().unwrap();
        (&symbol.name, symbol.offset, symbol.line)
    }

    #[test]
    fn a_crash_with_all_threads() {
        let report = read_text(
            "# Crashlytics - Stack trace\n# Application: com.example.shop\n# Platform: apple\n# Version: 4.2.1 (421)\n\
             # Session: 9d3a\n# Date: Tue Mar 12 2024\n\n\
             Crashed: com.apple.main-thread\n\
             0  libswiftCore.dylib             0x3a4c8 _assertionFailure(_:_:file:line:flags:) + 308\n\
             1  Shop                           0x1a2b4 Cart.load() + 57 (Cart.swift:57)\n\
             2  Shop                           0x1a3c0 @objc Cart.load() + 4368171968 (<compiler-generated>:4368171968)\n\
             3  ???                            0x1b2c3d4e0 (누락)\n\n\
             Thread\n0  libsystem_kernel.dylib         0xbc4 __workq_kernreturn + 8\n",
        );
        assert_eq!(report.process.name.as_deref(), Some("com.example.shop"));
        assert_eq!(report.process.version.as_deref(), Some("4.2.1 (421)"));
        assert_eq!((report.process.crashed_thread, report.process.threads.len()), (Some(0), 2));
        let [crashed, other] = report.process.threads.as_slice() else { panic!() };
        assert_eq!((crashed.name.as_deref(), crashed.crashed), (Some("com.apple.main-thread"), true));
        assert_eq!((other.name.as_deref(), other.crashed), (None, false));
        let frames = &crashed.frames;
        assert_eq!(name_of(&frames[0]), ("_assertionFailure(_:_:file:line:flags:)", Some(308), None));
        assert_eq!((frames[0].address, frames[0].image_offset), (None, Some(0x3a4c8)));
        assert_eq!(name_of(&frames[1]), ("Cart.load()", None, Some(57)));
        assert_eq!(name_of(&frames[2]), ("@objc Cart.load()", None, None));
        assert_eq!((&frames[3].reported, frames[3].address.is_some()), (&None, true));
    }

    #[test]
    fn builds_of_images_without_symbols() {
        let report = read_text(
            "`BUG IN CLIENT OF LIBX: no`\n\nCrashed: com.apple.main-thread\n\
             0  Shop                           0x1a2b4 (Missing UUID 4c4c446555553144a14939a372500a7c)\n\
             1  UIKitCore                      0x99 -[UIView f] + 4\n\
             2  Shop                           0x1a2c4 (Missing UUID 4c4c446555553144a14939a372500a7c)\n",
        );
        let frames = &report.process.threads[0].frames;
        let told: Vec<_> =
            frames.iter().map(|it| (it.image, it.image_offset, it.reported.is_some())).collect();
        assert_eq!(
            told,
            [(Some(0), Some(0x1a2b4), false), (None, Some(0x99), true), (Some(0), Some(0x1a2c4), false)]
        );
        assert_eq!((report.process.images.len(), report.process.images[0].name.as_str()), (1, "Shop"));
        assert_eq!(report.app_info[0].lines, ["BUG IN CLIENT OF LIBX: no"]);
    }

    #[test]
    fn an_exception_with_a_reason_of_several_lines() {
        let report = read_text(
            "We see this:\n\nFatal Exception: NSInternalInconsistencyException\nInvalid update:\n\nrows (3)\n\
             0  CoreFoundation                 0x9e88 __exceptionPreprocess\n\
             1  Shop                           0x1a2b4 -[Cart refresh] + 31 (Cart.m:31)\n\n\
             com.apple.main-thread\n0  libsystem_kernel.dylib         0x1b84 mach_msg_trap + 8\n",
        );
        let thrown = report.thrown.as_ref().unwrap();
        assert_eq!(thrown.name, "NSInternalInconsistencyException");
        assert_eq!(thrown.reason.as_deref(), Some("Invalid update:\nrows (3)"));
        let [backtrace] = report.process.backtraces.as_slice() else { panic!() };
        assert!(backtrace.is_exception);
        assert_eq!(backtrace.frames.len(), 2);
        assert_eq!(report.process.threads[0].name.as_deref(), Some("com.apple.main-thread"));
        assert_eq!(report.sections[0].text, "We see this:");
    }

    /// As people mark and copy the page.
    #[test]
    fn rows_of_the_page() {
        let report = read_text(
            "Crashed: com.example.queue (QOS: BACKGROUND)\nEXC_BAD_ACCESS KERN_INVALID_ADDRESS 0x0000000000000000\n0 Shop Cart.swift - Line 56 \n          Cart.total.getter + 56\n1 Shop <compiler-generated> - Line 0 \n          closure #1 in Cart.load()\n2 Foundation __NSOPERATION_IS_INVOKING_MAIN__ + 24\n",
        );
        let thread = &report.process.threads[0];
        assert_eq!(
            (thread.crashed, thread.name.as_deref()),
            (true, Some("com.example.queue (QOS: BACKGROUND)"))
        );
        assert_eq!(name_of(&thread.frames[0]), ("Cart.total.getter", None, Some(56)));
        assert_eq!(name_of(&thread.frames[1]), ("closure #1 in Cart.load()", None, None));
        assert_eq!(name_of(&thread.frames[2]), ("__NSOPERATION_IS_INVOKING_MAIN__", Some(24), None));
        assert_eq!(report.exception.unwrap().kind.as_deref(), Some("EXC_BAD_ACCESS"));
    }

    #[test]
    fn a_reason_ends_where_rows_and_headings_begin() {
        let report = read_text(
            "Fatal Exception: NSRangeException\nindex 3 beyond bounds\n\n#### Stack\n\nFatal Exception: NSRangeException\n0  CoreFoundation  0x9e88 __exceptionPreprocess\n1  Shop  0x1a2b4 -[Cart f]\n",
        );
        assert_eq!(report.thrown.unwrap().reason.as_deref(), Some("index 3 beyond bounds"));
        let report = read_text(
            "Fatal Exception: Il2CppExceptionWrapper\n\ncom.apple.main-thread\n0  UnityFramework  0x39b803c f + 959424\n1  App  0x10 main + 4\n",
        );
        assert_eq!(report.thrown.unwrap().reason, None);
        assert_eq!(report.process.threads[0].name.as_deref(), Some("com.apple.main-thread"));
        assert!(report.process.threads[0].frames[0].reported.is_none());
    }

    /// Fabric's, with addresses.
    #[test]
    fn numbered_threads() {
        let report = read_text(
            "# Platform: ios\n# Issue #: 7\n\n#0. Crashed: com.apple.main-thread\n\
             0  libA.dylib  0x1d9bd0 f + 4\n1  App  0x392a25 g (a.m:3)\n\n--\n\n\
             #0. Crashed: com.apple.main-thread\n\
             0  libA.dylib  0x1d9bd0 f + 4\n1  App  0x392a25 g (a.m:3)\n\n#1. GAIThread\n0  libA.dylib  0x18d231188 h + 8\n",
        );
        let threads: Vec<_> = report
            .process
            .threads
            .iter()
            .map(|it| (it.number, it.name.as_deref(), it.frames.len()))
            .collect();
        assert_eq!(threads, [(0, Some("com.apple.main-thread"), 2), (1, Some("GAIThread"), 1)]);
        let frame = &report.process.threads[0].frames[1];
        assert_eq!(frame.address.map(|address| address.raw().get()), Some(0x39_2a25));
    }

    #[test]
    fn lines_that_begin_others() {
        for line in
            ["Fatal Exception: java.lang.Error: x", "Fatal Exception: ", "crashed: x", "Crashed Thread: 0"]
        {
            assert!(!is_head(line), "{line}");
        }
        let thrown =
            ThrownLine::read("Fatal Exception: RCTFatalException: Unhandled JS Exception: x").unwrap();
        assert_eq!((thrown.name, thrown.reason), ("RCTFatalException", "Unhandled JS Exception: x"));
        assert!(is_head("19. Crashed: com.apple.main-thread") && is_head("Fatal Exception: FlutterError"));
    }
}
