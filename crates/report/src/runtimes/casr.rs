//! Reports of CASR: JSON with the stack as the tool at hand printed it (gdb, a sanitizer, a language's runtime), registers,
//! the memory map, and CASR's own judgement.

use super::log::{SourcePlace, file_name, settle_walked};
use super::{debugger, javascript, sanitizer};
use crate::json::{self, Json};
use crate::leftovers::{fill, text};
use crate::members::Members;
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma};
use backtrail_model::{Exception, Frame, Image, Language, Register, Report, Section, Source, Thread};
use std::collections::HashMap;

/// Whether the beginning of a JSON input is that of such a report.
pub(crate) fn is_casr(head: &str) -> bool {
    head.contains("\"ProcMaps\"") && head.contains("\"ExecutablePath\"") || head.contains("\"CrashSeverity\"")
}

/// Reads the report that begins at `start`.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let Some(document) = outcome.value.as_ref().filter(|value| value.is_object()) else {
        let message = "expected a JSON object with CASR's report";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    };
    let mut members = Members::new(input, Source::Casr, limits);
    let mut thread = Thread { number: 1, crashed: true, ..Thread::default() };
    let mut exception = Exception::default();
    members.each("", document, |members, name, value| match name {
        "Date" => fill(&mut members.report.time, text(value)),
        "Architecture" => {
            members.report.process.arch = match text(value).as_deref() {
                Some("amd64") => Some(Arch::X86_64),
                Some("aarch64" | "arm64") => Some(Arch::Arm64),
                Some("x86" | "i386") => Some(Arch::X86),
                _ => None,
            };
            false
        }
        "ExecutablePath" => {
            let path = text(value);
            members.report.process.name = path.as_deref().map(|path| file_name(path).to_owned());
            fill(&mut members.report.process.path, path)
        }
        "ProcCmdline" => fill(&mut members.report.process.command_line, text(value)),
        "OS" | "OSRelease" => {
            let os = members.report.os.get_or_insert_with(String::new);
            let part = text(value).unwrap_or_default();
            os.push_str(if os.is_empty() { "" } else { " " });
            os.push_str(&part);
            true
        }
        "CrashSeverity" => members.each("CrashSeverity", value, |_, name, value| match name {
            "ShortDescription" => fill(&mut exception.kind, text(value)),
            "Description" => fill(&mut exception.message, text(value)),
            _ => false,
        }),
        "Stacktrace" => stack(members, value, &mut thread),
        "Registers" => registers(value, &mut thread),
        "Prstatus" => members
            .each("Prstatus", value, |_, name, value| name == "registers" && registers(value, &mut thread)),
        "ProcMaps" => {
            maps(members, value);
            lines(members, name, value)
        }
        _ => lines(members, name, value),
    });
    if exception.kind.is_some() || exception.message.is_some() {
        members.report.exception = Some(exception);
    }
    members.report.process.threads.push(thread);
    members.report.process.crashed_thread = Some(0);
    Ok(members.finish(&outcome))
}

fn stack(members: &mut Members<'_, '_>, value: &Json<'_>, thread: &mut Thread) -> bool {
    let mut is_walked = false;
    for (position, item) in members.items("Stacktrace", value, members.frames_left).iter().enumerate() {
        let line = text(item).unwrap_or_default();
        let line = line.trim();
        let index = u32::try_from(position).unwrap_or(u32::MAX);
        let is_gdb = line.contains(" (")
            && (line.contains(") at ")
                || line.contains(") from ")
                || line.ends_with(')') && !line.contains("+0x"));
        let found = if is_gdb || line.ends_with("<signal handler called>") {
            debugger::read_row(line).inspect(|_| is_walked = true)
        } else {
            sanitizer::Row::read(line).map(|row| (row.frame(), Vec::new()))
        };
        let found = found.or_else(|| other_row(line, index).map(|frame| (frame, Vec::new())));
        let Some((mut frame, notes)) = found else {
            members.keep(format!("Stacktrace[{position}]"), item);
            continue;
        };
        frame.annotations.extend(notes);
        frame.span = Some(item.span());
        thread.frames.push(frame);
    }
    members.frames_left = members.frames_left.saturating_sub(thread.frames.len());
    if is_walked {
        settle_walked(&mut thread.frames, |frame| {
            frame.reported.as_ref().is_some_and(|symbol| symbol.name == "<signal handler called>")
        });
    }
    !thread.frames.is_empty()
}

/// Rows of languages' runtimes.
fn other_row(line: &str, index: u32) -> Option<Frame> {
    if let Some(frame) = javascript::row(line) {
        return Some(Frame { index, ..frame });
    }
    if let Some(rest) = line.strip_prefix("File \"") {
        let (file, rest) = rest.split_once("\", line ")?;
        let (number, name) = rest.split_once(", in ").unwrap_or((rest, "<module>"));
        let place = SourcePlace { file, line: number.trim().parse().ok()?, column: None };
        let frame = super::log::named(index, name, Some(place));
        return Some(Frame { language: Some(Language::Python), ..frame });
    }
    None
}

/// Keeps a list of lines as lines.
fn lines(members: &mut Members<'_, '_>, name: &str, value: &Json<'_>) -> bool {
    let texts: Option<Vec<_>> = value.items().iter().map(Json::text).collect();
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return false };
    members.report.sections.push(Section { title: name.to_owned(), text: texts.join("\n") });
    true
}

fn registers(value: &Json<'_>, thread: &mut Thread) -> bool {
    let read: Option<Vec<Register>> = value
        .members()
        .iter()
        .map(|member| {
            Some(Register { name: member.name().into_owned(), value: member.value.number()?, note: None })
        })
        .collect();
    let Some(read) = read.filter(|read| !read.is_empty() && thread.registers.is_empty()) else {
        return false;
    };
    thread.registers = read;
    true
}

/// `0x7ffff7a2c000 0x7ffff7a4e000 0x22000 0x0 /usr/lib/libc-2.31.so`; newer gdbs have permissions before the path. The first
/// range of a path that begins at offset 0 is where it is loaded.
fn maps(members: &mut Members<'_, '_>, value: &Json<'_>) {
    let mut by_path: HashMap<String, usize> = HashMap::new();
    for item in members.items("ProcMaps", value, members.limits.max_images) {
        let Some(line) = text(item) else { continue };
        let Some(path) = line.find('/').and_then(|at| line.get(at..)).map(str::trim) else { continue };
        let mut numbers = line.split_whitespace().map_while(super::log::hex);
        let (Some(start), Some(end), _, Some(offset)) =
            (numbers.next(), numbers.next(), numbers.next(), numbers.next())
        else {
            continue;
        };
        let images = &mut members.report.process.images;
        match by_path.get(path).copied() {
            Some(position) => {
                if let Some(image) = images.get_mut(position) {
                    image.end_address = image.end_address.max(Some(Avma::new(end)));
                }
            }
            None if offset == 0 => {
                by_path.insert(path.to_owned(), images.len());
                images.push(Image {
                    name: file_name(path).to_owned(),
                    path: Some(path.to_owned()),
                    load_address: Avma::new(start),
                    end_address: Some(Avma::new(end)),
                    ..Image::default()
                });
            }
            None => {}
        }
    }
}
