//! What Windows writes into its event log when a program crashes: event 1000 of Application Error, 1026 and 1023 of .NET's
//! runtime, 1001 of Windows Error Reporting, as text or XML, and the dialogue of the latter.
//!
//! Several of these, copied together, tell of one crash. Where .NET's runtime names an exception, that is what happened: the
//! rest only says that its machinery raised it.

mod codes;
mod fields;
#[cfg(test)]
mod tests;

use super::dotnet::DotNet;
use super::log::{Log, Reader, drive, file_name};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Avma, FrameAddress, Svma};
use backtrail_model::{Exception, Field, Frame, Image, Report, Source, Thread};
use fields::{Fields, InXml, Slot};

pub(super) use fields::{is_sure, starts};

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let text = String::from_utf8_lossy(input.get(start..).unwrap_or_default());
    let fields = Fields::read(&text);
    let mut reader = Events {
        dotnet: DotNet::new(Source::WindowsEvent, limits),
        internal: None,
        is_fail_fast: false,
        xml: InXml::default(),
        is_in_xml: false,
    };
    drive(&mut reader, input, start);
    let Events { dotnet, internal, .. } = reader;
    let is_known = fields.get(Slot::App).is_some() || fields.get(Slot::Code).is_some();
    if !is_known && internal.is_none() && !dotnet.has_head() && !dotnet.has_rows() {
        return None;
    }
    let mut report = dotnet.finish();
    describe(&mut report, &fields);
    if report.exception.is_some() {
        report.source = Source::DotNetException;
        return Some(report);
    }
    report.exception = exception(&fields, internal.as_ref());
    place(&mut report, &fields, internal);
    Some(report)
}

struct Events<'l> {
    dotnet: DotNet<'l>,
    internal: Option<Internal>,
    /// Whether the program asked for its end: the message follows.
    is_fail_fast: bool,
    xml: InXml,
    /// Whether the exception is stated as XML, and not before.
    is_in_xml: bool,
}

/// An error inside of .NET's runtime: `at IP 00007FFBB50D4089 (00007FFBB4F00000) with exit code c0000005`.
struct Internal {
    offset: Option<u64>,
    code: Option<u64>,
}

impl<'l> Reader<'l> for Events<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        self.dotnet.log()
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let is_xml = self.xml.line(text);
        if is_xml && (self.dotnet.has_head() || self.dotnet.has_rows()) && !self.is_in_xml {
            return false;
        }
        self.is_in_xml |= is_xml && text.contains("Exception Info:");
        if let Some((_, rest)) = text.split_once("internal error in the .NET Runtime at IP ") {
            self.internal.get_or_insert_with(|| Internal::read(rest));
            return false;
        }
        self.is_fail_fast |= text.contains("through System.Environment.FailFast");
        if let Some(message) = text.trim().strip_prefix("Message: ").filter(|_| self.is_fail_fast) {
            self.dotnet.add_head(format!("System.Environment.FailFast: {message}"));
            return false;
        }
        let pieces = flattened(text);
        let mut is_taken = !pieces.is_empty();
        for piece in &pieces {
            is_taken &= self.dotnet.line(piece, line);
        }
        if !pieces.is_empty() {
            return is_taken;
        }
        self.dotnet.line(text, line)
    }
}

impl Internal {
    fn read(text: &str) -> Self {
        let number = |word: &str| {
            let word = word.trim_matches(['(', ')', '.', ',']);
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        };
        let mut words = text.split_whitespace();
        let (at, base) = (words.next().and_then(number), words.next().and_then(number));
        let code =
            text.split_once("exit code ").and_then(|(_, rest)| number(rest.split_whitespace().next()?));
        Self { offset: at.zip(base).and_then(|(at, base)| at.checked_sub(base)), code }
    }
}

/// The lines of an exception that was copied as one, as XML's viewer has it.
fn flattened(text: &str) -> Vec<&str> {
    let Some((before, rest)) =
        text.split_once("Exception Info: ").filter(|(before, _)| before.contains("Description:"))
    else {
        return Vec::new();
    };
    let mut pieces = Vec::new();
    let mut rest = text.get(before.len()..).unwrap_or(rest);
    while pieces.len() < 10_000 {
        let next = [" at ", " --->", " --- End of inner"]
            .iter()
            .filter_map(|mark| {
                rest.match_indices(mark).map(|(at, _)| at).find(|at| {
                    let behind = rest.get(at + mark.len()..).unwrap_or_default();
                    let word = behind.split(['(', ' ']).next().unwrap_or_default();
                    *mark != " at "
                        || (word.contains('.')
                            && behind.get(word.len()..).is_some_and(|it| it.starts_with('(')))
                })
            })
            .min();
        let Some(at) = next else { break };
        let (piece, behind) = rest.split_at_checked(at).unwrap_or((rest, ""));
        pieces.push(piece.trim());
        rest = behind.get(1..).unwrap_or_default();
    }
    pieces.push(rest.trim().trim_end_matches("</Data>"));
    pieces
}

