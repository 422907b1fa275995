//! One event: exceptions, threads, images, and what is known of the device and the app.

use crate::json::Json;
use crate::leftovers::{fill, text};
use crate::members::{Members, end_address, file_name, joined, note_thrown, offset};
use crate::numbers::{mach_exception, time_stated};
use crate::stack::{Origin, settle, unsettled};
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::{
    AppInfo, Backtrace, Exception, Frame, Image, Language, Register, ReportedSymbol, Thread, ThrowingRuntime,
    ThrownException,
};

/// What is put together at the end.
#[derive(Default)]
struct Parts {
    os: [Option<String>; 3],
    app: [Option<String>; 2],
    release: Option<String>,
    thrown: Vec<Thrown>,
    /// What the app, or a user, said: without what differs each time, where the client has it so.
    said: Option<String>,
}

/// One of the exceptions of an event, which are listed from the innermost cause on.
#[derive(Default)]
struct Thrown {
    kind: Option<String>,
    value: Option<String>,
    thread: Option<u64>,
    module: Option<String>,
    mechanism: Option<String>,
    handled: Option<bool>,
    frames: Vec<Frame>,
    registers: Vec<Register>,
    signal: Option<u64>,
    signal_name: Option<String>,
    signal_code: Option<String>,
    mach: [Option<u64>; 3],
    mach_name: Option<String>,
}

pub(super) fn read(members: &mut Members<'_, '_>, document: &Json<'_>) {
    let mut parts = Parts::default();
    // Frames lie in images, so these come first wherever they stand.
    if let Some(images) = document.get("debug_meta").and_then(|meta| meta.get("images")) {
        for item in members.items("debug_meta.images", images, members.limits.max_images) {
            let image = read_image(members, item);
            members.report.process.images.push(image);
        }
    }
    let language = document.get("platform").and_then(text).and_then(|platform| language_of(&platform));
    members.each("", document, |members, name, value| match name {
        "event_id" => fill(&mut members.report.incident, text(value)),
        "timestamp" => fill(&mut members.report.time, text(value).map(time_stated)),
        "release" => fill(&mut parts.release, text(value)),
        "debug_meta" => {
            members.each("debug_meta", value, |_, name, value| name == "images" && !value.items().is_empty())
        }
        "exception" => values(value).is_some_and(|values| {
            let values = members.items("exception.values", values, 100);
            for (position, item) in values.iter().enumerate() {
                let thrown = read_thrown(members, &format!("exception.values[{position}]"), item, language);
                parts.thrown.push(thrown);
            }
            !values.is_empty()
        }),
        "threads" => values(value).is_some_and(|values| {
            let values = members.items("threads.values", values, members.limits.max_threads);
            for (position, item) in values.iter().enumerate() {
                let thread = read_thread(members, &format!("threads.values[{position}]"), item, language);
                members.report.process.threads.push(thread);
            }
            !values.is_empty()
        }),
        "contexts" => {
            members.each("contexts", value, |members, name, value| parts.context(members, name, value))
        }
        "message" | "logentry" => read_message(members, &mut parts.said, value),
        "comments" => read_feedback(members, &mut parts.said, value),
        _ => false,
    });
    parts.finish(members);
}

/// The language that a platform's frames are of, where they have no addresses.
fn language_of(platform: &str) -> Option<Language> {
    Some(match platform {
        "python" => Language::Python,
        "javascript" | "node" => Language::JavaScript,
        "java" => Language::Java,
        "csharp" => Language::DotNet,
        "php" => Language::Php,
        "ruby" => Language::Ruby,
        "go" => Language::Go,
        "elixir" => Language::Beam,
        "dart" => Language::Dart,
        _ => return None,
    })
}

/// `{"values": [...]}`, or the list alone.
fn values<'j, 'd>(value: &'j Json<'d>) -> Option<&'j Json<'d>> {
    value.get("values").or(Some(value)).filter(|values| !values.items().is_empty())
}

