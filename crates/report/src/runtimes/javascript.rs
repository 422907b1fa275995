//! JavaScript: errors with their stacks as V8 prints them, Node's uncaught ones included.

use super::log::{Log, Reader, SourcePlace, drive, named, place};
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
        let native = || native_row(bare).filter(|_| self.log.is_in_stack());
        if let Some(mut frame) = row(bare).or_else(native) {
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

/// A row as V8 and Hermes write it, or as JavaScriptCore and Firefox do. `None` where it is not sure that this is JavaScript.
pub(super) fn row(line: &str) -> Option<Frame> {
    let line = line.trim();
    match line.strip_prefix("at ") {
        Some(rest) => row_behind_at(rest),
        None => row_with_sign(line).or_else(|| row_of_bundle(line)),
    }
}

/// `index.android.bundle:15:8607`, a row of React Native as pages of Crashlytics have it where no function is known.
fn row_of_bundle(line: &str) -> Option<Frame> {
    let found = place(line).filter(|found| found.column.is_some() && !found.file.contains([' ', '/']))?;
    let is_bundle = [".bundle", ".jsbundle", ".hbc"].iter().any(|end| found.file.ends_with(end));
    let mut frame = named(0, "<anonymous>", Some(Some(found).filter(|_| is_bundle)?));
    frame.language = Some(Language::JavaScript);
    Some(frame)
}

/// `f@https://a.b/x.js:12:99`, `@x.js:1:2` without a function's name, `f@[native code]`, and as React Native's release builds
/// have it `f@1:182733`: line and column of the bundle, which is not named.
fn row_with_sign(line: &str) -> Option<Frame> {
    let (name, at) = line.split_once('@')?;
    let is_name = matches!(name, "global code" | "module code" | "eval code")
        || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_$.<>/*[]".contains(&byte));
    let name = Some(name).filter(|name| !name.is_empty()).unwrap_or("<anonymous>");
    let found = place(at).filter(|_| is_name)?;
    let number =
        |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let mut frame = match (found.column, number(found.file)) {
        (None, Some(line)) => {
            named(0, name, Some(SourcePlace { file: BUNDLE, line, column: Some(found.line) }))
        }
        (Some(_), None) if is_script(found.file) => named(0, name, Some(found)),
        _ => return None,
    };
    frame.language = Some(Language::JavaScript);
    Some(frame)
}

/// Stands for the one file that such a row does not name.
const BUNDLE: &str = "(bundle)";

/// Whether a file is one that JavaScript comes in.
fn is_script(file: &str) -> bool {
    const ENDS: [&str; 9] = [".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".bundle", ".jsbundle", ".hbc"];
    let path = file.split('?').next().unwrap_or(file);
    file.contains("://") || ENDS.iter().any(|end| path.ends_with(end))
}

/// `f@[native code]`, which only counts among other rows: it has no place.
fn native_row(line: &str) -> Option<Frame> {
    let name =
        line.trim().strip_suffix("@[native code]").filter(|name| !name.contains(char::is_whitespace))?;
    let mut frame = named(0, name, Some(SourcePlace { file: "[native code]", line: 0, column: None }));
    frame.language = Some(Language::JavaScript);
    Some(frame)
}

/// A row in a text that is known to hold a stack.
pub(super) fn row_within(line: &str) -> Option<Frame> {
    row(line).or_else(|| native_row(line))
}

/// `f (/a/x.js:3:9)`, `async f (…)`, `/a/x.js:1:2`, `Array.map (<anonymous>)`.
fn row_behind_at(rest: &str) -> Option<Frame> {
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
    let found = place(at).filter(|found| found.column.is_some()).or_else(|| rollbars(at));
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
    let fallback = SourcePlace { file: at, line: 0, column: None };
    let mut frame =
        named(0, if name.is_empty() { "<anonymous>" } else { name }, Some(found.unwrap_or(fallback)));
    frame.language = Some(Language::JavaScript);
    Some(frame)
}

/// A place as Rollbar's pages have it: `/app/cart.js line 221 col 29`.
fn rollbars(at: &str) -> Option<SourcePlace<'_>> {
    let (before, column) = at.rsplit_once(" col ")?;
    let (file, line) = before.rsplit_once(" line ")?;
    let found = SourcePlace { file, line: line.parse().ok()?, column: Some(column.parse().ok()?) };
    is_script(file).then_some(found)
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
    fn rows_of_rollbar() {
        let symbol = row("at callback (/app/cart.js line 221 col 29)").unwrap().reported.unwrap();
        assert_eq!((symbol.name.as_str(), symbol.line, symbol.column), ("callback", Some(221), Some(29)));
        assert!(row("at once (on line 3 col 4)").is_none());
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
    fn rows_of_javascriptcore_and_firefox() {
        let read = |line: &str| {
            let symbol = row(line)?.reported?;
            Some((symbol.name, symbol.file, symbol.line, symbol.column))
        };
        let of = |name: &str, file: Option<&str>, line, column| {
            Some((name.to_owned(), file.map(str::to_owned), Some(line), Some(column)))
        };
        assert_eq!(read("f@https://a.b/x.js:12:99"), of("f", Some("https://a.b/x.js"), 12, 99));
        assert_eq!(read("@a/x.js?v=2:1:33"), of("<anonymous>", Some("a/x.js?v=2"), 1, 33));
        assert_eq!(
            read("global code@index.android.bundle:1:3"),
            of("global code", Some("index.android.bundle"), 1, 3)
        );
        assert_eq!(read("renderCart@1:182733"), of("renderCart", Some(BUNDLE), 1, 182_733));
        assert_eq!(read("f@npm:react@16/x.js:1:2"), of("f", Some("npm:react@16/x.js"), 1, 2));
        for line in [
            "me@example.com",
            "root@host:22:3",
            "a b@1:2",
            "user@10.0.0.1:80",
            "@here",
            "f@:1:2",
            "x@[native code]",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn an_error_without_at() {
        let report = parse(
            b"TypeError: undefined is not an object (evaluating 'cart.total')\nrenderCart@1:182733\nforEach@[native code]\n@1:33\n",
            &Limits::default(),
        )
        .unwrap();
        let [stack] = report.process.backtraces.as_slice() else { panic!() };
        assert_eq!((stack.frames.len(), stack.is_exception), (3, true));
        assert_eq!(report.exception.unwrap().kind.as_deref(), Some("TypeError"));
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
