//! Kernel panics in JSON: `bug_type` 210, 110, 410; the kernel's own text is a string inside.

use super::body::Body;
use super::stackshot;
use crate::json::Json;
use crate::leftovers::{fill, text};
use crate::panic_text;
use backtrail_model::{Report, Source};

/// The members that hold the kernel's text.
const STRINGS: [&str; 3] = ["panicString", "macOSPanicString", "panic_string"];

/// Whether a body is one of these.
pub(super) fn looks_so(document: &Json<'_>) -> bool {
    STRINGS.iter().any(|name| document.get(name).is_some())
        || document.get("macOSProcessedStackshotData").is_some()
}

pub(super) fn read(mut body: Body<'_, '_>, document: &Json<'_>) -> Report {
    body.report.source = Source::ApplePanic;
    let images = stackshot::images(&mut body, document);
    for member in document.members() {
        let (name, value) = (member.name(), &member.value);
        let report = &mut body.report;
        let taken = match &*name {
            "panicString" | "macOSPanicString" | "panic_string" => match text(value) {
                Some(text) => {
                    panic_text::add(&mut body.report, &text, body.limits, &mut body.notes);
                    true
                }
                None => false,
            },
            "build" | "os_version" => fill(&mut report.os, text(value)),
            "product" | "modelCode" => fill(&mut report.device, text(value)),
            "date" | "captureTime" | "timestamp" => fill(&mut report.time, text(value)),
            "incident" => fill(&mut report.incident, text(value)),
            "processByPid" => stackshot::processes(&mut body, value, &images),
            "binaryImages" => images.is_some(),
            _ => false,
        };
        if !taken {
            body.keep_flat(&name, value);
        }
    }
    body.report.event.get_or_insert_with(|| "kernel panic".to_owned());
    let mut report = body.report;
    report.notes = body.notes.finish();
    report
}
