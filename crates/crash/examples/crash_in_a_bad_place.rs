//! Crashes where a program can do less than usual, in the way that its first argument says; the second is the directory of the handler.
//!
//! `cargo run -p backtrail-crash --example crash_in_a_bad_place -- no-files /tmp/crashes`
#![allow(unsafe_code, reason = "crashing takes some")]
#![allow(clippy::panic, clippy::exit, reason = "that is what it is for")]

use backtrail_crash::{self as crash, Options};
use backtrail_testkit::start_workers;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Threads that take the processor from others.
const BUSY_THREADS: usize = 3;

/// Exit code where something is not permitted here.
const NOT_PERMITTED: i32 = 3;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(kind), Some(directory)) = (arguments.next(), arguments.next().map(PathBuf::from)) else {
        panic!("expected KIND DIRECTORY");
    };
    let mut options = Options::new(&directory);
    // A machine that is busy with something else takes its time.
    options.patience = Duration::from_secs(60);
    let _handler = crash::install(options).unwrap_or_else(|error| panic!("{error}"));
    start_workers(2);
    match kind.as_str() {
        "no-files" => no_files(),
        "other-root" => other_root(&directory),
        "moved" => expect(std::fs::rename(&directory, directory.with_extension("moved")).is_ok()),
        "gone" => expect(std::fs::remove_dir_all(&directory).is_ok()),
        "no-reading" => refused(libc::SYS_process_vm_readv, libc::SECCOMP_RET_TRAP),
        "no-syncing" => {
            let error = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
            refused(libc::SYS_fsync, error);
        }
        "other-numbers" => return other_numbers(),
        "leaves-when-interrupted" => {
            drop(std::thread::spawn(crash_here));
            // SAFETY: no preconditions. A signal's handler ends the wait.
            unsafe { libc::pause() };
            std::process::exit(7);
        }
        "no-first-thread" => {
            drop(std::thread::spawn(crash_here));
            // SAFETY: ends this thread alone, of which nothing is used any more.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        // SAFETY: no preconditions.
        "no-rights-for-anybody" => drop(unsafe { libc::umask(0o777) }),
        "newer-library" => {
            // SAFETY: the name is a C string; a library of glibc's that this program does not use.
            let library = unsafe { libc::dlopen(c"libresolv.so.2".as_ptr(), libc::RTLD_NOW) };
            expect(!library.is_null());
        }
        "all-at-once" => all_at_once(),
        "no-misaligned-access" => return crash_without_misaligned_access(),
        other => panic!("{other}: no such place"),
    }
    crash_here();
}

#[inline(never)]
fn crash_here() {
    // SAFETY: none; it crashes.
    unsafe { (black_box(0x18_usize) as *mut u32).write_volatile(1) };
}

/// Threads that crash in the same moment as this one.
fn all_at_once() {
    let count = 6;
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(count + 1));
    for _ in 0..count {
        let barrier = std::sync::Arc::clone(&barrier);
        drop(std::thread::spawn(move || {
            barrier.wait();
            crash_here();
        }));
    }
    barrier.wait();
}

/// With x86's flag AC, by which the processor refuses misaligned accesses.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn crash_without_misaligned_access() {
    // SAFETY: none; it crashes.
    unsafe {
        std::arch::asm!("pushfq", "or qword ptr [rsp], 0x40000", "popfq", "mov dword ptr [{at}], 1", at = in(reg) 0x18_usize);
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn crash_without_misaligned_access() {
    not_permitted();
}

fn expect(is_done: bool) {
    if !is_done {
        not_permitted();
    }
}

fn not_permitted() {
    std::process::exit(NOT_PERMITTED);
}

/// Has as many files as it may have.
fn no_files() {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: the limit is valid; standard input may be closed, which ends the loop as well.
    unsafe {
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        while libc::dup(2) >= 0 {}
    }
}

/// Has another root, in which there is nothing.
fn other_root(directory: &Path) {
    let root = directory.with_extension("root");
    let is_there = std::fs::create_dir(&root).and_then(|()| std::os::unix::fs::chroot(&root));
    expect(is_there.and_then(|()| std::env::set_current_dir("/")).is_ok());
}

/// Crashes in a child that has other numbers of processes and threads than `/proc`, and whose threads are slow to answer.
fn other_numbers() {
    // SAFETY: the child makes threads and crashes; glibc lets it.
    unsafe {
        if libc::unshare(libc::CLONE_NEWPID) != 0 {
            not_permitted();
        }
        let child = libc::fork();
        if child == 0 {
            start_workers(2);
            for worker in [2, 3] {
                libc::setpriority(libc::PRIO_PROCESS, worker, 19);
            }
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(usize::try_from(libc::sched_getcpu()).unwrap_or(0), &mut one);
            for thread in 1..4 {
                libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const one);
            }
            for _ in 0..BUSY_THREADS {
                drop(std::thread::spawn(|| {
                    loop {
                        std::hint::spin_loop();
                    }
                }));
            }
            crash_here();
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        libc::signal(libc::WTERMSIG(status), libc::SIG_DFL);
        libc::raise(libc::WTERMSIG(status));
    }
}

/// Has a system call refused to all threads from now on.
fn refused(call: libc::c_long, answer: u32) {
    const NUMBER_AT: u32 = 0;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let is_equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(load, 0, 0, NUMBER_AT),
        step(is_equal, 0, 1, u32::try_from(call).unwrap_or(u32::MAX)),
        step(give, 0, 0, answer),
        step(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: the program lives until the calls are over.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            ) != 0
    };
    if refused {
        not_permitted();
    }
}
