//! Tombstones, ANR traces, Java exceptions and thread dumps.

use crate::losses::{Words, words};
use crate::{files, read};
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::{Frame, Report, Source};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Every text of these kinds, and what it is.
fn texts() -> Vec<(PathBuf, Source)> {
    let mut found = Vec::new();
    let mut add = |directory: &str, part: &str, source| {
        let of_name =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part));
        found.extend(files(directory, ".txt").into_iter().filter(of_name).map(|path| (path, source)));
    };
    add("android", "tombstone_native", Source::AndroidTombstone);
    add("android", "tombstone_java", Source::AndroidTombstone);
    add("android", "tombstone_anr", Source::AndroidAnr);
    add("android", "thread_dump", Source::AndroidAnr);
    add("kinds/android-tombstone", "", Source::AndroidTombstone);
    add("kinds/android-anr", "", Source::AndroidAnr);
    add("kinds/java-threaddump", "", Source::JavaThreadDump);
    add("kinds/java", "", Source::JavaTrace);
    // These are descriptions, and hold no stack.
    found.retain(|(path, _)| !path.to_string_lossy().ends_with("-metadata.txt"));
    found
}

fn all_frames(report: &Report) -> impl Iterator<Item = &Frame> {
    let processes = std::iter::once(&report.process).chain(&report.processes);
    processes.flat_map(|process| {
        let threads = process.threads.iter().flat_map(|thread| &thread.frames);
        threads.chain(process.backtraces.iter().flat_map(|backtrace| &backtrace.frames))
    })
}

/// Words of the form, which the model states by its own structure.
const FORM: &str = "pid tid name backtrace java stacktrace native pc at BuildId offset null signal fault addr fd sysTid \
    prio kernel deleted unknown ABI Cmd line Cmdline Abort message Timestamp Crash time App ID version tombstone \
    lang Thread State Full on the an Java Exception Caused by in thread total frames more nid";

#[test]
fn every_word_is_in_the_model() {
    let form: HashSet<String> = words(FORM).collect();
    for (path, source) in texts() {
        let (input, report) = read(&path);
        assert_eq!(report.source, source, "{}", path.display());
        let mut model = Words::of(&report);
        for process in &report.processes {
            let alone = Report { process: process.clone(), ..Report::default() };
            model.0.extend(Words::of(&alone).0);
        }
        for frame in all_frames(&report) {
            // Rows are written with leading zeros.
            model.number(frame.index.into());
        }
        for (number, line) in String::from_utf8_lossy(&input).lines().enumerate() {
            let has = |word: &String| {
                let digits = word.trim_start_matches('0');
                let as_number = u64::from_str_radix(digits, 16).map(|value| format!("{value:#x}"));
                model.0.contains(word)
                    || form.contains(word)
                    || model.0.contains(digits)
                    || as_number.is_ok_and(|number| model.0.contains(&number))
                    || digits.is_empty()
            };
            let lost: Vec<String> = words(line).filter(|word| !has(word)).collect();
            assert!(lost.is_empty(), "{} line {}: {lost:?} of `{line}`", path.display(), number + 1);
        }
    }
}

/// Rows of stacks, told by other means than the reader's.
fn rows(text: &str) -> usize {
    let is_native = |line: &str| {
        let line = line.trim_start().trim_start_matches("native: ");
        line.strip_prefix('#')
            .and_then(|rest| rest.split_once(' '))
            .is_some_and(|(_, rest)| rest.trim_start().starts_with("pc "))
    };
    let is_java = |line: &str| {
        let line = line.trim_start();
        line.starts_with("at ") && line.ends_with(')') && line.contains('(')
    };
    let is_kernel = |line: &str| line.trim_start().starts_with("kernel: ") && !line.contains("kernel: (");
    text.lines().filter(|line| is_native(line) || is_java(line) || is_kernel(line)).count()
}

#[test]
fn every_row_is_a_frame() {
    let mut seen = 0;
    for (path, _) in texts() {
        let (input, report) = read(&path);
        let expected = rows(&String::from_utf8_lossy(&input));
        assert_eq!(all_frames(&report).count(), expected, "{}", path.display());
        seen += expected;
    }
    assert!(seen == 0 || seen > 10_000, "{seen}");
}

