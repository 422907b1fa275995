//! What `minidump_stackwalk` and `minidump-stackwalk` print of a minidump: threads with frames, registers, and how each frame was
//! found.
//!
//! Sources: Breakpad `src/processor/stackwalk_common.cc`; rust-minidump `minidump-processor/src/process_state.rs`.

use super::log::{Log, Reader, SourcePlace, drive, hex, named, settle_walked, word};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Arch, Avma, FrameAddress, Trust};
use backtrail_model::{Exception, Field, Frame, Register, Report, Source, Thread};

/// What stands below each frame.
const FOUND: &str = "Found by: ";

/// How a frame was found, in their words.
const HOW: [(&str, Trust); 6] = [
    ("given as instruction pointer in context", Trust::Context),
    ("call frame info", Trust::Cfi),
    ("previous frame's frame pointer", Trust::FramePointer),
    ("stack scanning", Trust::Scan),
    ("inlining", Trust::Cfi),
    ("inline", Trust::Cfi),
];

/// Whether a line tells that the text is of this kind.
pub(crate) fn is_sure(line: &str) -> bool {
    line.strip_prefix(FOUND).is_some_and(|how| HOW.iter().any(|(known, _)| how.starts_with(known)))
}

/// Reads such a text; `None` where it has no row.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Walk { log: Log::new(Source::DebuggerBacktrace, limits), crashed: None, is_os: false };
    drive(&mut reader, input, start);
    let Walk { log, crashed, .. } = reader;
    let mut report = log.finish();
    let process = &mut report.process;
    for thread in &mut process.threads {
        settle_walked(&mut thread.frames, |_| false);
    }
    process.threads.iter().any(|thread| !thread.frames.is_empty()).then_some(())?;
    process.crashed_thread = crashed.filter(|at| *at < process.threads.len());
    Some(report)
}

struct Walk<'l> {
    log: Log<'l>,
    crashed: Option<usize>,
    /// Whether the system's name stood in the last line, whose version the next has.
    is_os: bool,
}

impl<'l> Reader<'l> for Walk<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if let Some((number, is_crashed)) = head(text) {
            let at = self.log.report.process.threads.len();
            let has_begun =
                self.log.begin_thread(Thread { number, crashed: is_crashed, ..Thread::default() });
            if is_crashed && has_begun {
                self.crashed = self.crashed.or(Some(at));
            }
            return has_begun;
        }
        if let Some(frame) = row(text) {
            // A text may begin in the middle of a thread.
            if !self.log.is_in_stack() && !self.log.begin_thread(Thread::default()) {
                return false;
            }
            return self.log.push(Frame { span: Some(line.span.clone()), ..frame });
        }
        if let Some(how) = text.strip_prefix(FOUND) {
            return self.found(how);
        }
        if self.log.is_in_stack()
            && let Some(registers) = registers(text)
        {
            return self.registers(registers);
        }
        if self.log.is_in_stack() && text.starts_with("Loaded modules") {
            self.log.end_stack();
        }
        self.fact(text);
        false
    }
}

impl Walk<'_> {
    fn found(&mut self, how: &str) -> bool {
        let Some(frame) = self.log.frames().and_then(|frames| frames.last_mut()) else { return false };
        let known = HOW.iter().find(|(known, _)| how.starts_with(known));
        if let Some((_, trust)) = known {
            frame.trust = *trust;
        }
        frame.inlined |= how.starts_with("inlin");
        known.is_some() || self.log.annotate(how)
    }

    /// The registers of a frame: the program counter and the stack pointer are the frame's; of the innermost all are kept.
    fn registers(&mut self, registers: Vec<Register>) -> bool {
        const COUNTERS: [&str; 3] = ["rip", "eip", "pc"];
        const POINTERS: [&str; 3] = ["rsp", "esp", "sp"];
        let Some(thread) = self.log.thread() else { return false };
        let is_innermost = thread.frames.len() == 1;
        let Some(frame) = thread.frames.last_mut() else { return false };
        for register in &registers {
            if COUNTERS.contains(&register.name.as_str()) {
                frame.address = Some(FrameAddress::Return(Avma::new(register.value)));
            } else if POINTERS.contains(&register.name.as_str()) {
                frame.stack_pointer = Some(Avma::new(register.value));
            }
        }
        if is_innermost && thread.registers.len() + registers.len() <= 128 {
            thread.registers.extend(registers);
        }
        // Those of callers say how the walk went on.
        is_innermost
    }

    fn fact(&mut self, text: &str) {
        let is_version = std::mem::take(&mut self.is_os);
        let report = &mut self.log.report;
        let Some((key, value)) = text.split_once(':').map(|(key, value)| (key.trim(), value.trim())) else {
            if is_version && text.starts_with(|c: char| c.is_ascii_digit()) {
                report.os = report.os.take().map(|os| format!("{os} {text}"));
            }
            return;
        };
        match key {
            "Operating system" => {
                report.os = Some(value.to_owned());
                self.is_os = true;
            }
            "CPU" => {
                report.process.arch = match value {
                    "amd64" => Some(Arch::X86_64),
                    "x86" => Some(Arch::X86),
                    "arm64" => Some(Arch::Arm64),
                    "arm" => Some(Arch::Arm),
                    other => Arch::from_name(other),
                };
            }
            "Crash reason" => {
                let (signal, codes) = value.split_once(" /").unwrap_or((value, ""));
                let exception = report.exception.get_or_insert_with(Exception::default);
                let is_signal = signal.starts_with("SIG");
                exception.signal = Some(signal.to_owned()).filter(|_| is_signal);
                exception.kind = Some(signal.trim().to_owned()).filter(|kind| !is_signal && !kind.is_empty());
                exception.codes = Some(codes.trim().to_owned()).filter(|codes| !codes.is_empty());
            }
            "Crash address" => {
                let exception = report.exception.get_or_insert_with(Exception::default);
                exception.address = hex(value).map(Avma::new);
            }
            "Assertion" | "Crashing instruction" | "Process uptime" | "Linux memory map count" => {
                report.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
            }
            _ => {}
        }
    }
}

