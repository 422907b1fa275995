//! Logs of an uncaught Objective-C exception as apps write them: name, reason, `userInfo`, `callStackSymbols`,
//! `callStackReturnAddresses`, in whatever words and brackets `NSLog` or a logger puts around them.
//!
//! The whole text is kept; what it says in known words goes into the model. Rows that stand on lines of their own are the text
//! reader's.

use crate::Limits;
use crate::apple_text::{FrameRow, Line, Lines, mark_throw, raw_addresses};
use crate::last_words::{self, ANNOUNCED};
use crate::members::note_thrown;
use crate::stack::{Origin, settle, unsettled};
use crate::words::Words;
use backtrail_core::Avma;
use backtrail_model::{
    AppInfo, Backtrace, Frame, Image, Report, ReportedSymbol, Section, Source, ThrowingRuntime,
    ThrownException,
};
use std::sync::LazyLock;

/// How Kotlin/Native announces an exception before it ends the process (`runtime/src/main/kotlin/kotlin/native/internal`).
const KOTLIN: &str = "Uncaught Kotlin exception: ";

/// Words of which one is in every such log.
const WORDS: [&str; 7] = [
    KOTLIN,
    // Its reason quotes a stack of JavaScript.
    "uncaught exception 'RCTFatalException",
    "callStackSymbols",
    "callStackReturnAddresses",
    "First throw call stack",
    "Stack Trace: [",
    "call stack: (",
];

/// Whether a line is one of such a log.
pub(crate) fn is_telling(line: &str) -> bool {
    static ANY: LazyLock<Words> = LazyLock::new(|| Words::new(&WORDS));
    ANY.any_in(line)
}

/// What logs call an exception's name and reason.
const NAMES: [&str; 5] = ["exception name", "exception type", "name", "nsexception", "exception"];
const REASONS: [&str; 3] = ["reason", "exception reason", "crash"];

/// Reads a log; `None` where there is no stack in it.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    read_log(input, start, limits).finish(lossy_text(input, start))
}

/// Reads a log of which nothing is left but the exception's name and its reason, each with its key before it.
pub(crate) fn read_named(input: &[u8], limits: &Limits) -> Option<Report> {
    memchr::memmem::find(input, b"Exception")?;
    let mut log = read_log(input, 0, limits);
    log.is_announced = log.reason.is_some() && log.name.as_deref().is_some_and(last_words::is_objcs);
    log.finish(lossy_text(input, 0))
}

fn lossy_text(input: &[u8], start: usize) -> String {
    String::from_utf8_lossy(input.get(start..).unwrap_or_default()).into_owned()
}

fn read_log<'l>(input: &[u8], start: usize, limits: &'l Limits) -> Log<'l> {
    let mut log = Log {
        limits,
        name: None,
        reason: None,
        rows: Vec::new(),
        addresses: Vec::new(),
        in_addresses: false,
        is_announced: false,
        open_reason: 0,
        is_said_open: false,
        is_reason_next: false,
        is_kotlins: false,
        said: Vec::new(),
    };
    for line in Lines::new(input, start..input.len(), 1).filter(|line| line.bytes.len() <= limits.max_line) {
        log.line(&line);
    }
    log
}

struct Log<'l> {
    limits: &'l Limits,
    name: Option<String>,
    reason: Option<String>,
    rows: Vec<Frame>,
    addresses: Vec<Frame>,
    /// Inside of a list of bare addresses.
    in_addresses: bool,
    /// Whether Foundation's words were there: then the text is a report without a stack, too.
    is_announced: bool,
    /// How many more lines the reason may have whose closing quote has not come yet.
    open_reason: usize,
    /// Whether the line before is the last of what is said.
    is_said_open: bool,
    /// Whether the reason stands in the line behind the exception's name.
    is_reason_next: bool,
    /// Whether the exception is Kotlin's.
    is_kotlins: bool,
    /// Other lines that tell of the end.
    said: Vec<String>,
}

/// So many of them are kept apart from the text.
const MAX_SAID: usize = 16;

