//! Stacks of Dart, Flutter's above all: with names and places, or as ahead-of-time compiled programs print them whose names were
//! split off or obfuscated (`--split-debug-info`, `--obfuscate`): addresses.
//!
//! Source: the Dart SDK's `runtime/vm/object.cc` (`PrintNonSymbolicStackTrace…`): `virt` is the address in the file of symbols,
//! that of the call, not that behind it.

use super::log::{Log, Reader, SourcePlace, drive, named};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Arch, Avma, FrameAddress, ImageId, Svma};
use backtrail_model::{Exception, Frame, Image, Language, Report, Source};

/// How the runtime calls the code of a program.
const PROGRAM: &str = "app.so";

/// A row: `#00 abs 000000723d6346d7 virt 00000000001ed6d7 _kDartIsolateSnapshotInstructions+0x1e26d7`. Apple's programs have no
/// `virt`; Crashlytics puts `at . ` before it.
struct Row<'t> {
    index: u32,
    absolute: u64,
    stated: Option<u64>,
    symbol: Option<(&'t str, u64)>,
}

impl<'t> Row<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let rest = line.trim();
        let rest = rest.strip_prefix("at . ").unwrap_or(rest).strip_prefix('#')?;
        let (number, rest) = rest.split_once(" abs ")?;
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let (absolute, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (stated, rest) = match rest.strip_prefix("virt ") {
            Some(rest) => {
                let (stated, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                (Some(hex(stated)?), rest)
            }
            None => (None, rest),
        };
        let symbol = rest.trim().split_once("+0x").and_then(|(name, offset)| Some((name, hex(offset)?)));
        Some(Self { index: number.trim().parse().ok()?, absolute: hex(absolute)?, stated, symbol })
    }

    fn frame(&self) -> Frame {
        // The label of all code together is no function's name.
        let annotations = self.symbol.map(|(name, offset)| format!("{name}+{offset:#x}"));
        Frame {
            address: Some(FrameAddress::Exact(Avma::new(self.absolute))).filter(|_| self.absolute != 0),
            relative_pc: self.stated.map(Svma::new),
            annotations: annotations.into_iter().collect(),
            ..Frame::new(self.index)
        }
    }
}

/// A row with names: `#1      Shop.total.<anonymous closure> (package:shop/cart.dart:12:5)`. Some tools break it before the place.
struct NamedRow<'t> {
    /// Sentry's pages have none.
    index: Option<u32>,
    name: &'t str,
    place: Option<SourcePlace<'t>>,
}

impl<'t> NamedRow<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let Some(row) = line.trim().strip_prefix('#') else { return Self::of_sentry(line.trim()) };
        let (number, rest) = row.split_once(' ')?;
        let index = Some(number.parse().ok()?);
        let rest = rest.trim();
        let (name, place) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((name, inside)) => (name, Some(dart_place(inside)?)),
            None => (rest, None),
        };
        Some(Self { index, name: name.trim(), place })
    }

    /// As Sentry's pages have it: `libapp   0x6d72af1b14 _ShopState.total (package:shop/cart.dart:12)`.
    fn of_sentry(line: &'t str) -> Option<Self> {
        let (image, rest) = line.split_once(' ')?;
        let (address, rest) = rest.trim_start().split_once(' ')?;
        super::log::hex(address).filter(|_| !image.contains(['(', '#']))?;
        let (name, inside) = rest.trim().strip_suffix(')')?.rsplit_once(" (")?;
        Some(Self { index: None, name: name.trim(), place: Some(dart_place(inside)?) })
    }
}

/// `package:shop/cart.dart:12:5`, `dart:async/zone.dart:1354:13`, `file:///home/u/bin/main.dart:3:1`; the line may be missing.
fn dart_place(text: &str) -> Option<SourcePlace<'_>> {
    const SCHEMES: [&str; 4] = ["package:", "dart:", "file:///", "org-dartlang-"];
    SCHEMES.iter().any(|scheme| text.starts_with(scheme)).then_some(())?;
    if text.contains(' ') {
        return None;
    }
    let found = super::log::place(text).filter(|found| found.file.len() > "package:".len());
    Some(found.unwrap_or(SourcePlace { file: text, line: 0, column: None }))
}

/// Whether a line is such a row, with its place.
fn is_named(line: &str) -> bool {
    (line.starts_with('#') || line.contains("(package:") || line.contains("(dart:"))
        && NamedRow::read(line).is_some_and(|row| row.place.is_some())
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    is_named(line) || is_thrown(line) || is_bare(line) || is_box(line)
}

/// The head of the box in which Flutter shows an error: `══╡ EXCEPTION CAUGHT BY WIDGETS LIBRARY ╞═══`.
fn is_box(line: &str) -> bool {
    line.contains("\u{2561} EXCEPTION CAUGHT BY ")
}

/// `[ERROR:flutter/lib/ui/ui_dart_state.cc(198)] Unhandled Exception: …`, as Flutter's engine logs it.
fn is_thrown(line: &str) -> bool {
    line.starts_with('[') && line.contains("dart_") && line.contains(")] Unhandled Exception: ")
}

