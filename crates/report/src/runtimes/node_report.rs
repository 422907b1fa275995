//! Diagnostic reports of Node.js: JSON with the stack in JavaScript, the one of machine code, and the state of the loop.

use super::javascript;
use super::log::named;
use crate::json::{self, Json};
use crate::leftovers::{fill, text};
use crate::members::{Members, file_name};
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma, FrameAddress, Svma};
use backtrail_model::{AppInfo, Backtrace, Field, Frame, Image, Report, Source, Thread};
use std::collections::HashMap;

/// Whether the beginning of a JSON input is that of such a report.
pub(crate) fn is_node_report(head: &str) -> bool {
    (head.contains("\"nodejsVersion\"") && head.contains("\"dumpEventTime\""))
        || head.contains("\"javascriptStack\"")
}

/// Reads the report that begins at `start`.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let Some(document) = outcome.value.as_ref().filter(|value| value.is_object()) else {
        let message = "expected a JSON object with Node's report";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    };
    let mut members = Members::new(input, Source::NodeReport, limits);
    read_report(&mut members, document, "");
    Ok(members.finish(&outcome))
}

fn read_report(members: &mut Members<'_, '_>, document: &Json<'_>, prefix: &str) {
    members.each(prefix, document, |members, name, value| match name {
        "header" => members.each("header", value, header),
        "javascriptStack" => script(members, value),
        "nativeStack" => native(members, value),
        "sharedObjects" => objects(members, value),
        "libuv" => {
            handles(members, value);
            false
        }
        _ => false,
    });
    place(members);
}

fn header(members: &mut Members<'_, '_>, name: &str, value: &Json<'_>) -> bool {
    let report = &mut members.report;
    match name {
        "event" => fill(&mut report.event, text(value)),
        "dumpEventTime" => fill(&mut report.time, text(value)),
        "processId" => fill(&mut report.process.pid, value.number()),
        "nodejsVersion" => fill(&mut report.process.version, text(value)),
        "osVersion" => fill(&mut report.os, text(value)),
        "commandLine" => {
            let words: Vec<String> = value.items().iter().filter_map(text).collect();
            report.process.name = words.first().map(|word| file_name(word).to_owned());
            report.process.command_line = Some(words.join(" "));
            !words.is_empty()
        }
        "arch" => {
            report.process.arch = match text(value).as_deref() {
                Some("x64") => Some(Arch::X86_64),
                Some("arm64") => Some(Arch::Arm64),
                Some("ia32") => Some(Arch::X86),
                Some("arm") => Some(Arch::Arm),
                _ => None,
            };
            // As Node spells it, it is kept also.
            false
        }
        _ => false,
    }
}

/// The error, and the stack in JavaScript. Node cuts the printed error into lines: the first is the message, and a place in
/// the source, the line there and a mark may stand before it.
fn script(members: &mut Members<'_, '_>, value: &Json<'_>) -> bool {
    let mut head = value.get("message").and_then(text).unwrap_or_default();
    let mut lines = Vec::new();
    let mut frames = Vec::new();
    for item in
        members.items("javascriptStack.stack", value.get("stack").unwrap_or(value), members.frames_left)
    {
        let line = text(item).unwrap_or_default();
        match javascript::row(&line) {
            Some(frame) => {
                frames.push(Frame { index: u32::try_from(frames.len()).unwrap_or(u32::MAX), ..frame });
            }
            None if frames.is_empty() && javascript::names_error(line.trim()) => {
                lines.push(std::mem::replace(&mut head, line));
            }
            None => lines.push(line),
        }
    }
    members.frames_left = members.frames_left.saturating_sub(frames.len());
    for line in lines.into_iter().filter(|line| !line.trim().is_empty()) {
        members.report.fields.push(Field { key: "javascriptStack".to_owned(), value: line });
    }
    let has_error =
        members.report.event.as_deref().is_some_and(|event| event == "Exception" || event == "Fatal error");
    let is_synthetic = head.contains("ERR_SYNTHETIC") || frames.is_empty() && head == "No stack.";
    if has_error || !is_synthetic {
        members.report.exception = Some(javascript::exception(&head));
        members.report.app_info.push(AppInfo { image: None, lines: vec![head.clone()] });
    }
    members.report.process.backtraces.push(Backtrace { title: head, is_exception: true, frames });
    // Members of the error itself, and whatever else stands there.
    members.each("javascriptStack", value, |_, name, _| matches!(name, "message" | "stack"));
    true
}

