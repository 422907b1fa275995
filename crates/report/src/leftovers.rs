//! What the model has no place for, under the path of the member.

use crate::json::Json;
use crate::text::lossy;
use backtrail_model::{Field, Report, Section};

/// A value longer than this is a block of its own rather than a field.
const LONGEST_FIELD: usize = 200;

/// Keeps a value as text: a short one as a field, a long or many-lined one as a section. Beyond `max_items` of either,
/// all goes into one section, which costs no more than its text.
pub(crate) fn keep(report: &mut Report, input: &[u8], path: String, value: &Json<'_>, max_items: usize) {
    let text = value.scalar().map_or_else(|| raw(input, value), std::borrow::Cow::into_owned);
    if report.fields.len() >= max_items || report.sections.len() >= max_items {
        let line = format!("{path}: {text}\n");
        match report.sections.last_mut().filter(|section| section.title == FURTHER) {
            Some(section) => section.text.push_str(&line),
            None => report.sections.push(Section { title: FURTHER.to_owned(), text: line }),
        }
    } else if text.len() > LONGEST_FIELD || text.contains('\n') {
        report.sections.push(Section { title: path, text });
    } else {
        report.fields.push(Field { key: path, value: text });
    }
}

/// Levels of objects that become fields of their own; what lies deeper is kept as it is written.
const FLAT_DEPTH: usize = 4;

/// Keeps a value as fields: the members of an object each under its path, lists as they are written.
pub(crate) fn flatten(fields: &mut Vec<Field>, input: &[u8], path: &str, value: &Json<'_>, max_items: usize) {
    flatten_below(fields, input, path, value, max_items, FLAT_DEPTH);
}

fn flatten_below(
    fields: &mut Vec<Field>,
    input: &[u8],
    path: &str,
    value: &Json<'_>,
    max_items: usize,
    depth: usize,
) {
    let is_wide = fields.len().saturating_add(value.members().len()) > max_items;
    if value.members().is_empty() || depth == 0 || is_wide {
        let text = value.scalar().map_or_else(|| raw(input, value), std::borrow::Cow::into_owned);
        fields.push(Field { key: path.to_owned(), value: text });
        return;
    }
    for member in value.members() {
        let path = format!("{path}.{}", member.name());
        flatten_below(fields, input, &path, &member.value, max_items, depth - 1);
    }
}

/// The title of what goes beyond the limit.
const FURTHER: &str = "Further members";

/// Puts a value into an empty place. `false` where it is of another type, or something stands there already: the value
/// is then to be kept as text.
pub(crate) fn fill<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let fits = place.is_none() && value.is_some();
    if fits {
        *place = value;
    }
    fits
}

/// A string, also where the writer left a number.
pub(crate) fn text(value: &Json<'_>) -> Option<String> {
    match value.value {
        crate::json::Value::Null => None,
        _ => value.scalar().map(std::borrow::Cow::into_owned),
    }
}

/// The text of a value as written.
pub(crate) fn raw(input: &[u8], json: &Json<'_>) -> String {
    String::from_utf8_lossy(input.get(json.span()).unwrap_or_default()).into_owned()
}

/// Keeps what stands behind a report's JSON: lines of text, or the rest behind a broken place.
pub(crate) fn keep_rest(report: &mut Report, input: &[u8], end: usize) {
    let rest = lossy(input.get(end..).unwrap_or_default());
    let text = rest.trim();
    if !text.is_empty() {
        let title = "Text behind the report".to_owned();
        report.sections.push(Section { title, text: text.to_owned() });
    }
}