fn is_bare(line: &str) -> bool {
    Row::read(line).is_some_and(|row| row.symbol.is_some_and(|(name, _)| name.starts_with("_kDart")))
}

/// Reads such a text; `None` where it has no row.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Dart {
        log: Log::new(Source::DartTrace, limits),
        id: None,
        base: None,
        message: None,
        is_next: false,
        last: String::new(),
    };
    drive(&mut reader, input, start);
    let Dart { log, id, base, message, .. } = reader;
    let mut report = log.finish();
    let has_rows = report.process.backtraces.iter().any(|stack| !stack.frames.is_empty());
    if !has_rows {
        return None;
    }
    if let Some(message) = message {
        report.exception = Some(Exception {
            kind: Some("Unhandled exception".to_owned()),
            message: Some(message),
            ..Exception::default()
        });
    }
    // Rows with names need no file.
    let has_addresses = base.is_some() || report.process.frames_mut().any(|frame| frame.language.is_none());
    if !has_addresses {
        return Some(report);
    }
    let states_base = base.is_some();
    report.process.images.push(Image {
        name: PROGRAM.to_owned(),
        id,
        load_address: base.unwrap_or_default(),
        ..Image::default()
    });
    for frame in report.process.frames_mut() {
        if frame.relative_pc.is_some() || states_base {
            frame.image = Some(0);
        }
    }
    Some(report)
}

struct Dart<'l> {
    log: Log<'l>,
    id: Option<ImageId>,
    base: Option<Avma>,
    message: Option<String>,
    /// Whether the next line is what was thrown: the command line says `Unhandled exception:` before it, Flutter's box
    /// `The following TypeError was thrown building Shop(dirty):`.
    is_next: bool,
    /// The last line before the rows.
    last: String,
}

impl<'l> Reader<'l> for Dart<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        let is_named =
            |row: &NamedRow<'_>| row.place.is_some() || self.message.is_some() && Row::read(text).is_none();
        if let Some(row) = NamedRow::read(text).filter(is_named) {
            return self.named(&row, line);
        }
        if let Some(found) = dart_place(text).filter(|_| self.log.is_in_stack()) {
            return self.set_place(found);
        }
        if text == "<asynchronous suspension>" {
            return self.log.annotate(text);
        }
        if let Some(row) = Row::read(text) {
            if !self.log.is_in_stack() && !self.log.begin_backtrace("Stack", true) {
                return false;
            }
            return self.log.push(Frame { span: Some(line.span.clone()), ..row.frame() });
        }
        if let Some(id) = text.strip_prefix("build_id: ").or_else(|| text.strip_prefix("BuildId: ")) {
            self.id = self.id.or_else(|| ImageId::parse_build_id(id.trim_matches(['\'', ' '])).ok());
        } else if let Some(rest) = text.strip_prefix("isolate_dso_base: ") {
            let base = rest.split(',').next().and_then(|base| u64::from_str_radix(base, 16).ok());
            self.base = self.base.or(base.map(Avma::new));
        } else if let Some(rest) = text.strip_prefix("pid: ") {
            let pid = rest.split(',').next().and_then(|pid| pid.parse().ok());
            self.log.report.process.pid = self.log.report.process.pid.or(pid);
        } else if let Some(rest) = text.strip_prefix("os: ") {
            let arch = rest.split_once("arch: ").and_then(|(_, rest)| rest.split(' ').next());
            self.log.report.process.arch = match arch {
                Some("arm64") => Some(Arch::Arm64),
                Some("x64") => Some(Arch::X86_64),
                Some("arm") => Some(Arch::Arm),
                Some("ia32") => Some(Arch::X86),
                _ => None,
            };
        } else if std::mem::take(&mut self.is_next) && !text.is_empty() {
            self.message.get_or_insert_with(|| text.to_owned());
        } else if text == "Unhandled exception:"
            || text.starts_with("The following ") && text.contains(" was thrown ") && text.ends_with(':')
        {
            self.is_next = true;
        } else if let Some(thrown) = message(text) {
            self.last.clear();
            if self.message.is_none() && !self.log.is_in_stack() {
                self.message = Some(thrown.to_owned());
            } else if self.log.is_in_stack() {
                // A further exception of the same log.
                self.log.begin_backtrace(thrown, false);
            }
        } else if !text.is_empty() {
            text.clone_into(&mut self.last);
        }
        false
    }
}

impl Dart<'_> {
    fn named(&mut self, row: &NamedRow<'_>, line: &Line<'_>) -> bool {
        let starts_anew = row.index == Some(0) && self.log.frames().is_some_and(|frames| !frames.is_empty());
        if !self.log.is_in_stack() && !self.log.begin_backtrace("Stack", true)
            || starts_anew && !self.log.begin_backtrace("Stack", false)
        {
            return false;
        }
        if self.message.is_none() && names_error(&self.last) {
            self.message = Some(std::mem::take(&mut self.last));
        }
        let index = row.index.unwrap_or_else(|| self.log.next_index());
        let frame = named(index, row.name, row.place);
        self.log.push(Frame { language: Some(Language::Dart), span: Some(line.span.clone()), ..frame })
    }

    /// The place of the row before, which a tool broke.
    fn set_place(&mut self, found: SourcePlace<'_>) -> bool {
        let last = self.log.frames().and_then(|frames| frames.last_mut()?.reported.as_mut());
        let Some(symbol) = last.filter(|symbol| symbol.file.is_none()) else { return false };
        symbol.file = Some(found.file.to_owned());
        (symbol.line, symbol.column) = (Some(found.line).filter(|line| *line != 0), found.column);
        true
    }
}

