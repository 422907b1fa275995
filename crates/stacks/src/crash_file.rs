//! Stacks of a crash file: what a process's own handler wrote.

use crate::build::Builder;
use crate::core::search;
use crate::images;
use crate::{Captured, StackOptions, StacksError};
use backtrail_capture::Limits;
use backtrail_capture::crash_file::format::{Event, MessageKind};
use backtrail_capture::crash_file::{self as reader, CrashFile};
use backtrail_core::{Avma, FrameAddress, Trust};
use backtrail_model::{
    AppInfo, Backtrace, EndKind, Ended, Field, Frame, Register, Report, Section, Thread, ThrowingRuntime,
    ThrownException,
};
use backtrail_store::Index;

/// Reads and walks the threads of a crash file. Images' files are found by identity below the paths of `index` and in the
/// system's debug directories, and by path. The type of a C++ exception stays as the compiler mangled it.
///
/// # Errors
/// Where the bytes are no crash file that can be read.
pub fn crash_file_bytes(data: &[u8], index: &Index, options: &StackOptions) -> Result<Captured, StacksError> {
    let file = reader::read(data, &Limits::default()).map_err(StacksError::from_error)?;
    let snapshot = &file.snapshot;
    let mut builder = Builder::new(snapshot);
    let mut parts = Vec::new();
    for image in &snapshot.images {
        let search = search(image, None, options);
        let found = index.image_files(&images::wanted(image, snapshot.arch), &search);
        parts.extend(images::add(&mut builder, snapshot, image, found, image.bias));
    }
    images::add_unclaimed(&mut builder, snapshot, &mut parts);
    builder.add_jit(&parts, Vec::new());
    let mut captured = builder.finish(options);
    complete(&mut captured.report, &file);
    Ok(captured)
}

/// Adds what other captures do not have.
fn complete(report: &mut Report, file: &CrashFile<'_>) {
    for thread in &mut report.process.threads {
        let walked = file.walked.iter().find(|(id, _)| Some(*id) == thread.id);
        if let Some((_, frames)) = walked {
            lengthen(thread, frames);
        }
    }
    of_apple(report, file);
    report.process.place_frames();
    report.process.version =
        file.notes.iter().find(|(key, _)| key == "release").map(|(_, value)| value.clone());
    report.app_info.extend(file.messages.iter().map(|(kind, text)| AppInfo {
        image: match kind {
            MessageKind::Abort => Some("libc".to_owned()),
            MessageKind::Panic => Some("Rust".to_owned()),
            _ => None,
        },
        lines: text.lines().map(str::to_owned).collect(),
    }));
    report.thrown = thrown(file);
    let field = |key: &str, value: String| Field { key: key.to_owned(), value };
    match file.event {
        Some(Event::Hang(time)) => {
            report.event = Some("hang".to_owned());
            report.fields.push(field("Time without running", format!("{time} ms")));
        }
        Some(Event::Exit { thread, code }) => {
            report.event = Some("exit".to_owned());
            report.fields.push(field("Exit code", code.to_string()));
            report.fields.push(field("Ended by thread", thread.to_string()));
        }
        _ => {}
    }
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            report.sections.push(Section { title: title.to_owned(), text: lines.join("\n") });
        }
    };
    section("Notes", file.notes.iter().map(|(key, value)| format!("{key}: {value}")).collect());
    section("Breadcrumbs", file.breadcrumbs.iter().map(|(time, text)| breadcrumb(*time, text)).collect());
    section("Process", process(file));
    section("Open files", file.open_files.iter().map(|(number, name)| format!("{number}: {name}")).collect());
}

/// Objective-C's first: where one of its exceptions ends the program, C++'s runtime is what says so.
fn thrown(file: &CrashFile<'_>) -> Option<ThrownException> {
    let thrown = |runtime, name: &str, reason: &str| ThrownException {
        runtime,
        name: name.to_owned(),
        reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        is_handled: false,
    };
    let ns = file.ns_exception.as_ref();
    let ns = ns.map(|ns| thrown(ThrowingRuntime::ObjectiveC, &ns.name, &ns.reason));
    ns.or_else(|| {
        let (name, what) = file.exception.as_ref()?;
        Some(thrown(ThrowingRuntime::Cpp, name, what))
    })
}

