//! KSCrash's JSON reports, and those of its fork SentryCrash, raw ones and those that were made readable.
//!
//! Written from KSCrash's `KSCrashReportFields.h`. What a library of the process crashed on while the report was written is
//! in a second report, `recrash_report`.

mod error;
#[cfg(test)]
mod tests;
mod threads;

use crate::json::{self, Json, Member};
use crate::leftovers::{fill, text};
use crate::members::{Members, end_address, file_name, mach_arch};
use crate::numbers::time_stated;
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::{AppInfo, Image, Report, Section, Source};

/// Whether the beginning of a JSON input is that of such a report.
pub(crate) fn is_kscrash(head: &str) -> bool {
    let has = |word: &str| head.contains(word);
    has("\"binary_images\"")
        || has("\"recrash_report\"")
        || (has("\"crash\"")
            && (has("\"process_name\"") || has("\"CFBundleIdentifier\"") || has("\"error\"")))
}

/// Reads the report that begins at `start`.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let Some(document) = outcome.value.as_ref().filter(|value| value.is_object()) else {
        let message = "expected a JSON object with KSCrash's report";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    };
    // Others' reports have lists of images, too.
    if !["crash", "recrash_report", "report"].iter().any(|name| document.get(name).is_some()) {
        let message =
            "expected KSCrash's `crash` or `report` beside `binary_images`: a format that is not read here";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    }
    let mut members = Members::new(input, Source::KsCrash, limits);
    let (main, prefix) = main_report(document);
    read_report(&mut members, main, prefix);
    if !std::ptr::eq(main, document) {
        // The reporter itself crashed while it wrote the report: that one is the app's, the rest is the reporter's.
        members.notes.add(|| {
            "the reporter crashed while it wrote this report; what it knew of its own crash is in the fields".to_owned()
        });
        let others: Vec<&Member<'_>> =
            document.members().iter().filter(|member| !std::ptr::eq(&raw const member.value, main)).collect();
        for member in others {
            let name = member.name();
            members.keep(format!("reporter's own {name}"), &member.value);
        }
    }
    Ok(members.finish(&outcome))
}

/// The report of the app's crash, and the path that its members are kept under.
fn main_report<'j, 'd>(document: &'j Json<'d>) -> (&'j Json<'d>, &'static str) {
    let has_threads = document.get("crash").is_some_and(|crash| crash.get("threads").is_some());
    let inner = document.get("recrash_report").filter(|inner| inner.is_object());
    match inner {
        Some(inner) if !has_threads => (inner, "recrash_report"),
        _ => (document, ""),
    }
}

fn read_report(members: &mut Members<'_, '_>, document: &Json<'_>, prefix: &str) {
    let mut parts = Parts::default();
    if let Some(images) = document.get("binary_images") {
        read_images(members, images);
    }
    members.each(prefix, document, |members, name, value| match name {
        "binary_images" => !value.items().is_empty(),
        "report" => members.each("report", value, |members, name, value| report_member(members, name, value)),
        "system" => {
            members.each("system", value, |members, name, value| parts.system_member(members, name, value))
        }
        "crash" => members.each("crash", value, |members, name, value| match name {
            "threads" => threads::read(members, "crash.threads", value),
            "error" => error::read(members, value),
            "diagnosis" => {
                let lines =
                    text(value).into_iter().map(|text| format!("Diagnosis: {text}")).collect::<Vec<_>>();
                members.report.sections.extend(
                    lines.iter().map(|line| Section { title: "Crash Doctor".to_owned(), text: line.clone() }),
                );
                !lines.is_empty()
            }
            _ => false,
        }),
        "process" => value.is_object() && value.members().is_empty(),
        _ => false,
    });
    parts.finish(members);
    threads::blame(members, document);
}

fn report_member(members: &mut Members<'_, '_>, name: &str, value: &Json<'_>) -> bool {
    match name {
        "id" => fill(&mut members.report.incident, text(value)),
        "timestamp" => fill(&mut members.report.time, text(value).map(time_stated)),
        "process_name" => fill(&mut members.report.process.name, text(value)),
        _ => false,
    }
}

/// What is put together at the end.
#[derive(Default)]
struct Parts {
    short_version: Option<String>,
    build_version: Option<String>,
    system_name: Option<String>,
    system_version: Option<String>,
    system_build: Option<String>,
    executable: Option<String>,
    parent_name: Option<String>,
    parent_id: Option<u64>,
    binary_type: Option<u64>,
    binary_subtype: Option<u64>,
    arch: Option<String>,
}

