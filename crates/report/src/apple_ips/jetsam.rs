//! What the systems write when they end processes for want of memory: `bug_type` 298, 198 and 98.

use super::body::Body;
use crate::json::Json;
use crate::leftovers::{fill, flatten, text};
use crate::memory::choose_main;
use backtrail_model::{Process, Report, Source};

/// Whether a body is one of these.
pub(super) fn looks_so(document: &Json<'_>) -> bool {
    let has = |name: &str| document.get(name).is_some();
    has("processes") && (has("largestProcess") || has("memoryStatus"))
}

pub(super) fn read(mut body: Body<'_, '_>, document: &Json<'_>) -> Report {
    body.report.source = Source::AppleJetsam;
    body.report.event = Some("jetsam (memory) event".to_owned());
    let inside = document.get("memoryStatus").and_then(|status| status.get("pageSize"));
    let page = inside.or_else(|| document.get("pageSize")).and_then(Json::number);
    let page = page.filter(|page| (1..=1 << 20).contains(page));
    for member in document.members() {
        let name = member.name();
        let value = &member.value;
        let report = &mut body.report;
        let taken = match &*name {
            "processes" => processes(&mut body, value, page),
            "build" => fill(&mut report.os, text(value)),
            "product" => fill(&mut report.device, text(value)),
            "date" => fill(&mut report.time, text(value)),
            "incident" => fill(&mut report.incident, text(value)),
            _ => false,
        };
        if !taken {
            body.keep_flat(&name, value);
        }
    }
    choose_main(&mut body.report);
    let mut report = body.report;
    report.notes = body.notes.finish();
    report
}

fn processes(body: &mut Body<'_, '_>, value: &Json<'_>, page: Option<u64>) -> bool {
    if !body.report.processes.is_empty() {
        return false;
    }
    let count = value.items().len();
    for (position, item) in value.items().iter().enumerate() {
        if position >= body.limits.max_threads || !item.is_object() {
            body.notes.add(|| format!("processes[{position}] of {count} is not read"));
            body.keep(format!("processes[{position}]"), item);
            continue;
        }
        let process = process(body, item, page);
        body.report.processes.push(process);
    }
    count > 0
}

fn process(body: &mut Body<'_, '_>, item: &Json<'_>, page: Option<u64>) -> Process {
    let mut process = Process::default();
    for member in item.members() {
        let (name, value) = (member.name(), &member.value);
        let taken = match &*name {
            "name" => fill(&mut process.name, text(value)),
            "pid" => fill(&mut process.pid, value.number()),
            "reason" => fill(&mut process.kill_reason, text(value)),
            "states" => {
                let states: Option<Vec<_>> = value.items().iter().map(text).collect();
                fill(
                    &mut process.role,
                    states.filter(|states| !states.is_empty()).map(|states| states.join(", ")),
                )
            }
            "rpages" => {
                process.memory = value.number().and_then(|pages| pages.checked_mul(page?));
                false
            }
            _ => false,
        };
        if !taken {
            flatten(&mut process.fields, body.input, &name, value, body.limits.max_items);
        }
    }
    // Newer systems leave `rpages` out: `internal` is resident and compressed pages.
    if process.memory.is_none() {
        let internal = item.get("physicalPages").and_then(|pages| pages.get("internal"));
        let pages =
            internal.map(|pages| pages.items().iter().filter_map(Json::number).fold(0, u64::saturating_add));
        process.memory = pages.filter(|pages| *pages > 0).and_then(|pages| pages.checked_mul(page?));
    }
    process
}
