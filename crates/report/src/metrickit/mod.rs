//! MetricKit's payloads: crashes, hangs, processor and disk exceptions of an app, and its metrics, as JSON.
//!
//! A payload has several diagnostics, each of a process that ran at its own time. The first crash is the report's own
//! process, else the first of the others; the rest are further processes. Payloads of metrics have no stacks: what they
//! state stays as fields.

mod images;
#[cfg(test)]
mod tests;
mod tree;

use crate::apple_text::{Blamed, KeyValue, set_header};
use crate::json::{self, Json, Member};
use crate::leftovers::{fill, flatten, text};
use crate::members::Members;
use crate::numbers::{mach_exception, signal};
use crate::{Error, ErrorKind, Limits};
use backtrail_core::Arch;
use backtrail_model::{Exception, Field, Process, Report, Section, Source};

/// The lists of a payload, with the words for what they hold, the gravest first.
pub(crate) const LISTS: [(&str, &str); 5] = [
    ("crashDiagnostics", "crash"),
    ("hangDiagnostics", "hang"),
    ("cpuExceptionDiagnostics", "CPU exception"),
    ("diskWriteExceptionDiagnostics", "disk write exception"),
    ("appLaunchDiagnostics", "app launch"),
];

/// The time that a payload is of.
pub(crate) const TIMES: [&str; 2] = ["timeStampBegin", "timeStampEnd"];

/// One diagnostic, and what it is of.
struct Diagnostic<'j, 'd> {
    kind: &'static str,
    json: &'j Json<'d>,
}

/// Reads the payload that begins at `start`.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let Some(document) = &outcome.value else {
        let message = "expected a JSON object with a payload of MetricKit";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    };
    let mut reader = Members::new(input, Source::MetricKit, limits);
    let mut diagnostics = Vec::new();
    for payload in payloads(document) {
        reader.payload(payload, &mut diagnostics);
    }
    for member in beside(document) {
        let limit = reader.limits.max_items;
        flatten(&mut reader.report.fields, input, &member.name(), &member.value, limit);
    }
    // Stable, so that equals stay in the payload's order.
    diagnostics.sort_by_key(|diagnostic| LISTS.iter().position(|(_, kind)| *kind == diagnostic.kind));
    for (position, diagnostic) in diagnostics.iter().enumerate() {
        reader.diagnostic(diagnostic, position == 0);
    }
    Ok(reader.finish(&outcome))
}

/// The payloads of a document: it alone, those of a list, or those within what a service that collects them put around. A
/// document without any is taken for one.
pub(crate) fn payloads<'j, 'd>(document: &'j Json<'d>) -> Vec<&'j Json<'d>> {
    let found = within(document, 0);
    if found.is_empty() { vec![document] } else { found }
}

/// What a document says beside its payloads, where something was put around these.
pub(crate) fn beside<'j, 'd>(document: &'j Json<'d>) -> impl Iterator<Item = &'j Member<'d>> {
    let is_wrapped = !is_payload(document) && !within(document, 0).is_empty();
    let members = if is_wrapped { document.members() } else { &[] };
    members.iter().filter(|member| within(&member.value, 1).is_empty())
}

fn within<'j, 'd>(json: &'j Json<'d>, depth: usize) -> Vec<&'j Json<'d>> {
    /// A list of events, each with a list of payloads.
    const MAX_DEPTH: usize = 4;
    if is_payload(json) {
        return vec![json];
    }
    if depth >= MAX_DEPTH {
        return Vec::new();
    }
    let of_members = json.members().iter().flat_map(|member| within(&member.value, depth + 1));
    of_members.chain(json.items().iter().flat_map(|item| within(item, depth + 1))).collect()
}

fn is_payload(json: &Json<'_>) -> bool {
    json.members().iter().any(|member| {
        let name = member.name();
        matches!(&*name, "callStackTree" | "callStacks" | "timeStampBegin")
            || name.ends_with("Metrics")
            || LISTS.iter().any(|(list, _)| *list == name)
    })
}

impl Members<'_, '_> {
    fn payload<'j, 'd>(&mut self, payload: &'j Json<'d>, diagnostics: &mut Vec<Diagnostic<'j, 'd>>) {
        if payload.get("callStackTree").is_some() || payload.get("callStacks").is_some() {
            diagnostics.push(Diagnostic { kind: "diagnostic", json: payload });
            return;
        }
        for member in payload.members() {
            let (name, value) = (member.name(), &member.value);
            let list = LISTS.iter().find(|(list, _)| *list == name);
            if let Some((_, kind)) = list.filter(|_| !value.items().is_empty()) {
                let items = value.items().iter();
                diagnostics.extend(items.map(|json| Diagnostic { kind, json }));
            } else {
                let taken = match &*name {
                    "timeStampEnd" => fill(&mut self.report.time, text(value)),
                    _ => false,
                };
                if !taken {
                    flatten(&mut self.report.fields, self.input, &name, value, self.limits.max_items);
                }
                if name.ends_with("Metrics") {
                    self.report.event.get_or_insert_with(|| "metrics".to_owned());
                }
                if name == "metaData" {
                    self.app_of_metrics(value);
                }
            }
        }
    }