/// Reasons of Core Data, collection views and layout go over several lines.
const MAX_REASON_LINES: usize = 64;

impl Log<'_> {
    fn line(&mut self, line: &Line<'_>) {
        let text = line.text();
        let text = text.trim();
        if self.open_reason > 0 && self.goes_on(text) {
            return;
        }
        if self.in_addresses {
            let inside = text.trim_end_matches([')', ']', ';']);
            self.add_addresses(inside);
            self.in_addresses = inside.len() == text.len();
            return;
        }
        if let Some((_, list)) = text.split_once("callStackReturnAddresses") {
            let list = list.trim_start_matches([' ', ':', '=', '"']).trim_start_matches(['(', '[', '<']);
            let inside = list.split([')', ']']).next().unwrap_or_default();
            self.add_addresses(inside);
            self.in_addresses = inside.len() == list.len();
            return;
        }
        if let Some((_, list)) = text.split_once("Stack: (").filter(|_| self.is_announced) {
            // Line breaks as syslog and older Xcodes write them.
            let list = list.replace("\\n", " ");
            self.add_addresses(list.split(')').next().unwrap_or_default());
            self.in_addresses = !list.contains(')');
            return;
        }
        if let Some(addresses) = raw_addresses(text.as_bytes()) {
            for (_, address) in addresses {
                if let crate::apple_text::Hex::Value(address) = address {
                    self.add_address(address);
                }
            }
            return;
        }
        if let Some((_, rest)) = text.split_once(KOTLIN).filter(|_| self.name.is_none()) {
            let (name, reason) = rest.split_once(": ").map_or((rest, None), |(name, why)| (name, Some(why)));
            (self.is_announced, self.is_kotlins) = (true, true);
            self.name = Some(name.trim().to_owned());
            self.reason = reason.map(str::to_owned);
            return;
        }
        if let Some(frame) = hockeys_row(text) {
            let index = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            if self.rows.len() < self.limits.max_frames {
                self.rows.push(Frame { index, ..frame });
            }
            return;
        }
        // Its rows are `at 0   shared   0x1072e119b   kfun:f#<init>(kotlin.String?){} + 99`.
        let text = if self.is_kotlins { text.strip_prefix("at ").unwrap_or(text) } else { text };
        if !self.pieces(text) {
            self.words(text);
        }
    }

    /// Rows on a line: one, quoted perhaps, or several parted by commas. A comma inside of a name parts nothing.
    fn pieces(&mut self, text: &str) -> bool {
        let list =
            text.split_once('[').filter(|(before, _)| before.ends_with(": ")).map_or(text, |(_, list)| list);
        let before = self.rows.len();
        let mut piece = String::new();
        for part in list.split(", ").chain(std::iter::once("0")) {
            let part = part.trim_matches(['"', ',', '(', '[', ' ']);
            let begins = part
                .split_whitespace()
                .next()
                .is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
            if begins && !piece.is_empty() {
                self.row(&piece);
                piece.clear();
            }
            if !piece.is_empty() {
                piece.push_str(", ");
            }
            piece.push_str(part);
        }
        self.rows.len() > before
    }

    fn row(&mut self, text: &str) {
        let text = text.trim_end_matches(['"', ']', ',', ';']);
        // The bracket that closes a list, not one that a name has.
        let opening = text.matches('(').count();
        let text = if text.matches(')').count() > opening { text.trim_end_matches(')') } else { text };
        let frames = self.rows.len() + self.addresses.len();
        if let Some(row) = FrameRow::read(text.as_bytes()).filter(|_| frames < self.limits.max_frames) {
            self.rows.push(row.frame());
        }
    }

    fn add_addresses(&mut self, list: &str) {
        for word in list.split([',', ' ', '\t', '"']).filter(|word| !word.is_empty()) {
            let address = match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => word.parse().ok(),
            };
            address.into_iter().for_each(|address| self.add_address(address));
        }
    }

    fn add_address(&mut self, address: u64) {
        if self.rows.len() + self.addresses.len() < self.limits.max_frames {
            let index = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX);
            self.addresses.push(Frame { address: Some(unsettled(Avma::new(address))), ..Frame::new(index) });
        }
    }

    /// `Name: value`, and Apple's own sentence.
    fn words(&mut self, text: &str) {
        if let Some((_, rest)) = text.split_once("due to uncaught exception '") {
            self.is_announced |= text.contains(ANNOUNCED);
            if let Some((name, rest)) = rest.split_once('\'') {
                self.name.get_or_insert_with(|| name.to_owned());
                let reason =
                    rest.split_once("reason: '").map(|(_, reason)| reason.trim_end_matches(['`', ' ']));
                if let Some(reason) = reason.filter(|_| self.reason.is_none()) {
                    let is_whole = reason.ends_with('\'');
                    self.open_reason = if is_whole { 0 } else { MAX_REASON_LINES };
                    self.reason = Some(reason.trim_end_matches('\'').to_owned());
                }
            }
            return;
        }
        if let Some((name, reason)) = last_words::thrown(text).filter(|_| self.name.is_none()) {
            self.is_announced = true;
            self.name = Some(name.to_owned());
            let reason = reason.map(|reason| reason.trim_end_matches(['`', '\'']).to_owned());
            self.is_reason_next = reason.is_none();
            self.reason = self.reason.take().or(reason);
            return;
        }
        if std::mem::take(&mut self.is_reason_next) && self.reason.is_none() && !text.is_empty() {
            self.reason = Some(text.to_owned());
            return;
        }
        let is_open = std::mem::take(&mut self.is_said_open);
        // A path belongs to the line right before it.
        if (is_open || !text.starts_with('/')) && last_words::goes_on(self.said.last_mut(), text) {
            self.is_said_open = true;
            return;
        }
        if last_words::is(text) && self.said.len() < MAX_SAID {
            self.said.push(text.to_owned());
            self.is_said_open = true;
            return;
        }
        let Some((key, value)) = text.split_once([':', '=']) else { return };
        let key = key.trim().trim_start_matches('*').trim().to_ascii_lowercase();
        let value = value.trim().trim_matches(['"', '\'', ';']);
        let is_name = !value.is_empty() && !value.contains(char::is_whitespace);
        // Apple's own reports have its kernel's name of an exception there.
        let is_name = is_name && (key != "exception type" || last_words::is_objcs(value));
        if NAMES.contains(&key.as_str()) && is_name {
            self.name.get_or_insert_with(|| value.to_owned());
        } else if REASONS.contains(&key.as_str()) && !value.is_empty() {
            self.reason.get_or_insert_with(|| value.to_owned());
        }
    }

    /// A further line of a reason; `false` where the line is something else.
    fn goes_on(&mut self, text: &str) -> bool {
        let text = text.trim_end_matches('`');
        let is_else = text.is_empty() || text.contains("*** ") || FrameRow::read(text.as_bytes()).is_some();
        self.open_reason = if is_else || text.ends_with('\'') { 0 } else { self.open_reason - 1 };
        let Some(reason) = self.reason.as_mut().filter(|reason| !is_else && reason.len() < 16 << 10) else {
            return false;
        };
        reason.push('\n');
        reason.push_str(text.trim_end_matches('\''));
        true
    }

    fn finish(mut self, text: String) -> Option<Report> {
        // The same stack, with names and without: the names say more.
        let mut frames = if self.rows.is_empty() { std::mem::take(&mut self.addresses) } else { self.rows };
        if frames.is_empty() && !self.is_announced && self.said.is_empty() {
            return None;
        }
        settle(&mut frames, Origin::Backtrace);
        let mut report = Report { source: Source::ExceptionLog, ..Report::default() };
        report.process.images = images(&frames);
        if !frames.is_empty() {
            report.process.backtraces.push(Backtrace {
                title: "Call stack of the exception".to_owned(),
                is_exception: self.name.is_some(),
                frames,
            });
        }
        mark_throw(&mut report);
        match (self.name, self.reason) {
            (Some(name), reason) => {
                let runtime = match self.is_kotlins {
                    true => ThrowingRuntime::Other,
                    false => ThrowingRuntime::ObjectiveC,
                };
                note_thrown(&mut report, ThrownException { runtime, name, reason, is_handled: false });
            }
            (None, Some(reason)) => report.app_info.push(AppInfo { image: None, lines: vec![reason] }),
            (None, None) => {}
        }
        self.said.iter().for_each(|line| last_words::add(&mut report, line));
        report.process.place_frames();
        report.sections.push(Section { title: "Log".to_owned(), text });
        Some(report)
    }
}

