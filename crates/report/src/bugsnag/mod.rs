//! Bugsnag's events: JSON of a crash or an error as its clients send it, alone or in a request.
//!
//! Each frame states its image. (docs.bugsnag.com, "Error Reporting API".)

pub(crate) mod form;
#[cfg(test)]
mod tests;

use crate::json::{self, Json};
use crate::leftovers::{fill, text};
use crate::members::{Members, file_name, joined, note_thrown, offset};
use crate::stack::{Origin, settle, unsettled};
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::{
    AppInfo, Backtrace, Exception, Field, Frame, Image, Language, Report, ReportedSymbol, Source, Thread,
    ThrowingRuntime, ThrownException,
};
use std::collections::HashMap;

/// Whether the beginning of a JSON input is that of an event.
pub(crate) fn is_bugsnag(head: &str) -> bool {
    head.contains("\"exceptions\"") && head.contains("\"errorClass\"")
}

/// Reads the event that begins at `start`.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let mut members = Members::new(input, Source::Bugsnag, limits);
    let mut reader = Reader::default();
    let is_read = outcome.value.as_ref().is_some_and(|document| reader.document(&mut members, "", document));
    if !is_read {
        let message = "expected an event with `exceptions`";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    }
    reader.finish(&mut members);
    Ok(members.finish(&outcome))
}

/// What is put together at the end.
#[derive(Default)]
struct Reader {
    os: [Option<String>; 3],
    version: [Option<String>; 2],
    unhandled: Option<bool>,
    signal: Option<String>,
    thrown: Vec<Thrown>,
    /// Positions of images by where they begin.
    images: HashMap<u64, usize>,
}

/// One of the exceptions of an event; those behind the first are its causes.
#[derive(Default)]
struct Thrown {
    class: Option<String>,
    message: Option<String>,
    frames: Vec<Frame>,
}

/// A stack that is being read.
#[derive(Default)]
struct Stack {
    frames: Vec<Frame>,
    /// Whether the first frame is one that was interrupted.
    is_interrupted: bool,
}

impl Stack {
    /// The client marks a program counter; a thread that walked itself has none.
    fn settle(&mut self, is_interrupted: bool) {
        let origin = if is_interrupted || self.is_interrupted { Origin::Thread } else { Origin::Backtrace };
        settle(&mut self.frames, origin);
    }
}

impl Reader {
    /// Reads the first event of a document: itself, one of its `events`, or what React Native wrote to disk (`user.event`).
    fn document(&mut self, members: &mut Members<'_, '_>, path: &str, document: &Json<'_>) -> bool {
        if document.get("exceptions").is_some() {
            self.event(members, path, document);
            return true;
        }
        let mut is_read = false;
        members.each(path, document, |members, name, value| match name {
            "events" if !is_read => {
                let events = value.items();
                let Some(first) = events.first().filter(|event| event.get("exceptions").is_some()) else {
                    return false;
                };
                self.event(members, "", first);
                for (position, event) in events.iter().enumerate().skip(1) {
                    members.keep(format!("events[{position}]"), event);
                }
                is_read = true;
                true
            }
            "user" if !is_read && value.get("event").is_some() => {
                members.each("user", value, |members, name, value| {
                    let is_event = name == "event" && value.get("exceptions").is_some();
                    if is_event {
                        self.event(members, "user.event", value);
                        is_read = true;
                    }
                    is_event
                })
            }
            _ => false,
        });
        is_read
    }