    /// Whose metrics they are; all of it stays among the fields, too.
    fn app_of_metrics(&mut self, metadata: &Json<'_>) {
        let word = |name: &str| metadata.get(name).and_then(text).filter(|text| !text.is_empty());
        self.report.os = self.report.os.take().or_else(|| word("osVersion"));
        self.report.device = self.report.device.take().or_else(|| word("deviceType"));
        let process = &mut self.report.process;
        process.identifier = process.identifier.take().or_else(|| word("bundleIdentifier"));
    }

    /// Reads one diagnostic; the first is the report's own.
    fn diagnostic(&mut self, diagnostic: &Diagnostic<'_, '_>, is_own: bool) {
        if self.report.processes.len() >= self.limits.max_threads {
            self.notes.add(|| "more diagnostics than the limit allows; the rest is not read".to_owned());
            return;
        }
        let mut process = Process::default();
        if !is_own {
            let (key, value) = ("diagnostic".to_owned(), diagnostic.kind.to_owned());
            process.fields.push(Field { key, value });
        }
        let json = diagnostic.json;
        let bare = json.get("callStacks").is_some();
        for member in json.members().iter().filter(|_| !bare) {
            let (name, value) = (member.name(), &member.value);
            match &*name {
                "callStackTree" => {}
                "diagnosticMetaData" => self.metadata(value, &mut process, is_own),
                _ => flatten(&mut process.fields, self.input, &name, value, self.limits.max_items),
            }
        }
        let inside = json.get("callStackTree");
        if let Some(stacks) = if bare { Some(json) } else { inside } {
            self.stacks(stacks, diagnostic.kind, &mut process);
        }
        if is_own {
            self.report.event = match diagnostic.kind {
                "crash" => None,
                kind => Some(kind.to_owned()),
            };
            self.report.process = process;
        } else {
            self.report.processes.push(process);
        }
    }

    fn metadata(&mut self, value: &Json<'_>, process: &mut Process, is_own: bool) {
        let (mut short, mut build) = (None, None);
        for member in value.members() {
            let (name, value) = (member.name(), &member.value);
            let taken = match &*name {
                "bundleIdentifier" => fill(&mut process.identifier, text(value)),
                "pid" => fill(&mut process.pid, value.number()),
                "appVersion" => fill(&mut short, text(value)),
                "appBuildVersion" => fill(&mut build, text(value)),
                "platformArchitecture" => {
                    let name = value.text().unwrap_or_default();
                    let arch = Arch::from_name(&name);
                    fill(&mut process.arch, arch) && arch.is_some_and(|arch| arch.name() == name)
                }
                "osVersion" if is_own => fill(&mut self.report.os, text(value)),
                "deviceType" if is_own => fill(&mut self.report.device, text(value)),
                _ if is_own => self.crash_member(&name, value),
                _ => false,
            };
            if !taken {
                flatten(&mut process.fields, self.input, &name, value, self.limits.max_items);
            }
        }
        if is_own {
            self.name_access_code(process);
        }
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        process.version = match (said(short), said(build)) {
            (Some(short), Some(build)) => Some(format!("{short} ({build})")),
            (one, other) => one.or(other),
        };
    }

    /// Of a bad access the payload has the kernel's code, and not the address that stands beside it in other reports.
    fn name_access_code(&mut self, process: &mut Process) {
        let Some(exception) = &mut self.report.exception else { return };
        if exception.kind.as_deref() != Some("EXC_BAD_ACCESS") {
            return;
        }
        exception.raw_codes.clear();
        if let Some(code) = exception.codes.take() {
            exception.subtype = match code.as_str() {
                "1" => Some("KERN_INVALID_ADDRESS".to_owned()),
                "2" => Some("KERN_PROTECTION_FAILURE".to_owned()),
                _ => None,
            };
            process.fields.push(Field { key: "exceptionCode".to_owned(), value: code });
        }
    }

    /// What a crash's metadata say of it.
    fn crash_member(&mut self, name: &str, value: &Json<'_>) -> bool {
        match name {
            "exceptionType" => {
                let kind = value.number().and_then(mach_exception);
                fill(&mut self.exception().kind, kind.map(str::to_owned))
            }
            "exceptionCode" => {
                let Some(code) = value.number() else { return false };
                self.exception().raw_codes.push(code);
                fill(&mut self.exception().codes, text(value))
            }
            "signal" => {
                let signal = value.number().and_then(|number| signal(number, false));
                fill(&mut self.exception().signal, signal.map(str::to_owned))
            }
            "terminationReason" => {
                let Some(text) = text(value).filter(|text| !text.is_empty()) else { return false };
                let line = KeyValue { key: "Termination Reason", value: &text };
                set_header(&mut self.report, &mut Blamed::default(), line);
                true
            }
            "virtualMemoryRegionInfo" => {
                let Some(text) = text(value) else { return false };
                self.report.sections.push(Section { title: "VM Region Info".to_owned(), text });
                true
            }
            // The explanation looks for it under the name that `.ips` reports have. In payloads it is `objectiveCexceptionReason`.
            "exceptionReason" | "objectiveCexceptionReason" | "objectiveCExceptionReason" => {
                let span = self.input.get(value.span()).unwrap_or_default();
                let value = String::from_utf8_lossy(span).into_owned();
                self.report.fields.push(Field { key: "exceptionReason".to_owned(), value });
                true
            }
            _ => false,
        }
    }

    fn exception(&mut self) -> &mut Exception {
        self.report.exception.get_or_insert_with(Exception::default)
    }
}
