//! Threads that C made have a stack for signal handlers, and give it back.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may")]

use backtrail_capture::Limits;
use backtrail_capture::crash_file;
use backtrail_testkit::TempDir;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};

fn run(kind: &str, directory: &Path) -> Output {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/foreign_thread");
    Command::new(path).arg(kind).arg(directory).output().unwrap()
}

#[test]
fn an_overflow_in_a_thread_of_c_leaves_a_file() {
    let directory = TempDir::new("altstack");
    let output = run("overflow", directory.path());
    assert!(output.status.signal().is_some(), "{output:?}");
    let files = backtrail_crash::pending(directory.path()).unwrap();
    assert_eq!(files.len(), 1, "{output:?}");
    let data = std::fs::read(&files[0]).unwrap();
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    assert!(file.is_whole && file.snapshot.fault.unwrap().name == "SIGSEGV");
}

#[test]
fn stacks_are_given_back_also_by_threads_that_exit() {
    let directory = TempDir::new("altstack");
    let output = run("many", directory.path());
    assert!(output.status.success(), "{output:?}");
}
