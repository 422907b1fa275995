//! The file that a process's own crash handler wrote (`docs/crash-file.md`).
//!
//! Sections stand one behind the other, each with its size and checksum: what is damaged or cut off loses nothing that stands
//! before it, and a damaged section whose size is believable nothing behind it. Sections that are not known are skipped.

mod fields;
pub mod format;
mod write;

#[cfg(test)]
mod tests;

use crate::mach::Exception;
use crate::{
    Error, ErrorKind, Fault, Limits, MappedImage, Mapping, Memory, Snapshot, Source, Thread, parse_maps,
};
use backtrail_core::{AddrRange, Arch, Avma, Bias, FrameAddress, ImageId, Register, Registers, Svma};
use fields::Fields;
use format::{
    Event, FRAME_RETURNS, HEADER_BYTES, IMAGE_NEWER, IMAGE_PROGRAM, IMAGE_UUID, Kind, MAGIC, MAX_SECTION,
    MessageKind, SECTION_HEADER_BYTES, THREAD_CRASHED, VERSION,
};
use std::borrow::Cow;
pub use write::write;

/// A crash file, read.
#[derive(Clone, Debug)]
pub struct CrashFile<'d> {
    /// Threads, images, memory.
    pub snapshot: Snapshot<'d>,
    /// The frames that the handler found, for threads of the snapshot by id. They count where the saved stack ends early.
    pub walked: Vec<(u64, Vec<FrameAddress>)>,
    /// What libraries and runtimes said before they ended the process.
    pub messages: Vec<(MessageKind, String)>,
    /// The C++ exception that nobody caught: its type as the compiler mangles it, and what it says, which may be empty.
    pub exception: Option<(String, String)>,
    /// What Apple's kernel raised.
    pub mach_exception: Option<Exception>,
    /// The exception of Objective-C that nobody caught.
    pub ns_exception: Option<NsException>,
    /// What happened, where it is no crash.
    pub event: Option<Event>,
    /// The program's notes, key and value, in the order in which it set them first.
    pub notes: Vec<(String, String)>,
    /// The program's breadcrumbs, oldest first: milliseconds since the handler was installed, and a text.
    pub breadcrumbs: Vec<(u64, String)>,
    /// Open files with what they lead to, and how many there were.
    pub open_files: Vec<(u32, String)>,
    /// How many files were open; `None` where the handler could not tell.
    pub open_file_count: Option<u32>,
    /// Limits: the number of the resource (`RLIMIT_…`), soft, hard.
    pub limits: Vec<(u32, u64, u64)>,
    /// Milliseconds since the handler was installed.
    pub uptime: Option<u64>,
    /// Whether the file is whole.
    pub is_whole: bool,
}

/// An exception of Objective-C.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NsException {
    /// Its name: `NSRangeException`.
    pub name: String,
    /// What it says; may be empty.
    pub reason: String,
    /// The return addresses of the stack that threw it, innermost first.
    pub thrown_at: Vec<Avma>,
}

impl<'d> CrashFile<'d> {
    /// One that has a snapshot and nothing else.
    pub fn new(snapshot: Snapshot<'d>) -> Self {
        Self {
            snapshot,
            walked: Vec::new(),
            messages: Vec::new(),
            exception: None,
            mach_exception: None,
            ns_exception: None,
            event: None,
            notes: Vec::new(),
            breadcrumbs: Vec::new(),
            open_files: Vec::new(),
            open_file_count: None,
            limits: Vec::new(),
            uptime: None,
            is_whole: false,
        }
    }

    /// Whether one of Apple's systems had the process.
    pub fn is_apple(&self) -> bool {
        let is_uuid = |image: &MappedImage| matches!(image.id, Some(ImageId::Uuid(_)));
        self.mach_exception.is_some()
            || self.ns_exception.is_some()
            || self.snapshot.images.iter().any(is_uuid)
    }
}

