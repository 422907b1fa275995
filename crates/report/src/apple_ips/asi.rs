//! What libraries wrote down: messages, and stacks as text.

use super::body::Body;
use crate::apple_text::FrameRow;
use crate::json::{Json, Value, decode};
use crate::leftovers::text;
use crate::stack::{Origin, settle};
use backtrail_model::{AppInfo, Backtrace, Frame, Section};
use std::ops::Range;

/// `{"libswiftCore.dylib": ["Fatal error: …"]}`; a list or a single text without images occurs too.
pub(super) fn read_messages(body: &mut Body<'_, '_>, value: &Json<'_>) -> bool {
    if value.is_object() {
        return body.members_of("asi", value, |body, image, lines| read_info(body, Some(image), lines));
    }
    read_info(body, None, value)
}

fn read_info(body: &mut Body<'_, '_>, image: Option<&str>, value: &Json<'_>) -> bool {
    let texts: Option<Vec<String>> = match text(value) {
        Some(text) => Some(vec![text]),
        None => value.items().iter().map(text).collect(),
    };
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return false };
    let count: usize = texts.iter().map(|text| text.lines().count()).sum();
    match body.lines_left.checked_sub(count) {
        Some(left) => body.lines_left = left,
        None => return false,
    }
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    body.report.app_info.push(AppInfo { image: image.map(str::to_owned), lines });
    true
}

/// Each a text of rows as text reports have them; often where the exception was really thrown.
pub(super) fn read_backtraces(body: &mut Body<'_, '_>, value: &Json<'_>) -> bool {
    let texts = value.items();
    if texts.is_empty() || !texts.iter().all(|text| matches!(text.value, Value::String(_))) {
        return false;
    }
    for (number, text) in texts.iter().enumerate() {
        read_backtrace(body, format!("Application Specific Backtrace {number}"), text);
    }
    true
}

fn read_backtrace(body: &mut Body<'_, '_>, title: String, json: &Json<'_>) {
    let Value::String(raw) = json.value else { return };
    let raw = raw.bytes();
    let mut frames = Vec::new();
    let mut others = Vec::new();
    for line in lines(raw) {
        let text = decode(raw.get(line.clone()).unwrap_or_default());
        let row = FrameRow::read(text.as_bytes()).filter(|_| body.frames_left > 0);
        match row {
            Some(row) => {
                // One byte further: the opening quote.
                let start = json.span().start + 1;
                frames.push(Frame { span: Some(start + line.start..start + line.end), ..row.frame() });
                body.frames_left -= 1;
            }
            None if text.trim().is_empty() => {}
            None => others.push(text.into_owned()),
        }
    }
    settle(&mut frames, Origin::Backtrace);
    if !others.is_empty() {
        body.report.sections.push(Section { title: title.clone(), text: others.join("\n") });
    }
    body.report.process.backtraces.push(Backtrace { title, is_exception: false, frames });
}

/// The lines of a JSON string, as places in its raw text: escapes stay, so that a row can be changed in place.
fn lines(raw: &[u8]) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(byte) = raw.get(at) {
        let next = raw.get(at + 1);
        let is_break = *byte == b'\n' || (*byte == b'\\' && next == Some(&b'n'));
        let length = if *byte == b'\\' { 2 } else { 1 };
        if is_break {
            lines.push(start..at);
            start = at + length;
        }
        at += length;
    }
    lines.push(start..raw.len());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_raw_string() {
        let raw = br"one\ntwo\\nstill two\n\n";
        let texts: Vec<&[u8]> = lines(raw).into_iter().map(|line| &raw[line]).collect();
        assert_eq!(texts, [&b"one"[..], br"two\\nstill two", b"", b""]);
        assert_eq!(lines(b"").len(), 1);
    }
}