/// A row as HockeyApp wrote them into trackers, of the app's own code alone: `ShopController;load:;ShopController.m;163`, of Swift's
/// and C's functions `-;Shop.load() -> ();Shop.swift;12`. File and line may be missing.
fn hockeys_row(text: &str) -> Option<Frame> {
    let text = text.strip_prefix("<pre>").unwrap_or(text);
    let text = text.strip_suffix("</pre>").unwrap_or(text);
    let (rest, line) = text.rsplit_once(';')?;
    let (rest, file) = rest.rsplit_once(';')?;
    let (class, method) = rest.split_once(';')?;
    let is_file = [".m", ".mm", ".swift", ".c", ".cpp", ".h"].iter().any(|end| file.ends_with(end));
    let is_class = class == "-"
        || !class.is_empty()
            && class.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    let is_line = line.bytes().all(|byte| byte.is_ascii_digit());
    if !is_class || method.is_empty() || !is_line || !(is_file || file.is_empty() && line.is_empty()) {
        return None;
    }
    let name = if class == "-" { method.to_owned() } else { format!("-[{class} {method}]") };
    let symbol = ReportedSymbol {
        name,
        file: Some(file.to_owned()).filter(|file| !file.is_empty()),
        line: line.parse().ok(),
        ..ReportedSymbol::default()
    };
    Some(Frame { reported: Some(symbol), ..Frame::new(0) })
}

