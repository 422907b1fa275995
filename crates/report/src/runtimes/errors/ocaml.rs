//! OCaml: exceptions that nothing caught, with the backtrace of `OCAMLRUNPARAM=b`.
//!
//! Source: OCaml `stdlib/printexc.ml` (`format_backtrace_slot`), `runtime/printexc.c`.

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::Text;
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{Language, Report};

/// How a row begins.
const ROWS: [&str; 4] = ["Raised by primitive operation at ", "Raised at ", "Called from ", "Re-raised at "];

/// What a row says of how the exception came there; the call is what most rows are.
struct Row<'t> {
    how: &'t str,
    name: &'t str,
    place: Option<SourcePlace<'t>>,
    is_inlined: bool,
}

impl<'t> Row<'t> {
    /// `Called from Shop.price in file "lib/shop.ml" (inlined), line 12, characters 4-9`; before 4.11 without the name.
    fn read(text: &'t str) -> Option<Self> {
        let how = ROWS.iter().find(|how| text.starts_with(**how))?;
        let rest = text.get(how.len()..)?;
        if rest == "unknown location" {
            return Some(Self { how: how.trim_end(), name: "", place: None, is_inlined: false });
        }
        let (name, rest) = match rest.strip_prefix("file \"") {
            Some(rest) => ("", rest),
            None => rest.split_once(" in file \"")?,
        };
        let (file, rest) = rest.split_once('"')?;
        let is_inlined = rest.starts_with(" (inlined)");
        let (_, rest) = rest.split_once("line ").or_else(|| rest.split_once("lines "))?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let line = rest.get(..digits)?.parse().ok()?;
        let column = rest.split_once("characters ").and_then(|(_, rest)| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest.get(..digits)?.parse::<u32>().ok()?.checked_add(1)
        });
        Some(Self { how: how.trim_end(), name, place: Some(SourcePlace { file, line, column }), is_inlined })
    }
}

/// The exception that such a line names.
fn raised(text: &str) -> Option<&str> {
    text.strip_prefix("Fatal error: exception ").map(str::trim).filter(|name| !name.is_empty())
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    let is_head = || {
        raised(line).is_some_and(|name| {
            let name = name.trim_start_matches('(');
            name.starts_with(|first: char| first.is_ascii_uppercase())
                && name
                    .bytes()
                    .take_while(|byte| !matches!(byte, b'(' | b' '))
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'\'' | b')'))
        })
    };
    match line.as_bytes().first() {
        Some(b'F') => is_head(),
        Some(b'R' | b'C') => Row::read(line).is_some_and(|row| row.place.is_some()),
        _ => false,
    }
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = OCaml { text: Text::new(Language::OCaml, limits), before: Vec::new() };
    drive(&mut reader, input, start);
    reader.text.finish()
}

/// Words that programs put before the exception, which follows on a line of its own.
const ANNOUNCED: [&str; 3] = ["Uncaught exception:", "internal error, uncaught exception:", "Fatal error:"];

struct OCaml<'l> {
    text: Text<'l>,
    /// The last lines before the rows, from the announcement on.
    before: Vec<String>,
}

impl<'l> Reader<'l> for OCaml<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        const MAX_BEFORE: usize = 8;
        let text = text.trim();
        let Some(row) = Row::read(text) else {
            if let Some(name) = raised(text) {
                let (kind, message) = parts(name);
                self.text.raise(kind, message);
            } else if ANNOUNCED.iter().any(|words| text.ends_with(words)) {
                self.before = vec![String::new()];
            } else if !self.before.is_empty() && self.before.len() < MAX_BEFORE && !text.is_empty() {
                self.before.push(text.to_owned());
            }
            return false;
        };
        if !self.text.has_raised() {
            let lines: Vec<&str> = self.before.iter().map(String::as_str).collect();
            let said = lines.iter().filter(|line| !line.is_empty() && **line != "Backtrace:");
            let said = said.copied().collect::<Vec<_>>().join(" ");
            if !said.is_empty() {
                let (kind, message) = parts(&said);
                self.text.raise(kind, message);
            }
        }
        let pushed = self.text.push(row.name, row.place, line);
        // Such a function has no frame of its own: the next row is the one that it was inlined into.
        let pushed_frame = self.text.log.frames().and_then(|frames| frames.last_mut()).filter(|_| pushed);
        if let Some(frame) = pushed_frame {
            frame.inlined = row.is_inlined;
        }
        if pushed && row.how != "Called from" {
            return self.text.log.annotate(row.how);
        }
        pushed
    }
}

/// `Failure("text")`, `(Failure "text")`, `Stdlib.Not_found`: the name and what it carries.
fn parts(text: &str) -> (&str, &str) {
    let bare = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    match bare.split_once(['(', ' ']) {
        Some((name, rest)) => {
            let rest = if bare == text { rest.strip_suffix(')').unwrap_or(rest) } else { rest };
            (name.trim(), super::unquoted(rest.trim()))
        }
        None => (bare, ""),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn old_and_new_rows() {
        for (text, kind, message, name) in [
            (
                "Fatal error: exception Failure(\"no price\")\nRaised at Shop.price in file \"lib/shop.ml\", line 12, characters 4-9\nCalled from Dune__exe__Main in file \"bin/main.ml\", line 3, characters 0-2\n",
                "Failure",
                Some("no price"),
                Some("Shop.price"),
            ),
            (
                "shop: internal error, uncaught exception:\n      Not_found\n      Raised at file \"lib/shop.ml\", line 12, characters 4-9\n      Re-raised at file \"bin/main.ml\" (inlined), line 3, characters 0-2\n",
                "Not_found",
                None,
                Some("(shop.ml)"),
            ),
            (
                "Fatal error: exception (Shop.Oops \"no price\")\nRaised by primitive operation at file \"lib/shop.ml\", line 12, characters 4-9\nCalled from unknown location\nCalled from file \"bin/main.ml\", line 3, characters 0-2\n",
                "Shop.Oops",
                Some("no price"),
                Some("(shop.ml)"),
            ),
        ] {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            let exception = report.exception.as_ref().unwrap();
            assert_eq!(
                (exception.kind.as_deref(), exception.message.as_deref()),
                (Some(kind), message),
                "{text}"
            );
            let frames = &report.process.backtraces[0].frames;
            let first = frames[0].reported.as_ref().unwrap();
            assert_eq!(
                (Some(first.name.as_str()), first.line, first.column),
                (name, Some(12), Some(5)),
                "{text}"
            );
            assert_eq!(frames.last().unwrap().reported.as_ref().unwrap().line, Some(3));
        }
    }

    #[test]
    fn words_are_no_report() {
        for text in ["Fatal error: exception handling is broken\n", "Called from the shop in file \"x\"\n"] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
