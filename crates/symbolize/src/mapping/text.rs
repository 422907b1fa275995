//! A whole text with its Java frames and exceptions as they are in the source: what R8's `retrace` prints.

use super::Mapping;
use super::retrace::{MappedFrame, Retraced, Retracer};
use std::borrow::Cow;

impl<B: AsRef<[u8]>> Mapping<B> {
    /// Gives `text` back with frames and the names of exceptions replaced; all else stays. Frames that may be several
    /// things have `<OR>` before all but the first. With `is_verbose`, methods are shown with what they take and give.
    pub fn retrace(&self, text: &str, is_verbose: bool) -> String {
        let mut retracer = Retracer::new(self);
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let body = line.trim_end_matches(['\n', '\r']);
            let end = line.get(body.len()..).unwrap_or_default();
            retracer.line(body, end, is_verbose, &mut out);
        }
        out
    }
}

/// `at class.method(file:line)` within a line.
struct Row<'l> {
    /// What stands before the `at`.
    before: &'l str,
    /// `at`, and what stands between it and the class.
    at: &'l str,
    class: &'l str,
    method: &'l str,
    file: &'l str,
    line: Option<u32>,
    behind: &'l str,
}

impl<'l> Row<'l> {
    fn read(line: &'l str) -> Option<Self> {
        let start = match line.trim_start().starts_with("at ") {
            true => line.len() - line.trim_start().len(),
            // Behind what a log has before the row.
            false => line.find(" at ").or_else(|| line.find("\tat "))? + 1,
        };
        let (before, rest) = line.split_at_checked(start)?;
        let (name, _) = rest.strip_prefix("at ")?.split_once('(')?;
        let qualified = name.trim_start();
        let blanks = 3 + name.len() - qualified.len();
        let module = qualified.rfind('/').map_or(0, |at| at + 1);
        let (at, _) = rest.split_at_checked(blanks + module)?;
        let (class, method) = qualified.get(module..)?.rsplit_once('.')?;
        let (place, behind) = in_parentheses(rest.split_once('(')?.1)?;
        if qualified.contains(char::is_whitespace) || class.is_empty() || method.is_empty() {
            return None;
        }
        let split = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        let (file, line) = split.map_or((place, None), |(file, line)| (file, Some(line)));
        Some(Self { before, at, class, method, file, line, behind })
    }
}

/// Splits behind an opening parenthesis where it is closed. Source files that a build names for its version have some of
/// their own: `:com.google.android.gms@203915081@20.39.15 (060808-335085812):46`.
fn in_parentheses(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    let end = text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
        None
    });
    let (inside, rest) = text.split_at_checked(end?)?;
    Some((inside, rest.get(1..)?))
}

impl<B: AsRef<[u8]>> Retracer<'_, B> {
    fn line(&mut self, line: &str, end: &str, is_verbose: bool, out: &mut String) {
        if let Some(row) = Row::read(line) {
            match self.frame(row.class, row.method, row.file, row.line) {
                Retraced::Unknown => out.extend([line, end]),
                Retraced::Removed => {}
                Retraced::Frames(candidates) => write(&row, candidates, end, is_verbose, out),
            }
            return;
        }
        out.push_str(&self.words(line));
        out.push_str(end);
    }

    /// The names of classes in a line that says what was thrown.
    fn words<'l>(&mut self, line: &'l str) -> Cow<'l, str> {
        const CIRCULAR: &str = "[CIRCULAR REFERENCE: ";
        if let Some(start) = line.find(CIRCULAR).map(|at| at + CIRCULAR.len()) {
            let rest = line.get(start..).unwrap_or_default();
            let name = rest.split(']').next().unwrap_or(rest);
            return match self.mapping.class(name.trim_end()) {
                Some(own) => Cow::Owned(replaced(line, start, name.trim_end().len(), own)),
                None => Cow::Borrowed(line),
            };
        }
        let mut shown = Cow::Borrowed(line);
        // From behind, so that what was found before stays where it is.
        for (start, name) in names(line).into_iter().rev() {
            if let Some(own) = self.exception(name) {
                shown = Cow::Owned(replaced(&shown, start, name.len(), own));
            }
        }
        shown
    }
}

fn replaced(line: &str, start: usize, length: usize, by: &str) -> String {
    let (before, rest) = line.split_at_checked(start).unwrap_or((line, ""));
    format!("{before}{by}{}", rest.get(length..).unwrap_or_default())
}

/// The names of classes that a line has where an exception's type stands: at its start, behind what stands before a type,
/// and, as R8 has it, behind the last colon or quote that has a blank behind it. In the line's order.
fn names(line: &str) -> Vec<(usize, &str)> {
    const BEFORE: [&str; 3] = ["Caused by: ", "Suppressed: ", "== Java Exception: "];
    let mut starts = vec![line.len() - line.trim_start().len()];
    for word in BEFORE {
        starts.extend(line.find(word).map(|at| at + word.len()));
    }
    let ends = line.char_indices().filter(|(_, c)| matches!(c, ':' | '"'));
    let mut behind = ends.filter_map(|(at, _)| {
        let rest = line.get(at + 1..)?;
        let start = line.len() - rest.trim_start().len();
        (start > at + 1).then_some(start)
    });
    starts.extend(behind.rfind(|start| class_name(line, *start).is_some()));
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().filter_map(|start| Some((start, class_name(line, start)?))).collect()
}

/// The name that begins there and ends at a colon or with the line.
fn class_name(line: &str, start: usize) -> Option<&str> {
    let rest = line.get(start..)?;
    let end = rest.find(':').unwrap_or(rest.len());
    let name = rest.get(..end)?.trim_end();
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'))
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))
    };
    (!name.is_empty() && name.split('.').all(is_part)).then_some(name)
}

fn write(row: &Row<'_>, candidates: Vec<Vec<MappedFrame>>, end: &str, is_verbose: bool, out: &mut String) {
    let chains =
        if is_verbose { candidates } else { collapsed(candidates, row.line.is_some_and(|line| line > 0)) };
    let show = |frame: &MappedFrame, or: &str, out: &mut String| {
        let name = if is_verbose { &frame.signature } else { &frame.method };
        let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
        let parts =
            [row.before, or, row.at, &frame.class, ".", name, "(", &frame.file, &line, ")", row.behind, end];
        out.extend(parts);
        if end.is_empty() {
            out.push('\n');
        }
    };
    // As R8 prints it: what may stand at one place of the chain is together.
    let length = chains.iter().map(Vec::len).max().unwrap_or_default();
    for position in 0..length {
        let mut shown: Vec<&MappedFrame> = Vec::new();
        for frame in chains.iter().filter_map(|chain| chain.get(position)) {
            if !shown.contains(&frame) {
                show(frame, if shown.is_empty() { "" } else { "<OR> " }, out);
                shown.push(frame);
            }
        }
    }
    if end.is_empty() {
        out.pop();
    }
}

/// Candidates as they are shown without signatures: what then looks alike is one, and where the report states no line, lines
/// that only one of several candidates has tell nothing.
fn collapsed(candidates: Vec<Vec<MappedFrame>>, has_line: bool) -> Vec<Vec<MappedFrame>> {
    let is_ambiguous = candidates.len() > 1;
    let mut shown: Vec<Vec<MappedFrame>> = Vec::new();
    for mut chain in candidates {
        for frame in &mut chain {
            frame.signature = String::new();
            if is_ambiguous && !has_line {
                frame.line = None;
            }
        }
        if !shown.contains(&chain) {
            shown.push(chain);
        }
    }
    shown
}
