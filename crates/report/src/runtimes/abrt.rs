//! `core_backtrace` of ABRT, Fedora's reporter: JSON with the stacks of a core, each frame with the build id of its file and its
//! place in that (satyr's `sr_core_stacktrace`).

use super::log::file_name;
use crate::json::{self, Json};
use crate::leftovers::{fill, text};
use crate::members::Members;
use crate::numbers::signal;
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Avma, FrameAddress, ImageId};
use backtrail_model::{Exception, Frame, Image, Report, ReportedSymbol, Source, Thread};
use std::collections::HashMap;

/// Whether the beginning of a JSON input is that of such a report.
pub(crate) fn is_abrt(head: &str) -> bool {
    head.contains("\"stacktrace\"") && head.contains("\"build_id_offset\"")
}

/// Reads the report that begins at `start`.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let blanks = input.get(start..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace());
    let start = start + blanks.count();
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let Some(document) = outcome.value.as_ref().filter(|value| value.is_object()) else {
        let message = "expected a JSON object with ABRT's stacks";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    };
    let mut members = Members::new(input, Source::DebuggerBacktrace, limits);
    let mut images = HashMap::new();
    members.each("", document, |members, name, value| match name {
        "executable" => {
            let path = text(value);
            members.report.process.name = path.as_deref().map(|path| file_name(path).to_owned());
            fill(&mut members.report.process.path, path)
        }
        "signal" => match value.number().and_then(|number| signal(number, true)) {
            Some(name) => {
                let signal = Some(name.to_owned());
                let codes = value.number().map(|number| format!("signal {number}"));
                members.report.exception = Some(Exception { signal, codes, ..Exception::default() });
                true
            }
            None => false,
        },
        "stacktrace" => {
            for (number, item) in members.items(name, value, limits.max_threads).iter().enumerate() {
                thread(members, number, item, &mut images);
            }
            true
        }
        _ => false,
    });
    Ok(members.finish(&outcome))
}

fn thread(members: &mut Members<'_, '_>, number: usize, item: &Json<'_>, images: &mut HashMap<Avma, usize>) {
    let mut thread = Thread { number: number as u64, ..Thread::default() };
    let path = format!("stacktrace[{number}]");
    members.each(&path, item, |members, name, value| match name {
        "crash_thread" => {
            thread.crashed = value.truth() == Some(true);
            thread.crashed
        }
        "name" => fill(&mut thread.name, text(value)),
        "frames" => {
            for row in members.items(&format!("{path}.frames"), value, members.frames_left) {
                let index = u32::try_from(thread.frames.len()).unwrap_or(u32::MAX);
                let found = frame(members, &format!("{path}.frames[{index}]"), index, row, images);
                thread.frames.push(found);
            }
            members.frames_left = members.frames_left.saturating_sub(thread.frames.len());
            true
        }
        _ => false,
    });
    let process = &mut members.report.process;
    if thread.crashed && process.crashed_thread.is_none() {
        process.crashed_thread = Some(process.threads.len());
    }
    process.threads.push(thread);
}

fn frame(
    members: &mut Members<'_, '_>,
    path: &str,
    index: u32,
    row: &Json<'_>,
    images: &mut HashMap<Avma, usize>,
) -> Frame {
    let mut frame = Frame { span: Some(row.span()), ..Frame::new(index) };
    let (mut address, mut offset, mut id, mut file) = (None, None, None, None);
    members.each(path, row, |_, name, value| match name {
        "address" => fill(&mut address, value.number()),
        "build_id_offset" => fill(&mut offset, value.number()),
        "build_id" => fill(&mut id, text(value).and_then(|id| ImageId::parse_build_id(&id).ok())),
        "file_name" => fill(&mut file, text(value)),
        "function_name" => {
            let name = text(value).filter(|name| !name.is_empty());
            fill(&mut frame.reported, name.map(|name| ReportedSymbol { name, ..ReportedSymbol::default() }))
        }
        _ => false,
    });
    let Some(address) = address.map(Avma::new) else { return frame };
    frame.address =
        Some(if index == 0 { FrameAddress::Exact(address) } else { FrameAddress::Return(address) });
    frame.image_offset = offset;
    let base = offset.and_then(|offset| address.checked_sub(offset));
    let report = &mut members.report;
    if let (Some(base), true) = (base, report.process.images.len() < members.limits.max_images) {
        let at = *images.entry(base).or_insert_with(|| {
            let name = file.as_deref().map(|path| file_name(path).to_owned()).unwrap_or_default();
            report.process.images.push(Image {
                name,
                path: file.clone(),
                id,
                load_address: base,
                ..Image::default()
            });
            report.process.images.len() - 1
        });
        frame.image = Some(at);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const TEXT: &str = r#" { "signal": 11, "executable": "/usr/bin/shopd", "only_crash_thread": true,
        "stacktrace": [ { "crash_thread": true, "frames": [
            { "address": 139801559833458, "build_id": "0123456789abcdef0123456789abcdef01234567", "build_id_offset": 1055602, "function_name": "read", "file_name": "/lib64/libc.so.6", "fingerprint": "f" },
            { "address": 139801559325654, "build_id": "0123456789abcdef0123456789abcdef01234567", "build_id_offset": 547798, "file_name": "/lib64/libc.so.6" } ] } ] }"#;

    #[test]
    fn a_core_backtrace() {
        let report = parse(TEXT.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.source, Source::DebuggerBacktrace);
        assert_eq!(report.process.name.as_deref(), Some("shopd"));
        assert_eq!(report.exception.unwrap().signal.as_deref(), Some("SIGSEGV"));
        let frames = &report.process.threads[0].frames;
        assert!(matches!(frames[0].address, Some(FrameAddress::Exact(_))));
        assert!(matches!(frames[1].address, Some(FrameAddress::Return(_))));
        assert_eq!((report.process.images.len(), frames[1].image), (1, Some(0)));
        assert_eq!(report.process.images[0].load_address, Avma::new(139_801_559_833_458 - 1_055_602));
        assert!(report.fields.iter().any(|field| field.key.ends_with("fingerprint")));
    }

    #[test]
    fn every_cut_is_read_without_harm() {
        for end in 0..TEXT.len() {
            let _ = parse(&TEXT.as_bytes()[..end], &Limits::default());
        }
    }
}
