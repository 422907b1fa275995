//! Ruby: exceptions that nothing caught, in either order, and what the interpreter prints of its own crash (`[BUG]`).
//!
//! Sources: Ruby `eval_error.c`, `error.c` (`rb_bug_for_fatal_signal`), `vm_dump.c`.

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::super::native_row;
use super::{Text, turn_around, unquoted};
use crate::Limits;
use crate::apple_text::{FrameRow, Line};
use crate::numbers::{is_number, signal_in_words};
use backtrail_core::Avma;
use backtrail_model::{Backtrace, Exception, Frame, Language, Report, Thread};

/// What the interpreter prints where it crashed.
const BUG: &str = "[BUG] ";

/// `FILE:LINE:in 'METHOD'`, and what stands behind it.
struct Row<'t> {
    file: &'t str,
    line: u32,
    name: &'t str,
    rest: &'t str,
}

impl<'t> Row<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let at = text.find(":in ")?;
        let (before, rest) = (text.get(..at)?, text.get(at + ":in ".len()..)?);
        let (file, number) =
            before.rsplit_once(':').filter(|(file, number)| is_number(number) && !file.is_empty())?;
        let inside = rest.strip_prefix(['`', '\''])?;
        let (name, rest) = inside.split_once('\'')?;
        Some(Self { file, line: number.parse().ok()?, name, rest })
    }

    fn place(&self) -> SourcePlace<'t> {
        SourcePlace { file: self.file, line: self.line, column: None }
    }

    /// What was raised: `: message (Class)`.
    fn raised(&self) -> Option<(&'t str, &'t str)> {
        let message = self.rest.strip_prefix(": ")?;
        let (message, class) = message.strip_suffix(')')?.rsplit_once(" (")?;
        is_class(class).then_some((class, message))
    }
}

fn is_class(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_'))
}

/// A row without the words that Ruby puts before those of callers: `from …`, `2: from …`.
fn without_from(text: &str) -> &str {
    let numbered = text.split_once(": from ").filter(|(number, _)| is_number(number)).map(|(_, rest)| rest);
    numbered.or_else(|| text.strip_prefix("from ")).unwrap_or(text)
}

/// `Class: message`, `Class (message):`, as loggers and Rails print it before the rows.
fn announced(text: &str) -> Option<(&str, &str)> {
    let (class, message) = match text.split_once(" (").filter(|(class, _)| is_class(class)) {
        Some((class, rest)) => (class, rest.strip_suffix("):")?),
        None => text.split_once(": ")?,
    };
    let is_error = class.ends_with("Error") || class.ends_with("Exception") || class.contains("::");
    (is_class(class) && is_error).then_some((class, message))
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    if section(line) == Some(Part::Native) {
        return true;
    }
    // This is asked of every line.
    let has_marks = memchr::memchr3(b'\'', b'`', b'[', line.as_bytes()).is_some();
    let is_ruby = has_marks && memchr::memmem::find(line.as_bytes(), b".rb").is_some();
    if !is_ruby && !line.starts_with(BUG) {
        return false;
    }
    if let Some(at) = line.find(BUG) {
        return line.get(..at).is_some_and(|before| before.ends_with(": ") || before.is_empty())
            && line.get(at + BUG.len()..).is_some_and(|rest| !rest.is_empty());
    }
    line.contains(":in ")
        && Row::read(without_from(line))
            .is_some_and(|row| !row.file.contains(char::is_whitespace) && row.file.contains(".rb"))
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader =
        Ruby { text: Text::new(Language::Ruby, limits), part: Part::Rows, is_reversed: false, said: None };
    drive(&mut reader, input, start);
    let Ruby { mut text, is_reversed, .. } = reader;
    if is_reversed {
        // The line of the error is the innermost row, and comes last.
        if let Some(stack) = text.log.report.process.backtraces.first_mut() {
            turn_around(&mut stack.frames);
        }
    }
    with_one_of_methods(&mut text.log.report.process.backtraces);
    let mut report = text.finish()?;
    let process = &mut report.process;
    if let Some(thread) = process.threads.first_mut() {
        if let Some(exception) = report.exception.as_mut().filter(|exception| exception.signal.is_none()) {
            exception.signal = handled(&thread.frames).map(str::to_owned);
        }
        super::super::log::settle_walked(&mut thread.frames, native_row::is_signal);
        process.crashed_thread = Some(0);
        // Where it crashed is the stack of machine code.
        process.backtraces.iter_mut().for_each(|stack| stack.is_exception = false);
    }
    Some(report)
}

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
enum Part {
    /// Rows of Ruby's methods, as they stand.
    Rows,
    /// The interpreter's own frames, which say the same as its rows.
    Control,
    /// Rows of methods in a crash, outermost first.
    Methods,
    /// Rows of machine code.
    Native,
    Other,
}

