//! Writing a crash file from outside of the process: of one that stands, or of a core.

use super::format::{
    EM_AARCH64, EM_X86_64, EVENT_EXIT, EVENT_HANG, Event, FRAME_RETURNS, IMAGE_PROGRAM, IMAGE_UUID, Kind,
    MAGIC, MAX_SECTION, NO_UPTIME, THREAD_CRASHED, VERSION, checksum,
};
use super::{CrashFile, NsException, Thread};
use crate::elf_core::signals;
use crate::mach::Exception;
use crate::maps::maps_text;
use crate::{Error, ErrorKind};
use backtrail_core::{Avma, Family, FrameAddress, ImageId, Svma};

/// Bytes of memory, and of the text of mappings, in one section.
const PIECE: usize = 32 << 10;

/// The bytes of a crash file that [`read`](super::read) reads as `file`. Of an identity that is
/// neither build id nor UUID, nothing is written.
///
/// # Errors
/// For the architectures that crash files do not have: all but x86_64 and aarch64.
pub fn write(file: &CrashFile<'_>) -> Result<Vec<u8>, Error> {
    let snapshot = &file.snapshot;
    let machine = match snapshot.arch.family() {
        Family::X86_64 => EM_X86_64,
        Family::Aarch64 => EM_AARCH64,
        _ => {
            let message = format!("{}: expected x86_64 or aarch64, of which crash files are", snapshot.arch);
            return Err(Error::at(ErrorKind::Unsupported, 0, message));
        }
    };
    let mut out = Writer(Vec::new());
    out.0.extend(MAGIC);
    out.0.extend(VERSION.to_le_bytes());
    out.0.extend(machine.to_le_bytes());
    out.crash(file);
    if let Some(Exception { kind, code, subcode, syndrome }) = file.mach_exception {
        let words = [code, subcode, syndrome].map(u64::to_le_bytes);
        out.section(Kind::MachException, &[&kind.to_le_bytes()[..], words.as_flattened()].concat());
    }
    let process = &snapshot.process;
    if let Some(program) = &process.executable {
        out.section(Kind::Program, program.as_bytes());
    }
    if let Some(system) = &process.os {
        out.section(Kind::System, system.as_bytes());
    }
    // What is surest first: whoever reads a file that was cut off has it.
    let (crashed, others): (Vec<_>, Vec<_>) = snapshot.threads.iter().partition(|thread| thread.is_crashed);
    for thread in crashed.into_iter().chain(others) {
        out.thread(thread);
    }
    for (id, frames) in &file.walked {
        out.frames(*id, frames);
    }
    for (kind, text) in &file.messages {
        out.section(Kind::Message, &[&[kind.number()], text.as_bytes()].concat());
    }
    if let Some((name, what)) = &file.exception {
        let name = cut(name.as_bytes(), MAX_SECTION / 2);
        let size = u16::try_from(name.len()).unwrap_or(0);
        out.section(Kind::Exception, &[&size.to_le_bytes(), name, what.as_bytes()].concat());
    }
    if let Some(exception) = &file.ns_exception {
        out.ns_exception(exception);
    }
    if let Some(event) = file.event {
        let (what, thread, value) = match event {
            Event::Hang(milliseconds) => (EVENT_HANG, 0, milliseconds),
            Event::Exit { thread, code } => (EVENT_EXIT, thread, code),
        };
        let process = &snapshot.process;
        let pid = u32::try_from(process.pid.unwrap_or(0)).unwrap_or(0);
        let content = [
            &pid.to_le_bytes()[..],
            &process.time.unwrap_or(0).to_le_bytes(),
            &[what],
            &thread.to_le_bytes(),
            &value.to_le_bytes(),
        ];
        out.section(Kind::Event, &content.concat());
    }
    out.images(file);
    for piece in maps_text(&snapshot.mappings).as_bytes().chunks(PIECE) {
        out.section(Kind::Maps, piece);
    }
    for range in snapshot.memory.ranges() {
        let size = usize::try_from(range.size()).unwrap_or(0);
        let bytes = snapshot.memory.bytes_from(range.start()).and_then(|bytes| bytes.get(..size));
        let starts = (range.start().get()..).step_by(PIECE);
        for (piece, start) in bytes.unwrap_or_default().chunks(PIECE).zip(starts) {
            out.section(Kind::Memory, &[&start.to_le_bytes(), piece].concat());
        }
    }
    out.rest(file);
    out.section(Kind::End, &[]);
    Ok(out.0)
}

struct Writer(Vec<u8>);

impl Writer {
    /// Content beyond what a section may have is cut off.
    fn section(&mut self, kind: Kind, content: &[u8]) {
        let content = cut(content, MAX_SECTION);
        let (kind, size) = (kind as u32, u32::try_from(content.len()).unwrap_or(0));
        for field in [kind, size, checksum(kind, size, content)] {
            self.0.extend(field.to_le_bytes());
        }
        self.0.extend(content);
    }

