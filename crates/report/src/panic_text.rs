//! Kernel panics as text: what the kernel prints, alone or as a string in JSON.
//!
//! The whole text stays a section; what it says of the panic, the stack, the kernel and its extensions goes into the model.
//! Source of the forms: XNU `osfmk/kern/debug.c`, `osfmk/i386/AT386/model_dep.c`, `osfmk/arm64/platform_tests.c`'s neighbours
//! that print `lr:` and `fp:`, and real panics.

use crate::Limits;
use crate::apple_text::hex_value;
use crate::json;
use crate::notes::Notes;
use crate::stack::{Origin, settle, unsettled};
use backtrail_core::{Avma, ImageId};
use backtrail_model::{
    Backtrace, Exception, Field, Frame, Image, Register, Report, ReportedSymbol, Section, Source, Thread,
};

/// The line by which a panic is known.
pub(crate) const PANIC: &str = "panic(cpu ";

/// Whether a text is the kernel's own about a panic.
pub(crate) fn is(text: &str) -> bool {
    text.trim_start().starts_with("panic(")
}

/// The member of Apple's JSON that holds the kernel's text, as people cut it out of there.
pub(crate) const MEMBER: &str = "\"panicString\"";

/// Reads a panic that is all of the input.
pub(crate) fn read(text: &str, limits: &Limits) -> Report {
    let mut report = Report { source: Source::ApplePanic, ..Report::default() };
    let mut notes = Notes::new(limits.max_notes);
    match member(text) {
        Some((before, panic, behind)) => {
            neighbours(&mut report, before);
            neighbours(&mut report, behind);
            add(&mut report, &json::decode(panic.as_bytes()), limits, &mut notes);
            let around = format!("{}\n{}", before.trim_end(), behind.trim());
            if !around.trim().is_empty() {
                let title = "Text around the panic".to_owned();
                report.sections.push(Section { title, text: around.trim_matches('\n').to_owned() });
            }
        }
        None => add(&mut report, text, limits, &mut notes),
    }
    report.notes = notes.finish();
    report
}

