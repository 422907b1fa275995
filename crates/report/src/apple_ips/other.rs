//! Reports of all other types: what they say stays as fields and sections, under the name of their type.

use super::body::Body;
use super::metadata::Metadata;
use crate::Limits;
use crate::json::Json;
use backtrail_model::{Report, Section, Source};

pub(super) fn read(mut body: Body<'_, '_>, document: &Json<'_>) -> Report {
    body.report.source = Source::AppleIpsOther;
    for member in document.members() {
        let name = member.name();
        if !body.member(&name, &member.value) {
            body.keep_flat(&name, &member.value);
        }
    }
    body.finish(document)
}

/// A report whose body is free text, or that has none.
pub(super) fn read_text(text: &str, metadata: &Metadata, _limits: &Limits) -> Report {
    let mut report = Report { source: Source::AppleIpsOther, ..Report::default() };
    if !text.trim().is_empty() {
        report.sections.push(Section { title: "Text".to_owned(), text: text.trim_end().to_owned() });
    }
    metadata.add_to(&mut report);
    report
}