fn corpus(path: &str) -> Option<Report> {
    Some(read(&backtrail_testkit::corpus_file(path)?).1)
}

#[test]
fn a_native_tombstone() {
    let Some(report) = corpus("android/tombstone_native_arm64-v8a.txt") else { return };
    let process = &report.process;
    assert_eq!(
        (process.name.as_deref(), process.pid, process.arch),
        (Some("xcrash.sample"), Some(20501), Some(Arch::Arm64))
    );
    assert_eq!(process.version.as_deref(), Some("1.2.3-beta456-patch789"));
    assert_eq!((report.os.as_deref(), report.device.as_deref()), (Some("Android 10"), Some("sailfish")));
    let exception = report.exception.as_ref().unwrap();
    assert_eq!((exception.signal.as_deref(), exception.address), (Some("SIGSEGV"), Some(Avma::new(0))));
    let thread = report.crashed().unwrap();
    assert_eq!((thread.id, thread.frames.len(), thread.registers.len()), (Some(20501), 75, 33));
    // Android 10 states offsets in the file.
    let first = &thread.frames[0];
    assert_eq!((first.relative_pc, first.file_offset.unwrap().get()), (None, 0xb884));
    assert_eq!(first.reported.as_ref().unwrap().name, "xc_test_call_4");
    let image = &process.images[first.image.unwrap()];
    assert_eq!(image.name, "libxcrash.so");
    let has_id = process.images.iter().filter(|image| image.id.is_some()).count();
    assert!(has_id > 3, "identities stand in a list behind the stack");
    assert!(report.sections.iter().any(|section| section.title == "memory map"));
}

#[test]
fn an_anr_trace() {
    let Some(report) = corpus("kinds/android-anr/datadog-anr_crash_trace.txt") else { return };
    let process = &report.process;
    assert_eq!((process.pid, process.threads.len()), (Some(10348), 47));
    assert_eq!(process.name.as_deref(), Some("com.datadog.android.sample"));
    assert_eq!(report.os.as_deref(), Some("Android 14"));
    let main = report.crashed().unwrap();
    assert_eq!((main.name.as_deref(), main.number, main.id), (Some("main"), 1, Some(10348)));
    assert_eq!(main.state.as_deref(), Some("Runnable"));
    let top = main.frames[2].reported.as_ref().unwrap();
    assert_eq!(
        (top.name.as_str(), top.file.as_deref(), top.line),
        ("com.datadog.android.sample.vitals.BadView.onDraw", Some("BadView.kt"), Some(72))
    );
}

#[test]
fn a_java_crash_has_its_root_cause() {
    let Some(report) = corpus("android/tombstone_java.txt") else { return };
    assert_eq!(report.exception.as_ref().unwrap().kind.as_deref(), Some("java.lang.IllegalStateException"));
    let thrown: Vec<_> =
        report.process.backtraces.iter().filter(|backtrace| backtrace.is_exception).collect();
    assert_eq!(thrown.len(), 1);
    assert_eq!(thrown[0].title, "Caused by: java.lang.RuntimeException: test java exception");
    assert_eq!(thrown[0].frames.len(), 2);
    assert_eq!(thrown[0].frames[1].annotations, ["... 13 more"]);
    assert_eq!(report.crashed().unwrap().id, Some(21356));
}

#[test]
fn hotspots_threads() {
    let Some(report) = corpus("kinds/java-threaddump/jtd-thread-dump-deadlock.txt") else { return };
    let threads = &report.process.threads;
    assert_eq!((threads.len(), threads[0].number, threads[0].id), (2, 1, Some(0x1000)));
    assert_eq!(threads[0].state.as_deref(), Some("BLOCKED (on object monitor)"));
    let locks = &threads[0].frames[0].annotations;
    assert_eq!(locks[0], "- waiting to lock <0x00000007ffc11111> (a java.lang.Object)");
}

/// `.pb.gz` of the corpus, unpacked.
fn proto(path: &str) -> Option<Vec<u8>> {
    let path = backtrail_testkit::corpus_file(path)?;
    let bytes = std::fs::read(&path).unwrap();
    Some(if path.extension().is_some_and(|end| end == "gz") { gunzip(&path) } else { bytes })
}