/// The kernel's text out of a member of JSON that stands alone: what is before it, it as it is written, what is behind it.
fn member(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(MEMBER)?;
    let (_, panic) = rest.trim_start().strip_prefix(':')?.split_once('"')?;
    // Its lines may be real ones, and words in quotes stand in them: it ends where a line does.
    let ends = panic.match_indices('"').find(|(at, _)| {
        let behind = panic.get(at + 1..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
        let escapes = panic.get(..*at).unwrap_or_default();
        let is_escaped = escapes.len() - escapes.trim_end_matches('\\').len();
        is_escaped % 2 == 0 && (behind.is_empty() || behind.starts_with([',', '}', '\n']))
    });
    let end = ends.map_or(panic.len(), |(at, _)| at);
    Some((before, panic.get(..end)?, panic.get(end + 1..).unwrap_or_default()))
}

/// The members that people leave beside it: `"build" : "iPhone OS 14.7.1 (18G82)",`.
fn neighbours(report: &mut Report, text: &str) {
    for line in text.lines() {
        let Some((name, value)) = line.trim().strip_prefix('"').and_then(|line| line.split_once('"')) else {
            continue;
        };
        let value = value.trim_start().trim_start_matches(':').trim().trim_end_matches(',').trim_matches('"');
        match name {
            "build" | "os_version" => fill(&mut report.os, value),
            "product" => fill(&mut report.device, value),
            "date" | "timestamp" => fill(&mut report.time, value),
            _ => {}
        }
    }
}

/// Adds what a panic's text says to a report.
pub(crate) fn add(report: &mut Report, text: &str, limits: &Limits, notes: &mut Notes) {
    report.sections.push(Section { title: "Panic".to_owned(), text: text.trim_end().to_owned() });
    report.event.get_or_insert_with(|| "kernel panic".to_owned());
    report.process.name.get_or_insert_with(|| "kernel".to_owned());
    let message = message(text);
    if message.is_some() {
        report.exception.get_or_insert_with(Exception::default).message = message;
    }
    let mut reader = Reader {
        report,
        limits,
        notes,
        stacks: Vec::new(),
        registers: Vec::new(),
        frames_left: limits.max_frames,
    };
    let mut previous = "";
    for line in text.lines() {
        if line.len() <= limits.max_line {
            reader.line(line.trim(), previous);
        }
        if !line.trim().is_empty() {
            previous = line.trim();
        }
    }
    reader.finish();
}

/// The panic's words: what stands behind `panic(cpu 0 caller 0x…): `, up to where the stack or a block of lines begins.
fn message(text: &str) -> Option<String> {
    // People leave out what stands in the parentheses.
    let (_, rest) = text.split_once(PANIC).or_else(|| text.trim_start().split_once("panic("))?;
    let (_, rest) = rest.split_once("): ").or_else(|| rest.split_once(") : "))?;
    let end = [
        "\n\n",
        "\nBacktrace",
        "\nDebugger message:",
        "\nPanicked ",
        "\nKernel ",
        "\nMemory ID:",
        "\nOS ",
        "\nCR0:",
        "\n  x0:",
        "\n\t  x0:",
    ];
    let end = end.iter().filter_map(|mark| rest.find(mark)).min().unwrap_or(rest.len());
    let message = rest.get(..end)?.trim();
    (!message.is_empty()).then(|| message.chars().take(MAX_MESSAGE).collect())
}

/// No panic says more in its first lines.
const MAX_MESSAGE: usize = 4000;

struct Reader<'r, 'l> {
    report: &'r mut Report,
    limits: &'l Limits,
    notes: &'r mut Notes,
    stacks: Vec<Backtrace>,
    registers: Vec<Register>,
    frames_left: usize,
}

/// Lines `Key: value` that are worth a field of their own.
const FIELDS: [&str; 15] = [
    "BSD process name corresponding to current thread",
    "Boot args",
    "Kernel slide",
    "Kernel text base",
    "Kernel text exec base",
    "KernelCache base",
    "KernelCache slide",
    "System uptime in nanoseconds",
    "Debugger message",
    "Memory ID",
    "OS release type",
    "OS version",
    "iBoot version",
    "secure boot?",
    "Total cpu_usage",
];

impl Reader<'_, '_> {
    fn line(&mut self, line: &str, previous: &str) {
        let opens = line.starts_with("Backtrace (CPU") || line.starts_with("Backtrace, ");
        if opens || line.starts_with("Panicked thread:") {
            self.open(line);
        } else if let Some(frame) = frame(line) {
            self.frame(frame);
        } else if let Some(image) = kext(line) {
            self.image(image);
        } else {
            self.registers(line);
            self.fact(line, previous);
        }
    }

    fn open(&mut self, title: &str) {
        if self.stacks.len() < self.limits.max_threads {
            let title = title.trim_end_matches(':').to_owned();
            self.stacks.push(Backtrace { title, is_exception: false, frames: Vec::new() });
        }
    }

    fn frame(&mut self, mut frame: Frame) {
        if self.stacks.is_empty() {
            self.open("Backtrace");
        }
        let Some(stack) = self.stacks.last_mut() else { return };
        let Some(left) = self.frames_left.checked_sub(1) else {
            self.notes.add(|| "more frames than the limit allows; the rest is kept as text".to_owned());
            return;
        };
        self.frames_left = left;
        frame.index = u32::try_from(stack.frames.len()).unwrap_or(u32::MAX);
        stack.frames.push(frame);
    }

    fn image(&mut self, image: Image) {
        let images = &mut self.report.process.images;
        let is_known = images.iter().rev().take(64).any(|known| known.id == image.id && image.id.is_some());
        if images.len() < self.limits.max_images && !is_known {
            images.push(image);
        }
    }

    /// `RAX: 0x00000000000000be, RBX: 0x0…`: the state in which the kernel trapped.
    fn registers(&mut self, line: &str) {
        if !self.stacks.is_empty() || self.registers.len() >= 128 || line.starts_with("Memory ID:") {
            return;
        }
        for part in line.split([',', ' ']).filter(|part| !part.is_empty()).collect::<Vec<_>>().windows(2) {
            let [name, value] = part else { continue };
            let Some(name) = name.strip_suffix(':') else { continue };
            let is_plain = (2..=5).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
            let is_register = name.chars().all(|c| !c.is_ascii_lowercase())
                || name.ends_with(|c: char| c.is_ascii_digit())
                || ["fp", "lr", "sp", "pc", "far", "esr", "cpsr"].contains(&name);
            let is_name = is_plain && is_register;
            if let Some(value) = hex_value(value).filter(|_| is_name) {
                self.registers.push(Register { name: name.to_owned(), value, note: None });
            }
        }
    }

    fn fact(&mut self, line: &str, previous: &str) {
        let report = &mut *self.report;
        match previous {
            "Mac OS version:" => fill(&mut report.os, line),
            "Kernel version:" => field(report, "Kernel version", line, self.limits),
            _ => {}
        }
        if line == "*** Panic Report ***" && previous.ends_with(|c: char| c.is_ascii_digit()) {
            fill(&mut report.time, previous);
        }
        // The task's address stands before the colon.
        if let Some(task) = line.strip_prefix("Panicked task ") {
            field(report, "Panicked task", task, self.limits);
        }
        if let Some((key, value)) = line.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
            match key {
                "System model name" => fill(&mut report.device, value),
                "OS version" => fill(&mut report.os, value),
                _ => {}
            }
            if FIELDS.contains(&key) && !value.is_empty() {
                field(report, key, value, self.limits);
            }
            if key == "Kernel UUID" {
                self.kernel(value);
            }
        }
    }

    fn kernel(&mut self, uuid: &str) {
        if let Ok(id) = ImageId::parse_uuid(uuid) {
            let image = Image { name: "kernel".to_owned(), id: Some(id), ..Image::default() };
            self.image(image);
        }
    }

    /// The kernel's place is printed behind its identity. The panicked thread is the crashed one.
    fn finish(self) {
        let report = self.report;
        let stated = |key: &str| {
            let field = report.fields.iter().find(|field| field.key == key)?;
            hex_value(field.value.split_whitespace().next()?)
        };
        let base = stated("Kernel text base");
        let process = &mut report.process;
        if let Some(base) = base
            && let Some(kernel) = process.images.iter_mut().find(|image| image.name == "kernel")
        {
            kernel.load_address = Avma::new(base);
        } else {
            // Without its place an identity names no address.
            process.images.retain(|image| image.name != "kernel");
        }
        let mut stacks = self.stacks.into_iter().filter(|stack| !stack.frames.is_empty());
        if let Some(mut stack) = stacks.next() {
            settle(&mut stack.frames, Origin::Backtrace);
            let thread = Thread {
                crashed: true,
                name: Some(stack.title),
                frames: stack.frames,
                registers: self.registers,
                ..Thread::default()
            };
            process.crashed_thread = Some(process.threads.len());
            process.threads.push(thread);
        }
        for mut stack in stacks {
            settle(&mut stack.frames, Origin::Backtrace);
            process.backtraces.push(stack);
        }
        place(process);
    }
}