/// What Apple's systems tell: the kernel's exception in their words, and where an exception of Objective-C was thrown.
fn of_apple(report: &mut Report, file: &CrashFile<'_>) {
    let family = file.snapshot.arch.family();
    if let Some(mach) = file.mach_exception {
        let exception = report.exception.get_or_insert_default();
        exception.kind = Some(mach.name().map_or_else(|| format!("exception {}", mach.kind), str::to_owned));
        exception.subtype = mach.subtype(family);
        exception.codes = Some(mach.codes());
        exception.raw_codes = vec![mach.code, mach.subcode];
        exception.address = mach.address(family).map(Avma::new);
        let crashed = report.process.threads.iter_mut().find(|thread| thread.crashed);
        if let Some(thread) = crashed {
            let register = |(name, value): (&str, u64)| Register { name: name.to_owned(), value, note: None };
            thread.registers.extend(mach.syndrome_registers(family).map(register));
        }
    }
    let thrown_at = file.ns_exception.as_ref().map(|ns| ns.thrown_at.as_slice()).unwrap_or_default();
    if !thrown_at.is_empty() {
        let frame = |(index, address): (u32, &Avma)| Frame {
            address: Some(FrameAddress::Return(*address)),
            trust: Trust::Report,
            ..Frame::new(index)
        };
        report.process.backtraces.push(Backtrace {
            title: "Last Exception Backtrace".to_owned(),
            is_exception: true,
            frames: (0..).zip(thrown_at).map(frame).collect(),
        });
    }
}

/// The file's writer walked all of the stack, by the tables of what was mapped. Here the saved stack may end before, or the files
/// with these tables may be missing, so that callers are guessed. Where it came further along the callers that are sure here, what it
/// found is taken.
fn lengthen(thread: &mut Thread, walked: &[FrameAddress]) {
    let sure = thread.frames.iter().take_while(|frame| is_sure(frame.trust)).count();
    let known = thread.frames.iter().take(sure).filter(|frame| !frame.inlined);
    let known: Vec<_> = known.filter_map(|frame| frame.address).collect();
    let is_same = known.iter().zip(walked).all(|(here, there)| here.raw() == there.raw());
    if !is_same || walked.len() <= known.len() {
        return;
    }
    // Frame pointers lead through code that was made at run time, which the writer's tables do not have.
    let here =
        thread.frames.iter().take_while(|frame| frame.trust != Trust::Scan).filter(|frame| !frame.inlined);
    let mut here = here.filter_map(|frame| frame.address).map(FrameAddress::raw);
    if walked.iter().all(|there| here.next() == Some(there.raw())) {
        return;
    }
    thread.frames.truncate(sure);
    for address in walked.iter().skip(known.len()) {
        let index = thread.frames.last().map_or(0, |last| last.index.saturating_add(1));
        thread.frames.push(Frame { address: Some(*address), trust: Trust::Report, ..Frame::new(index) });
    }
    thread.ended = Some(Ended {
        kind: EndKind::Truncated,
        why: "the saved stack ends before, or nothing here tells how it goes on; the last frames are those that the file's writer \
              found"
            .to_owned(),
    });
}

/// Whether a frame was found by a table.
fn is_sure(trust: Trust) -> bool {
    matches!(
        trust,
        Trust::Context
            | Trust::Cfi
            | Trust::CompactUnwind
            | Trust::Exidx
            | Trust::RuntimeTable
            | Trust::Report
    )
}

fn breadcrumb(time: u64, text: &str) -> String {
    format!("{}.{:03} s  {text}", time / 1000, time % 1000)
}

/// Numbers of resources, `RLIMIT_…`; Linux, `include/uapi/asm-generic/resource.h`.
const RESOURCES: [(u32, &str); 5] =
    [(3, "stack bytes"), (4, "core bytes"), (6, "processes"), (7, "open files"), (9, "address space bytes")];

