//! The watcher that a crash handler starts.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests may"
)]

use backtrail_capture::Limits;
use backtrail_capture::crash_file::format::MessageKind;
use backtrail_capture::crash_file::{self, CrashFile};
use backtrail_testkit::TempDir;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

/// How it ended, and the bytes of its files.
fn crash(kind: &str) -> (Output, Vec<Vec<u8>>) {
    let directory = TempDir::new("watcher");
    let own = std::env::current_exe().unwrap();
    let host = own.parent().unwrap().parent().unwrap().join("examples/own_watcher");
    let output = Command::new(host).arg(kind).arg(directory.path()).stderr(Stdio::null()).output().unwrap();
    let files = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| !file.ends_with("btcrash.reserve"));
    (output, files.map(|file| std::fs::read(file).unwrap()).collect())
}

/// What a file has, whoever wrote it.
fn has_everything<'f>(kind: &str, files: &'f [Vec<u8>], threads: usize) -> CrashFile<'f> {
    assert_eq!(files.len(), 1, "{kind}");
    let file = crash_file::read(&files[0], &Limits::default()).unwrap();
    let snapshot = &file.snapshot;
    assert!(file.is_whole, "{kind}: {:?}", snapshot.notes);
    let crashed = snapshot.threads.iter().find(|thread| thread.is_crashed).unwrap();
    let walked = |id| &file.walked.iter().find(|(known, _)| Some(*known) == id).unwrap().1;
    assert_eq!(walked(crashed.id)[0].raw(), crashed.registers.pc().unwrap(), "{kind}");
    assert!(walked(crashed.id).len() >= 4, "{kind}: {:?}", file.walked);
    assert!(snapshot.memory.bytes_from(crashed.registers.sp().unwrap()).is_some(), "{kind}");
    assert_eq!(snapshot.threads.len(), threads, "{kind}: {:?}", snapshot.threads);
    assert!(snapshot.threads.iter().all(|thread| walked(thread.id).len() >= 3), "{kind}: {:?}", file.walked);
    assert_eq!(file.notes[0], ("version".to_owned(), "1.2.3".to_owned()), "{kind}");
    assert_eq!(file.breadcrumbs.len(), 1, "{kind}");
    assert!(file.uptime.is_some() && snapshot.process.os.is_some() && file.limits.len() == 5, "{kind}");
    assert!(snapshot.images.iter().any(|image| image.path.contains("libc.so") && image.id.is_some()));
    assert!(snapshot.mappings.len() > 10 && file.open_file_count.is_some(), "{kind}");
    file
}

/// Whether the watcher wrote it: the handler's own order has the images before the threads.
fn is_from_outside(data: &[u8]) -> bool {
    let mut kinds = crash_file::format::sections(data).map(|(kind, ..)| kind);
    kinds.find(|kind| matches!(kind, 5 | 7)) == Some(5)
}

#[test]
fn the_watcher_writes_the_file_and_the_process_ends_as_without() {
    for (kind, signal, name) in [("segv", 11, "SIGSEGV"), ("panic", 6, "SIGABRT")] {
        let (output, files) = crash(kind);
        assert_eq!(output.status.signal(), Some(signal), "{kind}: {output:?}");
        assert!(output.stdout.starts_with(b"Some(Ok("), "{output:?}");
        let file = has_everything(kind, &files, 4);
        assert_eq!(file.snapshot.fault.as_ref().unwrap().name, name);
        if kind == "panic" {
            let said = file.messages.iter().find(|(kind, _)| *kind == MessageKind::Panic);
            assert!(said.is_some_and(|(_, text)| text.contains("no order 17")), "{:?}", file.messages);
        }
        assert!(is_from_outside(&files[0]) || may_not_follow(), "{kind}");
    }
}

/// Where this machine lets nobody follow processes, the process writes the file itself.
fn may_not_follow() -> bool {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let directory = TempDir::new("follow");
    let options = backtrail_watch::Options::new(directory.path());
    let is_followed = std::thread::scope(|scope| {
        let id = child.id();
        let killer = scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            Command::new("kill").arg(id.to_string()).status()
        });
        let index = backtrail_store::Index::scan(
            &[],
            &backtrail_store::ScanOptions::default(),
            &backtrail_store::NoProgress,
        );
        let watched =
            backtrail_watch::watch(backtrail_watch::Watched::Process(id), &options, &index, &mut |_| ());
        killer.join().unwrap().unwrap();
        watched.is_ok()
    });
    let _ = child.wait();
    eprintln!("skipped in part: may follow {is_followed}");
    !is_followed
}

#[test]
fn without_the_watcher_the_process_writes_the_file() {
    for kind in ["killed", "stopped", "none"] {
        let (output, files) = crash(kind);
        assert_eq!(output.status.signal(), Some(11), "{kind}: {output:?}");
        assert_eq!(output.stdout.starts_with(b"Some(Err("), kind == "none", "{output:?}");
        has_everything(kind, &files, 4);
        assert!(!is_from_outside(&files[0]), "{kind}");
    }
    // A child is not the process that it follows.
    let (output, files) = crash("fork");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    has_everything("fork", &files, 1);
    assert!(!is_from_outside(&files[0]));
}