struct Ruby<'l> {
    text: Text<'l>,
    part: Part,
    is_reversed: bool,
    /// What a line before the rows said was raised.
    said: Option<(String, String)>,
}

impl<'l> Reader<'l> for Ruby<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if let Some(part) = section(text) {
            self.begin(part);
            return false;
        }
        if let Some((_, what)) =
            text.split_once(BUG).filter(|(before, _)| before.is_empty() || before.ends_with(": "))
        {
            self.crashed(what);
            return false;
        }
        if text == "Traceback (most recent call last):" {
            self.is_reversed = true;
            return false;
        }
        match self.part {
            Part::Rows => self.row(text, line),
            Part::Methods => {
                let Some(row) = Row::read(text) else { return false };
                self.text.push(row.name, Some(row.place()), line)
            }
            Part::Native => {
                let index = self.text.log.next_index();
                // Where the system's library prints the rows, they have Apple's form.
                let apples = || FrameRow::read(line.bytes).map(|row| Frame { index, ..row.frame() });
                let row = native_row::NativeRow::read(text).map(|row| row.frame(index)).or_else(apples);
                let Some(frame) = row else { return false };
                self.text.log.push(Frame { span: Some(line.span.clone()), ..frame })
            }
            Part::Control => match control(text) {
                Some((name, found)) => self.text.push(name, found, line),
                None => false,
            },
            Part::Other => false,
        }
    }
}

fn section(text: &str) -> Option<Part> {
    // A quote may stand before what was pasted.
    let text = text.trim_start_matches(['\'', '"', '`']);
    let title = text.strip_prefix("-- ").filter(|rest| rest.ends_with("---"))?;
    let title = title.trim_end_matches('-').trim_end();
    Some(match title {
        "Control frame information" => Part::Control,
        "Ruby level backtrace information" => Part::Methods,
        "C level backtrace information" => Part::Native,
        _ => Part::Other,
    })
}

/// Titles of the two stacks of methods that a crash has. They say the same; that of the control frames alone names functions in
/// C, and places of callers in Ruby, without the methods' names.
const METHODS: &str = "Ruby's methods";
const CONTROL: &str = "Ruby's control frames";

/// A control frame: `c:0007 p:---- s:0026 e:000025 CFUNC  :encode`, `c:0006 p:0178 s:0022 e:000021 METHOD /a/shop.rb:41`.
fn control(text: &str) -> Option<(&str, Option<SourcePlace<'_>>)> {
    let mut words = text.strip_prefix("c:")?.split_whitespace().skip(1);
    let kind = words.by_ref().find(|word| !word.contains(':'))?;
    let what = words.next()?;
    if kind == "CFUNC" {
        return what.strip_prefix(':').map(|name| (name, None));
    }
    super::super::log::place(what).map(|found| ("", Some(found)))
}

/// Leaves one of the two stacks: the control frames where the stack of methods was cut, or does not reach as far in.
fn with_one_of_methods(stacks: &mut Vec<Backtrace>) {
    let rows = |title: &str| {
        let stack = stacks.iter().find(|stack| stack.title == title);
        stack.map_or(0, |stack| stack.frames.len())
    };
    let spare = if rows(METHODS) >= rows(CONTROL) { CONTROL } else { METHODS };
    stacks.retain(|stack| stack.title != spare);
}

/// The signal that the interpreter's own handler on the stack tells (`signal.c`).
fn handled(frames: &[Frame]) -> Option<&'static str> {
    const HANDLERS: [(&str, &str); 4] =
        [("sigsegv", "SIGSEGV"), ("sigbus", "SIGBUS"), ("sigill", "SIGILL"), ("sigabrt", "SIGABRT")];
    let names = frames.iter().filter_map(|frame| frame.reported.as_ref());
    let signal = |name: &str| HANDLERS.iter().find(|(known, _)| *known == name).map(|(_, signal)| *signal);
    names.map(|symbol| symbol.name.as_str()).find_map(signal)
}