fn gunzip(path: &Path) -> Vec<u8> {
    let run = std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert!(run.status.success());
    run.stdout
}

#[test]
fn tombstones_as_protocol_buffers() {
    for (path, pid, threads, frames, maps) in [
        ("android/tombstone.pb.gz", 21891, 62, 1002, 2851),
        ("kinds/android-tombstone-pb/embrace-aei_ndk_crash.pb", 4307, 34, 822, 2201),
    ] {
        let Some(bytes) = proto(path) else { return };
        let report = backtrail_report::parse(&bytes, &backtrail_report::Limits::default()).unwrap();
        let process = &report.process;
        assert_eq!(report.source, Source::AndroidTombstone);
        assert_eq!((process.pid, process.arch), (Some(pid), Some(Arch::Arm64)), "{path}");
        assert_eq!((process.threads.len(), all_frames(&report).count()), (threads, frames), "{path}");
        assert_eq!(report.crashed().unwrap().id, Some(pid));
        assert_eq!(report.exception.as_ref().unwrap().signal.as_deref(), Some("SIGSEGV"));
        assert!(report.fields.iter().any(|f| f.key == "Cause" && f.value == "null pointer dereference"));
        let map = report.sections.iter().find(|section| section.title.starts_with("memory map")).unwrap();
        assert_eq!(map.text.lines().count(), maps);
        let frame = all_frames(&report).find(|f| f.names().next() == Some("syscall")).unwrap();
        assert!(frame.relative_pc.is_some() && frame.address.is_some() && frame.stack_pointer.is_some());
        let image = &process.images[frame.image.unwrap()];
        assert!(matches!(image.id, Some(ImageId::BuildId(_))));
        assert_eq!(image.name, "libc.so");
    }
    let Some(bytes) = proto("android/tombstone.pb.gz") else { return };
    let report = backtrail_report::parse(&bytes, &backtrail_report::Limits::default()).unwrap();
    let field = report.fields.iter().find(|field| field.key == "tombstone field 27").unwrap();
    assert_eq!(field.value, "/system/bin/app_process64");
    assert!(report.notes.iter().any(|note| note.contains("field 28 is not known")), "{:?}", report.notes);
}

/// Every text of a message, found without the schema.
fn strings(bytes: &[u8], found: &mut Vec<String>) {
    let mut at = 0;
    let varint = |at: &mut usize| {
        let (mut value, mut shift) = (0_u64, 0);
        while let Some(byte) = bytes.get(*at) {
            *at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    };
    while at < bytes.len() {
        match varint(&mut at) & 7 {
            0 => _ = varint(&mut at),
            1 => at += 8,
            5 => at += 4,
            2 => {
                let size = usize::try_from(varint(&mut at)).unwrap();
                let Some(inner) = bytes.get(at..).and_then(|rest| rest.get(..size)) else { return };
                at += size;
                match std::str::from_utf8(inner) {
                    Ok(text) if text.chars().all(|c| !c.is_control()) && size > 3 => {
                        found.push(text.to_owned());
                    }
                    _ => strings(inner, found),
                }
            }
            _ => return,
        }
    }
}

#[test]
fn every_text_of_a_protocol_buffer_is_in_the_model() {
    for path in ["android/tombstone.pb.gz", "kinds/android-tombstone-pb/embrace-aei_ndk_crash.pb"] {
        let Some(bytes) = proto(path) else { return };
        let report = backtrail_report::parse(&bytes, &backtrail_report::Limits::default()).unwrap();
        let model = Words::of(&report);
        let mut found = Vec::new();
        strings(&bytes, &mut found);
        assert!(found.len() > 5_000, "{}", found.len());
        for text in found.iter().filter(|text| text.chars().filter(char::is_ascii_alphanumeric).count() > 3) {
            let lost: Vec<String> = words(text).filter(|word| !model.0.contains(word)).collect();
            // Messages whose bytes happen to be text were not looked into.
            let is_text = !text.starts_with(['\u{8}', '\n']) && !text.contains('\u{fffd}');
            assert!(lost.is_empty() || !is_text || text.len() < 24, "{path}: {lost:?} of {text:?}");
        }
    }
}