/// `{"pc": "0x00005583", "symbol": "node::f() [/usr/bin/node]"}`.
fn native(members: &mut Members<'_, '_>, value: &Json<'_>) -> bool {
    let mut thread = Thread { name: Some("main".to_owned()), ..Thread::default() };
    for (item, index) in members.items("nativeStack", value, members.frames_left).iter().zip(0..) {
        let symbol = item.get("symbol").and_then(text).unwrap_or_default();
        let (name, image) = match symbol.strip_suffix(']').and_then(|symbol| symbol.rsplit_once('[')) {
            Some((name, image)) => (name.trim(), Some(image)),
            None => (symbol.trim(), None),
        };
        let mut frame = named(index, name, None);
        frame.reported = frame.reported.filter(|symbol| !symbol.name.is_empty());
        frame.image_name = image.filter(|image| !image.is_empty()).map(str::to_owned);
        let pc = item.get("pc").and_then(text);
        let pc = pc.and_then(|pc| u64::from_str_radix(pc.trim_start_matches("0x"), 16).ok());
        frame.address = pc.map(|pc| FrameAddress::Return(Avma::new(pc)));
        frame.span = Some(item.span());
        thread.frames.push(frame);
    }
    members.frames_left = members.frames_left.saturating_sub(thread.frames.len());
    if thread.frames.is_empty() {
        return false;
    }
    members.report.process.threads.push(thread);
    true
}

/// The paths of the program and its libraries. Where they lie the report does not say.
fn objects(members: &mut Members<'_, '_>, value: &Json<'_>) -> bool {
    for item in members.items("sharedObjects", value, members.limits.max_images) {
        let Some(path) = text(item) else { continue };
        let name = file_name(&path).to_owned();
        members.report.process.images.push(Image { name, path: Some(path), ..Image::default() });
    }
    !value.items().is_empty()
}

/// How many handles of each type keep the loop running: what there is to see at a glance. All of them stay as text.
fn handles(members: &mut Members<'_, '_>, value: &Json<'_>) {
    let mut counts: Vec<(String, usize, usize)> = Vec::new();
    for item in value.items() {
        let kind = item.get("type").and_then(text).unwrap_or_default();
        let is = |name: &str| item.get(name).and_then(Json::truth) == Some(true);
        let is_active = is("is_active");
        if let Some((_, all, active)) = counts.iter_mut().find(|(known, ..)| *known == kind) {
            (*all, *active) = (*all + 1, *active + usize::from(is_active));
        } else if counts.len() < 100 {
            counts.push((kind, 1, usize::from(is_active)));
        }
    }
    let parts: Vec<String> =
        counts.iter().map(|(kind, all, active)| format!("{kind} {all} ({active} active)")).collect();
    if !parts.is_empty() {
        members.report.fields.push(Field { key: "libuv handles".to_owned(), value: parts.join(", ") });
    }
}

/// Frames of a program that was linked to a fixed place. Linux puts all other code of 64 bits far above; so such an address
/// is the one that the file states.
fn place(members: &mut Members<'_, '_>) {
    const FIXED_END: u64 = 1 << 32;
    let process = &mut members.report.process;
    let is_64_bit = matches!(process.arch, Some(Arch::X86_64 | Arch::Arm64));
    let is_linux = members.report.os.as_deref().is_some_and(|os| os.contains("SMP") || os.contains("Linux"));
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for (position, image) in process.images.iter().enumerate() {
        by_name.entry(image.name.clone()).or_insert(position);
        by_name.entry(image.path.clone().unwrap_or_default()).or_insert(position);
    }
    for frame in process.threads.iter_mut().flat_map(|thread| &mut thread.frames) {
        let Some(name) = frame.image_name.clone() else { continue };
        frame.image = by_name.get(&name).or_else(|| by_name.get(file_name(&name))).copied();
        let address = frame.address.map_or(0, |address| address.raw().get());
        if is_linux && is_64_bit && frame.image.is_some() && (0x1000..FIXED_END).contains(&address) {
            frame.relative_pc = Some(Svma::new(address - 1));
        }
    }
}
