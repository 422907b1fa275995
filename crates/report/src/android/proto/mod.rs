//! Tombstones as protocol buffers, as Android writes them since its version 12.
//!
//! The schema is `tombstone.proto` of `debuggerd` in AOSP. What a message says goes where the text form's line would go, in
//! that form's words, so that both forms of one crash read alike. Fields that the schema did not have are kept by number.

mod sections;

use super::finish::settle;
use super::header;
use super::images::{ImageTable, frame_of};
use super::native_row::NativeRow;
use crate::Limits;
use crate::notes::Notes;
use crate::protobuf::{Broken, Message, Value, WireField};
use backtrail_core::{Arch, Avma, FrameAddress};
use backtrail_model::{Backtrace, Field, Frame, Process, Register, Report, Source, Thread};

/// Whether these bytes begin as a tombstone does: with an architecture, then the build's fingerprint and more texts, each
/// of which can only be what it is.
pub(crate) fn is_tombstone(head: &[u8]) -> bool {
    let mut has_fingerprint = false;
    for field in Message::new(head).map_while(Result::ok).take(16) {
        let fits = match (field.number, field.value) {
            (1 | 24, Value::Varint(arch)) => arch < 16,
            (2, Value::Bytes(text)) => {
                let text = std::str::from_utf8(text).unwrap_or_default();
                has_fingerprint = text.contains('/') && text.contains(':') && text.len() < 1024;
                has_fingerprint
            }
            (3 | 4 | 8 | 9, Value::Bytes(text)) => std::str::from_utf8(text).is_ok(),
            (5 | 6 | 7 | 20, Value::Varint(number)) => {
                if has_fingerprint && field.number == 5 {
                    return true;
                }
                number <= u64::from(u32::MAX)
            }
            _ => return false,
        };
        if !fits {
            return false;
        }
    }
    false
}

/// Reads the whole input. Never fails: what stands before a broken place is read, and a note says where it is.
pub(crate) fn read(input: &[u8], limits: &Limits) -> Report {
    let mut reader = Reader {
        limits,
        report: Report { source: Source::AndroidTombstone, ..Report::default() },
        notes: Notes::new(limits.max_notes),
        images: ImageTable::default(),
        frames_left: limits.max_frames,
        items_left: limits.max_items,
        signal: None,
        command_line: Vec::new(),
        maps: Vec::new(),
        files: Vec::new(),
    };
    for field in Message::new(input) {
        match field {
            Ok(field) => reader.field(&field),
            Err(broken) => reader.broken("the tombstone", broken),
        }
    }
    reader.finish()
}

struct Reader<'l> {
    limits: &'l Limits,
    report: Report,
    notes: Notes,
    images: ImageTable,
    frames_left: usize,
    items_left: usize,
    /// The thread that the signal was for.
    signal: Option<u64>,
    command_line: Vec<String>,
    /// Rows of the memory map and of the open files.
    maps: Vec<String>,
    files: Vec<String>,
}

fn text(value: Value<'_>) -> Option<String> {
    value.bytes().map(|bytes| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned())
}

/// A number of a type that has a sign: negative ones are written as if they had 64 bits.
fn signed(number: u64) -> i64 {
    i64::from_ne_bytes(number.to_ne_bytes())
}

fn arch(number: u64) -> Option<Arch> {
    [Arch::Arm, Arch::Arm64, Arch::X86, Arch::X86_64, Arch::Riscv64]
        .get(usize::try_from(number).ok()?)
        .copied()
}