fn process(file: &CrashFile<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(
        file.uptime.map(|uptime| format!("seconds since the handler was installed: {}", uptime / 1000)),
    );
    lines.extend(file.open_file_count.map(|count| format!("open files: {count}")));
    let limit = |value: u64| if value == u64::MAX { "unlimited".to_owned() } else { value.to_string() };
    for (resource, soft, hard) in &file.limits {
        let name = RESOURCES.iter().find(|(number, _)| number == resource).map(|(_, name)| *name);
        let name = name.map_or_else(|| format!("resource {resource}"), str::to_owned);
        lines.push(format!("limit of {name}: {} (hard {})", limit(*soft), limit(*hard)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(numbers: &[u64]) -> Vec<FrameAddress> {
        numbers.iter().map(|number| FrameAddress::Return(Avma::new(*number))).collect()
    }

    fn lengthened(here: &[u64], there: &[u64], guessed: usize) -> Vec<u64> {
        let sure = here.len() - guessed;
        let frames = addresses(here).into_iter().zip(0..);
        let frames = frames.map(|(address, index)| Frame {
            address: Some(address),
            trust: if (index as usize) < sure { Trust::Cfi } else { Trust::Scan },
            ..Frame::new(index)
        });
        let mut thread = Thread { frames: frames.collect(), ..Thread::default() };
        lengthen(&mut thread, &addresses(there));
        assert!(thread.frames.iter().zip(0..).all(|(frame, index)| frame.index == index));
        if there.len() > sure && here[..sure] == there[..sure] {
            // What the other walk found where this one guessed is no guess, also where it is the same.
            assert!(thread.frames.iter().all(|frame| frame.trust != Trust::Scan));
        }
        thread.frames.iter().map(|frame| frame.address.unwrap().raw().get()).collect()
    }

    #[test]
    fn only_a_longer_walk_along_the_same_callers_adds_frames() {
        assert_eq!(lengthened(&[1, 2], &[1, 2, 3, 4], 0), [1, 2, 3, 4]);
        assert_eq!(lengthened(&[1, 5], &[1, 2, 3, 4], 0), [1, 5]);
        assert_eq!(lengthened(&[1, 2], &[1], 0), [1, 2]);
        assert_eq!(lengthened(&[1, 2], &[1, 2], 0), [1, 2]);
    }

    #[test]
    fn frame_pointers_that_agree_with_the_writer_lead_further() {
        let frame = |number, trust| Frame {
            address: Some(FrameAddress::Return(Avma::new(number))),
            trust,
            ..Frame::new(u32::try_from(number).unwrap() - 1)
        };
        let chain = [Trust::Context, Trust::Cfi, Trust::FramePointer, Trust::FramePointer, Trust::Cfi];
        let frames: Vec<_> = (1..).zip(chain).map(|(number, trust)| frame(number, trust)).collect();
        let after = |walked: &[u64]| {
            let mut thread = Thread { frames: frames.clone(), ..Thread::default() };
            lengthen(&mut thread, &addresses(walked));
            let frames = thread.frames.iter();
            frames.map(|frame| frame.address.unwrap().raw().get()).collect::<Vec<_>>()
        };
        assert_eq!(after(&[1, 2, 3]), [1, 2, 3, 4, 5]);
        assert_eq!(after(&[1, 2, 9]), [1, 2, 9]);
        assert_eq!(after(&[1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
    }

    /// A server without the binaries: its guesses do not go before what was found where they were.
    #[test]
    fn guessed_callers_make_room_for_those_that_were_walked() {
        assert_eq!(lengthened(&[1, 5, 6, 7], &[1, 2, 3], 3), [1, 2, 3]);
        assert_eq!(lengthened(&[1, 2, 7], &[1, 2, 3], 1), [1, 2, 3]);
        assert_eq!(lengthened(&[1, 2, 3], &[1, 2, 3], 2), [1, 2, 3]);
        // What is sure here and another there: this is believed, guesses and all.
        assert_eq!(lengthened(&[1, 5, 6], &[1, 2, 3], 1), [1, 5, 6]);
        assert_eq!(lengthened(&[1, 5], &[1], 1), [1, 5]);
    }
}
