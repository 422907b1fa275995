//! Tcl: an error with what was being executed, as its shells, Tk's dialogue and `$::errorInfo` have it.
//!
//! Source: Tcl's `tclNamesp.c` and `tclExecute.c` (`Tcl_LogCommandInfo`), `tclProc.c` (`(procedure "…" line …)`); the commands are cut
//! after 150 characters. Rows go from the innermost outwards; the line is counted from the procedure's beginning.

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::Text;
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{Language, Report};

/// What stands before the command that failed, and before each that led there.
const EXECUTING: &str = "while executing";
const INVOKED: &str = "invoked from within";

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    matches!(line, EXECUTING | INVOKED)
}

/// `(procedure "shop::price" line 12)`, `(object "::cart" method "Cart::add" body line 6)`, `(file "shop.tcl" line 20)`,
/// `("after" script)`: the name, or the file, and the line.
struct Row<'t> {
    name: &'t str,
    file: Option<&'t str>,
    line: Option<u32>,
}

impl<'t> Row<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let inside = text.strip_prefix('(')?.strip_suffix(')')?;
        let (head, line) = match inside.rsplit_once(" line ") {
            Some((head, line)) => (head, Some(line.parse().ok()?)),
            None => (inside, None),
        };
        let quoted =
            |kind: &str| head.split_once(kind)?.1.strip_prefix('"')?.split_once('"').map(|(name, _)| name);
        if let Some(file) = quoted("file ") {
            return Some(Self { name: "", file: Some(file), line });
        }
        let name = quoted("method ").or_else(|| quoted("procedure "))?;
        Some(Self { name, file: None, line })
    }
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let text = Text::new(Language::Tcl, limits);
    let mut reader = Tcl { text, last: String::new(), is_command: false, commands: 0 };
    drive(&mut reader, input, start);
    reader.text.finish()
}

struct Tcl<'l> {
    text: Text<'l>,
    /// The last line before the stack: the message.
    last: String,
    /// Whether the next line begins a command.
    is_command: bool,
    commands: usize,
}

impl<'l> Reader<'l> for Tcl<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if text == EXECUTING && !self.text.has_raised() {
            let message = std::mem::take(&mut self.last);
            self.text.raise("error", message_of(&message));
            self.is_command = true;
            return false;
        }
        if !self.text.has_raised() {
            if !text.is_empty() {
                text.clone_into(&mut self.last);
            }
            return false;
        }
        if is_sure(text) {
            self.is_command = true;
            return false;
        }
        if std::mem::take(&mut self.is_command) {
            self.commands += 1;
            // What was being executed is known of each row that follows; the innermost tells most.
            if self.commands == 1 {
                self.text.log.report.fields.push(backtrail_model::Field {
                    key: "command".to_owned(),
                    value: text.trim_matches('"').to_owned(),
                });
            }
            return false;
        }
        let Some(row) = Row::read(text) else { return false };
        let place = row.file.map(|file| SourcePlace { file, line: row.line.unwrap_or(0), column: None });
        let pushed = self.text.push(row.name, place, line);
        if pushed
            && row.file.is_none()
            && let Some(number) = row.line
        {
            return self.text.log.annotate(&format!("line {number} of its body"));
        }
        pushed
    }
}

/// The message without the words that a program puts before it: `cryptkit.tcl can't read "cmd": no such variable`.
fn message_of(line: &str) -> &str {
    const KNOWN: [&str; 5] =
        ["can't read \"", "can't set \"", "can't unset \"", "invalid command name \"", "wrong # args: "];
    let at = KNOWN.iter().find_map(|begin| line.find(begin));
    at.and_then(|at| line.get(at..)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn procedures_methods_and_files() {
        let text = "It says:\nshop.tcl can't read \"price\": no such variable\n    while executing\n\"expr {$count * $price}\"\n    (procedure \"shop::total\" line 12)\n    invoked from within\n\"shop::total $cart\"\n    (object \"::cart\" method \"Cart::show\" body line 6)\n    invoked from within\n\"::cart show\"\n    (\"after\" script)\n    (file \"/srv/shop.tcl\" line 40)\nBye\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.message.as_deref(), Some("can't read \"price\": no such variable"));
        let frames = &report.process.backtraces[0].frames;
        let names: Vec<_> =
            frames.iter().map(|frame| frame.reported.as_ref().unwrap().name.as_str()).collect();
        assert_eq!(names, ["shop::total", "Cart::show", "(shop.tcl)"]);
        assert_eq!(frames[0].annotations, ["line 12 of its body"]);
        assert_eq!(frames[2].reported.as_ref().unwrap().line, Some(40));
        assert_eq!(report.fields[0].value, "expr {$count * $price}");
        assert!(parse(b"It fails while executing\nthe script\n", &Limits::default()).is_err());
    }
}
