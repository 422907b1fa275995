//! .NET: unhandled exceptions with their inner ones.
//!
//! The heads stand in one line or several, outermost first (`---> `); then the rows of the innermost, and behind each
//! `End of inner exception stack trace` those of the next further out.

use super::log::{Log, Place, Reader, drive, named};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{AppInfo, Exception, Frame, Language, Report, Source};

const HEADS: [&str; 2] = ["Unhandled exception. ", "Unhandled Exception: "];

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::DotNetException, limits);
    let mut reader = DotNet { log, heads: Vec::new(), order: Vec::new() };
    drive(&mut reader, input, start);
    let DotNet { mut log, heads, .. } = reader;
    let outermost = heads.first()?;
    let (kind, message) = outermost.split_once(": ").unwrap_or((outermost, ""));
    log.report.exception = Some(Exception {
        kind: Some(kind.to_owned()),
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        ..Exception::default()
    });
    log.report.app_info.push(AppInfo { image: None, lines: heads.clone() });
    // Outermost first.
    let backtraces = &mut log.report.process.backtraces;
    backtraces.reverse();
    if let Some(first) = backtraces.first_mut() {
        first.is_exception = true;
    }
    Some(log.finish())
}

struct DotNet<'l> {
    log: Log<'l>,
    heads: Vec<String>,
    /// Those whose rows are still to come, innermost last.
    order: Vec<usize>,
}

/// Lines by which a text is told to be of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    let rest = HEADS.iter().find_map(|head| line.strip_prefix(head));
    rest.is_some_and(|rest| {
        let name = rest.split([':', ' ']).next().unwrap_or_default();
        name.contains('.') || name.ends_with("Exception")
    })
}

impl<'l> Reader<'l> for DotNet<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        let head = HEADS.iter().find_map(|head| trimmed.strip_prefix(head)).filter(|_| self.heads.is_empty());
        if let Some(head) = head.or(trimmed.strip_prefix("---> ")) {
            if self.heads.len() < 100 {
                for part in head.split(" ---> ") {
                    self.order.push(self.heads.len());
                    self.heads.push(part.to_owned());
                }
            }
            return false;
        }
        if trimmed.starts_with("--- End of inner exception stack trace") {
            self.log.end_stack();
            self.order.pop();
            return false;
        }
        let Some(frame) = row(trimmed).filter(|_| !self.heads.is_empty()) else { return false };
        if !self.log.is_in_stack() {
            let at = self.order.last().copied().unwrap_or(0);
            let head = self.heads.get(at).cloned().unwrap_or_default();
            let title = if at == 0 { head } else { format!("Inner exception: {head}") };
            if !self.log.begin_backtrace(title, false) {
                return false;
            }
        }
        let index = self.log.next_index();
        self.log.push(Frame { index, span: Some(line.span.clone()), ..frame })
    }
}

/// `at N.C.M(String s) in /src/c.cs:line 12`.
fn row(line: &str) -> Option<Frame> {
    let rest = line.strip_prefix("at ")?;
    let (call, at) = rest.split_once(") in ").map_or((rest, None), |(call, at)| (call, Some(at)));
    let (name, arguments) = call.split_once('(')?;
    let found = at.and_then(|at| at.rsplit_once(":line ")).map(|(file, line)| Place {
        file,
        line: line.parse().unwrap_or(0),
        column: None,
    });
    let mut frame = named(0, name.trim(), found);
    frame.language = Some(Language::DotNet);
    let arguments = arguments.trim_end_matches(')');
    frame.annotations.extend((!arguments.is_empty()).then(|| format!("({arguments})")));
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn an_inner_exception() {
        let report = parse(
            b"Unhandled exception. System.InvalidOperationException: outer\n ---> System.ArgumentException: inner\n   at App.B.F(String s) in /src/b.cs:line 4\n   --- End of inner exception stack trace ---\n   at App.Program.Main(String[] args) in /src/p.cs:line 9\n",
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(
            report.exception.as_ref().unwrap().kind.as_deref(),
            Some("System.InvalidOperationException")
        );
        let stacks: Vec<_> = report
            .process
            .backtraces
            .iter()
            .map(|it| (it.title.as_str(), it.is_exception, it.frames.len()))
            .collect();
        assert_eq!(
            stacks,
            [
                ("System.InvalidOperationException: outer", true, 1),
                ("Inner exception: System.ArgumentException: inner", false, 1)
            ]
        );
        let frame = &report.process.backtraces[0].frames[0];
        let symbol = frame.reported.as_ref().unwrap();
        assert_eq!((symbol.name.as_str(), symbol.line), ("App.Program.Main", Some(9)));
    }
}
