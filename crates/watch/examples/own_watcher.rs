//! A program whose crash handler has this program itself as its watcher: KIND DIRECTORY.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(unsafe_code, reason = "crashing takes some")]
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::exit,
    reason = "that is what it is for"
)]

use backtrail_crash::{self as crash, Options};
use backtrail_store::{Index, NoProgress, ScanOptions};
use backtrail_testkit::{Guarded, start_workers};
use std::hint::black_box;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["watch", "--for-handler", "--out", _] => {
            backtrail_watch::start_again().unwrap_or_else(|error| panic!("{error}"));
        }
        ["watch", "--for-handler", "--out", directory, "--stays"] => {
            let socket =
                std::io::stdin().as_fd().try_clone_to_owned().unwrap_or_else(|error| panic!("{error}"));
            let index = Index::scan(&[], &ScanOptions::default(), &NoProgress);
            let served = backtrail_watch::serve_handler(&socket.into(), directory.as_ref(), &index);
            served.unwrap_or_else(|error| panic!("{error}"));
        }
        [kind, directory] => crash_by(kind, directory),
        _ => eprintln!("expected KIND DIRECTORY"),
    }
}

fn crash_by(kind: &str, directory: &str) {
    let mut options = Options::new(directory);
    options.watcher = std::env::current_exe().ok();
    options.patience = Duration::from_secs(if kind == "stopped" { 4 } else { 60 });
    if kind == "none" {
        options.watcher = Some("/nowhere/to/be/found".into());
    }
    let handler = crash::install(options).unwrap_or_else(|error| panic!("{error}"));
    println!("{:?}", handler.watcher());
    crash::note("version", "1.2.3");
    crash::breadcrumb("about to crash");
    let watcher = handler.watcher().and_then(Result::ok).and_then(|id| i32::try_from(id).ok());
    let tell = |signal| {
        // SAFETY: the watcher is this program's own.
        watcher.into_iter().for_each(|id| _ = unsafe { libc::kill(id, signal) });
    };
    start_workers(3);
    match kind {
        "killed" => tell(libc::SIGKILL),
        "stopped" => {
            tell(libc::SIGSTOP);
            // Whoever stops it has it end, too: it would stand for ever.
            let id = watcher.unwrap_or(0).to_string();
            let kill =
                Command::new("sh").args(["-c", "sleep 10; kill -KILL $0", &id]).stdout(Stdio::null()).spawn();
            drop(kill);
        }
        "panic" => cannot_unwind(),
        // SAFETY: forks a process that crashes.
        "fork" if unsafe { libc::fork() } != 0 => {
            // SAFETY: waits for a child; the pointer may be null.
            unsafe { libc::wait(std::ptr::null_mut()) };
            return;
        }
        _ => {}
    }
    write_to(black_box(0x18));
}

extern "C" fn cannot_unwind() {
    panic!("no order {}", 17);
}

#[inline(never)]
fn write_to(address: usize) {
    // SAFETY: none; it crashes.
    unsafe { (address as *mut u32).write_volatile(1) };
}