impl Parts {
    fn system_member(&mut self, members: &mut Members<'_, '_>, name: &str, value: &Json<'_>) -> bool {
        let report = &mut members.report;
        match name {
            "CFBundleExecutable" => fill(&mut self.executable, text(value)),
            "CFBundleExecutablePath" => fill(&mut report.process.path, text(value)),
            "CFBundleIdentifier" => fill(&mut report.process.identifier, text(value)),
            "CFBundleShortVersionString" => fill(&mut self.short_version, text(value)),
            "CFBundleVersion" => fill(&mut self.build_version, text(value)),
            "process_id" => fill(&mut report.process.pid, value.number()),
            "parent_process_name" => fill(&mut self.parent_name, text(value)),
            "parent_process_id" => fill(&mut self.parent_id, value.number()),
            "machine" => fill(&mut report.device, text(value)),
            "system_name" => fill(&mut self.system_name, text(value)),
            "system_version" => fill(&mut self.system_version, text(value)),
            "os_version" => fill(&mut self.system_build, text(value)),
            "cpu_arch" => fill(&mut self.arch, text(value)),
            "binary_cpu_type" => fill(&mut self.binary_type, value.number()),
            "binary_cpu_subtype" => fill(&mut self.binary_subtype, value.number()),
            "process_name" => {
                let name = text(value);
                let same = name == report.process.name;
                same || fill(&mut report.process.name, name)
            }
            _ => false,
        }
    }

    fn finish(self, members: &mut Members<'_, '_>) {
        let report = &mut members.report;
        let in_brackets = |text: Option<String>| text.map(|text| format!("({text})"));
        report.os = join([self.system_name, self.system_version, in_brackets(self.system_build)]);
        report.process.version = join([self.short_version, in_brackets(self.build_version), None]);
        let id = self.parent_id.map(|id| format!("[{id}]"));
        report.process.parent = join([self.parent_name, id, None]);
        let by_number =
            self.binary_type.and_then(|number| mach_arch(number, self.binary_subtype.unwrap_or_default()));
        let by_name = self.arch.as_deref().and_then(Arch::from_name);
        let executable = report.process.path.as_deref();
        let of_image = report
            .process
            .images
            .iter()
            .find(|image| executable.is_some() && image.path.as_deref() == executable);
        report.process.arch = of_image.and_then(|image| image.arch).or(by_number).or(by_name);
        // What the model's word does not say again is kept.
        let stated = report.process.arch.map(Arch::name);
        for (key, value) in [
            ("system.cpu_arch", self.arch.filter(|arch| stated != Some(arch))),
            ("system.binary_cpu_type", self.binary_type.map(|number| number.to_string())),
            ("system.binary_cpu_subtype", self.binary_subtype.map(|number| number.to_string())),
            (
                "system.CFBundleExecutable",
                self.executable.filter(|name| Some(name) != report.process.name.as_ref()),
            ),
        ] {
            let field = value.map(|value| backtrail_model::Field { key: key.to_owned(), value });
            report.fields.extend(field);
        }
    }
}

fn join(parts: [Option<String>; 3]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// `binary_images`. What else is stated of an image goes into one section, a line each: there are hundreds.
fn read_images(members: &mut Members<'_, '_>, array: &Json<'_>) {
    let mut further = String::new();
    for item in members.items("binary_images", array, members.limits.max_images) {
        let image = read_image(members, item, &mut further);
        members.report.process.images.push(image);
    }
    if !further.is_empty() {
        members
            .report
            .sections
            .push(Section { title: "binary_images".to_owned(), text: further.trim_end().to_owned() });
    }
}

fn read_image(members: &mut Members<'_, '_>, item: &Json<'_>, further: &mut String) -> Image {
    let mut image = Image::default();
    let (mut base, mut size) = (None, None);
    let (mut cpu_type, mut cpu_subtype) = (None, None);
    let mut version: [Option<u64>; 3] = [None; 3];
    let mut messages = Vec::new();
    let mut others = Vec::new();
    for member in item.members() {
        let (name, value) = (member.name(), &member.value);
        let [major, minor, revision] = &mut version;
        let taken = match &*name {
            "name" => fill(&mut image.path, text(value)),
            "image_addr" => fill(&mut base, value.number()),
            "image_size" => fill(&mut size, value.number()),
            "cpu_type" => fill(&mut cpu_type, value.number()),
            "cpu_subtype" => fill(&mut cpu_subtype, value.number()),
            "major_version" => fill(major, value.number()),
            "minor_version" => fill(minor, value.number()),
            "revision_version" => fill(revision, value.number()),
            "uuid" => fill(&mut image.id, text(value).and_then(|id| ImageId::parse_uuid(&id).ok())),
            "crash_info_message"
            | "crash_info_message2"
            | "crash_info_backtrace"
            | "crash_info_signature" => {
                messages.extend(text(value));
                matches!(value.value, json::Value::String(_))
            }
            _ => false,
        };
        if !taken && !matches!(value.value, json::Value::Null) {
            others.push(format!("{name}={}", crate::leftovers::raw(members.input, value)));
        }
    }
    image.name = image.path.as_deref().map(file_name).unwrap_or_default().to_owned();
    image.load_address = Avma::new(base.unwrap_or_default());
    image.end_address = end_address(base.unwrap_or_default(), size);
    image.arch = cpu_type.and_then(|cpu_type| mach_arch(cpu_type, cpu_subtype.unwrap_or_default()));
    if let [Some(major), Some(minor), Some(revision)] = version {
        image.version = Some(format!("{major}.{minor}.{revision}"));
    }
    if !others.is_empty() {
        further.push_str(&format!("{} {}\n", image.name, others.join(" ")));
    }
    for message in messages.into_iter().filter(|message| !message.trim().is_empty()) {
        let lines = message.lines().map(str::to_owned).collect();
        members.report.app_info.push(AppInfo { image: Some(image.name.clone()), lines });
    }
    image
}