/// What the events say of the program.
fn describe(report: &mut Report, fields: &Fields) {
    let process = &mut report.process;
    let text = |slot| fields.get(slot).map(str::to_owned);
    process.name = text(Slot::App).map(|name| file_name(&name).to_owned());
    process.version = text(Slot::AppVersion).filter(|version| version != "0.0.0.0");
    process.path = text(Slot::AppPath);
    process.pid = fields.number(Slot::Pid);
    report.os = text(Slot::Os);
    report.time = text(Slot::Time);
    report.incident = text(Slot::ReportId);
    let stated = [
        ("time stamp of the application", Slot::AppStamp),
        ("time stamp of the module", Slot::ModuleStamp),
        ("start time", Slot::Started),
        ("package", Slot::Package),
        ("application of the package", Slot::PackageApp),
        ("event name", Slot::EventName),
        ("exception data", Slot::Data),
        ("exception code", Slot::Code),
    ];
    for (key, slot) in stated {
        if let Some(value) = text(slot) {
            report.fields.push(Field { key: key.to_owned(), value });
        }
    }
    if process.name.is_none() {
        let named = report.sections.iter().flat_map(|section| section.text.lines());
        let named = named.filter_map(|line| line.split_once("Application: ").map(|(_, name)| name));
        let name = named.filter_map(|name| name.split_whitespace().next()).next();
        report.process.name = name.map(|name| file_name(name).to_owned());
    }
}

fn exception(fields: &Fields, internal: Option<&Internal>) -> Option<Exception> {
    let event = fields.get(Slot::EventName).unwrap_or_default();
    if let Some(class) = fields.get(Slot::Managed) {
        return Some(Exception { kind: Some(class.to_owned()), ..Exception::default() });
    }
    if event.to_ascii_lowercase().starts_with("apphang") {
        return Some(Exception { kind: Some("hang".to_owned()), ..Exception::default() });
    }
    let code = fields.number(Slot::Code).or_else(|| internal.and_then(|internal| internal.code));
    let Some(code) = code.and_then(|code| u32::try_from(code).ok()) else {
        let kind = if internal.is_some() { "internal error" } else { "unhandled exception" };
        return Some(Exception { kind: Some(kind.to_owned()), ..Exception::default() });
    };
    Some(Exception {
        kind: codes::name(code).map(str::to_owned),
        codes: Some(format!("{code:#x}")),
        raw_codes: vec![u64::from(code)],
        message: internal.map(|_| "internal error in the .NET Runtime".to_owned()),
        ..Exception::default()
    })
}

/// The module and the place in it, as the frame of a thread; what .NET printed of the stack are its callers.
fn place(report: &mut Report, fields: &Fields, internal: Option<Internal>) {
    let process = &mut report.process;
    let app = fields.get(Slot::App).map(file_name);
    let module = fields.get(Slot::Module).map(file_name);
    if let Some(app) = app {
        process.images.push(Image {
            name: app.to_owned(),
            path: fields.get(Slot::AppPath).map(str::to_owned),
            version: process.version.clone(),
            ..Image::default()
        });
    }
    let mut thread = Thread { crashed: true, ..Thread::default() };
    let offset = fields.number(Slot::Offset);
    match (module, offset) {
        // No module: the place is an address.
        (Some("unknown"), Some(address)) => {
            thread
                .frames
                .push(Frame { address: Some(FrameAddress::Exact(Avma::new(address))), ..Frame::new(0) });
        }
        // Windows Error Reporting's word for the same, without the address.
        (Some(name), _) if name.starts_with("StackHash_") => {}
        (Some(name), offset) => {
            let is_app = app.is_some_and(|app| app.eq_ignore_ascii_case(name));
            if !is_app {
                process.images.push(Image {
                    name: name.to_owned(),
                    path: fields.get(Slot::ModulePath).map(str::to_owned),
                    version: fields.get(Slot::ModuleVersion).map(str::to_owned).filter(|it| it != "0.0.0.0"),
                    ..Image::default()
                });
            }
            thread.frames.push(Frame {
                image: process.images.len().checked_sub(1),
                image_name: Some(name.to_owned()),
                image_offset: offset,
                relative_pc: offset.map(Svma::new),
                ..Frame::new(0)
            });
        }
        (None, _) => {
            let offset = internal.and_then(|internal| internal.offset);
            // The runtime's library has this name since .NET Core; before it was clr.dll.
            thread.frames.extend(offset.map(|offset| Frame {
                image_name: Some(".NET runtime".to_owned()),
                image_offset: Some(offset),
                ..Frame::new(0)
            }));
        }
    }
    let managed = process.backtraces.iter_mut().flat_map(|stack| std::mem::take(&mut stack.frames));
    for (index, frame) in (thread.frames.len()..).zip(managed) {
        thread.frames.push(Frame { index: u32::try_from(index).unwrap_or(u32::MAX), ..frame });
    }
    process.backtraces.clear();
    if !thread.frames.is_empty() {
        process.threads.push(thread);
        process.crashed_thread = Some(0);
    }
}
