//! Every kind of crash, in a process of its own: the file is whole, and the process ends as it does without the handler.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may")]

use backtrail_capture::Limits;
use backtrail_capture::crash_file::format::MessageKind;
use backtrail_capture::crash_file::{self, CrashFile};
use backtrail_core::Avma;
use backtrail_testkit::TempDir;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Whether the program is one image, as those for musl are.
const IS_STATIC: bool = cfg!(target_feature = "crt-static");

fn host() -> PathBuf {
    // `target/debug/deps/kinds-…` and `target/debug/examples/crash_on_demand`.
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/crash_on_demand");
    assert!(path.exists(), "{}: expected the example; `--examples` builds it", path.display());
    path
}

fn run(kind: &str, directory: Option<&Path>) -> ExitStatus {
    let mut command = Command::new(host());
    // Cores of processes that crash on purpose are of no use.
    command.arg(kind).args(directory).stderr(Stdio::null()).stdout(Stdio::null());
    command.status().unwrap()
}

/// How it ended, and the bytes of its file, or none.
fn crash(kind: &str) -> (ExitStatus, Vec<u8>) {
    let directory = TempDir::new("crash");
    let status = run(kind, Some(directory.path()));
    let mut files = files_of(directory.path());
    assert!(files.len() <= 1, "{kind}: {} files", files.len());
    (status, files.pop().unwrap_or_default())
}

fn files_of(directory: &Path) -> Vec<Vec<u8>> {
    let files = backtrail_crash::pending(directory).unwrap();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn read<'d>(kind: &str, data: &'d [u8]) -> CrashFile<'d> {
    let file = crash_file::read(data, &Limits::default()).unwrap();
    assert!(file.is_whole, "{kind}: {:?}", file.snapshot.notes);
    file
}

/// Signal and code by kind.
const KINDS: [(&str, &str, &str); 16] = [
    ("segv", "SIGSEGV", "SEGV_MAPERR"),
    ("segv-kernel", "SIGSEGV", "SI_KERNEL"),
    ("abort", "SIGABRT", "SI_TKILL"),
    // musl runs an instruction that is for the kernel alone, where glibc aborts.
    if cfg!(target_env = "musl") {
        ("bad-free", "SIGSEGV", "SI_KERNEL")
    } else {
        ("bad-free", "SIGABRT", "SI_TKILL")
    },
    ("overflow", "SIGSEGV", "SEGV_MAPERR"),
    ("overflow-in-thread", "SIGSEGV", "SEGV_ACCERR"),
    ("panic", "SIGABRT", "SI_TKILL"),
    ("bus", "SIGBUS", "BUS_ADRERR"),
    ("fpe", "SIGFPE", "SI_TKILL"),
    ("sys", "SIGSYS", "SI_TKILL"),
    ("term", "SIGTERM", "SI_TKILL"),
    ("trap", "SIGTRAP", "SI_KERNEL"),
    ("ill", "SIGILL", "ILL_ILLOPN"),
    ("malloc-locked", "SIGSEGV", "SEGV_MAPERR"),
    ("loader-locked", "SIGSEGV", "SEGV_MAPERR"),
    ("in-exit", "SIGSEGV", "SEGV_MAPERR"),
];

#[test]
fn each_kind_leaves_a_whole_file_and_ends_as_without_the_handler() {
    for (kind, signal, code) in KINDS {
        let (status, data) = crash(kind);
        // Rust's own handler reports an overflow with an allocator that is not locked; this one would hang without ours too.
        let without = run(kind, None);
        assert_eq!(status.signal(), without.signal(), "{kind}: {status} and {without}");
        assert!(status.signal().is_some(), "{kind}");
        let file = read(kind, &data);
        let fault = file.snapshot.fault.as_ref().unwrap();
        assert_eq!(fault.name, signal, "{kind}");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(fault.code.as_deref(), Some(code), "{kind}");
        }
        has_everything(kind, &file);
    }
}