/// Whether these bytes begin like a crash file.
pub fn is_crash_file(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

/// Reads a crash file.
///
/// # Errors
/// For what is none, is of a later version or another processor, and where nothing follows the header.
pub fn read<'d>(data: &'d [u8], limits: &Limits) -> Result<CrashFile<'d>, Error> {
    if !is_crash_file(data) {
        let message = "expected a crash file, which begins with `BTCRASH`";
        return Err(Error::at(ErrorKind::Unrecognized, 0, message));
    }
    let mut header = Fields(data.get(MAGIC.len()..).unwrap_or_default());
    let cut = || Error::at(ErrorKind::Truncated, data.len() as u64, "expected a header of 16 bytes");
    let (version, machine) = (header.u32().ok_or_else(cut)?, header.u32().ok_or_else(cut)?);
    if version != VERSION {
        let message = format!("version {version} of crash files; expected {VERSION}");
        return Err(Error::at(ErrorKind::Unsupported, 8, message));
    }
    let arch = match machine {
        format::EM_X86_64 => Arch::X86_64,
        format::EM_AARCH64 => Arch::Arm64,
        _ => {
            let message = format!("a crash file of machine {machine}; expected x86_64 (62) or aarch64 (183)");
            return Err(Error::at(ErrorKind::Unsupported, 12, message));
        }
    };
    let mut reader = Reader::new(arch, limits);
    reader.sections(data);
    Ok(reader.finish())
}

const fn is(kind: Kind) -> u32 {
    kind as u32
}

struct Reader<'d, 'l> {
    file: CrashFile<'d>,
    limits: &'l Limits,
    crashed: Option<u64>,
    memory: Vec<(Avma, Cow<'d, [u8]>)>,
    maps: Vec<u8>,
    /// Images that take the place of those that they overlap: a library that was unloaded since it was listed.
    newer: Vec<MappedImage>,
}

impl<'d, 'l> Reader<'d, 'l> {
    fn new(arch: Arch, limits: &'l Limits) -> Self {
        let snapshot = Snapshot::new(Source::CrashFile, arch);
        let file = CrashFile::new(snapshot);
        Self { file, limits, crashed: None, memory: Vec::new(), maps: Vec::new(), newer: Vec::new() }
    }

    fn note(&mut self, note: String) {
        if self.file.snapshot.notes.len() < self.limits.notes {
            self.file.snapshot.notes.push(note);
        }
    }

    fn sections(&mut self, data: &'d [u8]) {
        let mut at = HEADER_BYTES;
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            let mut fields = Fields(rest);
            let header = (fields.u32(), fields.u32(), fields.u32());
            let (Some(kind), Some(size), Some(checksum)) = header else { break };
            let size_here = usize::try_from(size).unwrap_or(usize::MAX);
            let Some(content) = fields.bytes(size_here).filter(|_| size_here <= MAX_SECTION) else {
                self.note(format!(
                    "byte {at:#x}: the file ends inside of a section of {size} bytes, or is damaged"
                ));
                return;
            };
            if format::checksum(kind, size, content) != checksum {
                self.note(format!("byte {at:#x}: a section's checksum is wrong; it was left out"));
            } else if self.section(kind, content).is_none() {
                self.note(format!(
                    "byte {at:#x}: a section of kind {kind} is shorter than expected; it was left out"
                ));
            }
            if self.file.is_whole {
                return;
            }
            at = at.saturating_add(SECTION_HEADER_BYTES).saturating_add(size_here);
        }
    }

