//! What V8 prints before it ends a program: `FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory`,
//! the last collections of garbage before it, and the native stack behind it; `# Fatal error in FILE, line 0` and the check of its own
//! that failed.
//!
//! Sources: V8 `src/api/api.cc` (`ReportOOMFailure`), `src/heap/gc-tracer.cc` (`Print`); Node.js `src/node_errors.cc`.

use super::log::{Log, Reader, drive, file_name};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Exception, Field, Frame, Report, ReportedSymbol, Source};

const HEAD: &str = "FATAL ERROR: ";

/// The message of a line that is V8's.
pub(super) fn message(line: &str) -> Option<&str> {
    let message = line.strip_prefix(HEAD)?.trim();
    let is_heap = message.ends_with(" JavaScript heap out of memory")
        || message.ends_with("Allocation failed - process out of memory");
    let is_api = message.starts_with("v8::") && message.contains("::") && message.contains(' ');
    (is_heap || is_api).then_some(message)
}

/// What V8 says of a check of its own that failed: `# Check failed: result.second.`, `# unreachable code`.
pub(super) fn check(line: &str) -> Option<&str> {
    const BEGINS: [&str; 6] = [
        "Check failed: ",
        "Debug check failed: ",
        "Fatal JavaScript",
        "unreachable code",
        "unimplemented code",
        "API fatal error",
    ];
    let said = line.strip_prefix('#')?.trim();
    BEGINS.iter().any(|begin| said.starts_with(begin)).then(|| said.trim_end_matches('.'))
}

/// Whether a line is the first row of the stack that Node.js prints where an assertion of its own failed.
///
/// Source: Node.js `src/node_errors.cc` (`Assert`, `DumpNativeBacktrace`).
pub(super) fn is_first_row(line: &str) -> bool {
    const FIRST: [&str; 2] = ["node::Abort()", "node::DumpNativeBacktrace("];
    line.strip_prefix("1: ").is_some_and(|rest| FIRST.iter().any(|name| rest.contains(name)))
}

/// Whether a line says that such a check failed. What failed stands in the next.
pub(super) fn is_check(line: &str) -> bool {
    line.strip_prefix("# Fatal error in ").is_some_and(|rest| rest.contains(", line "))
}

/// Reads such a text; `None` where it is none.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::JavaScriptError, limits);
    let mut reader = V8 { log, message: None, assertion: None, is_assertion: false, last: None, rows: None };
    drive(&mut reader, input, start);
    let V8 { log, message, is_assertion, last, rows, .. } = reader;
    let message = message?;
    let mut report = log.finish();
    report.exception = Some(Exception {
        kind: Some(if is_assertion { "Node.js assertion" } else { "V8 fatal error" }.to_owned()),
        message: Some(message),
        ..Exception::default()
    });
    if let Some(line) = last {
        let mut add = |key: &str, value: &str| {
            report.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
        };
        if let Some((left, size)) = remaining(&line) {
            add("heap after the last collection", left);
            add("heap size", size);
        }
        add("last collection", &line);
    }
    // V8 counts its rows from 1.
    if let Some(rows) = rows {
        report.fields.push(Field { key: "rows of the native stack".to_owned(), value: rows.to_string() });
    }
    Some(report)
}

struct V8<'l> {
    log: Log<'l>,
    message: Option<String>,
    /// A failed assertion, which is Node.js's where rows of its own follow.
    assertion: Option<String>,
    is_assertion: bool,
    /// The last collection of the whole heap.
    last: Option<String>,
    /// The number of the last row.
    rows: Option<u32>,
}

impl<'l> Reader<'l> for V8<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if self.message.is_none() {
            self.message = message(text).or_else(|| check(text)).map(str::to_owned);
            let collection = last_collection(text).filter(|collection| remaining(collection).is_some());
            self.last = collection.map(str::to_owned).or_else(|| self.last.take());
            if text.contains("Assertion `") && crate::last_words::is_librarys(text) {
                self.assertion = Some(text.trim_matches('`').to_owned());
            }
            if !is_first_row(text) {
                return false;
            }
            self.message = self.assertion.take();
            self.is_assertion = true;
            if self.message.is_none() {
                return false;
            }
        }
        // Rows may have a name and no address; the line is kept, too, since its number counts from 1.
        let bare = || bare_row(text).filter(|_| self.log.is_in_stack() || self.is_assertion);
        let Some(frame) = row(text).or_else(bare) else { return false };
        self.rows = Some(frame.index + 1);
        let is_whole = frame.address.is_some();
        if !self.log.is_in_stack() && !self.log.begin_backtrace("Native stack", true) {
            return false;
        }
        self.log.push(Frame { span: Some(line.span.clone()), ..frame }) && is_whole
    }
}

/// `17: clone`, and with its file, as old versions of Node.js have rows: `1: node::Abort() [node]`.
fn bare_row(text: &str) -> Option<Frame> {
    let (number, name) = text.split_once(": ")?;
    let index = number.parse::<u32>().ok()?.checked_sub(1)?;
    if let Some((name, module)) = name.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["))
        && name.contains('(')
    {
        let frame = super::log::named(index, name.trim(), None);
        return Some(Frame { image_name: Some(file_name(module).to_owned()), ..frame });
    }
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace) && !name.starts_with("0x");
    is_name.then(|| super::log::named(index, name, None))
}

/// The last collection of the whole heap that a line tells of. Node.js cuts long ones, and the next one follows on the same line:
/// `… finalize increme[28401:0x22fb] 166 ms: Mark-Compact 50.7 …` (seen with 20.20).
fn last_collection(line: &str) -> Option<&str> {
    let at = line.rfind("Mark-")?;
    let start = line.get(..at)?.rfind('[').unwrap_or_default();
    line.get(start..)
}