    fn event(&mut self, members: &mut Members<'_, '_>, path: &str, event: &Json<'_>) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        members.each(path, event, |members, name, value| match name {
            "unhandled" => fill(&mut self.unhandled, value.truth()),
            "app" => self.app(members, &below(name), value),
            "device" => self.device(members, &below(name), value),
            "severityReason" => self.reason(members, &below(name), value),
            "exceptions" => {
                for (position, item) in members.items(&below(name), value, 100).iter().enumerate() {
                    let thrown = self.thrown(members, &format!("{}[{position}]", below(name)), item);
                    self.thrown.push(thrown);
                }
                !value.items().is_empty()
            }
            "threads" => {
                let most = members.limits.max_threads;
                for (position, item) in members.items(&below(name), value, most).iter().enumerate() {
                    let thread = self.thread(members, &format!("{}[{position}]", below(name)), item);
                    members.report.process.threads.push(thread);
                }
                !value.items().is_empty()
            }
            _ => false,
        });
    }

    fn app(&mut self, members: &mut Members<'_, '_>, path: &str, app: &Json<'_>) -> bool {
        let [version, build] = &mut self.version;
        members.each(path, app, |members, name, value| {
            let process = &mut members.report.process;
            match name {
                "id" => fill(&mut process.identifier, text(value)),
                "version" => fill(version, text(value)),
                "bundleVersion" | "versionCode" => fill(build, text(value)),
                "binaryArch" => {
                    let name = text(value).unwrap_or_default();
                    let arch = Arch::from_name(&name);
                    fill(&mut process.arch, arch) && arch.is_some_and(|arch| arch.name() == name)
                }
                _ => false,
            }
        })
    }

    fn device(&mut self, members: &mut Members<'_, '_>, path: &str, device: &Json<'_>) -> bool {
        let [system, version, build] = &mut self.os;
        members.each(path, device, |members, name, value| match name {
            "osName" => fill(system, text(value)),
            "osVersion" => fill(version, text(value)),
            "model" => fill(&mut members.report.device, text(value)),
            "time" => fill(&mut members.report.time, text(value)),
            "runtimeVersions" => members.each(&format!("{path}.runtimeVersions"), value, |_, name, value| {
                name == "osBuild" && fill(build, text(value))
            }),
            _ => false,
        })
    }

    fn reason(&mut self, members: &mut Members<'_, '_>, path: &str, reason: &Json<'_>) -> bool {
        members.each(path, reason, |members, name, value| {
            name == "attributes"
                && members.each(&format!("{path}.attributes"), value, |_, name, value| {
                    name == "signalType" && fill(&mut self.signal, text(value))
                })
        })
    }

    fn thrown(&mut self, members: &mut Members<'_, '_>, path: &str, item: &Json<'_>) -> Thrown {
        let mut thrown = Thrown::default();
        let kind = item.get("type").and_then(text);
        members.each(path, item, |members, name, value| match name {
            "errorClass" => fill(&mut thrown.class, text(value)),
            "message" => fill(&mut thrown.message, text(value)),
            "stacktrace" if thrown.frames.is_empty() => {
                let mut stack = self.stack(members, &format!("{path}.stacktrace"), value, kind.as_deref());
                stack.settle(false);
                thrown.frames = stack.frames;
                !value.items().is_empty()
            }
            _ => false,
        });
        thrown
    }

    fn thread(&mut self, members: &mut Members<'_, '_>, path: &str, item: &Json<'_>) -> Thread {
        let (mut thread, mut stack) = (Thread::default(), Stack::default());
        let kind = item.get("type").and_then(text);
        let mut id = None;
        members.each(path, item, |members, name, value| match name {
            "id" => fill(&mut id, value.number()),
            "name" => fill(&mut thread.name, text(value)),
            "state" => fill(&mut thread.state, text(value)),
            "errorReportingThread" => {
                thread.crashed = value.truth() == Some(true);
                value.truth().is_some()
            }
            "stacktrace" if stack.frames.is_empty() => {
                stack = self.stack(members, &format!("{path}.stacktrace"), value, kind.as_deref());
                !value.items().is_empty()
            }
            _ => false,
        });
        // The others were suspended, wherever they were.
        stack.settle(!thread.crashed);
        thread.frames = stack.frames;
        thread.number = id.unwrap_or(members.report.process.threads.len() as u64);
        thread
    }

    fn stack(
        &mut self,
        members: &mut Members<'_, '_>,
        path: &str,
        value: &Json<'_>,
        kind: Option<&str>,
    ) -> Stack {
        let items = members.items(path, value, members.frames_left);
        members.frames_left -= items.len();
        let mut stack = Stack { frames: Vec::with_capacity(items.len()), is_interrupted: false };
        for (position, item) in items.iter().enumerate() {
            let (mut frame, is_pc) = self.frame(members, &format!("{path}[{position}]"), item);
            frame.index = u32::try_from(position).unwrap_or(u32::MAX);
            if frame.address.is_none() && kind == Some("android") {
                frame.language = Some(Language::Java);
            }
            stack.is_interrupted |= position == 0 && is_pc;
            stack.frames.push(frame);
        }
        stack
    }

    /// A frame, and whether its address is a program counter.
    fn frame(&mut self, members: &mut Members<'_, '_>, path: &str, item: &Json<'_>) -> (Frame, bool) {
        let mut frame = Frame::new(0);
        let mut symbol = ReportedSymbol::default();
        let (mut address, mut start, mut base, mut linked) = (None, None, None, None);
        let (mut name, mut file, mut id, mut number, mut is_pc) = (None, None, None, None, false);
        members.each(path, item, |_, key, value| match key {
            "frameAddress" => fill(&mut address, value.number()),
            "symbolAddress" => fill(&mut start, value.number()),
            "machoLoadAddress" | "loadAddress" => fill(&mut base, value.number()),
            "machoVMAddress" => fill(&mut linked, text(value)),
            "machoFile" | "file" => fill(&mut file, text(value)),
            "machoUUID" | "codeIdentifier" => fill(&mut id, text(value)),
            "method" => fill(&mut name, text(value)),
            "lineNumber" => fill(&mut number, value.number()),
            "isPC" => {
                is_pc = value.truth() == Some(true);
                value.truth().is_some()
            }
            _ => false,
        });
        frame.address = address.map(Avma::new).map(unsettled);
        frame.image_offset = offset(address, base);
        symbol.offset = offset(address, start);
        symbol.name = name.unwrap_or_default();
        if address.is_some() {
            // Frames of machine code state their file, and the offset in it where others state a line.
            let line = number.filter(|number| Some(*number) != frame.image_offset);
            symbol.line = line.and_then(|line| u32::try_from(line).ok());
            frame.image_name = file.as_deref().map(file_name).map(str::to_owned);
            self.image(members, base, file, id, linked);
        } else {
            symbol.line = number.and_then(|line| u32::try_from(line).ok());
            symbol.file = file;
            let rest = [("codeIdentifier", id), ("machoVMAddress", linked)];
            members.report.fields.extend(
                rest.into_iter()
                    .filter_map(|(key, value)| Some(Field { key: format!("{path}.{key}"), value: value? })),
            );
        }
        let says_something = !symbol.name.is_empty() || symbol.file.is_some();
        frame.reported = says_something.then_some(symbol);
        (frame, is_pc)
    }

    /// Takes the image that a frame states among the others.
    fn image(
        &mut self,
        members: &mut Members<'_, '_>,
        base: Option<u64>,
        path: Option<String>,
        id: Option<String>,
        linked: Option<String>,
    ) {
        let Some(base) = base.filter(|base| *base != 0) else { return };
        if self.images.contains_key(&base) || self.images.len() >= members.limits.max_images {
            return;
        }
        let images = &mut members.report.process.images;
        self.images.insert(base, images.len());
        let id = id.and_then(|id| ImageId::parse_uuid(&id).or_else(|_| ImageId::parse_build_id(&id)).ok());
        let name = path.as_deref().map(file_name).unwrap_or_default().to_owned();
        if let Some(value) = linked {
            members.report.fields.push(Field { key: format!("{name}.machoVMAddress"), value });
        }
        images.push(Image {
            name,
            path,
            load_address: Avma::new(base),
            id: id.filter(|id| !id.is_nil()),
            ..Image::default()
        });
    }

    fn finish(self, members: &mut Members<'_, '_>) {
        let [system, version, build] = self.os;
        let in_brackets = |text: Option<String>| text.map(|text| format!("({text})"));
        members.report.os = joined([system, version, in_brackets(build)]);
        let [version, build] = self.version;
        members.report.process.version = joined([version, in_brackets(build), None]);
        let is_unhandled = self.unhandled != Some(false);
        for thread in &mut members.report.process.threads {
            // The thread that reports an error which was handled did not crash.
            thread.crashed &= is_unhandled;
        }
        for (position, thrown) in self.thrown.into_iter().enumerate() {
            let signal = self.signal.as_deref().filter(|_| position == 0);
            thrown.finish(members, signal, position == 0, is_unhandled);
        }
        let process = &mut members.report.process;
        process.crashed_thread = process.threads.iter().position(|thread| thread.crashed);
    }
}