    /// `None` where the content is too short. What it has beyond what is known was added later.
    fn section(&mut self, kind: u32, content: &'d [u8]) -> Option<()> {
        let mut fields = Fields(content);
        let (file, limits) = (&mut self.file, self.limits);
        match kind {
            kind if kind == is(Kind::End) => file.is_whole = true,
            kind if kind == is(Kind::Crash) => return self.crash(fields),
            kind if kind == is(Kind::Program) => file.snapshot.process.executable = Some(fields.text()),
            kind if kind == is(Kind::System) => file.snapshot.process.os = Some(fields.text()),
            kind if kind == is(Kind::Thread) => return self.thread(fields),
            kind if kind == is(Kind::Frames) => return self.frames(fields),
            kind if kind == is(Kind::Memory) => {
                let start = Avma::new(fields.u64()?);
                if self.memory.len() < limits.mappings {
                    self.memory.push((start, Cow::Borrowed(fields.0)));
                }
            }
            kind if kind == is(Kind::Image) => return self.image(fields),
            kind if kind == is(Kind::Maps) => self.maps.extend(content),
            kind if kind == is(Kind::Note) => {
                let note = (fields.short_text()?, fields.text());
                push(&mut file.notes, note, limits.mappings);
            }
            kind if kind == is(Kind::Breadcrumb) => {
                let breadcrumb = (fields.u64()?, fields.text());
                push(&mut file.breadcrumbs, breadcrumb, limits.mappings);
            }
            kind if kind == is(Kind::Message) => {
                let message = (MessageKind::of(fields.u8()?), fields.text());
                push(&mut file.messages, message, limits.notes);
            }
            kind if kind == is(Kind::Event) => return self.event(fields),
            kind if kind == is(Kind::Limit) => {
                let limit = (fields.u32()?, fields.u64()?, fields.u64()?);
                push(&mut file.limits, limit, limits.notes);
            }
            kind if kind == is(Kind::OpenFile) => {
                let open = (fields.u32()?, fields.text());
                push(&mut file.open_files, open, limits.mappings);
            }
            kind if kind == is(Kind::OpenFiles) => file.open_file_count = Some(fields.u32()?),
            kind if kind == is(Kind::Missing) => {
                let missing = fields.text();
                self.note(missing);
            }
            _ => return self.exception(kind, fields),
        }
        Some(())
    }

    fn exception(&mut self, kind: u32, mut fields: Fields<'d>) -> Option<()> {
        let file = &mut self.file;
        match kind {
            kind if kind == is(Kind::Exception) => {
                let size = fields.u16()?;
                let name = Fields(fields.bytes(size.into())?).text();
                file.exception = Some((name, fields.text()));
            }
            kind if kind == is(Kind::MachException) => {
                let (kind, code, subcode) = (fields.u32()?, fields.u64()?, fields.u64()?);
                let syndrome = fields.u64()?;
                file.mach_exception = Some(Exception { kind, code, subcode, syndrome });
            }
            kind if kind == is(Kind::NsException) => return self.ns_exception(fields),
            _ => {}
        }
        Some(())
    }

    fn crash(&mut self, mut fields: Fields<'d>) -> Option<()> {
        let (pid, thread) = (fields.u32()?, fields.u32()?);
        let (signal, code) = (fields.i32()?, fields.i32()?);
        let (has_address, address, sender) = (fields.u8()?, fields.u64()?, fields.u32()?);
        let (time, uptime) = (fields.u64()?, fields.u64()?);
        let number = u64::from(signal.unsigned_abs());
        self.crashed = Some(thread.into());
        self.file.uptime = Some(uptime).filter(|uptime| *uptime != format::NO_UPTIME);
        let process = &mut self.file.snapshot.process;
        (process.pid, process.time) = (Some(pid.into()), Some(time));
        let address = (has_address != 0).then_some(Avma::new(address));
        let sender = (sender != 0).then_some(sender.into());
        self.file.snapshot.fault = Some(Fault::of_signal(number, code, address, sender));
        Some(())
    }

    fn ns_exception(&mut self, mut fields: Fields<'d>) -> Option<()> {
        let mut text = || {
            let size = fields.u16()?;
            fields.bytes(size.into()).map(|bytes| Fields(bytes).text())
        };
        let (name, reason) = (text()?, text()?);
        let mut thrown_at = Vec::new();
        for _ in 0..fields.u16()? {
            thrown_at.push(Avma::new(fields.u64()?));
        }
        self.file.ns_exception = Some(NsException { name, reason, thrown_at });
        Some(())
    }

    fn event(&mut self, mut fields: Fields<'d>) -> Option<()> {
        let (pid, time) = (fields.u32()?, fields.u64()?);
        let (what, thread, value) = (fields.u8()?, fields.u32()?, fields.u64()?);
        let process = &mut self.file.snapshot.process;
        (process.pid, process.time) = (Some(pid.into()), Some(time));
        self.file.event = match what {
            format::EVENT_HANG => Some(Event::Hang(value)),
            format::EVENT_EXIT => Some(Event::Exit { thread, code: value }),
            _ => None,
        };
        Some(())
    }