impl Reader<'_> {
    fn broken(&mut self, what: &str, broken: Broken) {
        let note = format!(
            "the report is cut or broken: {what} at its byte {}: expected {}; what stands before it is read",
            broken.offset, broken.expected
        );
        self.notes.add(|| note);
    }

    /// Keeps what the schema does not have.
    fn unknown(&mut self, message: &str, field: &WireField<'_>) {
        if self.items_left == 0 {
            return;
        }
        self.items_left -= 1;
        let key = format!("{message} field {}", field.number);
        let value = match field.value {
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains(|c: char| c.is_control() && c != '\n' && c != '\0') => {
                    text.to_owned()
                }
                _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            },
            other => other.number().unwrap_or_default().to_string(),
        };
        self.notes.add(|| format!("{key} is not known to backtrail; its value is among the fields"));
        header::field(&mut self.report, &key, value.trim_end_matches('\0'));
    }

    fn set(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            header::set(&mut self.report, key, &value);
        }
    }

    fn field(&mut self, field: &WireField<'_>) {
        let number = field.value.number();
        match (field.number, field.value) {
            (1, Value::Varint(value)) => {
                self.report.process.arch = arch(value);
                match self.report.process.arch {
                    None => self.unknown("tombstone", field),
                    // As the text form spells it.
                    Some(Arch::X86) => header::field(&mut self.report, "ABI", "'x86'"),
                    Some(_) => {}
                }
            }
            // 5 says that there is no guest.
            (24, Value::Varint(5)) => {}
            (24, Value::Varint(value)) => {
                let name = arch(value).map_or("unknown", Arch::name);
                header::field(&mut self.report, "Guest architecture", name);
                self.report.process.translated = true;
            }
            (2, value) => self.set("Build fingerprint", text(value).map(|text| format!("'{text}'"))),
            (3, value) => self.set("Revision", text(value).map(|text| format!("'{text}'"))),
            (4, value) => self.set("Timestamp", text(value)),
            (5, Value::Varint(pid)) => self.report.process.pid = Some(pid),
            (6, Value::Varint(tid)) => self.signal = Some(tid),
            (7, _) => self.set("uid", number.map(|uid| uid.to_string())),
            (8, value) => self.set("selinux label", text(value)),
            (9, value) => self.command_line.extend(text(value)),
            (10, Value::Bytes(bytes)) => self.signal(bytes),
            (14, value) => self.set("Abort message", text(value)),
            (15, Value::Bytes(bytes)) => self.cause(bytes),
            (16 | 25, Value::Bytes(bytes)) => self.thread_entry(bytes, field.number == 25),
            (17, Value::Bytes(bytes)) if self.maps.len() < self.limits.max_items => {
                let row = sections::mapping(self, bytes);
                self.maps.push(row);
            }
            (18, Value::Bytes(bytes)) => sections::log(self, bytes),
            (19, Value::Bytes(bytes)) if self.files.len() < self.limits.max_items => {
                let row = sections::open_file(self, bytes);
                self.files.push(row);
            }
            (20, _) => self.set("Process uptime", number.map(|seconds| format!("{seconds}s"))),
            (21, Value::Bytes(bytes)) => self.crash_detail(bytes),
            (22, _) => self.set("Page size", number.map(|size| format!("{size} bytes"))),
            (23, _) => self.set("Has been in 16 KB mode", number.map(|yes| (yes != 0).to_string())),
            _ => self.unknown("tombstone", field),
        }
    }

    /// The fields of a message within; broken ones are noted.
    fn fields<'d>(&mut self, what: &str, bytes: &'d [u8]) -> Vec<WireField<'d>> {
        let mut fields = Vec::new();
        for field in Message::new(bytes) {
            match field {
                Ok(field) => fields.push(field),
                Err(broken) => self.broken(what, broken),
            }
        }
        fields
    }

    fn signal(&mut self, bytes: &[u8]) {
        let (mut number, mut name, mut code, mut code_name) = (0, String::new(), 0, String::new());
        let (mut sender, mut has_sender, mut address, mut has_address) = ((0, 0), false, 0, false);
        for field in self.fields("the signal", bytes) {
            match (field.number, field.value) {
                (1, Value::Varint(value)) => number = signed(value),
                (2, value) => name = text(value).unwrap_or_default(),
                (3, Value::Varint(value)) => code = signed(value),
                (4, value) => code_name = text(value).unwrap_or_default(),
                (5, Value::Varint(value)) => has_sender = value != 0,
                (6, Value::Varint(value)) => sender.1 = signed(value),
                (7, Value::Varint(value)) => sender.0 = signed(value),
                (8, Value::Varint(value)) => has_address = value != 0,
                (9, Value::Varint(value)) => address = value,
                (10, Value::Bytes(bytes)) => {
                    sections::memory(self, bytes, Some("memory near fault address"), None);
                }
                _ => self.unknown("signal", &field),
            }
        }
        let digits = usize::from(self.report.process.arch.map_or(8, Arch::pointer_size)) * 2;
        let sent =
            if has_sender { format!(" from pid {}, uid {}", sender.0, sender.1) } else { String::new() };
        let place = if has_address { format!("0x{address:0digits$x}") } else { "--------".to_owned() };
        let codes = format!("code {code} ({code_name}{sent}), fault addr {place}");
        let stated = has_address.then_some(address);
        let message = self.report.exception.take().and_then(|known| known.message);
        let exception = header::exception(&number.to_string(), &name, &codes, stated);
        self.report.exception = Some(backtrail_model::Exception { message, ..exception });
    }

    fn cause(&mut self, bytes: &[u8]) {
        for field in self.fields("a cause", bytes) {
            match (field.number, field.value) {
                (1, value) => self.set("Cause", text(value)),
                (2, Value::Bytes(bytes)) => self.memory_error(bytes),
                _ => self.unknown("cause", &field),
            }
        }
    }

    fn memory_error(&mut self, bytes: &[u8]) {
        const TOOLS: [&str; 2] = ["GWP-ASan", "scudo"];
        const TYPES: [&str; 6] = [
            "unknown",
            "use after free",
            "double free",
            "invalid free",
            "buffer overflow",
            "buffer underflow",
        ];
        let name = |names: &[&str], number: u64| {
            let known = usize::try_from(number).ok().and_then(|number| names.get(number).copied());
            known.map_or_else(|| number.to_string(), str::to_owned)
        };
        for field in self.fields("a memory error", bytes) {
            match (field.number, field.value) {
                (1, Value::Varint(tool)) => header::field(&mut self.report, "Found by", &name(&TOOLS, tool)),
                (2, Value::Varint(kind)) => {
                    header::field(&mut self.report, "Memory error", &name(&TYPES, kind));
                }
                (3, Value::Bytes(bytes)) => self.heap_object(bytes),
                _ => self.unknown("memory error", &field),
            }
        }
    }

    fn heap_object(&mut self, bytes: &[u8]) {
        let (mut allocated, mut freed) = (Backtrace::default(), Backtrace::default());
        let (mut by, mut freed_by, mut address, mut size) = (None, None, 0, 0);
        for field in self.fields("a heap object", bytes) {
            match (field.number, field.value) {
                (1, Value::Varint(value)) => address = value,
                (2, Value::Varint(value)) => size = value,
                (3, Value::Varint(value)) => by = Some(value),
                (5, Value::Varint(value)) => freed_by = Some(value),
                (4, Value::Bytes(bytes)) => self.frame(bytes, &mut allocated.frames),
                (6, Value::Bytes(bytes)) => self.frame(bytes, &mut freed.frames),
                _ => self.unknown("heap object", &field),
            }
        }
        header::field(&mut self.report, "Heap object", &format!("{size} bytes at {address:#x}"));
        for (mut backtrace, thread, what) in [(freed, freed_by, "deallocated"), (allocated, by, "allocated")]
        {
            if thread.is_some() || !backtrace.frames.is_empty() {
                backtrace.title = format!("{what} by thread {}", thread.unwrap_or_default());
                self.report.process.backtraces.push(backtrace);
            }
        }
    }

    fn crash_detail(&mut self, bytes: &[u8]) {
        let (mut name, mut data) = (String::new(), String::new());
        for field in self.fields("a crash detail", bytes) {
            match (field.number, field.value) {
                (1, value) => name = text(value).unwrap_or_default(),
                (2, value) => data = text(value).unwrap_or_default(),
                _ => self.unknown("crash detail", &field),
            }
        }
        header::field(&mut self.report, &name, &data);
    }

    /// An entry of the map of threads.
    fn thread_entry(&mut self, bytes: &[u8], is_guest: bool) {
        if self.report.process.threads.len() >= self.limits.max_threads {
            return self.notes.add(|| "there are more threads than are read".to_owned());
        }
        let mut thread = Thread::default();
        for field in self.fields("an entry of the threads", bytes) {
            match (field.number, field.value) {
                (1, Value::Varint(tid)) => thread.id = Some(tid),
                (2, Value::Bytes(bytes)) => self.thread(bytes, &mut thread),
                _ => self.unknown("thread entry", &field),
            }
        }
        if is_guest {
            thread.fields.push(Field { key: "guest".to_owned(), value: "true".to_owned() });
        }
        self.report.process.threads.push(thread);
    }

    fn thread(&mut self, bytes: &[u8], thread: &mut Thread) {
        let add = |thread: &mut Thread, key: &str, value: String| {
            thread.fields.push(Field { key: key.to_owned(), value });
        };
        for field in self.fields("a thread", bytes) {
            match (field.number, field.value) {
                (1, Value::Varint(id)) => thread.id = Some(id),
                (2, value) => thread.name = text(value).filter(|name| !name.is_empty()),
                (3, Value::Bytes(bytes)) => self.register(bytes, thread),
                (4, Value::Bytes(bytes)) => self.frame(bytes, &mut thread.frames),
                (5, Value::Bytes(bytes)) => {
                    sections::memory(self, bytes, None, thread.id.filter(|id| Some(*id) != self.signal));
                }
                (6, Value::Varint(value)) => {
                    add(thread, "tagged_addr_ctrl", sections::tagged_address_control(value));
                }
                // -1 says that the processor has none.
                (8, Value::Varint(u64::MAX)) => {}
                (8, Value::Varint(value)) => add(thread, "pac_enabled_keys", sections::enabled_keys(value)),
                (7, value) => add(thread, "", format!("NOTE: {}", text(value).unwrap_or_default())),
                (9, value) => add(thread, "unreadable ELF file", text(value).unwrap_or_default()),
                _ => self.unknown("thread", &field),
            }
        }
    }

    fn register(&mut self, bytes: &[u8], thread: &mut Thread) {
        let mut register = Register { name: String::new(), value: 0, note: None };
        for field in self.fields("a register", bytes) {
            match (field.number, field.value) {
                (1, value) => register.name = text(value).unwrap_or_default(),
                (2, Value::Varint(value)) => register.value = value,
                _ => self.unknown("register", &field),
            }
        }
        if thread.registers.len() < self.limits.max_items.min(1024) {
            thread.registers.push(register);
        }
    }

    fn frame(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) {
        if self.frames_left == 0 {
            return self.notes.add(|| "there are more frames than are read".to_owned());
        }
        self.frames_left -= 1;
        let index = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let (mut row, mut pc, mut sp, mut offset) = (NativeRow { index, ..NativeRow::default() }, 0, 0, None);
        let (mut function, mut file, mut id) = (None, None, None);
        for field in self.fields("a frame", bytes) {
            match (field.number, field.value) {
                (1, Value::Varint(value)) => row.pc = value,
                (2, Value::Varint(value)) => pc = value,
                (3, Value::Varint(value)) => sp = value,
                (4, value) => function = text(value).filter(|name| !name.is_empty()),
                (5, Value::Varint(value)) => offset = Some(value),
                (6, value) => file = text(value),
                (7, Value::Varint(value)) => row.file_offset = Some(value).filter(|value| *value != 0),
                (8, value) => id = text(value).filter(|id| !id.is_empty()),
                _ => self.unknown("frame", &field),
            }
        }
        let mut row = NativeRow { file: file.as_deref().unwrap_or_default(), build_id: id.as_deref(), ..row };
        row.function = function.as_deref();
        row.function_offset = function.as_ref().map(|_| offset.unwrap_or_default());
        let image = self.images.of_row(&row, &mut self.report.process.images, self.limits.max_images);
        let mut frame = frame_of(&row, image);
        // The unwinder moved it back into the call already.
        frame.address = Some(pc).filter(|pc| *pc != 0).map(|pc| FrameAddress::Exact(Avma::new(pc)));
        frame.stack_pointer = Some(sp).filter(|sp| *sp != 0).map(Avma::new);
        frames.push(frame);
    }

    fn finish(mut self) -> Report {
        if !self.command_line.is_empty() {
            header::set(&mut self.report, "Cmdline", &self.command_line.join(" "));
        }
        for (title, rows) in
            [("memory map", std::mem::take(&mut self.maps)), ("open files", std::mem::take(&mut self.files))]
        {
            if !rows.is_empty() {
                let title = if title == "memory map" {
                    format!("{title} ({} entries)", rows.len())
                } else {
                    title.to_owned()
                };
                sections::push(&mut self, &title, rows.join("\n"));
            }
        }
        let mut report = self.report;
        // The default of the architecture is not written.
        report.process.arch = report.process.arch.or(Some(Arch::Arm));
        // The text form has the thread that crashed first.
        let threads = &mut report.process.threads;
        if let Some(at) = threads.iter().position(|thread| thread.id.is_some() && thread.id == self.signal) {
            threads.get_mut(..=at).unwrap_or_default().rotate_right(1);
            let is_signal = report.exception.is_some();
            if let Some(thread) = threads.first_mut() {
                thread.crashed = is_signal;
            }
            report.process.crashed_thread = is_signal.then_some(0);
        }
        for (number, thread) in threads.iter_mut().enumerate() {
            thread.number = number as u64;
        }
        report.notes = self.notes.finish();
        order_images(&mut report.process);
        settle(&mut report);
        report
    }
}

/// Puts images into the order in which the threads' frames name them, which is that of the text form.
fn order_images(process: &mut Process) {
    let mut places = vec![None; process.images.len()];
    let mut next = 0;
    for image in process.frames_mut().filter_map(|frame| frame.image.as_mut()) {
        let Some(place) = places.get_mut(*image) else { continue };
        *image = *place.get_or_insert_with(|| {
            next += 1;
            next - 1
        });
    }
    let mut images: Vec<_> = std::mem::take(&mut process.images).into_iter().zip(places).collect();
    images.sort_by_key(|(_, place)| place.unwrap_or(usize::MAX));
    process.images = images.into_iter().map(|(image, _)| image).collect();
}