impl Thrown {
    fn finish(
        mut self,
        members: &mut Members<'_, '_>,
        signal: Option<&str>,
        is_first: bool,
        is_unhandled: bool,
    ) {
        let class = self.class.take().unwrap_or_default();
        let mach = class.starts_with("EXC_");
        let signal = signal.or(Some(class.as_str())).filter(|signal| signal.starts_with("SIG"));
        let is_native = (mach || signal.is_some()) && is_first && is_unhandled;
        let reason = self.message.take().filter(|message| !message.is_empty());
        if is_native || !is_first {
            let message = match reason {
                Some(reason) => format!("{class}: {reason}"),
                None => class.clone(),
            };
            let lines: Vec<String> = message.lines().map(str::to_owned).collect();
            members.report.app_info.extend((!lines.is_empty()).then_some(AppInfo { image: None, lines }));
        } else {
            let is_objc = class.starts_with("NS");
            let runtime = if is_objc { ThrowingRuntime::ObjectiveC } else { ThrowingRuntime::Other };
            let name = class.clone();
            let is_handled = !is_unhandled;
            note_thrown(&mut members.report, ThrownException { runtime, name, reason, is_handled });
        }
        if is_native {
            members.report.exception = Some(Exception {
                kind: mach.then(|| class.clone()),
                signal: signal.map(str::to_owned),
                ..Exception::default()
            });
        }
        let threads = &mut members.report.process.threads;
        let is_alone = threads.is_empty();
        let own = threads.iter_mut().find(|thread| thread.crashed && is_native);
        match own {
            Some(thread) if thread.frames.is_empty() => thread.frames = self.frames,
            // The event has the same stack twice.
            Some(thread) if same_addresses(&thread.frames, &self.frames) => {}
            None if is_native && is_alone => {
                threads.push(Thread { crashed: true, frames: self.frames, ..Thread::default() });
            }
            _ if self.frames.is_empty() => {}
            _ => members.report.process.backtraces.push(Backtrace {
                title: format!("Stack of {class}"),
                is_exception: is_first,
                frames: self.frames,
            }),
        }
    }
}

fn same_addresses(one: &[Frame], other: &[Frame]) -> bool {
    let raw = |frame: &Frame| frame.address.map(backtrail_core::FrameAddress::raw);
    one.len() == other.len() && one.iter().map(raw).eq(other.iter().map(raw))
}