fn read_message(members: &mut Members<'_, '_>, said: &mut Option<String>, value: &Json<'_>) -> bool {
    let template = value.get("message").and_then(text);
    let formatted = value.text().map(std::borrow::Cow::into_owned);
    let formatted = formatted.or_else(|| value.get("formatted").and_then(text)).or_else(|| template.clone());
    let Some(message) = formatted.filter(|message| !message.trim().is_empty()) else { return false };
    // Events have it twice.
    if said.is_none() {
        add_message(members, &message);
        *said = template.filter(|template| !template.trim().is_empty()).or(Some(message));
    }
    value.members().len() < 2
}

/// What a user said of a crash.
fn read_feedback(members: &mut Members<'_, '_>, said: &mut Option<String>, value: &Json<'_>) -> bool {
    let Some(words) = text(value).filter(|words| !words.trim().is_empty()) else { return false };
    add_message(members, &words);
    *said = Some(format!("User feedback: {}", words.trim()));
    true
}

fn add_message(members: &mut Members<'_, '_>, message: &str) {
    let lines: Vec<String> = message.lines().map(str::to_owned).collect();
    if !lines.is_empty() {
        members.report.app_info.push(AppInfo { image: None, lines });
    }
}

fn read_thrown(
    members: &mut Members<'_, '_>,
    path: &str,
    item: &Json<'_>,
    language: Option<Language>,
) -> Thrown {
    let mut thrown = Thrown::default();
    members.each(path, item, |members, name, value| match name {
        "type" => fill(&mut thrown.kind, text(value)),
        "value" => fill(&mut thrown.value, text(value)),
        "module" => fill(&mut thrown.module, text(value).filter(|module| !module.is_empty())),
        "thread_id" => fill(&mut thrown.thread, value.number()),
        "stacktrace" => read_stack(
            members,
            &format!("{path}.stacktrace"),
            value,
            language,
            (&mut thrown.frames, &mut thrown.registers),
        ),
        "mechanism" => read_mechanism(members, &format!("{path}.mechanism"), value, &mut thrown),
        _ => false,
    });
    thrown
}

fn read_mechanism(members: &mut Members<'_, '_>, path: &str, value: &Json<'_>, thrown: &mut Thrown) -> bool {
    let [exception, code, subcode] = &mut thrown.mach;
    members.each(path, value, |members, name, value| match name {
        "type" => fill(&mut thrown.mechanism, text(value)),
        "handled" => fill(&mut thrown.handled, value.truth()),
        "meta" => members.each(&format!("{path}.meta"), value, |members, name, value| match name {
            "signal" => members.each(&format!("{path}.meta.signal"), value, |_, name, value| match name {
                "number" => fill(&mut thrown.signal, value.number()),
                "name" => fill(&mut thrown.signal_name, text(value)),
                "code_name" => fill(&mut thrown.signal_code, text(value)),
                _ => false,
            }),
            "mach_exception" => {
                members.each(&format!("{path}.meta.mach_exception"), value, |_, name, value| match name {
                    "exception" => fill(exception, value.number()),
                    "code" => fill(code, value.number()),
                    "subcode" => fill(subcode, value.number()),
                    "name" => fill(&mut thrown.mach_name, text(value)),
                    _ => false,
                })
            }
            _ => false,
        }),
        _ => false,
    })
}

fn read_thread(
    members: &mut Members<'_, '_>,
    path: &str,
    item: &Json<'_>,
    language: Option<Language>,
) -> Thread {
    let mut thread = Thread::default();
    let mut id = None;
    members.each(path, item, |members, name, value| match name {
        "id" => fill(&mut id, value.number()),
        "name" => fill(&mut thread.name, text(value)),
        "state" => fill(&mut thread.state, text(value)),
        "crashed" => {
            thread.crashed = value.truth() == Some(true);
            value.truth().is_some()
        }
        // Which thread made the event shows in its stack.
        "current" => value.truth().is_some(),
        "stacktrace" => read_stack(
            members,
            &format!("{path}.stacktrace"),
            value,
            language,
            (&mut thread.frames, &mut thread.registers),
        ),
        _ => false,
    });
    thread.number = id.unwrap_or(members.report.process.threads.len() as u64);
    settle(&mut thread.frames, Origin::Thread);
    thread
}

