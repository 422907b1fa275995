//! Crashes where a program can do less than usual: the report is as whole, and the process ends by its signal.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may")]

use backtrail_capture::crash_file;
use backtrail_capture::{Limits, Thread};
use backtrail_testkit::{TempDir, not_installed};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

/// Crashes in such a place, and gives the bytes of the one file that is in `crashes` or `found_in` then; `None` where this machine does not
/// permit to make it one.
fn file_of(place: &str, found_in: &str) -> Option<Vec<u8>> {
    let own = std::env::current_exe().unwrap();
    let host = own.parent().unwrap().parent().unwrap().join("examples/crash_in_a_bad_place");
    let directory = TempDir::new("bad-place");
    let mut command = Command::new(host);
    command.arg(place).arg(directory.path().join("crashes")).stderr(Stdio::null());
    let status = command.status().unwrap();
    if status.code() == Some(3) {
        not_installed(&format!("what {place} wants"));
        return None;
    }
    assert_eq!(status.signal(), Some(11), "{place}: {status}");
    let files = backtrail_crash::pending(&directory.path().join(found_in)).unwrap();
    assert_eq!(files.len(), 1, "{place}: {files:?}");
    let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{place}");
    Some(std::fs::read(&files[0]).unwrap())
}

fn is_whole(place: &str, data: &[u8], thread_count: usize) {
    let file = crash_file::read(data, &Limits::default()).unwrap();
    let snapshot = &file.snapshot;
    assert!(file.is_whole && snapshot.notes.is_empty(), "{place}: {:?}", snapshot.notes);
    assert_eq!(snapshot.fault.as_ref().unwrap().name, "SIGSEGV", "{place}");
    // One of the handler's own that has not taken its name yet may be among them.
    let count = snapshot.threads.len();
    assert!((thread_count..=thread_count + 1).contains(&count), "{place}: {:?}", snapshot.threads);
    let is_worker = |thread: &Thread| thread.name.as_deref().is_some_and(|name| name.starts_with("worker"));
    let told: Vec<_> =
        snapshot.threads.iter().filter(|thread| thread.is_crashed || is_worker(thread)).collect();
    assert_eq!(told.len(), 3, "{place}: {:?}", snapshot.threads);
    for thread in told {
        assert!(thread.registers.pc().is_some(), "{place}: {thread:?}");
        let frames = &file.walked.iter().find(|(id, _)| Some(*id) == thread.id).unwrap().1;
        assert!(frames.len() >= 3, "{place}: {frames:?}");
    }
    assert!(snapshot.mappings.len() > 10 && snapshot.memory.size() > 2048, "{place}");
    let count = file.open_file_count.unwrap();
    // What is open for a crash alone is not the program's.
    assert!(
        file.open_files.iter().all(|(_, target)| !target.contains("bad-place")),
        "{place}: {:?}",
        file.open_files
    );
    assert!(count > 0, "{place}");
}

#[test]
fn a_report_is_whole_wherever_the_program_is() {
    for (place, found_in) in [
        // Seen with a program that leaked files: nothing could be opened, no file was left.
        ("no-files", "crashes"),
        // Seen with programs that give up their root, or whose directory a service for temporary files removes.
        ("other-root", "crashes"),
        ("moved", "crashes.moved"),
        ("gone", "crashes"),
        // Filters of system calls: reading memory by the kernel ended the report, and a file that could not be synced kept its name.
        ("no-reading", "crashes"),
        ("no-syncing", "crashes"),
        // Seen with a program whose mask of rights left its owner none: it could not read the file at its next start.
        ("no-rights-for-anybody", "crashes"),
        // Seen with code that had set the flag AC: the handler's own accesses faulted, and the process hung.
        ("no-misaligned-access", "crashes"),
    ] {
        if let Some(data) = file_of(place, found_in) {
            is_whole(place, &data, 3);
        }
    }
}

/// Seen with a child in a new namespace of process numbers: `/proc` lists others than those that signals are sent to, and a thread that took
/// its time was said to be gone.
#[test]
fn threads_are_asked_by_their_own_numbers() {
    if let Some(data) = file_of("other-numbers", "crashes") {
        is_whole("other-numbers", &data, 6);
        let file = crash_file::read(&data, &Limits::default()).unwrap();
        let crashed = file.snapshot.threads.iter().find(|thread| thread.is_crashed).unwrap();
        assert_eq!((file.snapshot.process.pid, crashed.id), (Some(1), Some(1)));
    }
}

/// Seen with a program whose first thread waited by `pause`, and left when a signal had ended that: the report was not finished.
#[test]
fn who_was_asked_for_its_stack_does_not_go_on_before_the_end() {
    for _ in 0..20 {
        let data = file_of("leaves-when-interrupted", "crashes").unwrap();
        is_whole("leaves-when-interrupted", &data, 4);
    }
}

/// Seen with a program whose `main` ended by `pthread_exit`: mappings, memory and open files were asked of a thread that had none any more.
#[test]
fn a_report_is_whole_after_the_end_of_the_first_thread() {
    if let Some(data) = file_of("no-first-thread", "crashes") {
        is_whole("no-first-thread", &data, 4);
    }
}

/// Seen with a program whose threads worked on the same broken data: of those that crashed second nothing was known.
#[test]
fn threads_that_crash_together_are_all_told() {
    let data = file_of("all-at-once", "crashes").unwrap();
    is_whole("all-at-once", &data, 9);
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    let threads = &file.snapshot.threads;
    let silent = threads.iter().filter(|thread| thread.registers.pc().is_none()).count();
    // One of the handler's own may be among them.
    assert!(silent <= 1, "{threads:?}");
    for thread in threads {
        let frames =
            file.walked.iter().find(|(id, _)| Some(*id) == thread.id).map_or(0, |walked| walked.1.len());
        let has_crashed_too =
            thread.state.as_deref().is_some_and(|state| state.starts_with("crashed, too, by signal 11"));
        assert!(!has_crashed_too || frames >= 3, "{thread:?}: {frames}");
    }
}

/// Seen with a plug-in: its frames had no names, and the stack ended in it.
#[test]
fn libraries_that_were_loaded_since_are_listed() {
    if let Some(data) = file_of("newer-library", "crashes") {
        is_whole("newer-library", &data, 3);
        let file = crash_file::read(&data, &Limits::default()).unwrap();
        let images = &file.snapshot.images;
        let newer = images.iter().find(|image| image.path.contains("libresolv")).unwrap();
        let mapped =
            file.snapshot.mappings.iter().find(|mapping| mapping.name == newer.path && mapping.executable);
        assert!(newer.range.unwrap().contains(mapped.unwrap().range.start()), "{newer:?}");
        assert_eq!(images.iter().filter(|image| image.path == newer.path).count(), 1);
    }
}
