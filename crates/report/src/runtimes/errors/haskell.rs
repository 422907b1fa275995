//! Haskell: an exception that nothing caught with the call stack that GHC's `HasCallStack` gives it.
//!
//! A row says which function was called and where: the place is in its caller, whose name the next row has. The last row's
//! caller is known by its module only.

use super::super::log::{Log, Reader, drive, place};
use super::Text;
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{Language, Report};

const HEAD: &str = "CallStack (from HasCallStack):";

/// `head, called at src/Shop.hs:12:5 in shop-0.1-AbC:Shop`.
struct Row<'t> {
    called: &'t str,
    at: &'t str,
    package: &'t str,
    module: &'t str,
}

impl<'t> Row<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let (called, rest) = text.split_once(", called at ")?;
        let (at, unit) = rest.split_once(" in ")?;
        let (package, module) = unit.split_once(':')?;
        (!called.is_empty()).then_some(Self { called, at, package, module })
    }
}

/// What a program says of a function of GHC's library that fails, without a stack: `shop: Prelude.head: empty list`
/// (`errorEmptyList` in `GHC/List.hs`).
fn bare(line: &str) -> Option<(&str, &str)> {
    let (program, message) = line.split_once(": ")?;
    let rest = message.strip_prefix("Prelude.")?;
    let is_program = !program.is_empty() && !program.contains(char::is_whitespace);
    let (function, what) = rest.split_once(": ")?;
    let is_function = !function.is_empty() && !function.contains(char::is_whitespace);
    (is_program && is_function && !what.is_empty()).then_some((program, message))
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    line == HEAD
        || bare(line).is_some()
        || memchr::memchr(b',', line.as_bytes()).is_some()
            && memchr::memmem::find(line.as_bytes(), b", called at ").is_some()
            && Row::read(line).is_some_and(|row| place(row.at).is_some())
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Haskell {
        text: Text::new(Language::Haskell, limits),
        last: String::new(),
        bare: None,
        called: Vec::new(),
    };
    drive(&mut reader, input, start);
    let Haskell { mut text, called, bare, .. } = reader;
    if let Some((program, message)) = bare.filter(|_| !text.has_raised()) {
        text.raise("error", &message);
        text.log.report.process.name.get_or_insert(program);
    }
    if let Some(stack) = text.log.report.process.backtraces.first_mut() {
        // Each row's place is in the function that the next row says was called.
        for (frame, name) in stack.frames.iter_mut().zip(called.into_iter().skip(1)) {
            if let Some(symbol) = &mut frame.reported {
                symbol.name = name;
            }
        }
    }
    text.finish()
}

struct Haskell<'l> {
    text: Text<'l>,
    /// The last line before the stack.
    last: String,
    /// Program and message of the first line that needs no stack.
    bare: Option<(String, String)>,
    /// The functions that the rows of the first stack say were called.
    called: Vec<String>,
}

impl<'l> Reader<'l> for Haskell<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if text == HEAD && !self.text.has_raised() {
            let said = std::mem::take(&mut self.last);
            // `program: message`; a program's name has no blank.
            let (program, message) = said.split_once(": ").unwrap_or(("", &said));
            let is_program = !program.is_empty() && !program.contains(char::is_whitespace);
            let message = if is_program { message } else { &said };
            self.text.raise("error", message);
            if is_program {
                self.text.log.report.process.name.get_or_insert_with(|| program.to_owned());
            }
            return false;
        }
        if text == "HasCallStack backtrace:" && self.text.log.is_in_stack() {
            // The same stack once more, with the functions that took it.
            self.text.log.begin_backtrace("HasCallStack backtrace", false);
            return false;
        }
        let Some(row) = Row::read(text) else {
            if !text.is_empty() && !self.text.has_raised() {
                if self.bare.is_none() {
                    self.bare = bare(text).map(|(program, message)| (program.to_owned(), message.to_owned()));
                }
                text.clone_into(&mut self.last);
            }
            return false;
        };
        let is_first = self.text.log.report.process.backtraces.len() <= 1;
        let pushed = self.text.push(row.module, place(row.at), line);
        if pushed && is_first {
            self.called.push(row.called.to_owned());
        }
        pushed && self.text.log.annotate(&format!("calls {}, in {}", row.called, row.package))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn a_message_alone() {
        let report = parse(b"shop: Prelude.head: empty list\n", &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().message.as_deref(), Some("Prelude.head: empty list"));
        assert_eq!(report.process.name.as_deref(), Some("shop"));
        for text in ["what is it: Prelude.head: x\n", "see: Prelude.head\n"] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_place_is_in_the_caller() {
        let text = "shop: Prelude.head: empty list\nCallStack (from HasCallStack):\n  error, called at libraries/base/GHC/List.hs:1646:3 in base:GHC.List\n  errorEmptyList, called at libraries/base/GHC/List.hs:85:11 in base:GHC.List\n  head, called at src/Shop.hs:12:5 in shop-0.1-AbC:Shop\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.as_ref().unwrap().message.as_deref(), Some("Prelude.head: empty list"));
        assert_eq!(report.process.name.as_deref(), Some("shop"));
        let frames = &report.process.backtraces[0].frames;
        let rows: Vec<_> = frames.iter().map(|frame| frame.reported.clone().unwrap()).collect();
        let row = |at: usize| (rows[at].name.as_str(), rows[at].line);
        assert_eq!(
            [row(0), row(1), row(2)],
            [("errorEmptyList", Some(1646)), ("head", Some(85)), ("Shop", Some(12))]
        );
        assert_eq!(frames[2].annotations, ["calls head, in shop-0.1-AbC"]);
        assert!(parse(b"the shop, called at noon in town: closed\n", &Limits::default()).is_err());
    }
}
