//! Which lock a thread of another process waits for, and who holds it.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "a test's helpers may"
)]

use backtrail_capture::remote::{
    Captured, CpuAvoidance, Error, LockKind, LockSource, LockWait, Options, Target, ThreadInfo, capture,
};
use backtrail_testkit::TempDir;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Running {
    child: Child,
    /// Where the program says that its locks are.
    cycle: u64,
    written: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None`, and one line, where the compiler is missing.
fn start(folder: &TempDir, compiler: &str, options: &[&str]) -> Option<Running> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/locks.c");
    let program = folder.join("program");
    let built =
        Command::new(compiler).arg("-o").arg(&program).arg(source).args(options).arg("-pthread").output();
    if !built.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {compiler} {options:?} cannot build it here: {built:?}");
        return None;
    }
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut addresses =
        line.split_whitespace().map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap());
    let (cycle, written) = (addresses.next().unwrap(), addresses.next().unwrap());
    Some(Running { child, cycle, written })
}

/// The threads, once all of them wait where they are to. `None`, and one line, where processes may not be stopped.
fn waiting(running: &Running, options: &Options) -> Option<Captured> {
    let target = Target::open(running.child.id()).unwrap();
    let began = Instant::now();
    loop {
        let captured = match capture(&target, options, &mut CpuAvoidance::default()) {
            Ok(captured) => captured,
            Err(Error::Denied(..)) => {
                eprintln!("skipped: must not stop other processes");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        // The first thread reads; the barrier is behind those that have a name of their own.
        let waits = |thread: &ThreadInfo| thread.waits_for.is_some() && thread.name != "program";
        if captured.threads.iter().skip(1).all(waits) && is_settled(&captured) {
            return Some(captured);
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:#?}", captured.threads);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Those in the cycle have a name before they wait at the barrier, on whose word all of them wait.
fn is_settled(captured: &Captured) -> bool {
    let cycle: Vec<_> = (0..3).filter_map(|number| wait(captured, &format!("cycle {number}"))).collect();
    cycle.windows(2).all(|pair| pair[0].address != pair[1].address)
}

fn thread<'c>(captured: &'c Captured, name: &str) -> &'c ThreadInfo {
    captured.threads.iter().find(|thread| thread.name == name).unwrap()
}

fn wait(captured: &Captured, name: &str) -> Option<LockWait> {
    thread(captured, name).waits_for
}

#[test]
fn who_holds_glibcs_locks() {
    let folder = TempDir::new("capture-locks");
    let Some(running) = start(&folder, "cc", &[]) else { return };
    for consistent in [false, true, false] {
        let mut options = Options::default();
        options.consistent = consistent;
        let Some(captured) = waiting(&running, &options) else { return };
        let of = |name: &str| {
            let waits = wait(&captured, name).unwrap();
            (waits.kind, waits.owner, waits.told_by)
        };
        let main = Some(running.child.id());
        for number in 0..3_u64 {
            let next = (number + 1) % 3;
            let owner = thread(&captured, &format!("cycle {next}")).id;
            let name = format!("cycle {number}");
            assert_eq!(of(&name), (LockKind::Mutex, Some(owner), LockSource::Glibc));
            assert_eq!(wait(&captured, &name).unwrap().address.get(), running.cycle + next * 40);
        }
        for name in ["recursive", "robust", "timed"] {
            assert_eq!(of(name), (LockKind::Mutex, main, LockSource::Glibc), "{name}");
        }
        assert_eq!(of("inheriting"), (LockKind::Mutex, main, LockSource::Kernel));
        for name in ["reader", "writer"] {
            assert_eq!(of(name), (LockKind::RwLock, main, LockSource::Glibc), "{name}");
            assert_eq!(wait(&captured, name).unwrap().address.get(), running.written);
        }
        let first = thread(&captured, "cycle 0").id;
        assert_eq!(of("join"), (LockKind::ThreadEnd, Some(first), LockSource::Glibc));
        for name in ["condition", "semaphore"] {
            assert_eq!(of(name), (LockKind::Unknown, None, LockSource::Address), "{name}");
        }
    }
}

#[test]
fn who_holds_musls_locks() {
    let folder = TempDir::new("capture-locks-musl");
    let Some(running) = start(&folder, "musl-gcc", &["-static"]) else { return };
    let Some(captured) = waiting(&running, &Options::default()) else { return };
    for name in ["recursive", "robust"] {
        let waits = wait(&captured, name).unwrap();
        let expected = (LockKind::Mutex, Some(running.child.id()), LockSource::Musl);
        assert_eq!((waits.kind, waits.owner, waits.told_by), expected, "{name}");
    }
    // Of plain mutexes it keeps no owner.
    assert_eq!(wait(&captured, "cycle 0").unwrap().owner, None);
}