/// The images that rows tell of: `App + 1234` has the load address in it.
fn images(frames: &[Frame]) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    for frame in frames {
        let base = frame
            .address
            .zip(frame.image_offset)
            .and_then(|(address, offset)| address.raw().checked_sub(offset));
        let (Some(base), Some(name)) = (base, &frame.image_name) else { continue };
        if images.len() < 1000 && !images.iter().any(|image| image.load_address == base) {
            images.push(Image { name: name.clone(), load_address: base, ..Image::default() });
        }
    }
    images
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use backtrail_core::FrameAddress;

    fn read_text(text: &str) -> Report {
        parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    fn addresses(report: &Report) -> Vec<u64> {
        let frames = &report.process.backtraces[0].frames;
        assert!(frames.iter().all(|frame| matches!(frame.address, Some(FrameAddress::Return(_)))));
        frames.iter().filter_map(|frame| frame.address).map(|address| address.raw().get()).collect()
    }

    #[test]
    fn names_reasons_and_quoted_rows() {
        let text = "App log\nException name: NSRangeException\nReason: index 3 beyond bounds\nuserInfo: {\n    key = value;\n}\n\
            callStackSymbols: (\n\t\"0   CoreFoundation  0x00007fff23c4f02e __exceptionPreprocess + 350\",\n\
            \t\"1   MyApp   0x000000010a0b5c20 MyApp + 23584\"\n)\n";
        let report = read_text(text);
        assert_eq!(report.source, Source::ExceptionLog);
        assert_eq!(addresses(&report), [0x7fff_23c4_f02e, 0x1_0a0b_5c20]);
        assert_eq!(report.app_info[0].lines, ["NSRangeException: index 3 beyond bounds"]);
        assert_eq!(report.process.images[0].load_address, Avma::new(0x1_0a0b_5c20 - 23584));
        assert!(report.sections[0].text.contains("key = value"));
    }

    #[test]
    fn rows_in_one_line() {
        let text = "CRASH: -[Foo bar]: unrecognized selector\nStack Trace: [0   CoreFoundation  0x1a5ab7f08 __exceptionPreprocess + 176, \
            1   App   0x104f2c1c4 f(int, char) + 452, 2   App 0x104f2c200 main + 1]\n";
        let report = read_text(text);
        assert_eq!(addresses(&report), [0x1_a5ab_7f08, 0x1_04f2_c1c4, 0x1_04f2_c200]);
        let names: Vec<_> = report.process.backtraces[0].frames.iter().flat_map(Frame::names).collect();
        assert_eq!(names, ["__exceptionPreprocess", "f(int, char)", "main"]);
        assert_eq!(report.app_info[0].lines, ["-[Foo bar]: unrecognized selector"]);
    }

    #[test]
    fn bare_addresses_in_both_bases() {
        for list in
            ["(\n  4463484974,\n  4463484000\n)", "( 4463484974, 4463484000 )", "[0x10a0b602e, 0x10a0b5c60]"]
        {
            let report = read_text(&format!("name: E\ncallStackReturnAddresses: {list}\nmore 77\n"));
            assert_eq!(addresses(&report), [4_463_484_974, 4_463_484_000], "{list}");
        }
        let text = "*** Terminating app due to uncaught exception 'E', reason: 'x'\n*** First throw call stack:\n(0x1a 0x1b)\n";
        let report = read_text(text);
        assert_eq!(addresses(&report), [0x1a, 0x1b]);
        assert_eq!(report.app_info[0].lines, ["E: x"]);
    }

    /// What people paste of a console often ends before the stack.
    #[test]
    fn foundations_words_alone() {
        let report = read_text(
            "It ends so:\n2024-03-02 App[12:34] *** Terminating app due to uncaught exception 'NSGenericException', reason: '*** first\nsecond.'\nwhy?\n",
        );
        let thrown = report.thrown.unwrap();
        assert_eq!(
            (thrown.name.as_str(), thrown.reason.as_deref()),
            ("NSGenericException", Some("*** first\nsecond."))
        );
        assert!(report.process.backtraces.is_empty());
        let text = "x: *** Terminating app due to uncaught exception 'E', reason: 'r'\nx: Stack: (\\n    4463484974,\\n    4463484000\\n)\n";
        assert_eq!(addresses(&read_text(text)), [4_463_484_974, 4_463_484_000]);
    }

    /// What is left where people cut the rest away.
    #[test]
    fn names_and_reasons_alone() {
        for text in [
            "'NSInternalInconsistencyException', reason: 'Invalid update'\n",
            "```\nFatal Exception: NSInternalInconsistencyException\nInvalid update\n```\n",
            "NSInternalInconsistencyException: Invalid update\n  ?, in <redacted>\n",
        ] {
            let thrown = read_text(text).thrown.unwrap();
            assert_eq!(
                (thrown.name.as_str(), thrown.reason.as_deref()),
                ("NSInternalInconsistencyException", Some("Invalid update")),
                "{text}"
            );
        }
        for text in ["NSExceptional: x\n", "What is an NSRangeException: a class?\n", "Fatal Exception: it\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn rows_of_hockeyapp() {
        let report = read_text(
            "<pre>ShopController;load:;ShopController.m;163\n-;Shop.total() -> ();Shop.swift;12\n-;start;;</pre>\n\n*** Terminating app due to uncaught exception 'NSRangeException', reason: 'r'\n",
        );
        let frames = &report.process.backtraces[0].frames;
        let names: Vec<_> = frames.iter().flat_map(Frame::names).collect();
        assert_eq!(names, ["-[ShopController load:]", "Shop.total() -> ()", "start"]);
        assert_eq!(frames[0].reported.as_ref().unwrap().line, Some(163));
    }

    #[test]
    fn words_without_a_stack_are_no_report() {
        assert!(parse(b"callStackSymbols: none\n", &Limits::default()).is_err());
    }
}
