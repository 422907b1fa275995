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
    Captured, CpuAvoidance, Deadlock, Error, LockHolder, LockWait, Options, Target, ThreadInfo, capture,
};
use backtrail_model::{LockKind, LockSource};
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
fn start(directory: &TempDir, compiler: &str, source: &str, options: &[&str]) -> Option<Running> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/targets").join(source);
    let program = directory.join("program");
    let built = Command::new(compiler).arg("-o").arg(&program).arg(source).args(options).output();
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
        let waits = |thread: &ThreadInfo| {
            let is_waiting = thread.waiting_in.as_deref() == Some("futex") && thread.waits_for.is_some();
            is_waiting && thread.name != "program"
        };
        if captured.threads.iter().skip(1).all(waits) && is_settled(&captured) {
            return Some(captured);
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:#?}", captured.threads);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Those in a cycle have a name before they wait at the barrier, on whose word all of them wait.
fn is_settled(captured: &Captured) -> bool {
    let names = ["cycle 0", "cycle 1", "cycle 2", "pair 0", "pair 1"];
    let mut words: Vec<_> =
        names.iter().filter_map(|name| find(captured, name)?.waits_for).map(|wait| wait.address).collect();
    let count = words.len();
    words.sort();
    words.dedup();
    words.len() == count
}

fn find<'c>(captured: &'c Captured, name: &str) -> Option<&'c ThreadInfo> {
    captured.threads.iter().find(|thread| thread.name == name)
}

fn thread<'c>(captured: &'c Captured, name: &str) -> &'c ThreadInfo {
    find(captured, name).unwrap()
}

fn wait(captured: &Captured, name: &str) -> Option<LockWait> {
    thread(captured, name).waits_for
}

#[test]
fn who_holds_glibcs_locks() {
    let directory = TempDir::new("capture-locks");
    let Some(running) = start(&directory, "cc", "locks.c", &["-pthread"]) else { return };
    for consistent in [false, true, false] {
        let mut options = Options::default();
        options.consistent = consistent;
        let Some(captured) = waiting(&running, &options) else { return };
        let of = |name: &str| {
            let waits = wait(&captured, name).unwrap();
            (waits.kind, waits.holder, waits.told_by)
        };
        let main = LockHolder::Thread(running.child.id());
        for number in 0..3_u64 {
            let next = (number + 1) % 3;
            let next_id = thread(&captured, &format!("cycle {next}")).id;
            let name = format!("cycle {number}");
            assert_eq!(of(&name), (LockKind::Mutex, LockHolder::Thread(next_id), LockSource::Glibc));
            assert_eq!(wait(&captured, &name).unwrap().address.get(), running.cycle + next * 40);
        }
        for name in ["recursive", "checked", "robust", "timed"] {
            assert_eq!(of(name), (LockKind::Mutex, main, LockSource::Glibc), "{name}");
        }
        assert_eq!(of("inheriting"), (LockKind::Mutex, main, LockSource::Kernel));
        for name in ["reader", "writer"] {
            assert_eq!(of(name), (LockKind::RwLock, main, LockSource::Glibc), "{name}");
            assert_eq!(wait(&captured, name).unwrap().address.get(), running.written);
        }
        let first = thread(&captured, "cycle 0").id;
        assert_eq!(of("join"), (LockKind::ThreadEnd, LockHolder::Thread(first), LockSource::Glibc));
        for name in ["condition", "timed condition", "semaphore"] {
            assert_eq!(of(name), (LockKind::Unknown, LockHolder::Unknown, LockSource::Address), "{name}");
        }
        let itself = thread(&captured, "itself").id;
        assert_eq!(of("itself"), (LockKind::Mutex, LockHolder::Thread(itself), LockSource::Glibc));
        assert!(matches!(of("orphan"), (LockKind::Mutex, LockHolder::Ended(_), LockSource::Glibc)));
        assert!(wait(&captured, "timed").unwrap().has_time_limit);
        deadlocks(&captured, consistent);
    }
}