fn has_everything(kind: &str, file: &CrashFile<'_>) {
    let snapshot = &file.snapshot;
    let crashed: Vec<_> = snapshot.threads.iter().filter(|thread| thread.is_crashed).collect();
    assert_eq!(crashed.len(), 1, "{kind}");
    let (pc, sp) = (crashed[0].registers.pc().unwrap(), crashed[0].registers.sp().unwrap());
    let walked = |id| &file.walked.iter().find(|(known, _)| *known == id).unwrap().1;
    let frames = walked(crashed[0].id.unwrap());
    assert!(frames.len() >= 4, "{kind}: {frames:?}");
    assert_eq!(frames[0].raw(), pc, "{kind}");
    if !kind.starts_with("overflow") {
        assert!(snapshot.memory.bytes_from(sp).is_some(), "{kind}");
    }
    assert!(snapshot.memory.size() > 4096, "{kind}");
    let workers = snapshot.threads.iter().filter(|thread| {
        let is_worker = thread.name.as_deref().is_some_and(|name| name.starts_with("worker"));
        is_worker && thread.registers.pc().is_some() && walked(thread.id.unwrap()).len() >= 3
    });
    assert_eq!(workers.count(), 3, "{kind}: {:?}", snapshot.threads);
    let program = snapshot.images.iter().find(|image| image.is_executable).unwrap();
    assert!(program.id.is_some() && program.path.ends_with("crash_on_demand"), "{kind}: {program:?}");
    let library = if IS_STATIC { "crash_on_demand" } else { "libc.so" };
    assert!(snapshot.images.iter().any(|image| image.path.contains(library) && image.id.is_some()));
    assert!(snapshot.mappings.iter().any(|mapping| mapping.name.contains(library)), "{kind}");
    let notes: Vec<_> = file.notes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(notes, [("version", "1.2.3"), ("added", "in the midst of it")], "{kind}");
    assert_eq!(file.breadcrumbs.len(), 1, "{kind}");
    assert_eq!(file.breadcrumbs[0].1, "about to crash");
    assert!(file.open_file_count.is_some_and(|count| count >= 3), "{kind}");
    assert!(file.limits.iter().any(|(resource, ..)| *resource == 7), "{kind}");
    assert!(snapshot.process.os.as_deref().is_some_and(|os| os.starts_with("Linux")), "{kind}");
}

#[test]
fn what_was_said_before_an_abort_is_kept() {
    // musl says nothing.
    if cfg!(target_env = "gnu") {
        let (_, data) = crash("bad-free");
        let file = read("bad-free", &data);
        assert_eq!(file.messages, [(MessageKind::Abort, "free(): invalid pointer".to_owned())]);
    }
    let (_, data) = crash("panic");
    let file = read("panic", &data);
    let (kind, text) = &file.messages[0];
    assert_eq!(*kind, MessageKind::Panic);
    let has_all = ["thread 'main' panicked at ", "crash_on_demand.rs:", "no order 17"];
    assert!(has_all.iter().all(|part| text.contains(part)), "{text}");
    // A fault has nothing to do with what was said some time before.
    let (_, data) = crash("segv");
    assert!(read("segv", &data).messages.is_empty());
}

#[test]
fn the_address_of_a_bad_access_is_known() {
    let (_, data) = crash("segv");
    assert_eq!(read("segv", &data).snapshot.fault.unwrap().address, Some(Avma::new(0x18)));
    // The kernel does not tell one that no address can be.
    let (_, data) = crash("segv-kernel");
    assert_eq!(read("segv-kernel", &data).snapshot.fault.unwrap().address, None);
}

#[test]
fn handlers_of_the_program_are_called_and_ignored_signals_ignored() {
    let (status, data) = crash("own-handler");
    assert_eq!(status.code(), Some(7));
    read("own-handler", &data);
    let (status, data) = crash("ignored");
    assert_eq!((status.code(), data.len()), (Some(0), 0));
}

/// For an SDK within somebody else's program.
#[test]
fn only_crashes_that_touch_the_own_code_are_kept() {
    let (status, data) = crash("sdk");
    assert_eq!(status.signal(), Some(11));
    has_everything("sdk", &read("sdk", &data));
    let (status, data) = crash("sdk-others");
    assert_eq!((status.signal(), data.len()), (Some(11), 0));
    // A fault that the program got over does not cost the report of a later crash.
    let (status, data) = crash("sdk-after-others");
    assert_eq!(status.signal(), Some(11));
    let file = read("sdk-after-others", &data);
    assert_eq!(file.snapshot.fault.unwrap().address, Some(Avma::new(0x18)));
}