fn read_stack(
    members: &mut Members<'_, '_>,
    path: &str,
    value: &Json<'_>,
    language: Option<Language>,
    (frames, registers): (&mut Vec<Frame>, &mut Vec<Register>),
) -> bool {
    members.each(path, value, |members, name, value| match name {
        "frames" if frames.is_empty() => {
            let most = members.frames_left;
            let items = members.items(&format!("{path}.frames"), value, most);
            members.frames_left -= items.len();
            for (position, item) in items.iter().enumerate() {
                frames.push(read_frame(members, &format!("{path}.frames[{position}]"), item, language));
            }
            frames.reverse();
            for (position, frame) in frames.iter_mut().enumerate() {
                frame.index = u32::try_from(position).unwrap_or(u32::MAX);
            }
            !value.items().is_empty()
        }
        "registers" if registers.is_empty() => {
            let all = value.members().iter().map(|member| (member.name(), member.value.number()));
            let read: Option<Vec<Register>> = all
                .map(|(name, value)| Some(Register { name: name.into_owned(), value: value?, note: None }))
                .collect();
            read.is_some_and(|read| {
                registers.extend(read);
                true
            })
        }
        _ => false,
    })
}

fn read_frame(
    members: &mut Members<'_, '_>,
    path: &str,
    item: &Json<'_>,
    language: Option<Language>,
) -> Frame {
    let mut frame = Frame::new(0);
    let mut symbol = ReportedSymbol::default();
    let (mut address, mut base, mut start) = (None, None, None);
    let (mut package, mut module, mut name, mut file, mut path_of_file) = (None, None, None, None, None);
    members.each(path, item, |_, key, value| match key {
        "instruction_addr" => fill(&mut address, value.number()),
        "image_addr" => fill(&mut base, value.number()),
        "symbol_addr" => fill(&mut start, value.number()),
        "function" => fill(&mut name, text(value)),
        // Of Java, Python and others; native frames have none.
        "module" => fill(&mut module, text(value).filter(|module| !module.is_empty())),
        "package" => fill(&mut package, text(value)),
        "filename" => fill(&mut file, text(value)),
        "abs_path" => fill(&mut path_of_file, text(value)),
        "lineno" => fill(&mut symbol.line, value.number().and_then(|line| u32::try_from(line).ok())),
        _ => false,
    });
    // The shorter name of a file is the end of its path.
    if let (Some(short), Some(long)) = (&file, &path_of_file)
        && !long.ends_with(short.as_str())
    {
        members
            .report
            .fields
            .push(backtrail_model::Field { key: format!("{path}.filename"), value: short.clone() });
    }
    symbol.file = path_of_file.or(file);
    let own = item.get("platform").and_then(text);
    frame.language = own.map_or(language, |platform| language_of(&platform)).filter(|_| address.is_none());
    frame.address = address.map(Avma::new).map(unsettled);
    frame.image_offset = offset(address, base);
    frame.image_name = package.as_deref().map(file_name).map(str::to_owned);
    symbol.offset = offset(address, start);
    symbol.name = match (module, name) {
        (Some(module), Some(name)) => format!("{module}.{name}"),
        (module, name) => name.or(module).unwrap_or_default(),
    };
    let says_something = !symbol.name.is_empty() || symbol.file.is_some();
    frame.reported = says_something.then_some(symbol);
    frame
}