/// Two threads, three threads, and one that waits for itself.
fn deadlocks(captured: &Captured, consistent: bool) {
    let id = |name: &str| thread(captured, name).id;
    let cycles = [vec![id("cycle 0"), id("cycle 1"), id("cycle 2")], vec![id("pair 0"), id("pair 1")]];
    for (threads, waiting_behind) in cycles.into_iter().zip([1, 0]) {
        let expected = Deadlock { threads, is_certain: consistent, waiting_behind };
        assert!(captured.deadlocks.contains(&expected), "{expected:?}: {:#?}", captured.deadlocks);
    }
    let itself = Deadlock { threads: vec![id("itself")], is_certain: true, waiting_behind: 0 };
    assert!(
        captured.deadlocks.contains(&itself) && captured.deadlocks.len() == 3,
        "{:#?}",
        captured.deadlocks
    );
}

#[test]
fn who_holds_the_locks_of_cpps_standard_library() {
    let directory = TempDir::new("capture-locks-cpp");
    let Some(running) = start(&directory, "c++", "locks.cpp", &["-std=c++20", "-pthread"]) else { return };
    let Some(captured) = waiting(&running, &Options::default()) else { return };
    let main = LockHolder::Thread(running.child.id());
    for (name, kind) in [
        ("plain", LockKind::Mutex),
        ("recursive", LockKind::Mutex),
        ("timed", LockKind::Mutex),
        ("reader", LockKind::RwLock),
        ("writer", LockKind::RwLock),
    ] {
        let waits = wait(&captured, name).unwrap();
        assert_eq!((waits.kind, waits.holder), (kind, main), "{name}");
    }
    for name in ["condition", "atomic", "behind a reader"] {
        let waits = wait(&captured, name).unwrap();
        assert_eq!((waits.kind, waits.holder), (LockKind::Unknown, LockHolder::Unknown), "{name}");
    }
    assert_eq!(captured.deadlocks, []);
}

#[test]
fn locks_of_rusts_standard_library_have_no_holder() {
    let directory = TempDir::new("capture-locks-rust");
    let Some(running) = start(&directory, "rustc", "locks_of_std.rs", &[]) else { return };
    let Some(captured) = waiting(&running, &Options::default()) else { return };
    for name in ["mutex", "reader", "writer", "condition", "once", "park"] {
        let waits = wait(&captured, name).unwrap();
        let what = (waits.kind, waits.holder, waits.told_by);
        assert_eq!(what, (LockKind::Unknown, LockHolder::Unknown, LockSource::Address), "{name}");
    }
    // Waited for by the C library's `pthread_join`.
    let waits = wait(&captured, "join").unwrap();
    assert_eq!(
        (waits.kind, waits.holder),
        (LockKind::ThreadEnd, LockHolder::Thread(thread(&captured, "mutex").id))
    );
}

#[test]
fn who_holds_musls_locks() {
    let directory = TempDir::new("capture-locks-musl");
    let Some(running) = start(&directory, "musl-gcc", "locks.c", &["-static", "-pthread"]) else { return };
    let Some(captured) = waiting(&running, &Options::default()) else { return };
    for name in ["recursive", "robust"] {
        let waits = wait(&captured, name).unwrap();
        let expected = (LockKind::Mutex, LockHolder::Thread(running.child.id()), LockSource::Musl);
        assert_eq!((waits.kind, waits.holder, waits.told_by), expected, "{name}");
    }
    assert!(matches!(wait(&captured, "checked").unwrap().holder, LockHolder::Thread(_)));
    // Of plain mutexes it keeps no holder.
    let waits = wait(&captured, "cycle 0").unwrap();
    assert_eq!((waits.kind, waits.holder), (LockKind::Mutex, LockHolder::Unknown));
    let first = thread(&captured, "cycle 0").id;
    let joins = wait(&captured, "join").unwrap();
    assert_eq!((joins.kind, joins.holder), (LockKind::ThreadEnd, LockHolder::Thread(first)));
    for name in ["condition", "semaphore"] {
        assert_eq!(wait(&captured, name).unwrap().kind, LockKind::Unknown, "{name}");
    }
}
