//! What the handler costs: before a crash, and from the fault until the file is on the disk, beside a bare write of the same bytes.
//!
//! `cargo run --release -p backtrail-crash --example cost`
#![allow(unsafe_code, reason = "crashing takes some")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "that is what it is for"
)]

use backtrail_crash::{self as crash, Options};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Runs of each; the median counts.
const RUNS: usize = 9;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [threads, directory] = arguments.as_slice() {
        return crash_with(threads.parse().unwrap(), directory);
    }
    let base = std::env::temp_dir().join(format!("backtrail-cost-{}", std::process::id()));
    fs::create_dir_all(&base).unwrap();
    println!("| threads | file | from the fault to the file | bare write and fsync | beyond that |");
    println!("| --- | --- | --- | --- | --- |");
    for threads in [1, 100, 1000] {
        let mut runs: Vec<_> = (0..RUNS).map(|run| crash_and_write(&base, threads, run)).collect();
        let mut median = |of: fn(&(u64, Duration, Duration)) -> Duration| {
            runs.sort_by_key(of);
            of(&runs[RUNS / 2])
        };
        let (crash, bare) = (median(|run| run.1), median(|run| run.2));
        let beyond = median(|run| run.1.saturating_sub(run.2));
        let size = runs[0].0 / 1024;
        println!("| {threads} | {size} KB | {crash:.1?} | {bare:.1?} | {beyond:.1?} |");
    }
    before(&base);
    fs::remove_dir_all(&base).unwrap();
}

/// Bytes of the file, how long the crash took, and how long a bare write of the same bytes takes.
fn crash_and_write(base: &Path, threads: usize, run: usize) -> (u64, Duration, Duration) {
    let directory = base.join(format!("{threads}-{run}"));
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).arg(threads.to_string()).arg(&directory).output().unwrap();
    let nanoseconds = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let file = crash::pending(&directory).unwrap().pop().unwrap();
    let bytes = fs::read(file).unwrap();
    (bytes.len() as u64, Duration::from_nanos(nanoseconds), bare_write(&directory, &bytes))
}

fn bare_write(directory: &Path, bytes: &[u8]) -> Duration {
    let (part, whole) = (directory.join("bare.part"), directory.join("bare"));
    let begun = Instant::now();
    let mut file = File::create(&part).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    fs::rename(part, whole).unwrap();
    File::open(directory).unwrap().sync_all().unwrap();
    begun.elapsed()
}

static FAULT: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    // SAFETY: the call fills it in.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }
}

/// The program's own handler, which is called when the file is there.
extern "C" fn after(_: libc::c_int) {
    let took = now().saturating_sub(FAULT.load(SeqCst));
    println!("{took}");
    // SAFETY: no preconditions.
    unsafe { libc::_exit(0) };
}

fn crash_with(threads: usize, directory: &str) {
    // SAFETY: prints, which the thread that crashes on purpose can do, and ends the process.
    unsafe { libc::signal(libc::SIGSEGV, after as extern "C" fn(libc::c_int) as usize) };
    let _handler = crash::install(Options::new(directory)).unwrap();
    let running = Arc::new(Barrier::new(threads));
    for _ in 1..threads {
        let running = Arc::clone(&running);
        drop(std::thread::spawn(move || {
            running.wait();
            std::thread::sleep(Duration::from_secs(600));
        }));
    }
    running.wait();
    FAULT.store(now(), SeqCst);
    // SAFETY: none; it crashes.
    unsafe { (std::hint::black_box(0x18_usize) as *mut u32).write_volatile(1) };
}

/// What `install`, notes and breadcrumbs cost.
fn before(directory: &Path) {
    let resident = || {
        let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let line = text.lines().find(|line| line.starts_with("Private_Dirty:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let images = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut files: Vec<PathBuf> =
            maps.lines().filter_map(|line| line.split_whitespace().nth(5)).map(PathBuf::from).collect();
        files.dedup();
        files.iter().filter(|file| file.is_absolute()).count()
    };
    let (memory, begun) = (resident(), Instant::now());
    let handler = crash::install(Options::new(directory)).unwrap();
    let took = begun.elapsed();
    println!("\n| install, {} images | {took:.1?} | {} KB |", images(), resident() - memory);
    drop(handler);
    let rounds = 1_000_000;
    let begun = Instant::now();
    for _ in 0..rounds {
        crash::breadcrumb("order 17 was written");
    }
    println!("| a breadcrumb | {:.1?} |", begun.elapsed() / rounds);
}