#[test]
fn the_programs_filter_decides() {
    let directory = TempDir::new("crash");
    assert_eq!(run("filtered", Some(directory.path())).signal(), Some(11));
    let left = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["btcrash.reserve"], "nothing is left, no part either");
    // One that crashes itself decides nothing.
    let (status, data) = crash("in-filter");
    assert_eq!(status.signal(), Some(11));
    let file = read("in-filter", &data);
    let says =
        "the program's own function crashed with signal 11; what it would have written next is missing";
    assert!(file.snapshot.notes.iter().any(|note| note == says), "{:?}", file.snapshot.notes);
    assert_eq!(file.snapshot.fault.unwrap().address, Some(Avma::new(0x18)));
}

#[test]
fn a_crash_within_the_crash_leaves_a_shorter_file() {
    let (status, data) = crash("in-handler");
    assert_eq!(status.signal(), Some(11));
    let file = read("in-handler", &data);
    let says =
        "the program's own function crashed with signal 11; what it would have written next is missing";
    assert!(file.snapshot.notes.iter().any(|note| note == says), "{:?}", file.snapshot.notes);
    assert_eq!(file.snapshot.threads.iter().filter(|thread| thread.is_crashed).count(), 1);
}

/// Seen: a filter that panicked ended the thread that writes the file, and there was none.
#[test]
fn a_panic_of_the_programs_own_function_costs_nothing_else() {
    for (kind, signal, says) in [
        ("panic-in-filter", 6, "the program's filter panicked: the crash is kept"),
        ("panic-in-handler", 11, "the program's own function panicked"),
    ] {
        let (status, data) = crash(kind);
        assert_eq!(status.signal(), Some(signal), "{kind}");
        let file = read(kind, &data);
        assert!(file.snapshot.notes.iter().any(|note| note == says), "{kind}: {:?}", file.snapshot.notes);
        assert!(file.snapshot.threads.len() >= 4 && file.open_file_count.is_some(), "{kind}");
        let said: Vec<_> = file.messages.iter().map(|(_, text)| text.contains("no order 17")).collect();
        assert_eq!(said, if signal == 6 { vec![true] } else { vec![] }, "{kind}: {:?}", file.messages);
    }
}

#[test]
fn what_a_thread_said_is_not_lost_by_what_others_say() {
    let (_, data) = crash("panics-of-others");
    let file = read("panics-of-others", &data);
    assert!(file.messages.len() == 1 && file.messages[0].1.contains("no order 17"), "{:?}", file.messages);
    let (_, data) = crash("panic-twice");
    let file = read("panic-twice", &data);
    let said = file.messages.iter().map(|(_, text)| text.lines().nth(1).unwrap_or_default());
    assert_eq!(said.collect::<Vec<_>>(), ["and the second", "the first reason"]);
}

/// On a thread with a stack for signals of the standard library's size, too.
#[test]
fn a_handler_that_hangs_costs_what_it_would_have_added() {
    for (kind, code) in [
        ("hang-in-handler", None),
        ("hang-in-handler-of-thread", None),
        ("hang-in-handler-of-fork", Some(11)),
    ] {
        let (status, data) = crash(kind);
        assert_eq!((status.signal(), status.code()), (code.is_none().then_some(11), code), "{kind}");
        let file = read(kind, &data);
        let says = "the program's own function took too long; what would have been written next is missing";
        assert!(file.snapshot.notes.iter().any(|note| note == says), "{kind}: {:?}", file.snapshot.notes);
        let threads = if code.is_none() { 4 } else { 1 };
        assert!(file.snapshot.fault.is_some() && file.snapshot.threads.len() >= threads, "{kind}");
    }
}

/// Files of at most so many bytes are as a disk that was full when the program began: nothing could be set aside.
#[test]
fn a_full_disk_keeps_what_fits() {
    let (status, data) = crash("file-size");
    assert_eq!(status.signal(), Some(11));
    assert_eq!(data.len(), 20_000);
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    let crashed = file.snapshot.threads.iter().find(|thread| thread.is_crashed).unwrap();
    assert!(!file.is_whole && crashed.registers.pc().is_some());
    assert_eq!(file.snapshot.fault.unwrap().name, "SIGSEGV");
}

