//! What was raised, and who ended the process.

use super::body::Body;
use crate::apple_text::fault_address;
use crate::json::Json;
use crate::leftovers::{fill, text};
use backtrail_model::{Exception, Report, Termination};

pub(super) fn read_exception(body: &mut Body<'_, '_>, value: &Json<'_>) -> bool {
    body.report.exception.get_or_insert_with(Exception::default);
    body.members_of("exception", value, |body, name, value| {
        let exception = body.report.exception.get_or_insert_with(Exception::default);
        match name {
            "type" => fill(&mut exception.kind, text(value)),
            "signal" => fill(&mut exception.signal, text(value)),
            "codes" => fill(&mut exception.codes, text(value)),
            "subtype" => fill(&mut exception.subtype, text(value)),
            "message" => fill(&mut exception.message, text(value)),
            "rawCodes" => {
                let codes: Option<Vec<u64>> = value.items().iter().map(Json::number).collect();
                let codes = codes.filter(|codes| !codes.is_empty() && exception.raw_codes.is_empty());
                let fits = codes.is_some();
                exception.raw_codes.extend(codes.into_iter().flatten());
                fits
            }
            _ => false,
        }
    })
}

pub(super) fn read_termination(body: &mut Body<'_, '_>, value: &Json<'_>) -> bool {
    body.report.termination.get_or_insert_with(Termination::default);
    body.members_of("termination", value, |body, name, value| {
        let termination = body.report.termination.get_or_insert_with(Termination::default);
        match name {
            "namespace" => fill(&mut termination.namespace, text(value)),
            "code" => fill(&mut termination.code, value.number()),
            "indicator" => fill(&mut termination.reason, text(value)),
            "byProc" => fill(&mut termination.by_process, text(value)),
            "byPid" => fill(&mut termination.by_pid, value.number()),
            "reasons" | "details" => read_details(termination, value, &mut body.lines_left),
            _ => false,
        }
    })
}

/// Lists of texts, each of which may be of several lines.
fn read_details(termination: &mut Termination, value: &Json<'_>, lines_left: &mut usize) -> bool {
    let items: Option<Vec<String>> = match text(value) {
        Some(text) => Some(vec![text]),
        None => value.items().iter().map(text).collect(),
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else { return false };
    let lines: Vec<String> = items.iter().flat_map(|item| item.lines()).map(str::to_owned).collect();
    let Some(left) = lines_left.checked_sub(lines.len()) else { return false };
    *lines_left = left;
    termination.details.extend(lines);
    true
}

/// What follows from several members.
pub(super) fn finish(report: &mut Report) {
    if let Some(exception) = &mut report.exception {
        if exception.raw_codes.is_empty()
            && let Some(codes) = exception.codes.as_deref().and_then(crate::apple_text::numeric_codes)
        {
            exception.raw_codes = codes;
        }
        exception.address = fault_address(exception);
    }
}