impl Ruby<'_> {
    fn begin(&mut self, part: Part) {
        if self.part == Part::Methods
            && let Some(frames) = self.text.log.frames()
        {
            turn_around(frames);
        }
        self.text.log.end_stack();
        self.part = part;
        match part {
            Part::Methods => {
                self.text.log.begin_backtrace(METHODS, false);
            }
            Part::Control => {
                self.text.log.begin_backtrace(CONTROL, false);
            }
            Part::Native => {
                self.crashed("");
                self.text.log.begin_thread(Thread { crashed: true, ..Thread::default() });
            }
            _ => {}
        }
    }

    /// `Segmentation fault at 0x10`, `object allocation during garbage collection phase`.
    fn crashed(&mut self, what: &str) {
        let signal = signal_in_words(what);
        let address = what.rsplit_once(" at 0x").and_then(|(_, digits)| u64::from_str_radix(digits, 16).ok());
        self.text.log.report.exception.get_or_insert_with(|| Exception {
            kind: Some("Ruby crashed".to_owned()),
            signal: signal.map(str::to_owned),
            message: Some(what.to_owned()).filter(|what| !what.is_empty()),
            address: address.map(Avma::new),
            ..Exception::default()
        });
    }

    fn row(&mut self, text: &str, line: &Line<'_>) -> bool {
        let Some(row) = Row::read(without_from(text)) else {
            if let Some((class, message)) = announced(text).filter(|_| !self.text.log.is_in_stack()) {
                self.said = Some((class.to_owned(), message.to_owned()));
            }
            return false;
        };
        if let Some((class, message)) = row.raised() {
            if self.text.has_raised() {
                // The cause of the error, which follows it.
                self.text.log.begin_backtrace(format!("Cause: {class}: {message}"), false);
            }
            self.text.raise(class, message);
        } else if let Some((class, message)) = self.said.take() {
            self.text.raise(unquoted(&class), &message);
        }
        self.text.push(row.name, Some(row.place()), line)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};
    use backtrail_model::{Frame, Report};

    fn read(text: &str) -> Report {
        parse(text.as_bytes(), &Limits::default()).unwrap()
    }

    fn names(frames: &[Frame]) -> Vec<&str> {
        frames.iter().map(|frame| frame.reported.as_ref().map_or("", |symbol| symbol.name.as_str())).collect()
    }

    #[test]
    fn either_order_begins_with_the_innermost() {
        let new = "/a/shop.rb:3:in 'Shop#price': undefined method 'cents' for nil (NoMethodError)\n\tfrom /a/shop.rb:9:in 'Shop#total'\n\tfrom /a/main.rb:2:in '<main>'\n";
        let old = "Traceback (most recent call last):\n\t2: from /a/main.rb:2:in `<main>'\n\t1: from /a/shop.rb:9:in `Shop#total'\n/a/shop.rb:3:in `Shop#price': undefined method 'cents' for nil (NoMethodError)\n";
        let rails = "NoMethodError (undefined method 'cents' for nil):\n\n/a/shop.rb:3:in `Shop#price'\n/a/shop.rb:9:in `Shop#total'\n/a/main.rb:2:in `<main>'\n";
        for text in [new, old, rails] {
            let report = read(text);
            let exception = report.exception.as_ref().unwrap();
            assert_eq!(exception.kind.as_deref(), Some("NoMethodError"), "{text}");
            assert_eq!(exception.message.as_deref(), Some("undefined method 'cents' for nil"));
            let frames = &report.process.backtraces[0].frames;
            assert_eq!(names(frames), ["Shop#price", "Shop#total", "<main>"], "{text}");
            assert_eq!(frames[0].reported.as_ref().unwrap().line, Some(3));
        }
    }

    #[test]
    fn a_crash_of_the_interpreter() {
        let report = read(
            "/a/ext.rb:3: [BUG] Segmentation fault at 0x0000000000000018\nruby 3.2.2 (2023-03-30 revision e51014f9c0) [x86_64-linux]\n\n\
             -- Control frame information -----------------------------------------------\nc:0002 p:0005 s:0006 e:000005 EVAL   /a/ext.rb:3 [FINISH]\n\n\
             -- Ruby level backtrace information ----------------------------------------\n/a/ext.rb:3:in `<main>'\n/a/ext.rb:3:in `load'\n\n\
             -- C level backtrace information -------------------------------------------\n/usr/lib/libruby.so.3.2(rb_vm_bugreport+0x5b8) [0x7ff513d8f188] vm_dump.c:684\n/usr/lib/libruby.so.3.2(sigsegv+0x5f) [0x7ff513d0b2af]\n/lib64/libc.so.6(__restore_rt+0x0) [0x7fa7da97b9a0]\n/a/ext.so(ext_load+0x12) [0x7fc7158df2] /a/ext.c:17\n",
        );
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.signal.as_deref(), exception.address.map(backtrail_core::Avma::get)),
            (Some("SIGSEGV"), Some(0x18))
        );
        let frames = &report.crashed().unwrap().frames;
        assert_eq!(names(frames), ["rb_vm_bugreport", "sigsegv", "__restore_rt", "ext_load"]);
        assert_eq!(frames[3].reported.as_ref().unwrap().line, Some(17));
        assert_eq!(frames[3].image_name.as_deref(), Some("ext.so"));
        assert_eq!(names(&report.process.backtraces[0].frames), ["load", "<main>"]);
    }

    #[test]
    fn words_are_no_report() {
        for text in
            ["it fails in a.rb:3:in production\n", "We got a [BUG] label\n", "see x.rb:12:in the wild\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
