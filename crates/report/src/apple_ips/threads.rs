//! `threads` and `lastExceptionBacktrace`: stacks.

use super::body::Body;
use super::state;
use crate::json::Json;
use crate::leftovers::{fill, text};
use crate::stack::{Origin, settle, unsettled};
use backtrail_core::Avma;
use backtrail_model::{Backtrace, Frame, Recursion, ReportedSymbol, Section, Thread};

pub(super) fn read(body: &mut Body<'_, '_>, value: &Json<'_>) -> bool {
    if !body.report.process.threads.is_empty() {
        return false;
    }
    for (position, item) in value.items().iter().enumerate() {
        if position >= body.limits.max_threads {
            let count = value.items().len();
            body.notes.add(|| format!("{count} threads, more than the limit allows; the rest is not read"));
            body.keep("threads".to_owned(), value);
            break;
        }
        let path = format!("threads[{position}]");
        let mut thread = read_thread(body, &path, item);
        thread.number = position as u64;
        body.report.process.threads.push(thread);
    }
    !value.items().is_empty()
}

fn read_thread(body: &mut Body<'_, '_>, path: &str, item: &Json<'_>) -> Thread {
    let (mut thread, mut length) = (Thread::default(), None);
    let is_object = body.members_of(path, item, |body, name, value| match name {
        "id" => fill(&mut thread.id, value.number()),
        "name" => fill(&mut thread.name, text(value)),
        "queue" => fill(&mut thread.queue, text(value)),
        "originalLength" => fill(&mut length, value.number()),
        "triggered" => {
            thread.crashed |= value.truth() == Some(true);
            value.truth() == Some(true)
        }
        "threadState" => {
            thread.registers.extend(state::read(body, &format!("{path}.threadState"), value));
            value.is_object()
        }
        "recursionInfoArray" => {
            read_recursion(body, &mut thread, &format!("{path}.recursionInfoArray"), value);
            !value.items().is_empty()
        }
        "frames" if thread.frames.is_empty() => {
            thread.frames = read_frames(body, &format!("{path}.frames"), value);
            matches!(value.value, crate::json::Value::Array(_))
        }
        _ => false,
    });
    if !is_object {
        body.notes.add(|| format!("{path}: expected an object that describes a thread"));
        body.keep(path.to_owned(), item);
    }
    if let (Some(depth), Some(recursion)) = (length, &mut thread.recursion) {
        recursion.depth = depth;
    } else if let Some(depth) = length {
        thread.recursion = Some(Recursion { depth, first_elided: None, last_elided: None });
    }
    number_rows(&mut thread);
    settle(&mut thread.frames, Origin::Thread);
    thread
}

/// The first recursion goes into the model; its further members, and further recursions, are kept as text.
fn read_recursion(body: &mut Body<'_, '_>, thread: &mut Thread, path: &str, value: &Json<'_>) {
    for (position, item) in value.items().iter().enumerate() {
        let path = format!("{path}[{position}]");
        let mut recursion = Recursion { depth: 0, first_elided: None, last_elided: None };
        let is_first = position == 0;
        let is_object = body.members_of(&path, item, |_, name, value| match name {
            "hottestElided" if is_first => fill(&mut recursion.first_elided, value.number()),
            "coldestElided" if is_first => fill(&mut recursion.last_elided, value.number()),
            _ => false,
        });
        if !is_object {
            body.keep(path, item);
        } else if is_first {
            thread.recursion = Some(recursion);
        }
    }
}

/// Numbers the rows: inline rows share their machine frame's number, and what was left out of a recursion counts.
fn number_rows(thread: &mut Thread) {
    let elided = thread.recursion.as_ref().and_then(|recursion| {
        let (first, last) = (recursion.first_elided?, recursion.last_elided?);
        Some((first, last.checked_sub(first)?.checked_add(1)?))
    });
    let mut machine_frame = 0_u64;
    for frame in &mut thread.frames {
        if let Some((first, count)) = elided.filter(|(first, _)| *first == machine_frame) {
            machine_frame = first.saturating_add(count);
        }
        frame.index = u32::try_from(machine_frame).unwrap_or(u32::MAX);
        machine_frame += u64::from(!frame.inlined);
    }
}

pub(super) fn read_last_exception(body: &mut Body<'_, '_>, value: &Json<'_>) -> bool {
    if value.items().is_empty() {
        return false;
    }
    let mut frames = read_frames(body, "lastExceptionBacktrace", value);
    let mut machine_frame = 0;
    for frame in &mut frames {
        frame.index = machine_frame;
        machine_frame += u32::from(!frame.inlined);
    }
    settle(&mut frames, Origin::Backtrace);
    let title = "Last Exception Backtrace".to_owned();
    body.report.process.backtraces.insert(0, Backtrace { title, is_exception: true, frames });
    true
}