/// What the heap held after a collection, and its size: `Mark-Compact 2046.1 (2079.5) -> 2045.3 (2080.0) MB, …`.
fn remaining(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(" -> ")?;
    let (left, rest) = rest.split_once(" (")?;
    let (size, rest) = rest.split_once(')')?;
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    (rest.starts_with(" MB") && is_number(left) && is_number(size)).then_some((left, size))
}

/// ` 1: 0xb7a940 node::Abort() [node]`, ` 1: 00007FF655E1542D node::SetCppgcReference+17693`.
fn row(text: &str) -> Option<Frame> {
    let (number, rest) = text.split_once(": ")?;
    let index = number.parse::<u32>().ok()?.checked_sub(1)?;
    let (address, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let digits = address.strip_prefix("0x").unwrap_or(address);
    let address = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() >= 5)?;
    let (name, module) = match rest.trim().strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        Some((name, module)) => (name.trim(), Some(module)),
        None => (rest.trim(), None),
    };
    let (name, offset) = match name.rsplit_once('+') {
        Some((name, offset)) if offset.parse::<u64>().is_ok() => (name, offset.parse().ok()),
        _ => (name, None),
    };
    let reported = ReportedSymbol { name: name.to_owned(), offset, ..ReportedSymbol::default() };
    Some(Frame {
        address: Some(FrameAddress::Return(Avma::new(address))),
        image_name: module.map(|module| file_name(module).to_owned()),
        reported: Some(reported).filter(|symbol| !symbol.name.is_empty()),
        ..Frame::new(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const TEXT: &str = "\n<--- Last few GCs --->\n\n\
        [812:0x5b1a2b0]    94315 ms: Mark-sweep 1046.1 (1079.5) -> 1044.3 (1080.0) MB, 812.4 / 0.0 ms  (average mu = 0.130, current mu = 0.012) allocation failure; scavenge might not succeed\n\
        [812:0x5b1a2b0]    95210 ms: Mark-sweep 1046.4 (1080.0) -> 1045.9 (1080.8) MB, 880.1 / 0.0 ms  (average mu = 0.074, current mu = 0.017) allocation failure; scavenge might not succeed\n\n\n\
        <--- JS stacktrace --->\n\n\
        FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n\
        \u{20}1: 0xb7a940 node::Abort() [node]\n\
        \u{20}2: 0xa8e823  [/usr/bin/node]\n\
        \u{20}3: 00007FF655E1542D node::SetCppgcReference+17693\n";

    #[test]
    fn a_full_heap() {
        let report = parse(TEXT.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.source, Source::JavaScriptError);
        let values: Vec<_> = report.fields.iter().map(|field| field.value.as_str()).take(2).collect();
        assert_eq!(values, ["1045.9", "1080.8"]);
        let frames = &report.process.backtraces[0].frames;
        let names: Vec<_> = frames.iter().map(|frame| frame.names().next()).collect();
        assert_eq!(names, [Some("node::Abort()"), None, Some("node::SetCppgcReference")]);
        assert_eq!(frames[1].image_name.as_deref(), Some("node"));
        let alone = "FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory\n";
        assert!(parse(alone.as_bytes(), &Limits::default()).is_ok());
    }

    #[test]
    fn of_two_collections_on_a_line_the_last_one_counts() {
        let cut = TEXT
            .replace("0.012) allocation failure; scavenge might not succeed\n", "0.012) finalize increme");
        assert!(cut.contains("increme[812:"), "{cut}");
        let report = parse(cut.as_bytes(), &Limits::default()).unwrap();
        let values: Vec<_> = report.fields.iter().map(|field| field.value.as_str()).collect();
        assert_eq!(values[..2], ["1045.9", "1080.8"]);
        assert!(values[2].starts_with("[812:0x5b1a2b0]    95210 ms: Mark-sweep 1046.4"), "{}", values[2]);
    }

    #[test]
    fn sentences_about_it_are_none() {
        for text in [
            "I got FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
            "FATAL ERROR: no space left\n",
            "JavaScript heap out of memory\n",
        ] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_assertion_of_node() {
        let text = "It fails so:\n/usr/bin/node[77]: ../src/node_pipe.cc:12:static void node::Pipe::Open(int): Assertion `(fd) >= (0)' failed.\nMain process exited, code=killed, status=6/ABRT\n 1: node::Abort() [/usr/bin/node]\n 2: node::Assert(char const* const (*) [4]) [/usr/bin/node]\n 3: 0x14135d1 node::Pipe::Open(int) [/usr/bin/node]\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.unwrap();
        assert_eq!(exception.kind.as_deref(), Some("Node.js assertion"));
        assert!(exception.message.unwrap().contains("Assertion `(fd) >= (0)' failed"));
        assert_eq!(report.process.backtraces[0].frames.len(), 3);
        assert!(parse(b"1: node::Abort() is what ends it\n", &Limits::default()).is_err());
    }

    #[test]
    fn a_check_of_its_own() {
        let text = "\n#\n# Fatal error in , line 0\n# Check failed: len <= kMax.\n#\n#\n#\n#FailureMessage Object: 0x7fff\n----- Native stack trace -----\n\n 1: 0xd30a21  [node]\n 2: 0x2141bf1 V8_Fatal(char const*, ...) [node]\n 3: 0xef8912 v8::String::NewFromUtf8(v8::Isolate*) [node]\nIllegal instruction\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().message.as_deref(), Some("Check failed: len <= kMax"));
        assert_eq!(report.process.backtraces[0].frames.len(), 3);
        assert!(parse(b"# Fatal error in production\n# Check failed twice\n", &Limits::default()).is_err());
    }
}