/// `_CastError: Null check operator used on a null value`, as Sentry's pages have it before the rows.
fn names_error(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(kind, _)| {
        let is_name = kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name && (kind.ends_with("Error") || kind.ends_with("Exception"))
    })
}

/// What was thrown: `Unhandled Exception: Bad state: No element`, and Crashlytics' words for it.
fn message(text: &str) -> Option<&str> {
    const BEFORE: [&str; 3] =
        ["Unhandled Exception: ", "Unhandled exception: ", "crashlytics.FlutterError: "];
    let (_, message) = BEFORE.iter().find_map(|words| text.split_once(words))?;
    Some(message.trim_end_matches(" Error thrown null.")).filter(|message| !message.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn rows_with_the_place_in_the_file() {
        let text = "E/flutter (30930): [ERROR:flutter/runtime/dart_vm_initializer.cc(41)] Unhandled Exception: Bad state: no order\n\
            *** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\n\
            pid: 30930, tid: 30990, name 1.ui\nos: android arch: arm64 comp: yes sim: no\n\
            build_id: '0123456789abcdef0123456789abcdef'\n\
            isolate_dso_base: 723d447000, vm_dso_base: 723d447000\n\
            \x20   #00 abs 000000723d6346d7 virt 00000000001ed6d7 _kDartIsolateSnapshotInstructions+0x1e26d7\n\
            \x20   #01 abs 000000723d637527 virt 00000000001f0527 _kDartIsolateSnapshotInstructions+0x1e5527\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.source, Source::DartTrace);
        assert_eq!(report.exception.unwrap().message.as_deref(), Some("Bad state: no order"));
        assert_eq!((report.process.pid, report.process.arch), (Some(30930), Some(Arch::Arm64)));
        let image = &report.process.images[0];
        assert_eq!(image.id.unwrap().to_string(), "0123456789abcdef0123456789abcdef");
        assert_eq!(image.load_address, Avma::new(0x72_3d44_7000));
        let frames = &report.process.backtraces[0].frames;
        assert_eq!(frames[1].relative_pc, Some(Svma::new(0x1f_0527)));
        assert_eq!((frames.len(), frames[0].image), (2, Some(0)));
    }

    #[test]
    fn rows_of_others() {
        let text = "Non-fatal Exception: io.flutter.plugins.firebase.crashlytics.FlutterError: Bad state: no order. Error thrown null.\n\
            BuildId: 0123456789abcdef0123456789abcdef\n\
            at . #00 abs 0 virt 000000000031ba6f _kDartIsolateSnapshotInstructions+0x14e87f\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().message.as_deref(), Some("Bad state: no order."));
        assert_eq!(report.process.backtraces[0].frames[0].address, None);
        let apples = "isolate_dso_base: 10fa20000, vm_dso_base: 10fa20000\n#00 abs 000000010fb00010 _kDartIsolateSnapshotInstructions+0x1e26d7\n";
        let report = parse(apples.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.process.backtraces[0].frames[0].image, Some(0));
        assert!(parse(b"#00 abs what is this?\n", &Limits::default()).is_err());
    }

    #[test]
    fn rows_with_names() {
        let engine = "E/flutter ( 5090): [ERROR:flutter/lib/ui/ui_dart_state.cc(198)] Unhandled Exception: type 'Null' is not a subtype of type 'String'\n\
            E/flutter ( 5090): #0      Shop.price (package:shop/shop.dart:40:7)\nE/flutter ( 5090): #1      Cart.total\npackage:shop/cart.dart:18\nE/flutter ( 5090): <asynchronous suspension>\nE/flutter ( 5090): #2      _rootRun (dart:async/zone.dart:1354:13)\n";
        let command_line = "Unhandled exception:\ntype 'Null' is not a subtype of type 'String'\n#0      Shop.price (package:shop/shop.dart:40:7)\n#1      Cart.total (file:///a/cart.dart:18)\n<asynchronous suspension>\n#2      _rootRun (dart:async/zone.dart:1354:13)\n";
        for text in [engine, command_line] {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(
                report.exception.as_ref().unwrap().message.as_deref(),
                Some("type 'Null' is not a subtype of type 'String'")
            );
            let frames = &report.process.backtraces[0].frames;
            let lines: Vec<_> = frames.iter().map(|frame| frame.reported.as_ref().unwrap().line).collect();
            assert_eq!(lines, [Some(40), Some(18), Some(1354)], "{text}");
            assert_eq!(frames[1].annotations, ["<asynchronous suspension>"]);
            assert!(report.process.images.is_empty());
        }
        for text in
            ["#1 fan (of dart:async)\n", "#12 (package:shop is broken)\n", "We saw Unhandled Exception: x\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