fn read_image(members: &mut Members<'_, '_>, item: &Json<'_>) -> Image {
    let mut image = Image::default();
    let (mut base, mut size, mut kind, mut debug_id, mut code_id) = (None, None, None, None, None);
    let (mut file, mut name) = (None, None);
    let path = format!("debug_meta.images[{}]", members.report.process.images.len());
    members.each(&path, item, |_, key, value| match key {
        "type" => fill(&mut kind, text(value)),
        "code_file" => fill(&mut file, text(value)),
        "name" | "debug_file" => fill(&mut name, text(value)),
        "image_addr" => fill(&mut base, value.number()),
        "image_size" => fill(&mut size, value.number()),
        "debug_id" | "uuid" => fill(&mut debug_id, text(value)),
        "code_id" => fill(&mut code_id, text(value)),
        "arch" => fill(&mut image.arch, text(value).and_then(|name| Arch::from_name(&name))),
        _ => false,
    });
    image.path = file.or(name);
    image.name = image.path.as_deref().map(file_name).unwrap_or_default().to_owned();
    image.load_address = Avma::new(base.unwrap_or_default());
    image.end_address = end_address(base.unwrap_or_default(), size);
    // ELF's debug id is made of the first bytes of the build id, which is what files have.
    let is_elf = kind.as_deref() == Some("elf");
    let build_id = code_id.as_deref().filter(|_| is_elf).and_then(|id| ImageId::parse_build_id(id).ok());
    let uuid = debug_id.as_deref().filter(|_| !is_elf).and_then(|id| ImageId::parse_uuid(id).ok());
    image.id = build_id.or(uuid).filter(|id| !id.is_nil());
    image
}

impl Parts {
    fn context(&mut self, members: &mut Members<'_, '_>, name: &str, value: &Json<'_>) -> bool {
        let path = format!("contexts.{name}");
        let [system, version, build] = &mut self.os;
        let [app_version, app_build] = &mut self.app;
        members.each(&path, value, |members, key, value| {
            let report = &mut members.report;
            // Node's client takes a line of a file for it, with its end.
            let trimmed = || text(value).map(|text| text.trim().to_owned());
            match (name, key) {
                ("os", "name") => fill(system, trimmed()),
                ("os", "version") => fill(version, trimmed()),
                ("os", "build") => fill(build, trimmed()),
                ("device", "model") => fill(&mut report.device, text(value)),
                ("device", "arch") => {
                    let name = text(value).unwrap_or_default();
                    let arch = Arch::from_name(&name);
                    fill(&mut report.process.arch, arch) && arch.is_some_and(|arch| arch.name() == name)
                }
                ("app", "app_identifier") => fill(&mut report.process.identifier, text(value)),
                ("app", "app_name") => fill(&mut report.process.name, text(value)),
                ("app", "app_version") => fill(app_version, text(value)),
                ("app", "app_build") => fill(app_build, text(value)),
                ("feedback", "message") => read_feedback(members, &mut self.said, value),
                _ => false,
            }
        })
    }

    fn finish(self, members: &mut Members<'_, '_>) {
        let [system, version, build] = self.os;
        let in_brackets = |text: Option<String>| text.map(|text| format!("({text})"));
        members.report.os = joined([system, version, in_brackets(build)]);
        let [version, build] = self.app;
        members.report.process.version = joined([version, in_brackets(build), None]);
        let fields = self.release.map(|value| backtrail_model::Field { key: "release".to_owned(), value });
        members.report.fields.extend(fields);
        let last = self.thrown.len().saturating_sub(1);
        for (position, thrown) in self.thrown.into_iter().enumerate() {
            thrown.finish(members, position == last);
        }
        let is_none_thrown = members.report.thrown.is_none() && members.report.exception.is_none();
        let process = &mut members.report.process;
        process.crashed_thread = process.threads.iter().position(|thread| thread.crashed);
        let says_alone = is_none_thrown && process.crashed_thread.is_none();
        if let Some(said) = self.said.filter(|_| says_alone) {
            members.report.event = said.trim().lines().next().map(str::to_owned);
        }
        let process = &mut members.report.process;
        if process.arch.is_none() {
            process.arch = process.images.first().and_then(|image| image.arch);
        }
    }
}