    fn thread(&mut self, mut fields: Fields<'d>) -> Option<()> {
        let (id, flags) = (u64::from(fields.u32()?), fields.u8()?);
        let (name, why) = (fields.short_text()?, fields.short_text()?);
        let mut registers = Registers::new(self.file.snapshot.arch.family());
        for _ in 0..fields.u8()? {
            let (number, value) = (fields.u16()?, fields.u64()?);
            // Those of later writers that are not known here.
            if let Ok(number) = u8::try_from(number).map(Register)
                && registers.family().register_name(number).is_some()
            {
                registers.set(number, value);
            }
        }
        if self.file.snapshot.threads.len() >= self.limits.threads {
            return Some(());
        }
        self.file.snapshot.threads.push(Thread {
            id: Some(id),
            name: Some(name).filter(|name| !name.is_empty()),
            registers,
            is_crashed: flags & THREAD_CRASHED != 0,
            state: Some(why).filter(|why| !why.is_empty()),
            thread_pointer: None,
        });
        Some(())
    }

    fn frames(&mut self, mut fields: Fields<'d>) -> Option<()> {
        let id = u64::from(fields.u32()?);
        let mut frames = Vec::new();
        for _ in 0..fields.u16()? {
            let (address, flags) = (Avma::new(fields.u64()?), fields.u8()?);
            frames.push(match flags & FRAME_RETURNS {
                0 => FrameAddress::Exact(address),
                _ => FrameAddress::Return(address),
            });
        }
        push(&mut self.file.walked, (id, frames), self.limits.threads);
        Some(())
    }

    fn image(&mut self, mut fields: Fields<'d>) -> Option<()> {
        let (start, end, bias) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let flags = fields.u8()?;
        let id_size = fields.u8()?;
        let id = fields.bytes(id_size.into())?;
        let id = match <[u8; 16]>::try_from(id) {
            Ok(uuid) if flags & IMAGE_UUID != 0 => Some(ImageId::Uuid(uuid)),
            _ => ImageId::from_build_id(id),
        };
        let image = MappedImage {
            path: fields.text(),
            id,
            range: Some(AddrRange::new(Avma::new(start), Avma::new(end.max(start)))),
            bias: Some(Bias::between(Avma::new(bias), Svma::new(0))),
            is_executable: flags & IMAGE_PROGRAM != 0,
            is_from_memory: true,
            ..MappedImage::default()
        };
        let list = if flags & IMAGE_NEWER == 0 { &mut self.file.snapshot.images } else { &mut self.newer };
        push(list, image, self.limits.images);
        Some(())
    }

    fn finish(mut self) -> CrashFile<'d> {
        self.file.snapshot.memory = Memory::new(self.memory);
        self.file.snapshot.mappings = mappings(&self.maps, self.limits);
        self.file.snapshot.images = with_newer(self.file.snapshot.images, self.newer);
        if let Some(crashed) = self.crashed
            && !self.file.snapshot.threads.iter().any(|thread| thread.is_crashed)
        {
            let note = format!("the file has nothing of thread {crashed}, which crashed");
            self.file.snapshot.notes.push(note);
        }
        if !self.file.is_whole {
            self.file
                .snapshot
                .notes
                .push("the crash file is cut off: what comes later is missing".to_owned());
        }
        self.file
    }
}

/// All images by address: the newer ones, and those that none of them overlaps.
fn with_newer(mut images: Vec<MappedImage>, mut newer: Vec<MappedImage>) -> Vec<MappedImage> {
    let start = |image: &MappedImage| image.range.map(AddrRange::start);
    newer.sort_by_key(start);
    let is_replaced = |image: &MappedImage| {
        let Some(range) = image.range else { return false };
        let before = newer.partition_point(|newer| start(newer) < Some(range.end()));
        let last = before.checked_sub(1).and_then(|at| newer.get(at)?.range);
        last.is_some_and(|last| last.end() > range.start())
    };
    images.retain(|image| !is_replaced(image));
    images.append(&mut newer);
    images.sort_by_key(start);
    images
}

/// The last line may be cut off.
fn mappings(text: &[u8], limits: &Limits) -> Vec<Mapping> {
    let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let mut mappings = parse_maps(text.get(..end).unwrap_or_default(), limits.mappings).0;
    mappings.sort_by_key(|mapping| mapping.range.start());
    mappings
}

fn push<T>(to: &mut Vec<T>, item: T, most: usize) {
    if to.len() < most {
        to.push(item);
    }
}
