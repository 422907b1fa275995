//! Frame objects in JSON.

use super::{Edit, Written, written};
use crate::Limits;
use crate::json::{self, Json, Member, encode};
use backtrail_model::Frame;
use std::ops::Range;

/// Fills the frame's object, puts objects for the inlined functions before it and takes away those that stood there.
pub(super) fn object(input: &[u8], inlined: &[&Frame], frame: &Frame, edits: &mut Vec<Edit>) {
    let Some(span) = frame.span.clone() else { return };
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, span.start, &Limits::default());
    let Some(object) = outcome.value.filter(|object| outcome.problem.is_none() && object.span() == span)
    else {
        return;
    };
    let rows = written(frame);
    let Some((machine, inner)) = rows.split_last() else { return };
    let before = inlined.first().and_then(|first| first.span.clone()).map_or(span.start, |first| first.start);
    // What stands between two frames: a comma and the blanks of the file's style.
    let blanks = blanks_before(input, span.start);
    let style = Style::of(input, &object);
    let mut by = Vec::new();
    for function in inner {
        by.extend_from_slice(&style.inline_object(input, &object, function));
        by.push(b',');
        by.extend_from_slice(blanks);
    }
    edits.push(Edit { range: before.min(span.start)..span.start, by });
    set_members(input, &object, &style, &members(machine, &object), edits);
}

fn blanks_before(input: &[u8], at: usize) -> &[u8] {
    let before = input.get(..at).unwrap_or_default();
    let start = before.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    before.get(start..).unwrap_or_default()
}

/// How the file writes its objects.
struct Style<'d> {
    /// Between members: a comma and blanks.
    comma: &'d [u8],
    /// Between a name and its value: a colon and blanks.
    colon: &'d [u8],
    /// Behind the opening, and before the closing brace.
    open: &'d [u8],
    close: &'d [u8],
}

impl<'d> Style<'d> {
    fn of(input: &'d [u8], object: &Json<'_>) -> Self {
        let members = object.members();
        let get = |range: Range<usize>| input.get(range).unwrap_or_default();
        let comma = match members {
            [first, second, ..] => get(first.value.span().end..second.name_span().start),
            _ => b",",
        };
        let Some((first, last)) = members.first().zip(members.last()) else {
            return Self { comma, colon: b":", open: b"", close: b"" };
        };
        let comma = if comma.is_empty() { b"," } else { comma };
        Self {
            comma,
            colon: get(first.name_span().end..first.value.span().start),
            open: get(object.span().start + 1..first.name_span().start),
            close: get(last.value.span().end..object.span().end.saturating_sub(1)),
        }
    }

    fn member(&self, name: &str, value: &str) -> Vec<u8> {
        let name = format!("\"{name}\"");
        [name.as_bytes(), self.colon, value.as_bytes()].concat()
    }

    /// A frame of its own, at the same place as the machine frame.
    fn inline_object(&self, input: &[u8], machine: &Json<'_>, function: &Written<'_>) -> Vec<u8> {
        let mut members: Vec<Vec<u8>> = Vec::new();
        for (name, value) in values(function) {
            members.extend(value.map(|value| self.member(name, &value)));
        }
        members.push(self.member("inline", "true"));
        for name in ["imageIndex", "imageOffset"] {
            let value = machine.get(name).and_then(|value| input.get(value.span()));
            let value = value.map(String::from_utf8_lossy);
            members.extend(value.map(|value| self.member(name, &value)));
        }
        let inside = members.join(self.comma);
        [b"{", self.open, inside.as_slice(), self.close, b"}"].concat()
    }
}

/// The members that say what is at a frame; `None` for one that must not be there.
fn values(function: &Written<'_>) -> [(&'static str, Option<String>); 4] {
    [
        ("symbol", Some(format!("\"{}\"", encode(&function.name)))),
        ("symbolLocation", function.offset.map(|offset| offset.to_string())),
        ("sourceLine", function.line.filter(|_| function.file.is_some()).map(|line| line.to_string())),
        ("sourceFile", function.file.map(|file| format!("\"{}\"", encode(file)))),
    ]
}

/// The same for an object that may have some of them already.
fn members(function: &Written<'_>, object: &Json<'_>) -> Vec<(&'static str, Option<String>)> {
    let same = object.get("symbol").and_then(Json::text).is_some_and(|name| name == function.name);
    let keeps = |name: &str| same && name != "symbol";
    let values = values(function).into_iter();
    values.filter(|(name, value)| value.is_some() || !keeps(name)).collect()
}

/// Replaces, adds and takes away members.
fn set_members(
    input: &[u8],
    object: &Json<'_>,
    style: &Style<'_>,
    wanted: &[(&'static str, Option<String>)],
    edits: &mut Vec<Edit>,
) {
    let present = object.members();
    let find = |name: &str| present.iter().rfind(|member| member.name() == name);
    if wanted.iter().any(|(name, value)| value.is_none() && find(name).is_some()) {
        edits.push(Edit { range: object.span(), by: rebuild(input, object, style, wanted) });
        return;
    }
    let mut added = Vec::new();
    for (name, value) in wanted {
        match (find(name), value) {
            (Some(member), Some(value)) => {
                edits.push(Edit { range: member.value.span(), by: value.clone().into_bytes() });
            }
            (None, Some(value)) => {
                added.extend_from_slice(if present.is_empty() && added.is_empty() {
                    b""
                } else {
                    style.comma
                });
                added.extend_from_slice(&style.member(name, value));
            }
            (_, None) => {}
        }
    }
    let end = present.last().map_or(object.span().start + 1, |last| last.value.span().end);
    edits.push(Edit { range: end..end, by: added });
}

/// The object anew, without the members that must not be there.
fn rebuild(
    input: &[u8],
    object: &Json<'_>,
    style: &Style<'_>,
    wanted: &[(&'static str, Option<String>)],
) -> Vec<u8> {
    let is_wanted = |member: &&Member<'_>| wanted.iter().any(|(name, _)| member.name() == *name);
    let kept = object.members().iter().filter(|member| !is_wanted(member));
    let mut members: Vec<Vec<u8>> = kept
        .filter_map(|member| input.get(member.name_span().start..member.value.span().end))
        .map(<[u8]>::to_vec)
        .collect();
    for (name, value) in wanted {
        members.extend(value.as_ref().map(|value| style.member(name, value)));
    }
    let inside = members.join(style.comma);
    [b"{", style.open, inside.as_slice(), style.close, b"}"].concat()
}
