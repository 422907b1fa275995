//! PLCrashReporter's binary reports: a header, then a protobuf message (`crash_report.proto` of that project).

#[cfg(test)]
mod tests;

use crate::leftovers::fill;
use crate::members::{end_address, file_name, mach_arch, note_thrown};
use crate::notes::{Notes, cut};
use crate::protobuf::{Message, Value};
use crate::stack::{Origin, settle, unsettled};
use crate::text::hex;
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma, ImageId, Utc};
use backtrail_model::{
    Backtrace, Exception, Field, Frame, Image, Register, Report, ReportedSymbol, Source, Thread,
    ThrowingRuntime, ThrownException,
};

const MAGIC: &[u8] = b"plcrash";
/// The magic, and one byte of the format's version.
const HEADER: usize = 8;

/// Whether bytes begin as such a report does.
pub(crate) fn is_plcrash(input: &[u8]) -> bool {
    input.starts_with(MAGIC)
}

pub(crate) fn read(input: &[u8], limits: &Limits) -> Result<Report, Error> {
    let version = input.get(MAGIC.len()).copied();
    let Some(message) = input.get(HEADER..).filter(|_| version == Some(1)) else {
        let found =
            version.map_or_else(|| "the end of the file".to_owned(), |version| format!("version {version}"));
        let message = format!("expected PLCrashReporter's format of version 1, found {found}");
        return Err(Error::new(ErrorKind::Malformed, message).at(input, MAGIC.len()));
    };
    let mut reader = Reader {
        limits,
        report: Report { source: Source::PlCrash, ..Report::default() },
        notes: Notes::new(limits.max_notes),
        frames_left: limits.max_frames,
        broken: None,
        parts: Parts::default(),
    };
    reader.read(message);
    Ok(reader.finish())
}

/// What is put together at the end.
#[derive(Default)]
struct Parts {
    system: Option<u64>,
    version: Option<String>,
    build: Option<String>,
    app_version: Option<String>,
    marketing_version: Option<String>,
    parent_name: Option<String>,
    parent_id: Option<u64>,
    thrown_name: Option<String>,
    thrown_reason: Option<String>,
}

struct Reader<'l> {
    limits: &'l Limits,
    report: Report,
    notes: Notes,
    frames_left: usize,
    /// Where the input is broken first: bytes from its start, and what was expected.
    broken: Option<(usize, &'static str)>,
    parts: Parts,
}

/// Operating systems by number.
const SYSTEMS: [&str; 5] = ["Mac OS X", "iPhone OS", "Mac OS X (iOS simulator)", "unknown", "Apple TVOS"];

