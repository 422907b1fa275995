//! `crash.threads`: stacks, registers, and what lay near the stack.

use crate::json::Json;
use crate::leftovers::{fill, text};
use crate::members::Members;
use crate::stack::{Origin, settle, unsettled};
use backtrail_core::Avma;
use backtrail_model::{Field, Frame, Register, ReportedSymbol, Thread};

pub(super) fn read(members: &mut Members<'_, '_>, path: &str, value: &Json<'_>) -> bool {
    for (position, item) in members.items(path, value, members.limits.max_threads).iter().enumerate() {
        let thread = read_thread(members, &format!("{path}[{position}]"), item);
        members.report.process.threads.push(thread);
    }
    !value.items().is_empty()
}

fn read_thread(members: &mut Members<'_, '_>, path: &str, item: &Json<'_>) -> Thread {
    let mut thread = Thread::default();
    let mut number = None;
    members.each(path, item, |members, name, value| match name {
        "index" => fill(&mut number, value.number()),
        "name" => fill(&mut thread.name, text(value)),
        "dispatch_queue" => fill(&mut thread.queue, text(value)),
        "state" => fill(&mut thread.state, text(value)),
        "crashed" => {
            thread.crashed = value.truth() == Some(true);
            value.truth().is_some()
        }
        // Which thread wrote the report shows in its stack.
        "current_thread" => value.truth() == Some(false),
        "backtrace" => read_backtrace(members, &format!("{path}.backtrace"), value, &mut thread.frames),
        "registers" => members.each(&format!("{path}.registers"), value, |_, name, value| {
            matches!(name, "basic" | "exception") && read_registers(value, &mut thread.registers)
        }),
        _ => false,
    });
    thread.number = number.unwrap_or(members.report.process.threads.len() as u64);
    settle(&mut thread.frames, Origin::Thread);
    thread
}

fn read_registers(bank: &Json<'_>, registers: &mut Vec<Register>) -> bool {
    let all = bank.members().iter().map(|member| (member.name(), member.value.number()));
    let read: Option<Vec<Register>> = all
        .map(|(name, value)| Some(Register { name: name.into_owned(), value: value?, note: None }))
        .collect();
    let Some(read) = read.filter(|_| bank.is_object()) else { return false };
    registers.extend(read);
    true
}

fn read_backtrace(
    members: &mut Members<'_, '_>,
    path: &str,
    value: &Json<'_>,
    frames: &mut Vec<Frame>,
) -> bool {
    members.each(path, value, |members, name, value| match name {
        "contents" if frames.is_empty() => {
            let most = members.frames_left;
            let items = members.items(&format!("{path}.contents"), value, most);
            members.frames_left -= items.len();
            for (position, item) in items.iter().enumerate() {
                frames.push(read_frame(members, path, position, item));
            }
            !value.items().is_empty()
        }
        "skipped" => match value.number() {
            Some(0) => true,
            Some(count) => {
                members.notes.add(|| format!("{path}: the reporter left {count} frames out"));
                true
            }
            None => false,
        },
        _ => false,
    })
}

fn read_frame(members: &mut Members<'_, '_>, path: &str, position: usize, item: &Json<'_>) -> Frame {
    let mut frame = Frame::new(u32::try_from(position).unwrap_or(u32::MAX));
    let (mut address, mut base, mut symbol, mut name) = (None, None, None, None);
    members.each(&format!("{path}.contents[{position}]"), item, |_, key, value| match key {
        "instruction_addr" => fill(&mut address, value.number()),
        "object_addr" => fill(&mut base, value.number()),
        "object_name" => fill(&mut frame.image_name, text(value)),
        "symbol_addr" => fill(&mut symbol, value.number()),
        "symbol_name" => fill(&mut name, text(value)),
        _ => false,
    });
    frame.address = address.map(Avma::new).map(unsettled);
    frame.image_offset =
        address.zip(base.filter(|base| *base != 0)).and_then(|(address, base)| address.checked_sub(base));
    let offset = address
        .zip(symbol.filter(|symbol| *symbol != 0))
        .and_then(|(address, symbol)| address.checked_sub(symbol));
    let is_named = name.as_deref().is_some_and(|name| !name.is_empty());
    frame.reported = is_named.then(|| ReportedSymbol {
        name: name.unwrap_or_default(),
        offset,
        ..ReportedSymbol::default()
    });
    // An address that no offset can say.
    let shown = frame.reported.as_ref().is_some_and(|symbol| symbol.offset.is_some());
    for (key, value) in [
        ("symbol_addr", symbol.filter(|_| !shown)),
        ("object_addr", base.filter(|_| frame.image_offset.is_none())),
    ] {
        let stated =
            value.filter(|value| *value != 0 && members.report.fields.len() < members.limits.max_items);
        members.report.fields.extend(stated.map(|value| Field {
            key: format!("{path}.contents[{position}].{key}"),
            value: format!("{value:#x}"),
        }));
    }
    frame
}

/// Which thread it was, and what its stack is: where an exception was thrown, every address is one that is returned to.
pub(super) fn blame(members: &mut Members<'_, '_>, document: &Json<'_>) {
    let process = &mut members.report.process;
    process.crashed_thread = process.threads.iter().position(|thread| thread.crashed);
    let kind = document.get("crash").and_then(|crash| crash.get("error")).and_then(|error| error.get("type"));
    let kind = kind.and_then(Json::text).unwrap_or_default();
    let is_thrown = matches!(&*kind, "nsexception" | "cpp_exception");
    let Some(thread) = process.crashed_thread.and_then(|position| process.threads.get_mut(position)) else {
        return;
    };
    if is_thrown && thread.registers.is_empty() && !thread.frames.is_empty() {
        settle(&mut thread.frames, Origin::Backtrace);
    }
}
