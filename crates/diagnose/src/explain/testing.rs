//! Reports made by hand, for tests.

use backtrail_core::{Arch, Avma, FrameAddress, Function};
use backtrail_model::{
    AppInfo, Backtrace, Exception, Field, Frame, Image, Register, Report, ReportedSymbol, Section,
    Termination, Thread,
};

/// A report under construction.
#[derive(Clone)]
pub(crate) struct Build(Report);

/// A report of an arm64 app named Demo, with images of the app, an SDK and the system, and no frames.
pub(crate) fn report(kind: &str, signal: &str) -> Build {
    let mut report = Report::default();
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    report.process.name = text("Demo");
    report.process.path = text("/private/var/containers/Bundle/Application/8B/Demo.app/Demo");
    report.process.identifier = text("com.acme.demo");
    report.process.arch = Some(Arch::Arm64);
    report.os = text("iPhone OS 17.1 (21B74)");
    report.exception = Some(Exception { kind: text(kind), signal: text(signal), ..Exception::default() });
    report.process.images = vec![
        image("Demo", "/private/var/containers/Bundle/Application/8B/Demo.app/Demo", 0x1_0000_0000),
        image(
            "Kit",
            "/private/var/containers/Bundle/Application/8B/Demo.app/Frameworks/Kit.framework/Kit",
            0x1_0100_0000,
        ),
        image("UIKitCore", "/System/Library/PrivateFrameworks/UIKitCore.framework/UIKitCore", 0x1_8000_0000),
        image("libobjc.A.dylib", "/usr/lib/libobjc.A.dylib", 0x1_8100_0000),
        image("libsystem_kernel.dylib", "/usr/lib/system/libsystem_kernel.dylib", 0x1_8200_0000),
        image("libsystem_malloc.dylib", "/usr/lib/system/libsystem_malloc.dylib", 0x1_8300_0000),
    ];
    report.process.threads =
        vec![Thread { queue: text("com.apple.main-thread"), crashed: true, ..Thread::default() }];
    report.process.crashed_thread = Some(0);
    Build(report)
}

fn image(name: &str, path: &str, load: u64) -> Image {
    Image {
        name: name.to_owned(),
        path: Some(path.to_owned()),
        load_address: Avma::new(load),
        end_address: Some(Avma::new(load + 0x10_0000)),
        ..Image::default()
    }
}

impl Build {
    pub(crate) fn done(self) -> Report {
        self.0
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Report)) -> Self {
        change(&mut self.0);
        self
    }

    fn exception(self, change: impl FnOnce(&mut Exception)) -> Self {
        self.with(|report| change(report.exception.get_or_insert_default()))
    }

    pub(crate) fn arch(self, arch: Arch) -> Self {
        self.with(|report| report.process.arch = Some(arch))
    }

    pub(crate) fn codes(self, codes: &str) -> Self {
        self.exception(|exception| exception.codes = Some(codes.to_owned()))
    }

    pub(crate) fn raw(self, codes: &[u64]) -> Self {
        self.exception(|exception| exception.raw_codes = codes.to_vec())
    }

    pub(crate) fn subtype(self, subtype: &str) -> Self {
        self.exception(|exception| exception.subtype = Some(subtype.to_owned()))
    }

    pub(crate) fn message(self, message: &str) -> Self {
        self.exception(|exception| exception.message = Some(message.to_owned()))
    }

    pub(crate) fn note(self, note: &str) -> Self {
        self.exception(|exception| exception.note = Some(note.to_owned()))
    }

    /// `SPRINGBOARD 0x8badf00d reason text`.
    pub(crate) fn termination(self, namespace: &str, code: u64, reason: &str) -> Self {
        let reason = (!reason.is_empty()).then(|| reason.to_owned());
        let termination = Termination {
            namespace: Some(namespace.to_owned()),
            code: Some(code),
            reason,
            ..Termination::default()
        };
        self.with(|report| report.termination = Some(termination))
    }

    pub(crate) fn said(self, image: &str, text: &str) -> Self {
        let image = (!image.is_empty()).then(|| image.to_owned());
        let lines = text.lines().map(str::to_owned).collect();
        self.with(|report| report.app_info.push(AppInfo { image, lines }))
    }

    pub(crate) fn section(self, title: &str, text: &str) -> Self {
        let section = Section { title: title.to_owned(), text: text.to_owned() };
        self.with(|report| report.sections.push(section))
    }

    pub(crate) fn field(self, key: &str, value: &str) -> Self {
        self.with(|report| report.fields.push(Field { key: key.to_owned(), value: value.to_owned() }))
    }

    /// `x0=0x10 pc=0x180000000`; a text in quotes behind the value becomes its note.
    pub(crate) fn registers(self, registers: &str) -> Self {
        let parsed = registers.split_whitespace().map(|register| {
            let (name, value) = register.split_once('=').unwrap();
            let (value, note) = value
                .split_once('"')
                .map_or((value, None), |(value, note)| (value, Some(note.trim_end_matches('"').to_owned())));
            Register { name: name.to_owned(), value: super::words::number(value).unwrap(), note }
        });
        let parsed: Vec<Register> = parsed.collect();
        self.with(|report| report.process.threads[0].registers.extend(parsed))
    }

    /// The crashed thread's frames, innermost first, as `Image function`, one a line. Inlined functions are joined
    /// with ` < `, innermost first; `-` is no name.
    pub(crate) fn frames(self, text: &str) -> Self {
        self.with(|report| {
            let frames = frames(report, text);
            report.process.threads[0].frames = frames;
        })
    }

    /// Another thread with such frames.
    pub(crate) fn thread(self, text: &str) -> Self {
        self.with(|report| {
            let number = report.process.threads.len() as u64;
            let frames = frames(report, text);
            report.process.threads.push(Thread { number, frames, ..Thread::default() });
        })
    }

    /// The stack of an uncaught exception.
    pub(crate) fn thrown(self, text: &str) -> Self {
        self.with(|report| {
            let frames = frames(report, text);
            report.process.backtraces.push(Backtrace {
                title: "Last Exception Backtrace".to_owned(),
                is_exception: true,
                frames,
            });
        })
    }
}

fn frames(report: &Report, text: &str) -> Vec<Frame> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.enumerate().map(|(index, line)| frame(report, index, line)).collect()
}

fn frame(report: &Report, index: usize, line: &str) -> Frame {
    let (image_name, name) = line.split_once(' ').unwrap_or((line, "-"));
    let image = report.process.images.iter().position(|image| image.name == image_name);
    let offset = 0x100 + index as u64 * 4;
    let base = image.map_or(0, |image| report.process.images[image].load_address.get());
    let address = Avma::new(base + offset);
    let mut frame = Frame::new(u32::try_from(index).unwrap());
    frame.address =
        Some(if index == 0 { FrameAddress::Exact(address) } else { FrameAddress::Return(address) });
    frame.image = image;
    frame.image_name = Some(image_name.to_owned());
    frame.image_offset = image.map(|_| offset);
    let names: Vec<&str> = name.split(" < ").collect();
    match names.as_slice() {
        ["-"] => {}
        [one] => {
            frame.reported = Some(ReportedSymbol {
                name: (*one).to_owned(),
                offset: Some(8),
                ..ReportedSymbol::default()
            });
        }
        many => {
            frame.functions = many
                .iter()
                .map(|name| Function { name: (*name).to_owned(), ..Function::default() })
                .collect();
        }
    }
    frame
}