/// Frames of extensions lie between the addresses that the panic states; the kernel states no end, so what lies in no
/// extension and at or behind its text base, not far away, is the kernel's.
fn place(process: &mut backtrail_model::Process) {
    /// Larger than any kernel; the kernel collection of extensions begins elsewhere.
    const KERNEL_SIZE: u64 = 256 << 20;
    let kernel = process.images.iter().position(|image| image.name == "kernel");
    process.place_frames();
    let Some(position) = kernel else { return };
    let Some(base) = process.images.get(position).map(|image| image.load_address) else { return };
    for frame in process.frames_mut().filter(|frame| frame.image.is_none()) {
        let address = frame.address.map(backtrail_core::FrameAddress::raw);
        let offset = address.and_then(|address| address.offset_from(base));
        if offset.is_some_and(|offset| offset < KERNEL_SIZE) {
            frame.image = Some(position);
        }
    }
}

fn fill(place: &mut Option<String>, value: &str) {
    if place.is_none() && !value.is_empty() {
        *place = Some(value.to_owned());
    }
}

fn field(report: &mut Report, key: &str, value: &str, limits: &Limits) {
    if report.fields.len() < limits.max_items {
        report.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
    }
}

/// `0xffffff81f8ec3610 : 0xffffff800da6e166 mach_kernel : _panic + 0x54` on x86, `lr: 0xfffffff0… fp: 0xffffffe8…` on ARM.
fn frame(line: &str) -> Option<Frame> {
    let mut frame = Frame::new(0);
    if let Some(rest) = line.strip_prefix("lr:") {
        let address = hex_value(rest.split_whitespace().next()?)?;
        frame.address = Some(unsettled(Avma::new(address)));
        return Some(frame);
    }
    let (pointer, rest) = line.split_once(" : ")?;
    hex_value(pointer.trim())?;
    let (address, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    frame.address = Some(unsettled(Avma::new(hex_value(address)?)));
    if let Some((image, symbol)) = rest.trim().split_once(" : ") {
        frame.image_name = Some(image.to_owned());
        let (name, offset) = symbol.split_once(" + ").unwrap_or((symbol, ""));
        frame.reported = Some(ReportedSymbol {
            name: name.trim().to_owned(),
            offset: hex_value(offset.trim()),
            ..ReportedSymbol::default()
        });
    } else if rest.contains('.') && !rest.trim().contains(' ') {
        // The symbol was cut off.
        frame.image_name = Some(rest.trim().to_owned());
    }
    Some(frame)
}

/// `com.example.driver(1.5.2)[F452C9FD-94A1-366D-BF2F-89BDDDA08364]@0xffffff7f811de000->0xffffff7f8121bfff`.
fn kext(line: &str) -> Option<Image> {
    let (name, rest) = line.trim_start_matches("dependency:").split_once('(')?;
    let (version, rest) = rest.split_once(")[")?;
    let (id, rest) = rest.split_once("]@")?;
    let (low, high) = rest.split_once("->")?;
    let high = hex_value(high.split_whitespace().next()?)?;
    Some(Image {
        name: name.trim().to_owned(),
        bundle_id: Some(name.trim().to_owned()),
        version: Some(version.to_owned()),
        id: ImageId::parse_uuid(id).ok().filter(|id| !id.is_nil()),
        load_address: Avma::new(hex_value(low)?),
        end_address: Some(Avma::new(high.saturating_add(1))),
        ..Image::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x86_panic() {
        let report = read(
            "Mon Jan  1 10:00:00 2024\n\n*** Panic Report ***\n\
             panic(cpu 2 caller 0xffffff8000200100): Kernel trap at 0xffffff8000200020, type 14=page fault, registers:\n\
             CR0: 0x000000008001003b, CR2: 0x0000000000000010\nRAX: 0x00000000000000be, RBX: 0x0000000000000000\n\
             Backtrace (CPU 2), Frame : Return Address\n\
             0xffffff97439cbb10 : 0xffffff8000200100 mach_kernel : _panic + 0x54\n\
             0xffffff97439cbb90 : 0xffffff7f811df000 \n      Kernel Extensions in backtrace:\n\
             \x20        com.example.spl(1.5.2)[F452C9FD-94A1-366D-BF2F-89BDDDA08364]@0xffffff7f811de000->0xffffff7f8121bfff\n\n\
             BSD process name corresponding to current thread: kernel_task\n\nMac OS version:\n23A344\n\n\
             Kernel version:\nDarwin Kernel Version 23.0.0\nKernel UUID: 75CA1C4D-7BF4-321B-B544-D8F1B6D60EF8\n\
             Kernel text base: 0xffffff8000200000\nSystem model name: MacBookPro11,3 (Mac-1)\n",
            &Limits::default(),
        );
        let message = report.exception.as_ref().unwrap().message.as_deref().unwrap();
        assert!(message.starts_with("Kernel trap at") && message.ends_with("registers:"), "{message}");
        assert_eq!(report.os.as_deref(), Some("23A344"));
        assert_eq!(report.device.as_deref(), Some("MacBookPro11,3 (Mac-1)"));
        assert_eq!(report.time.as_deref(), Some("Mon Jan  1 10:00:00 2024"));
        let thread = report.crashed().unwrap();
        assert_eq!(thread.frames.len(), 2);
        let images: Vec<_> = report.process.images.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(images, ["com.example.spl", "kernel"]);
        assert_eq!((thread.frames[0].image, thread.frames[1].image), (Some(1), Some(0)));
        assert_eq!(thread.frames[0].reported.as_ref().unwrap().offset, Some(0x54));
        let registers: Vec<_> = thread.registers.iter().map(|reg| (reg.name.as_str(), reg.value)).collect();
        assert_eq!(registers, [("CR0", 0x8001_003b), ("CR2", 16), ("RAX", 0xbe), ("RBX", 0)]);
    }

    #[test]
    fn an_arm_panic() {
        let text = "panic(cpu 4 caller 0xfffffff01d1c5a58): \"DCP PANIC - apt firmware\" @IOMFB.cpp:12\n\
            Debugger message: panic\nKernel UUID: 75CA1C4D-7BF4-321B-B544-D8F1B6D60EF8\n\
            Kernel text base:  0xfffffff01c004000\nPanicked task 0xffffffe1: 9 pages, 2 threads: pid 0: kernel_task\n\
            Panicked thread: 0xffffffe19b2c8000, backtrace: 0xffffffe5f0a8b350, tid: 391\n\
            \t\t  lr: 0xfffffff01c1e4b10  fp: 0xffffffe5f0a8b3d0\n\t\t  lr: 0xfffffff01c1e4b20  fp: 0x0\n";
        let report = read(text, &Limits::default());
        let thread = report.crashed().unwrap();
        assert_eq!(thread.frames.len(), 2);
        assert!(thread.frames.iter().all(|frame| frame.image == Some(0)));
        assert!(thread.name.as_deref().unwrap().contains("tid: 391"));
        let message = report.exception.as_ref().unwrap().message.as_deref().unwrap();
        assert_eq!(message, "\"DCP PANIC - apt firmware\" @IOMFB.cpp:12");
        let task = report.fields.iter().find(|field| field.key == "Panicked task").unwrap();
        assert_eq!(task.value, "0xffffffe1: 9 pages, 2 threads: pid 0: kernel_task");
        for end in 0..text.len() {
            read(&text[..end], &Limits::default());
        }
    }

    #[test]
    fn a_member_that_was_cut_out_of_its_json() {
        let message = |text: &str| {
            let report = read(text, &Limits::default());
            (report.exception.and_then(|exception| exception.message), report.device, report.sections)
        };
        let text = "Mine says:\n  \"product\" : \"iPhone10,3\",\n  \"panicString\" : \"panic(cpu 1 caller 0x1): \\\"SEP monitor error\\\" \
                    @a.cpp:7\\nDebugger message: panic\\n\",\n  \"panicFlags\" : \"0x2\"\n";
        let (said, device, sections) = message(text);
        assert_eq!(said.as_deref(), Some("\"SEP monitor error\" @a.cpp:7"));
        assert_eq!(device.as_deref(), Some("iPhone10,3"));
        assert!(sections[1].text.contains("Mine says:") && sections[1].text.contains("panicFlags"));
        // With real lines inside, and cut.
        let (said, ..) =
            message("\"panicString\" : \"panic(cpu 1 caller 0x1): initproc exited\nDebugger message: pa");
        assert_eq!(said.as_deref(), Some("initproc exited"));
        let (said, ..) = message("panic(...): SMC PANIC - x\nS.sensor array 0");
        assert_eq!(said.as_deref(), Some("SMC PANIC - x\nS.sensor array 0"));
    }
}
