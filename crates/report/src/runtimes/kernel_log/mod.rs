//! What Linux's kernel logs of programs: faults that ended one, and whom it killed for want of memory.
//!
//! Each is a line or a few of a log, as `dmesg`, the journal or a container's platform shows them. A fault's line has the place
//! of one instruction; nothing tells who had called it.

mod faults;
mod oom;
#[cfg(test)]
mod tests;

use super::log::{Log, Reader, drive};
use crate::Limits;
use crate::apple_text::{Line, Lines};
use crate::log_prefix::plain;
use backtrail_core::{AddrRange, Arch, Avma, FileOffset, FrameAddress, Trust};
use backtrail_model::{Exception, Field, Frame, Image, Register, Report, Source, Thread};
use faults::Fault;
use oom::Oom;

/// A line longer than this is none.
const MAX_LINE: usize = 1024;

/// So many lines may follow a fault that are its own: registers, the task, the instructions.
const MAX_FOLLOWING: usize = 24;

/// Whether a line, given without what logs put before it, is such an event.
pub(super) fn is_event(line: &str) -> bool {
    let line = kernels(line);
    line.len() <= MAX_LINE && (Fault::read(line).is_some() || oom::is_event(line))
}

/// The kernel's own words, where the journal put the host and the writer before them: `host kernel: `.
fn kernels(line: &str) -> &str {
    const WRITER: &str = "kernel: ";
    let line = line.trim();
    match line.split_once(WRITER) {
        Some((before, rest)) if before.split_whitespace().count() <= 2 && before.len() <= 80 => {
            plain(rest).trim()
        }
        _ => line,
    }
}

/// Where the reports of a log begin; the first at its beginning.
pub(super) fn starts(text: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    // Whether a kill was announced, and its victim has not come yet.
    let (mut has_begun, mut is_open) = (false, false);
    for line in Lines::new(text, 0..text.len(), 1).filter(|line| line.bytes.len() <= MAX_LINE) {
        let raw = line.text();
        let plain = kernels(plain(&raw));
        let is_fault = Fault::read(plain).is_some();
        let is_head = is_fault || oom::begins(plain, is_open, has_begun);
        if is_head && has_begun {
            starts.push(line.span.start);
        }
        has_begun |= is_head;
        is_open = (is_open || is_head) && !is_fault && !oom::ends(plain);
    }
    starts
}

/// Reads such a log.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = KernelLog {
        log: Log::new(Source::KernelLog, limits),
        fault: None,
        following: 0,
        registers: Vec::new(),
        code: None,
        oom: Oom::default(),
    };
    drive(&mut reader, input, start);
    let KernelLog { log, fault, registers, code, oom, .. } = reader;
    let mut report = log.finish();
    match fault {
        Some(fault) => describe(&mut report, fault, registers, code),
        None => oom.describe(&mut report)?,
    }
    Some(report)
}

struct KernelLog<'l> {
    log: Log<'l>,
    /// A fault, with the texts of its line.
    fault: Option<(Fault, String)>,
    /// How many lines behind it may still be its own.
    following: usize,
    registers: Vec<(String, u64)>,
    code: Option<String>,
    oom: Oom,
}

impl<'l> Reader<'l> for KernelLog<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, _: &Line<'_>) -> bool {
        let text = kernels(text);
        if text.len() > MAX_LINE {
            return false;
        }
        if self.fault.is_none() {
            if let Some(fault) = Fault::read(text) {
                self.fault = Some((fault, text.to_owned()));
                self.following = MAX_FOLLOWING;
            } else {
                self.oom.line(text, self.log.limits.max_items);
            }
        } else if self.following > 0 {
            self.following -= 1;
            if let Some((name, value, place)) = faults::mips_register(text) {
                self.registers.push((name.to_owned(), value));
                if let Some((fault, _)) = self.fault.as_mut().filter(|_| name == "epc") {
                    fault.ip = fault.ip.or(Some(value));
                    fault.place = fault.place.take().or(place);
                }
            } else if let Some(code) = text.strip_prefix("Code: ") {
                self.code.get_or_insert_with(|| code.trim().to_owned());
            } else if self.registers.len() < 64 {
                self.registers.extend(faults::registers(text));
            }
        }
        false
    }
}