#[test]
fn two_threads_that_crash_together_leave_one_file() {
    for _ in 0..5 {
        let (status, data) = crash("two");
        assert_eq!(status.signal(), Some(11));
        let file = read("two", &data);
        assert_eq!(file.snapshot.threads.iter().filter(|thread| thread.is_crashed).count(), 1);
    }
}

/// Of one process that is no child's: everything but the three workers.
fn has_the_crash(kind: &str, data: &[u8]) {
    let file = read(kind, data);
    let snapshot = &file.snapshot;
    assert_eq!(snapshot.fault.as_ref().unwrap().name, "SIGSEGV", "{kind}");
    assert_eq!(snapshot.threads.len(), 1, "{kind}: {:?}", snapshot.threads);
    let crashed = &snapshot.threads[0];
    assert!(crashed.is_crashed && crashed.id == snapshot.process.pid, "{kind}: {crashed:?}");
    assert!(file.walked[0].1.len() >= 3, "{kind}: {:?}", file.walked);
    assert_eq!(file.breadcrumbs.len(), 1, "{kind}");
    assert!(snapshot.images.len() > if IS_STATIC { 0 } else { 2 } && !snapshot.mappings.is_empty(), "{kind}");
}

/// A child of `fork` has no thread but the one that forked.
#[test]
fn children_leave_files_of_their_own() {
    for kind in ["in-fork", "overflow-in-fork", "in-forks-fork"] {
        let directory = TempDir::new("crash");
        let status = run(kind, Some(directory.path()));
        // The parent ends with the number of the child's signal.
        assert!(status.code().is_some() && status == run(kind, None), "{kind}: {status}");
        let files = files_of(directory.path());
        assert_eq!(files.len(), 1, "{kind}");
        has_the_crash(kind, &files[0]);
    }
    let directory = TempDir::new("crash");
    assert_eq!(run("in-handler-in-fork", Some(directory.path())).code(), Some(11));
    let files = files_of(directory.path());
    let file = read("in-handler-in-fork", &files[0]);
    assert!(
        file.snapshot.notes.iter().any(|note| note.contains("crashed with signal 11")),
        "{:?}",
        file.snapshot.notes
    );
}

/// A child of `vfork` has the parent's memory: its crash must not be the parent's.
#[test]
fn crashes_within_vfork_leave_the_parent_as_it_was() {
    let directory = TempDir::new("crash");
    let status = run("in-vfork", Some(directory.path()));
    assert_eq!(status.code(), Some(0), "{status}");
    let files = files_of(directory.path());
    assert_eq!(files.len(), 1);
    has_the_crash("in-vfork", &files[0]);
    let directory = TempDir::new("crash");
    let status = run("in-vfork-and-after", Some(directory.path()));
    assert_eq!(status.signal(), Some(11), "{status}");
    let files = files_of(directory.path());
    assert_eq!(files.len(), 4);
    for file in &files[..3] {
        has_the_crash("in-vfork-and-after", file);
    }
    has_everything("in-vfork-and-after", &read("in-vfork-and-after", &files[3]));
}

#[test]
fn a_thousand_threads_are_all_there() {
    let (status, data) = crash("many-threads");
    assert_eq!(status.signal(), Some(11));
    let file = read("many-threads", &data);
    let workers = file.snapshot.threads.iter().filter(|thread| {
        let frames = file.walked.iter().find(|(id, _)| Some(*id) == thread.id);
        let is_walked = frames.is_some_and(|(_, frames)| frames.len() >= 3);
        thread.name.as_deref().is_some_and(|name| name.starts_with("worker")) && is_walked
    });
    assert_eq!(workers.count(), 1000, "{:?}", file.snapshot.notes);
}

#[test]
fn a_process_has_one_handler_and_bad_directories_are_told() {
    let file = TempDir::new("crash");
    let path = file.write("file", b"");
    let error = backtrail_crash::install(backtrail_crash::Options::new(path.join("below"))).unwrap_err();
    assert!(matches!(error, backtrail_crash::InstallError::Directory { .. }), "{error}");
}