    fn crash(&mut self, file: &CrashFile<'_>) {
        let snapshot = &file.snapshot;
        let Some(fault) = &snapshot.fault else { return };
        let crashed = snapshot.threads.iter().find(|thread| thread.is_crashed).and_then(|thread| thread.id);
        let id = |id: Option<u64>| u32::try_from(id.unwrap_or(0)).unwrap_or(0).to_le_bytes();
        let code = fault.code.as_deref().and_then(|code| signals::code_number(fault.number, code));
        let content = [
            &id(snapshot.process.pid)[..],
            &id(crashed),
            &u32::try_from(fault.number).unwrap_or(0).to_le_bytes(),
            &code.unwrap_or(0).to_le_bytes(),
            &[u8::from(fault.address.is_some())],
            &fault.address.map_or(0, Avma::get).to_le_bytes(),
            &id(fault.sender),
            &snapshot.process.time.unwrap_or(0).to_le_bytes(),
            &file.uptime.unwrap_or(NO_UPTIME).to_le_bytes(),
        ];
        self.section(Kind::Crash, &content.concat());
    }

    fn thread(&mut self, thread: &Thread) {
        let Some(id) = thread.id.and_then(|id| u32::try_from(id).ok()) else { return };
        let mut content = id.to_le_bytes().to_vec();
        content.push(if thread.is_crashed { THREAD_CRASHED } else { 0 });
        short(&mut content, thread.name.as_deref().unwrap_or_default());
        let registers: Vec<_> = thread.registers.iter().take(255).collect();
        let why = thread.state.as_deref().filter(|_| registers.is_empty());
        short(&mut content, why.unwrap_or_default());
        content.push(u8::try_from(registers.len()).unwrap_or(0));
        for (register, value) in registers {
            content.extend(u16::from(register.0).to_le_bytes());
            content.extend(value.to_le_bytes());
        }
        self.section(Kind::Thread, &content);
    }

    fn frames(&mut self, id: u64, frames: &[FrameAddress]) {
        const BYTES: usize = 9;
        let Ok(id) = u32::try_from(id) else { return };
        let frames = frames.get(..(MAX_SECTION - 6) / BYTES).unwrap_or(frames);
        let mut content = id.to_le_bytes().to_vec();
        content.extend(u16::try_from(frames.len()).unwrap_or(0).to_le_bytes());
        for frame in frames {
            content.extend(frame.raw().get().to_le_bytes());
            content.push(if matches!(frame, FrameAddress::Return(_)) { FRAME_RETURNS } else { 0 });
        }
        self.section(Kind::Frames, &content);
    }

    fn ns_exception(&mut self, exception: &NsException) {
        const MOST: usize = MAX_SECTION / 4;
        let mut content = Vec::new();
        for text in [&exception.name, &exception.reason] {
            let text = cut(text.as_bytes(), MOST);
            content.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
            content.extend(text);
        }
        let addresses = exception.thrown_at.get(..MOST / 8).unwrap_or(&exception.thrown_at);
        content.extend(u16::try_from(addresses.len()).unwrap_or(0).to_le_bytes());
        content.extend(addresses.iter().flat_map(|address| address.get().to_le_bytes()));
        self.section(Kind::NsException, &content);
    }

    fn images(&mut self, file: &CrashFile<'_>) {
        for image in &file.snapshot.images {
            let Some(range) = image.range else { continue };
            let bias = image.bias.and_then(|bias| bias.to_avma(Svma::new(0))).unwrap_or(range.start());
            let known = image.id.as_ref().filter(|id| matches!(id, ImageId::BuildId(_) | ImageId::Uuid(_)));
            let id = known.map_or(&[][..], ImageId::as_bytes);
            let program = if image.is_executable { IMAGE_PROGRAM } else { 0 };
            let uuid = if matches!(known, Some(ImageId::Uuid(_))) { IMAGE_UUID } else { 0 };
            let content = [
                &range.start().get().to_le_bytes()[..],
                &range.end().get().to_le_bytes(),
                &bias.get().to_le_bytes(),
                &[program | uuid],
                &[u8::try_from(id.len()).unwrap_or(0)],
                id,
                image.path.as_bytes(),
            ];
            self.section(Kind::Image, &content.concat());
        }
    }

    fn rest(&mut self, file: &CrashFile<'_>) {
        for (key, value) in &file.notes {
            let mut content = Vec::new();
            short(&mut content, key);
            content.extend(value.as_bytes());
            self.section(Kind::Note, &content);
        }
        for (time, text) in &file.breadcrumbs {
            self.section(Kind::Breadcrumb, &[&time.to_le_bytes(), text.as_bytes()].concat());
        }
        for (resource, soft, hard) in &file.limits {
            let content = [&resource.to_le_bytes()[..], &soft.to_le_bytes(), &hard.to_le_bytes()];
            self.section(Kind::Limit, &content.concat());
        }
        for (number, name) in &file.open_files {
            self.section(Kind::OpenFile, &[&number.to_le_bytes(), name.as_bytes()].concat());
        }
        if let Some(count) = file.open_file_count {
            self.section(Kind::OpenFiles, &count.to_le_bytes());
        }
        for note in &file.snapshot.notes {
            self.section(Kind::Missing, note.as_bytes());
        }
    }
}

fn cut(bytes: &[u8], most: usize) -> &[u8] {
    bytes.get(..most).unwrap_or(bytes)
}

/// A text of at most 255 bytes with its size before it.
fn short(to: &mut Vec<u8>, text: &str) {
    let text = cut(text.as_bytes(), 255);
    to.push(u8::try_from(text.len()).unwrap_or(0));
    to.extend(text);
}
