//! Stacks of Dart as ahead-of-time compiled programs print them, Flutter's above all: addresses instead of names, where the names
//! were split off or obfuscated (`--split-debug-info`, `--obfuscate`).
//!
//! Source: the Dart SDK's `runtime/vm/object.cc` (`PrintNonSymbolicStackTrace…`): `virt` is the address in the file of symbols,
//! that of the call, not that behind it.

use super::log::{Log, Reader, drive};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Arch, Avma, FrameAddress, ImageId, Svma};
use backtrail_model::{Exception, Frame, Image, Report, Source};

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

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    Row::read(line).is_some_and(|row| row.symbol.is_some_and(|(name, _)| name.starts_with("_kDart")))
}

/// Reads such a text; `None` where it has no row.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Dart { log: Log::new(Source::DartTrace, limits), id: None, base: None, message: None };
    drive(&mut reader, input, start);
    let Dart { log, id, base, message } = reader;
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
}

impl<'l> Reader<'l> for Dart<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
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
        } else if self.message.is_none() && !self.log.is_in_stack() {
            self.message = message(text).map(str::to_owned);
        }
        false
    }
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
}