impl Reader<'_> {
    fn read(&mut self, message: &[u8]) {
        self.each(message, HEADER, "", |reader, number, value, at| match (number, value) {
            (1, Value::Bytes(bytes)) => reader.system(bytes, at),
            (2, Value::Bytes(bytes)) => reader.application(bytes, at),
            (3, Value::Bytes(bytes)) => reader.thread(bytes, at),
            (4, Value::Bytes(bytes)) => reader.image(bytes, at),
            (5, Value::Bytes(bytes)) => reader.exception(bytes, at),
            (6, Value::Bytes(bytes)) => reader.signal(bytes, at),
            (7, Value::Bytes(bytes)) => reader.process(bytes, at),
            (8, Value::Bytes(bytes)) => reader.machine(bytes, at),
            (9, Value::Bytes(bytes)) => reader.report_info(bytes, at),
            (10, Value::Bytes(bytes)) => {
                let text = std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), str::to_owned);
                let title = "Custom data".to_owned();
                reader.report.sections.push(backtrail_model::Section { title, text });
                true
            }
            _ => false,
        });
    }

    /// Goes through the fields of a message that begins at `at` of the input; those that `take` does not take are kept
    /// under their number.
    fn each(
        &mut self,
        message: &[u8],
        at: usize,
        path: &str,
        mut take: impl FnMut(&mut Self, u32, Value<'_>, usize) -> bool,
    ) -> bool {
        for field in Message::new(message) {
            match field {
                Ok(field) => {
                    let offset = at.saturating_add(field.offset);
                    if !take(self, field.number, field.value, offset) {
                        self.keep(&format!("{path}{}", field.number), field.value);
                    }
                }
                Err(broken) => {
                    let place = at.saturating_add(broken.offset);
                    self.broken.get_or_insert((place, broken.expected));
                }
            }
        }
        true
    }

    /// Keeps what the model has no place for.
    fn keep(&mut self, key: &str, value: Value<'_>) {
        if self.report.fields.len() >= self.limits.max_items {
            return;
        }
        let value = match value {
            Value::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control));
                text.map_or_else(|| hex(bytes), str::to_owned)
            }
            other => other.number().unwrap_or_default().to_string(),
        };
        self.report.fields.push(Field { key: key.trim_start_matches('.').to_owned(), value });
    }

    fn field(&mut self, key: &str, value: Option<String>) -> bool {
        let stated = value.is_some();
        self.report.fields.extend(value.map(|value| Field { key: key.to_owned(), value }));
        stated
    }

    fn system(&mut self, message: &[u8], at: usize) -> bool {
        self.each(message, at, "system_info.", |reader, number, value, _| match number {
            1 => fill(&mut reader.parts.system, value.number()),
            2 => fill(&mut reader.parts.version, value.text()),
            // The same is said by the machine's processor, if the writer is not of the oldest.
            3 => reader.field("Architecture", value.number().map(|number| number.to_string())),
            4 => fill(&mut reader.report.time, value.number().map(time)),
            5 => fill(&mut reader.parts.build, value.text()),
            _ => false,
        })
    }

    fn application(&mut self, message: &[u8], at: usize) -> bool {
        self.each(message, at, "application_info.", |reader, number, value, _| match number {
            1 => fill(&mut reader.report.process.identifier, value.text()),
            2 => fill(&mut reader.parts.app_version, value.text()),
            3 => fill(&mut reader.parts.marketing_version, value.text()),
            _ => false,
        })
    }

    fn process(&mut self, message: &[u8], at: usize) -> bool {
        self.each(message, at, "process_info.", |reader, number, value, _| {
            let process = &mut reader.report.process;
            match number {
                1 => fill(&mut process.name, value.text()),
                2 => fill(&mut process.pid, value.number()),
                3 => fill(&mut process.path, value.text()),
                4 => fill(&mut reader.parts.parent_name, value.text()),
                5 => fill(&mut reader.parts.parent_id, value.number()),
                6 => {
                    process.translated = value.number() == Some(0);
                    value.number().is_some()
                }
                7 => reader.field("Launch Time", value.number().map(time)),
                _ => false,
            }
        })
    }

    fn machine(&mut self, message: &[u8], at: usize) -> bool {
        self.each(message, at, "machine_info.", |reader, number, value, at| match (number, value) {
            (1, value) => fill(&mut reader.report.device, value.text()),
            (2, Value::Bytes(bytes)) => {
                let arch = reader.processor(bytes, at, "machine_info.processor.");
                let stated = arch.map(|arch| arch.name().to_owned());
                reader.field("Processor", stated)
            }
            (3, value) => reader.field("Processors", value.number().map(|count| count.to_string())),
            (4, value) => reader.field("Logical processors", value.number().map(|count| count.to_string())),
            _ => false,
        })
    }

    fn processor(&mut self, message: &[u8], at: usize, path: &str) -> Option<Arch> {
        let (mut encoding, mut kind, mut subtype) = (None, None, None);
        self.each(message, at, path, |_, number, value, _| match number {
            1 => fill(&mut encoding, value.number()),
            2 => fill(&mut kind, value.number()),
            3 => fill(&mut subtype, value.number()),
            _ => false,
        });
        // 1: Mach's numbers; 0 is "unknown".
        mach_arch(kind.filter(|_| encoding == Some(1))?, subtype.unwrap_or_default())
    }

    fn report_info(&mut self, message: &[u8], at: usize) -> bool {
        self.each(message, at, "report_info.", |reader, number, value, _| match number {
            1 => reader.field("User requested", value.number().map(|flag| (flag != 0).to_string())),
            2 => {
                let id = value.bytes().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
                fill(&mut reader.report.incident, id.map(|id| ImageId::Uuid(id).to_string()))
            }
            _ => false,
        })
    }

    fn signal(&mut self, message: &[u8], at: usize) -> bool {
        let (mut name, mut code, mut address) = (None, None, None);
        let (mut kind, mut codes) = (None, Vec::new());
        self.each(message, at, "signal.", |reader, number, value, at| match (number, value) {
            (1, value) => fill(&mut name, value.text()),
            (2, value) => fill(&mut code, value.text()),
            (3, value) => fill(&mut address, value.number()),
            (4, Value::Bytes(bytes)) => {
                reader.each(bytes, at, "signal.mach_exception.", |_, number, value, _| {
                    match (number, value) {
                        (1, value) => fill(&mut kind, value.number()),
                        (2, Value::Bytes(packed)) => {
                            codes.extend(Varints(packed));
                            true
                        }
                        (2, value) => {
                            codes.extend(value.number());
                            true
                        }
                        _ => false,
                    }
                })
            }
            _ => false,
        });
        let at = address.map(|address| format!("{address:#x}"));
        let stated = [code, at].into_iter().flatten().collect::<Vec<_>>().join(" at ");
        let is_access = matches!(name.as_deref(), Some("SIGSEGV" | "SIGBUS"));
        let exception = Exception {
            kind: kind.map(crate::numbers::exception_name),
            codes: (!stated.is_empty()).then_some(stated),
            raw_codes: codes,
            address: address.filter(|_| is_access).map(Avma::new),
            signal: name,
            ..Exception::default()
        };
        self.report.exception = Some(exception);
        true
    }

    fn exception(&mut self, message: &[u8], at: usize) -> bool {
        let mut frames = Vec::new();
        self.each(message, at, "exception.", |reader, number, value, at| match (number, value) {
            (1, value) => fill(&mut reader.parts.thrown_name, value.text()),
            (2, value) => fill(&mut reader.parts.thrown_reason, value.text()),
            (3, Value::Bytes(bytes)) => reader.frame(bytes, at, &mut frames),
            _ => false,
        });
        settle(&mut frames, Origin::Backtrace);
        let title = "Last Exception Backtrace".to_owned();
        self.report.process.backtraces.push(Backtrace { title, is_exception: true, frames });
        true
    }

    fn thread(&mut self, message: &[u8], at: usize) -> bool {
        let position = self.report.process.threads.len();
        if position >= self.limits.max_threads {
            self.notes.add(|| "more threads than the limit allows; the rest is not read".to_owned());
            return true;
        }
        let (mut thread, mut frames, mut number) = (Thread::default(), Vec::new(), None);
        self.each(message, at, &format!("threads[{position}]."), |reader, field, value, at| {
            match (field, value) {
                (1, value) => fill(&mut number, value.number()),
                (2, Value::Bytes(bytes)) => reader.frame(bytes, at, &mut frames),
                (3, value) => {
                    thread.crashed = value.number() == Some(1);
                    value.number().is_some()
                }
                (4, Value::Bytes(bytes)) => reader.register(bytes, at, &mut thread.registers),
                _ => false,
            }
        });
        thread.number = number.unwrap_or(position as u64);
        settle(&mut frames, Origin::Thread);
        thread.frames = frames;
        self.report.process.threads.push(thread);
        true
    }

    fn register(&mut self, message: &[u8], at: usize, registers: &mut Vec<Register>) -> bool {
        let (mut name, mut value) = (None, None);
        self.each(message, at, "registers.", |_, number, field, _| match number {
            1 => fill(&mut name, field.text()),
            2 => fill(&mut value, field.number()),
            _ => false,
        });
        if registers.len() < self.limits.max_items {
            registers.push(Register {
                name: name.unwrap_or_default(),
                value: value.unwrap_or_default(),
                note: None,
            });
        }
        true
    }

    fn frame(&mut self, message: &[u8], at: usize, frames: &mut Vec<Frame>) -> bool {
        let Some(left) = self.frames_left.checked_sub(1) else {
            self.notes.add(|| "more frames than the limit allows; the rest is not read".to_owned());
            return true;
        };
        self.frames_left = left;
        let mut frame = Frame::new(u32::try_from(frames.len()).unwrap_or(u32::MAX));
        let (mut name, mut start, mut end) = (None, None, None);
        self.each(message, at, "frames.", |reader, number, value, at| match (number, value) {
            (3, value) => fill(&mut frame.address, value.number().map(Avma::new).map(unsettled)),
            (6, Value::Bytes(bytes)) => {
                reader.each(bytes, at, "frames.symbol.", |_, number, value, _| match number {
                    1 => fill(&mut name, value.text()),
                    2 => fill(&mut start, value.number()),
                    3 => fill(&mut end, value.number()),
                    _ => false,
                })
            }
            _ => false,
        });
        let address = frame.address.map(|address| address.raw().get());
        let offset = address.zip(start).and_then(|(address, start)| address.checked_sub(start));
        // Mach-O's names have an underscore that C's do not.
        let name = name.map(|name| name.strip_prefix('_').map_or(name.clone(), str::to_owned));
        frame.reported = name.map(|name| ReportedSymbol { name, offset, ..ReportedSymbol::default() });
        frames.push(frame);
        true
    }

    fn image(&mut self, message: &[u8], at: usize) -> bool {
        let position = self.report.process.images.len();
        if position >= self.limits.max_images {
            self.notes.add(|| "more images than the limit allows; the rest is not read".to_owned());
            return true;
        }
        let (mut image, mut base, mut size) = (Image::default(), None, None);
        self.each(message, at, &format!("binary_images[{position}]."), |reader, number, value, at| {
            match (number, value) {
                (1, value) => fill(&mut base, value.number()),
                (2, value) => fill(&mut size, value.number()),
                (3, value) => fill(&mut image.path, value.text()),
                (4, Value::Bytes(bytes)) => {
                    let id = <[u8; 16]>::try_from(bytes).ok().map(ImageId::Uuid);
                    fill(&mut image.id, id.filter(|id| !id.is_nil()))
                }
                (5, Value::Bytes(bytes)) => {
                    image.arch = reader.processor(bytes, at, "binary_images.code_type.");
                    true
                }
                _ => false,
            }
        });
        image.name = image.path.as_deref().map(file_name).unwrap_or_default().to_owned();
        image.load_address = Avma::new(base.unwrap_or_default());
        image.end_address = end_address(base.unwrap_or_default(), size);
        self.report.process.images.push(image);
        true
    }

    fn finish(mut self) -> Report {
        let parts = std::mem::take(&mut self.parts);
        let report = &mut self.report;
        let system = parts.system.and_then(|number| SYSTEMS.get(usize::try_from(number).ok()?));
        let build = parts.build.map(|build| format!("({build})"));
        report.os = join([system.map(|name| (*name).to_owned()), parts.version, build]);
        report.process.version = match (parts.marketing_version, parts.app_version) {
            (Some(marketing), Some(version)) => Some(format!("{marketing} ({version})")),
            (marketing, version) => marketing.or(version),
        };
        let id = parts.parent_id.map(|id| format!("[{id}]"));
        report.process.parent = join([parts.parent_name, id, None]);
        let path = report.process.path.as_deref();
        let images = &report.process.images;
        let own = images.iter().find(|image| path.is_some() && image.path.as_deref() == path);
        report.process.arch = own.or(images.first()).and_then(|image| image.arch);
        report.process.crashed_thread = report.process.threads.iter().position(|thread| thread.crashed);
        if let Some(name) = &parts.thrown_name {
            let thrown = ThrownException {
                runtime: ThrowingRuntime::ObjectiveC,
                name: name.clone(),
                reason: parts.thrown_reason.clone(),
                is_handled: false,
            };
            note_thrown(report, thrown);
        }
        report.process.place_frames();
        let mut report = self.report;
        report.notes = self.notes.finish();
        if let Some((offset, expected)) = self.broken {
            let why = format!("at byte {offset}: expected {expected}");
            report.notes.insert(0, cut(&why));
        }
        report
    }
}

/// The numbers that are packed into a field.
struct Varints<'d>(&'d [u8]);

impl Iterator for Varints<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let length = self.0.iter().position(|byte| byte & 0x80 == 0)? + 1;
        let (number, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let digits = number
            .iter()
            .rev()
            .fold(0_u128, |value, byte| value << 7 & u128::from(u64::MAX) | u128::from(byte & 0x7f));
        u64::try_from(digits).ok()
    }
}

fn join(parts: [Option<String>; 3]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Seconds since 1970 as Apple's reports print a time.
fn time(seconds: u64) -> String {
    let Utc { year, month, day, hour, minute, second } =
        Utc::from_unix(i64::try_from(seconds).unwrap_or(i64::MAX));
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} +0000")
}