/// `Thread 0 (crashed)`, `Thread 17`, `Thread 3 name - tid: 12`.
fn head(text: &str) -> Option<(u64, bool)> {
    let (number, rest) = word(text.strip_prefix("Thread ")?);
    let is_head = rest.is_empty() || rest.starts_with("(crashed)") || rest.contains("tid: ");
    Some((number.parse().ok().filter(|_| is_head)?, rest.contains("(crashed)")))
}

/// `3  Electron Framework!base::Run(int) [run.cc : 124 + 0xf]`, `1  Reliao.exe + 0x285824f`, `0  0x12345`.
fn row(text: &str) -> Option<Frame> {
    let (number, rest) = text.split_once("  ")?;
    let index: u32 = number.parse().ok()?;
    let rest = rest.trim();
    if let Some((module, rest)) = rest.split_once('!') {
        let (name, place) = match rest.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")) {
            Some((name, inside)) => (name, place(inside)),
            None => (rest, None),
        };
        let (name, offset) = match name.rsplit_once(" + 0x") {
            Some((name, digits)) => (name, u64::from_str_radix(digits, 16).ok()),
            None => (name, None),
        };
        let mut frame = named(index, name.trim(), place);
        if let Some(symbol) = &mut frame.reported {
            symbol.offset = offset;
        }
        frame.image_name = Some(module.to_owned());
        return Some(frame);
    }
    let mut frame = Frame::new(index);
    if let Some((module, offset)) = rest.rsplit_once(" + ") {
        frame.image_offset = Some(hex(offset)?);
        frame.image_name = Some(module.trim().to_owned());
        return Some(frame);
    }
    frame.address = Some(FrameAddress::Return(Avma::new(hex(rest)?)));
    Some(frame)
}

/// `run.cc : 124 + 0xf`.
fn place(text: &str) -> Option<SourcePlace<'_>> {
    let (file, rest) = text.rsplit_once(" : ")?;
    let (line, _) = rest.split_once(" + ").unwrap_or((rest, ""));
    Some(SourcePlace { file: file.trim(), line: line.trim().parse().ok()?, column: None })
}

/// `rip = 0x00007fff56621142   rsp = 0x000070000ca08d58`.
fn registers(text: &str) -> Option<Vec<Register>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, behind) = rest.split_once(" = ")?;
        let (value, left) = word(behind);
        let is_name = (1..=5).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let value = hex(value).filter(|_| is_name && found.len() < 64)?;
        found.push(Register { name: name.to_owned(), value, note: None });
        rest = left;
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};
    use backtrail_core::Trust;

    #[test]
    fn threads_with_how_frames_were_found() {
        let text = "Operating system: Linux\n                  0.0.0 Linux 5.4\nCPU: amd64\n     family 6\n\nCrash reason:  SIGSEGV /SEGV_MAPERR\nCrash address: 0x18\nProcess uptime: 1 seconds\n\nThread 0 (crashed)\n 0  shop!shop::price(int) [shop.cc : 12 + 0x4]\n    rax = 0x0000000000000000   rip = 0x0000000000401234\n    rsp = 0x00007ffc00001000\n    Found by: given as instruction pointer in context\n 1  libc.so.6 + 0x24083\n    rsp = 0x00007ffc00001010   rip = 0x00007f0000024083\n    Found by: stack scanning\n\nThread 1\n 0  libc.so.6!read + 0x10\n    rip = 0x00007f0000011111\n    Found by: given as instruction pointer in context\n\nLoaded modules:\n0x00400000 - 0x00402fff  shop  ???  (main)\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.signal.as_deref(), exception.codes.as_deref()),
            (Some("SIGSEGV"), Some("SEGV_MAPERR"))
        );
        assert_eq!(exception.address.map(backtrail_core::Avma::get), Some(0x18));
        let thread = report.crashed().unwrap();
        let [price, libc] = thread.frames.as_slice() else { panic!("two frames") };
        assert_eq!(
            price.reported.as_ref().map(|it| (it.name.as_str(), it.line)),
            Some(("shop::price(int)", Some(12)))
        );
        assert_eq!(price.address.map(|it| it.raw().get()), Some(0x40_1234));
        assert_eq!(
            (libc.image_name.as_deref(), libc.image_offset, libc.trust),
            (Some("libc.so.6"), Some(0x2_4083), Trust::Scan)
        );
        assert_eq!((thread.registers.len(), report.process.threads.len()), (3, 2));
        assert!(parse(b"Found by: stack scanning\n", &Limits::default()).is_err());
    }
}
