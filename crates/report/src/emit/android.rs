//! Rows of Android's native stacks. Java's rows are rewritten as text by whoever has the mapping file.

use super::{Edit, written};
use crate::android::NativeRow;
use backtrail_model::Frame;

/// Puts the function's name where the row has one, or should have, and the functions that run there with their places into
/// lines of their own below it, as ndk-stack does.
pub(super) fn row(input: &[u8], frame: &Frame, edits: &mut Vec<Edit>) {
    let Some(span) = frame.span.clone() else { return };
    let line = input.get(span.clone()).and_then(|line| std::str::from_utf8(line).ok());
    let Some((line, start)) = line.and_then(|line| Some((line, line.find('#')?))) else { return };
    let Some(row) = line.get(start..).and_then(NativeRow::read) else { return };
    let functions = written(frame);
    let Some(machine) = functions.last() else { return };
    let offset = machine.offset.map(|offset| format!("+{offset}")).unwrap_or_default();
    let name = format!("({}{offset})", machine.name);
    let old = row.function.map(|function| match row.function_offset {
        Some(offset) => format!("({function}+{offset})"),
        None => format!("({function})"),
    });
    let mut text = match old.and_then(|old| line.find(&old).map(|at| (at, old.len()))) {
        Some((at, length)) => splice(line, at, length, &name),
        None => match line.find(" (BuildId: ") {
            Some(at) => splice(line, at, 0, &format!(" {name}")),
            None => format!("{} {name}", line.trim_end()),
        },
    };
    let indent = " ".repeat(start + 4);
    let has_place = functions.len() > 1 || machine.file.is_some();
    for function in functions.iter().filter(|_| has_place) {
        let line = function.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = function.file.map(|file| format!(" ({file}{line})")).unwrap_or_default();
        let inlined = if function.inlined { " [inlined]" } else { "" };
        text.push_str(&format!("\n{indent}{}{place}{inlined}", function.name));
    }
    edits.push(Edit { range: span, by: text.into_bytes() });
}

fn splice(line: &str, at: usize, length: usize, by: &str) -> String {
    let (before, rest) = line.split_at_checked(at).unwrap_or((line, ""));
    format!("{before}{by}{}", rest.get(length..).unwrap_or_default())
}
