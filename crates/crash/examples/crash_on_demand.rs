//! Crashes in the way that its first argument says. With a directory as the second, the handler is installed before.
//!
//! `cargo run -p backtrail-crash --example crash_on_demand -- segv /tmp/crashes`
#![allow(unsafe_code, reason = "crashing takes some")]
#![allow(clippy::panic, clippy::print_stderr, reason = "that is what it is for")]

use backtrail_crash::{self as crash, Extra, Options, Requests, Seen};
use backtrail_testkit::{Guarded, overflow, start_workers};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    // A run that is counted.
    let run = kind.strip_prefix("run-").map(str::to_owned);
    let release = run.is_some().then(|| "orders@1".to_owned());
    let kind = run.unwrap_or(kind);
    // A handler of the program's own, and a signal that it ignores.
    if kind == "own-handler" {
        let handler = own_handler as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler only ends the process.
        unsafe { libc::signal(libc::SIGSEGV, handler) };
    }
    if kind == "sdk-after-others" {
        let handler = open_page as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler makes system calls only.
        unsafe { libc::signal(libc::SIGSEGV, handler) };
    }
    if kind == "panics-of-others" {
        std::panic::set_hook(Box::new(|_| another_panics()));
    }
    if kind == "ignored" {
        // SAFETY: no preconditions.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    if let Some(directory) = arguments.next() {
        let mut options = Options::new(directory);
        options.release = release;
        options.requests = Requests { terminate: true, ..Requests::default() };
        // An SDK's own code: that of the one function.
        if kind.starts_with("sdk") {
            let (start, end) = (&raw const START, &raw const END);
            options.own_code.push(start as u64..end as u64);
        }
        options.filter = match kind.as_str() {
            "filtered" => Some(not_at_24),
            "in-filter" => Some(crash_in_filter),
            "panic-in-filter" => Some(panic_in_filter),
            _ => None,
        };
        options.add = match kind.as_str() {
            "in-handler" | "in-handler-in-fork" => Some(crash_again),
            "hang-in-handler" | "hang-in-handler-of-thread" | "hang-in-handler-of-fork" => Some(hang),
            "panic-in-handler" => Some(panic_again),
            _ => Some(add),
        };
        // A machine that is busy with something else takes its time.
        options.patience = Duration::from_secs(if kind.starts_with("hang-") { 4 } else { 60 });
        match crash::install(options) {
            Ok(handler) => drop(handler),
            Err(error) => return eprintln!("{error}"),
        }
        crash::note("version", "1.2.3");
        crash::breadcrumb("about to crash");
    }
    let workers = if kind == "many-threads" { 1000 } else { 3 };
    start_workers(workers);
    outer(&kind);
}

#[inline(never)]
fn outer(kind: &str) {
    inner(kind);
    black_box(());
}

#[inline(never)]
fn inner(kind: &str) {
    match kind {
        "sdk" => sdk(),
        "sdk-after-others" => {
            // Not the SDK's, and the program's own handler gets over it.
            write_to(guarded_page());
            sdk();
        }
        "segv" | "own-handler" | "in-handler" | "hang-in-handler" => write_to(black_box(0x18)),
        "sdk-others" | "filtered" | "in-filter" | "panic-in-handler" => write_to(black_box(0x18)),
        "hang-in-handler-of-thread" => drop(std::thread::spawn(|| write_to(black_box(0x18))).join()),
        "hang-in-handler-of-fork" => in_fork(|| write_to(black_box(0x18))),
        "segv-kernel" => write_to(black_box(0x8000_dead_beef_0000)),
        "abort" => std::process::abort(),
        "bad-free" => {
            let mut memory = [0_u64; 64];
            // SAFETY: none: the pointer is no pointer of `malloc`, which says so and aborts.
            unsafe { libc::free(memory.as_mut_ptr().cast::<u8>().wrapping_add(8).cast()) };
            black_box(&mut memory);
        }
        "overflow" => drop(overflow(1)),
        "overflow-in-thread" => drop(std::thread::spawn(|| overflow(1)).join()),
        "panic" | "panics-of-others" | "panic-in-filter" => cannot_unwind(),
        "panic-twice" => {
            let _order = Order;
            panic!("the first reason");
        }
        "bus" => write_to(behind_a_file()),
        "fpe" => raise(libc::SIGFPE),
        "sys" => raise(libc::SIGSYS),
        "term" | "ignored" => raise(libc::SIGTERM),
        "killed" => raise(libc::SIGKILL),
        "exit" => std::process::exit(0),
        "trap" => breakpoint(),
        "ill" => undefined(),
        "malloc-locked" => {
            Guarded::lock(true);
            write_to(black_box(0x18));
        }
        "signals-blocked" => {
            // SAFETY: the set is filled in before it is used.
            unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            }
            write_to(black_box(0x18));
        }
        "many-threads" => write_to(black_box(0x18)),
        "overflow-in-fork" => in_fork(|| _ = overflow(1)),
        "in-fork" | "in-handler-in-fork" => in_fork(|| write_to(black_box(0x18))),
        "in-forks-fork" => in_fork(|| in_fork(|| write_to(black_box(0x18)))),
        "in-vfork" => in_vfork(),
        "in-vfork-and-after" => {
            for _ in 0..3 {
                in_vfork();
            }
            write_to(black_box(0x18));
        }
        "in-exit" => {
            // SAFETY: the function can be called at any time.
            unsafe { libc::atexit(at_exit) };
            std::process::exit(0);
        }
        "loader-locked" => {
            // SAFETY: the callback takes what the loader gives.
            unsafe { libc::dl_iterate_phdr(Some(within_loader), std::ptr::null_mut()) };
        }
        "file-size" => {
            let limit = libc::rlimit { rlim_cur: 20_000, rlim_max: 20_000 };
            // SAFETY: the limit is valid.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
            write_to(black_box(0x18));
        }
        "two" => {
            for _ in 0..2 {
                drop(std::thread::spawn(|| write_to(black_box(0x18))));
            }
            std::thread::sleep(Duration::from_secs(60));
        }
        other => eprintln!("{other}: no kind of crash"),
    }
    black_box(());
}