fn read_frames(body: &mut Body<'_, '_>, path: &str, value: &Json<'_>) -> Vec<Frame> {
    let items = value.items();
    let count = items.len().min(body.frames_left);
    body.frames_left -= count;
    let mut frames = Vec::with_capacity(count);
    for (position, item) in items.iter().take(count).enumerate() {
        frames.push(read_frame(body, path, position, item));
    }
    if let (Some(first), Some(last)) = (items.get(count), items.last()) {
        body.notes.add(|| format!("{path}: more frames than the limit allows, the rest is kept as text"));
        let rest = body.input.get(first.span().start..last.span().end).unwrap_or_default();
        let text = String::from_utf8_lossy(rest).into_owned();
        body.report.sections.push(Section { title: format!("{path} from {count} on"), text });
    }
    frames
}

#[derive(Default)]
struct Parts {
    image: Option<u64>,
    offset: Option<u64>,
    symbol: Option<String>,
    symbol_offset: Option<u64>,
    file: Option<String>,
    line: Option<u32>,
}

fn read_frame(body: &mut Body<'_, '_>, path: &str, position: usize, item: &Json<'_>) -> Frame {
    let (mut frame, mut parts) = (Frame::new(0), Parts::default());
    for member in item.members() {
        let (name, value) = (member.name(), &member.value);
        let taken = match &*name {
            "imageIndex" => fill(&mut parts.image, value.number()),
            "imageOffset" => fill(&mut parts.offset, value.number()),
            "symbol" => fill(&mut parts.symbol, text(value)),
            "symbolLocation" => fill(&mut parts.symbol_offset, value.number()),
            "sourceFile" => fill(&mut parts.file, text(value)),
            "sourceLine" => fill(&mut parts.line, value.number().and_then(|line| u32::try_from(line).ok())),
            "inline" => {
                frame.inlined |= value.truth() == Some(true);
                value.truth() == Some(true)
            }
            _ => false,
        };
        if !taken {
            body.keep(format!("{path}[{position}].{name}"), value);
        }
    }
    if item.is_object() {
        frame.span = Some(item.span());
    } else {
        read_pair(body, path, position, item, &mut parts);
    }
    place(body, path, position, &mut frame, &parts);
    frame.reported = reported(parts);
    frame
}

/// Old writers have `[image, offset]` for a frame.
fn read_pair(body: &mut Body<'_, '_>, path: &str, position: usize, item: &Json<'_>, parts: &mut Parts) {
    if let [image, offset] = item.items() {
        parts.image = image.number();
        parts.offset = offset.number();
    }
    if parts.image.is_none() || parts.offset.is_none() {
        body.notes.add(|| format!("{path}[{position}]: expected an object that describes a frame"));
        body.keep(format!("{path}[{position}]"), item);
    }
}

/// Finds image and address.
fn place(body: &mut Body<'_, '_>, path: &str, position: usize, frame: &mut Frame, parts: &Parts) {
    let image_position = parts.image.and_then(|image| usize::try_from(image).ok());
    let image = image_position.and_then(|image| body.report.process.images.get(image));
    if let (Some(number), None) = (parts.image, image) {
        let count = body.report.process.images.len();
        body.notes.add(|| format!("{path}[{position}]: names image {number} of {count}"));
    }
    let Some(offset) = parts.offset else { return };
    let base = image.map_or(Avma::new(0), |image| image.load_address);
    let known = image.is_some_and(|image| !image.is_filler());
    // The offset in the image that stands for "unknown" is the address itself.
    frame.image = image_position.filter(|_| known);
    frame.image_offset = (known || parts.image.is_some() && image.is_none()).then_some(offset);
    if image.is_none() && parts.image.is_some() {
        return;
    }
    frame.address = base.checked_add(offset).map(unsettled);
    if frame.address.is_none() {
        body.notes.add(|| format!("{path}[{position}]: the address lies beyond the address space"));
    }
}

fn reported(parts: Parts) -> Option<ReportedSymbol> {
    let says_something = parts.symbol.is_some() || parts.file.is_some() || parts.symbol_offset.is_some();
    says_something.then(|| ReportedSymbol {
        name: parts.symbol.unwrap_or_default(),
        offset: parts.symbol_offset,
        file: parts.file,
        line: parts.line,
        column: None,
    })
}