/// Puts a fault into the report.
fn describe(
    report: &mut Report,
    (fault, line): (Fault, String),
    registers: Vec<(String, u64)>,
    code: Option<String>,
) {
    let register = |names: &[&str]| {
        registers.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| *value)
    };
    let pc = fault.ip.or_else(|| register(&["pc", "epc"]));
    let caller = fault.lr.or_else(|| register(&["lr", "ra"]));
    let name = Some(fault.name).filter(|name| !name.is_empty());
    report.process.name.clone_from(&name);
    report.process.path.clone_from(&fault.file);
    report.process.arch = fault.is_arm64.then_some(Arch::Arm64);
    let mut codes = Vec::new();
    codes.extend(fault.error.map(|error| format!("error {error:#x}")));
    codes.extend(fault.esr.map(|esr| format!("esr {esr:#x}")));
    report.exception = Some(Exception {
        kind: Some(fault.kind),
        signal: fault.signal.map(str::to_owned),
        codes: Some(codes.join(", ")).filter(|codes| !codes.is_empty()),
        subtype: fault.access.map(str::to_owned),
        raw_codes: fault.error.or(fault.esr).into_iter().collect(),
        message: Some(line),
        address: fault.address.map(Avma::new),
        ..Exception::default()
    });
    let mut frames = Vec::new();
    let mapping = fault.place.as_ref().map(|place| AddrRange::from_size(Avma::new(place.start), place.size));
    if let Some(place) = &fault.place {
        let has_offset = place.offset.is_some();
        let mapping = mapping.filter(|_| !has_offset);
        let name = place.file.clone();
        report.process.images.push(Image { name, code_mapping: mapping, ..Image::default() });
    }
    if let Some(pc) = pc {
        frames.push(Frame {
            address: Some(FrameAddress::Exact(Avma::new(pc))),
            image: fault.place.is_some().then_some(0),
            file_offset: fault.place.as_ref().and_then(|place| place.offset).map(FileOffset::new),
            stack_pointer: fault.sp.or_else(|| register(&["sp"])).map(Avma::new),
            trust: Trust::Context,
            ..Frame::new(0)
        });
    }
    // The link register may be left of a call that had returned before.
    let caller = caller.map(Avma::new).filter(|caller| Some(caller.get()) != pc && caller.get() != 0);
    if let Some(caller) = caller.filter(|_| pc.is_some()) {
        let is_inside = mapping.is_some_and(|mapping| mapping.contains(caller));
        let offset =
            fault.place.as_ref().filter(|_| is_inside).and_then(|place| {
                caller.get().checked_sub(place.start)?.checked_add(place.in_file(fault.ip)?)
            });
        frames.push(Frame {
            address: Some(FrameAddress::Return(caller)),
            image: is_inside.then_some(0),
            file_offset: offset.and_then(|offset| offset.checked_sub(1)).map(FileOffset::new),
            trust: Trust::LinkRegister,
            ..Frame::new(1)
        });
    }
    let mut add = |key: &str, value: String| {
        report.fields.push(Field { key: key.to_owned(), value });
    };
    if let Some(code) = code {
        add("code", code);
    }
    if let Some(cpu) = &fault.cpu {
        add("cpu", cpu.clone());
    }
    if let Some(number) = fault.syscall {
        add("system call", number.to_string());
    }
    if let Some(place) = &fault.place {
        add("mapping", format!("{} {:#x} + {:#x}", place.file, place.start, place.size));
    }
    report.process.threads.push(Thread {
        name,
        id: Some(fault.id).filter(|id| *id != 0),
        crashed: true,
        frames,
        registers: registers.into_iter().map(|(name, value)| Register { name, value, note: None }).collect(),
        ..Thread::default()
    });
    report.process.crashed_thread = Some(0);
}