#[inline(never)]
fn write_to(address: usize) {
    // SAFETY: none; it crashes.
    unsafe { (address as *mut u32).write_volatile(1) };
}

/// Crashes in a child, and ends with the number of the signal that ended it.
fn in_fork(crash: impl Fn()) {
    // SAFETY: the child only crashes.
    match unsafe { libc::fork() } {
        0 => crash(),
        child => ends_with(child),
    }
}

fn ends_with(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    std::process::exit(libc::WTERMSIG(status));
}

/// What `vfork` does: a child that shares the memory, and that the parent waits for. This way it has a stack of its own.
fn in_vfork() {
    let mut stack = vec![0_u128; 8192];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let top = stack.as_mut_ptr_range().end.cast();
    let mut status = 0;
    // SAFETY: the stack lives until the child has ended.
    unsafe {
        let child = libc::clone(vforked, top, flags, std::ptr::null_mut());
        libc::waitpid(child, &raw mut status, 0);
    }
    assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
}

extern "C" fn vforked(_: *mut libc::c_void) -> libc::c_int {
    write_to(black_box(0x18));
    0
}

extern "C" fn at_exit() {
    write_to(black_box(0x18));
}

unsafe extern "C" fn within_loader(
    _: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    write_to(black_box(0x18));
    0
}

/// Mapped, and behind the end of its file.
fn behind_a_file() -> usize {
    // SAFETY: a new file and a new mapping.
    unsafe {
        let file = libc::memfd_create(c"empty".as_ptr(), 0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), 4096, access, libc::MAP_SHARED, file, 0) as usize
    }
}

fn raise(signal: i32) {
    // SAFETY: no preconditions.
    unsafe { libc::raise(signal) };
}

fn breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: raises SIGTRAP.
    unsafe {
        std::arch::asm!("int3");
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: raises SIGTRAP.
    unsafe {
        std::arch::asm!("brk #0");
    }
}

fn undefined() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: raises SIGILL.
    unsafe {
        std::arch::asm!("ud2");
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: raises SIGILL.
    unsafe {
        std::arch::asm!("udf #0");
    }
}

extern "C" fn cannot_unwind() {
    panic!("no order {}", 17);
}

struct Order;

impl Drop for Order {
    fn drop(&mut self) {
        panic!("and the second");
    }
}

/// While the first thread is in its hook.
fn another_panics() {
    if std::thread::current().name() == Some("main") {
        drop(std::thread::spawn(|| panic!("no matter")).join());
    }
}

extern "C" fn own_handler(_: libc::c_int) {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(7) };
}

fn add(extra: &mut Extra<'_>) {
    extra.note("added", "in the midst of it");
}

fn crash_again(_: &mut Extra<'_>) {
    write_to(black_box(0x20));
}

unsafe extern "C" {
    #[link_name = "__start_text_sdk"]
    static START: u8;
    #[link_name = "__stop_text_sdk"]
    static END: u8;
}

/// Stands for the code of an SDK.
#[inline(never)]
#[unsafe(link_section = "text_sdk")]
fn sdk() {
    write_to(black_box(0x18));
    black_box(());
}

fn not_at_24(seen: &Seen<'_>) -> bool {
    assert!(seen.frames().count() > 3 && seen.signal() == libc::SIGSEGV);
    seen.address() != Some(24)
}

fn crash_in_filter(_: &Seen<'_>) -> bool {
    write_to(black_box(0x20));
    false
}

fn panic_in_filter(_: &Seen<'_>) -> bool {
    panic!("in the filter");
}

fn panic_again(_: &mut Extra<'_>) {
    panic!("in what is added");
}

static PAGE: AtomicUsize = AtomicUsize::new(0);

/// A page that [`open_page`] makes accessible when it is first written to.
fn guarded_page() -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0) } as usize;
    PAGE.store(page, SeqCst);
    page
}

extern "C" fn open_page(number: libc::c_int) {
    let page = PAGE.swap(0, SeqCst);
    // SAFETY: the page is ours; the second time the fault comes again, and ends the process.
    unsafe {
        match page {
            0 => _ = libc::signal(number, libc::SIG_DFL),
            page => _ = libc::mprotect(page as *mut libc::c_void, 4096, libc::PROT_READ | libc::PROT_WRITE),
        }
    }
}

fn hang(_: &mut Extra<'_>) {
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}