impl Thrown {
    /// `is_outermost`: the exception that ended things; those before are its causes.
    fn finish(mut self, members: &mut Members<'_, '_>, is_outermost: bool) {
        let mechanism = self.mechanism.clone().unwrap_or_default();
        let is_native = self.mach.iter().any(Option::is_some)
            || self.signal.is_some()
            || matches!(mechanism.as_str(), "mach" | "signalhandler" | "minidump");
        self.add_words(members, &mechanism, is_native);
        if is_native && is_outermost {
            members.report.exception = Some(self.exception());
        }
        let origin = if is_native { Origin::Thread } else { Origin::Backtrace };
        settle(&mut self.frames, origin);
        let threads = &mut members.report.process.threads;
        let is_alone = threads.is_empty();
        let own = threads.iter_mut().find(|thread| self.thread == Some(thread.number));
        match own {
            Some(thread) if thread.frames.is_empty() || (is_outermost && is_native) => {
                thread.frames = self.frames;
                thread.registers.append(&mut self.registers);
                thread.crashed |= is_outermost;
            }
            None if is_native && is_alone => {
                threads.push(Thread {
                    crashed: true,
                    frames: self.frames,
                    registers: self.registers,
                    ..Thread::default()
                });
            }
            _ if self.frames.is_empty() => {}
            _ => {
                let kind = self.kind.as_deref().unwrap_or("exception");
                let title = format!("Stack of {kind}");
                let backtrace = Backtrace { title, is_exception: is_outermost, frames: self.frames };
                members.report.process.backtraces.push(backtrace);
            }
        }
        members.report.fields.extend(
            self.mechanism.map(|value| backtrail_model::Field { key: "mechanism".to_owned(), value }),
        );
    }

    /// What it says in words.
    fn add_words(&self, members: &mut Members<'_, '_>, mechanism: &str, is_native: bool) {
        let (kind, value) = (self.kind.as_deref(), self.value.as_deref());
        let Some(kind) = kind.filter(|_| !is_native) else {
            add_message(members, &kind.into_iter().chain(value).collect::<Vec<_>>().join(": "));
            return;
        };
        let runtime = match mechanism {
            "nsexception" => ThrowingRuntime::ObjectiveC,
            "cpp_exception" => ThrowingRuntime::Cpp,
            _ if kind.starts_with("NS") => ThrowingRuntime::ObjectiveC,
            _ => ThrowingRuntime::Other,
        };
        // Java's classes have their package apart.
        let name =
            self.module.as_deref().map_or_else(|| kind.to_owned(), |module| format!("{module}.{kind}"));
        let is_handled = self.handled == Some(true);
        note_thrown(
            &mut members.report,
            ThrownException { runtime, name, reason: self.value.clone(), is_handled },
        );
    }

    fn exception(&self) -> Exception {
        let [number, code, subcode] = self.mach;
        let named = self.kind.as_deref().filter(|kind| kind.starts_with("EXC_")).map(str::to_owned);
        let kind =
            self.mach_name.clone().or_else(|| number.and_then(mach_exception).map(str::to_owned)).or(named);
        let signal = self.kind.as_deref().filter(|kind| kind.starts_with("SIG")).map(str::to_owned);
        let signal = self
            .signal_name
            .clone()
            .or_else(|| {
                self.signal.and_then(|number| crate::numbers::signal(number, false)).map(str::to_owned)
            })
            .or(signal);
        let value = self.value.as_deref().map(|value| value.trim_end_matches('.'));
        let is_codes = value.is_some_and(|value| value.starts_with("KERN_"));
        let codes = value.filter(|_| is_codes).map(str::to_owned).or_else(|| self.signal_code.clone());
        let is_access = kind.as_deref() == Some("EXC_BAD_ACCESS")
            || (kind.is_none() && matches!(signal.as_deref(), Some("SIGSEGV" | "SIGBUS")));
        let stated = value.and_then(|value| value.rsplit_once(" at 0x")).map(|(_, digits)| digits);
        let stated = stated.and_then(|digits| u64::from_str_radix(digits.split(' ').next()?, 16).ok());
        Exception {
            address: stated.or(subcode).filter(|_| is_access).map(Avma::new),
            raw_codes: code.into_iter().chain(subcode).collect(),
            kind,
            signal,
            codes,
            ..Exception::default()
        }
    }
}
