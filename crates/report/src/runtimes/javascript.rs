//! JavaScript: errors with their stacks as V8 prints them, Node's uncaught ones included.

use super::log::{Log, Place, Reader, drive, named, place};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{AppInfo, Exception, Field, Frame, Language, Report, Source};

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::JavaScriptError, limits);
    let mut reader = JavaScript { log, head: String::new() };
    drive(&mut reader, input, start);
    let mut report = reader.log.finish();
    let first = report.process.backtraces.first_mut()?;
    first.is_exception = true;
    let title = first.title.clone();
    report.exception = Some(exception(&title));
    report.app_info.push(AppInfo { image: None, lines: vec![title] });
    Some(report)
}

struct JavaScript<'l> {
    log: Log<'l>,
    /// The line that names the error, and those of its message.
    head: String,
}

impl<'l> Reader<'l> for JavaScript<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        // A brace behind the last row opens the error's members.
        let bare = trimmed.strip_suffix('{').map_or(trimmed, str::trim_end);
        if let Some(mut frame) = row(bare) {
            if !self.log.is_in_stack() {
                let head = std::mem::take(&mut self.head);
                let head =
                    head.strip_prefix("[cause]: ").map(|cause| format!("Cause: {cause}")).unwrap_or(head);
                if !self.log.begin_backtrace(head, false) {
                    return false;
                }
            }
            frame.span = Some(line.span.clone());
            frame.index = self.log.next_index();
            return self.log.push(frame) && bare.len() == trimmed.len();
        }
        // `... 5 lines matching cause stack trace ...`
        if trimmed.starts_with("... ") && self.log.is_in_stack() {
            return self.log.annotate(trimmed);
        }
        self.log.end_stack();
        if let Some(version) = trimmed.strip_prefix("Node.js v") {
            let (key, value) = ("Node.js".to_owned(), format!("v{version}"));
            self.log.report.fields.push(Field { key, value });
        } else if names_error(trimmed) || self.head.is_empty() || !names_error(&self.head) {
            trimmed.clone_into(&mut self.head);
        }
        false
    }
}

/// `TypeError: message`, `Uncaught Error: message`, `[cause]: Error`.
pub(super) fn names_error(line: &str) -> bool {
    let line = line.strip_prefix("[cause]: ").unwrap_or(line);
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.'));
    line.starts_with("Uncaught ") || (is_name && (name.ends_with("Error") || name.ends_with("Exception")))
}

pub(super) fn exception(head: &str) -> Exception {
    let head = head.strip_prefix("Uncaught ").unwrap_or(head);
    let (kind, message) = head.split_once(": ").unwrap_or((head, ""));
    // `TypeError [ERR_INVALID_ARG_TYPE]: message`.
    let (kind, code) =
        kind.split_once(" [").map_or((kind, None), |(kind, code)| (kind, code.strip_suffix(']')));
    let is_kind = !kind.is_empty() && !kind.contains(' ');
    Exception {
        kind: Some(if is_kind { kind } else { "Error" }.to_owned()),
        codes: code.map(str::to_owned),
        message: Some(if is_kind { message } else { head }.to_owned()).filter(|message| !message.is_empty()),
        ..Exception::default()
    }
}

/// `at f (/a/x.js:3:9)`, `at async f (…)`, `at /a/x.js:1:2`, `at Array.map (<anonymous>)`. `None` where it is not sure that
/// this is JavaScript.
pub(super) fn row(line: &str) -> Option<Frame> {
    let rest = line.trim().strip_prefix("at ")?;
    // What is waited for together has no place: `at async Promise.all (index 0)`.
    if let Some(name) = rest.strip_suffix(')').and_then(|rest| rest.split_once(" (index ")) {
        let mut frame = named(0, name.0, None);
        frame.language = Some(Language::JavaScript);
        frame.annotations.push(format!("index {}", name.1));
        return Some(frame);
    }
    let (name, at) = match rest.strip_suffix(')').and_then(|rest| split_place(rest)) {
        Some((name, at)) => (name.trim(), at),
        None => ("", rest),
    };
    // Hermes, whose addresses count in the bundle's one line until a source map tells the rest.
    let at = at.strip_prefix("address at ").unwrap_or(at);
    let found = place(at).filter(|found| found.column.is_some());
    let is_builtin = matches!(at, "<anonymous>" | "native" | "anonymous");
    if found.is_none() && (name.is_empty() || !is_builtin) {
        return None;
    }
    // A name with blanks is `async f`, `new f`, `Object.f [as g]`; a sentence is none.
    let words = name.strip_prefix("async ").unwrap_or(name);
    let words = words.strip_prefix("new ").unwrap_or(words);
    let words = words.split(" [as ").next().unwrap_or(words);
    if words.contains(' ')
        && !words.starts_with("Proxy ")
        && !words.starts_with("get ")
        && !words.starts_with("set ")
    {
        return None;
    }
    let fallback = Place { file: at, line: 0, column: None };
    let mut frame =
        named(0, if name.is_empty() { "<anonymous>" } else { name }, Some(found.unwrap_or(fallback)));
    frame.language = Some(Language::JavaScript);
    Some(frame)
}

/// The name and what stands in the last parentheses, which may have some of their own.
fn split_place(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1_usize;
    let (at, _) = text.bytes().enumerate().rev().find(|(_, byte)| {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn an_uncaught_error_of_node() {
        let report = parse(
            b"/a/x.js:3\n  f.g();\n    ^\n\nTypeError [ERR_X]: f is not: ok\n    at f (/a/x.js:3:9)\n    at async Promise.all (index 0)\n    at new K (file:///a/y.mjs:1:2)\n    at Array.map (<anonymous>)\n    at node:internal/main:28:49 {\n  code: 'ERR_X',\n  [cause]: Error: low\n      at g (/a/x.js:1:1)\n}\n\nNode.js v18.19.0\n",
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(report.source, Source::JavaScriptError);
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.message.as_deref(), exception.codes.as_deref()),
            (Some("TypeError"), Some("f is not: ok"), Some("ERR_X"))
        );
        let stacks: Vec<_> =
            report.process.backtraces.iter().map(|it| (it.title.as_str(), it.frames.len())).collect();
        assert_eq!(stacks, [("TypeError [ERR_X]: f is not: ok", 5), ("Cause: Error: low", 1)]);
        assert!(report.sections[0].text.contains("code: 'ERR_X'"));
    }

    #[test]
    fn rows_of_hermes() {
        let frame = row("    at renderCart (address at index.android.bundle:1:182733)").unwrap();
        let symbol = frame.reported.unwrap();
        assert_eq!(
            (symbol.name.as_str(), symbol.file.as_deref(), symbol.line),
            ("renderCart", Some("index.android.bundle"), Some(1))
        );
        assert_eq!(row("at apply (native)").unwrap().reported.unwrap().name, "apply");
    }

    #[test]
    fn rows_of_others() {
        for line in [
            "at a.b.C.d(C.java:3)",
            "at N.C.M(String s) in /a/c.cs:line 3",
            "at 12:30:11 it broke",
            "at the (x:1:2)",
        ] {
            if let Some(frame) = row(line) {
                assert_eq!(line, "at the (x:1:2)", "{frame:?}");
            }
        }
    }
}
