//! Gives every new thread of a program a stack for signal handlers, so that an overflow of its own leaves a report.
//!
//! A program that names this crate has a `pthread_create` of its own, which every library calls that is linked with it or before
//! the C library. Threads that have a stack for signal handlers when they start keep it. The stack is freed when the thread
//! ends, in whatever way.
//!
//! ```
//! use backtrail_altstack as _;
//! ```
//!
//! A C program links `libbacktrail_altstack.a` or `.so`, or is started with `LD_PRELOAD`. Threads that are there already have what
//! they have; libraries that are loaded later call this `pthread_create` where the program exports it (`-rdynamic`).
//!
//! Threads of Rust's standard library have a stack for signal handlers without this where `main` is Rust's. In a library of Rust's that a C program
//! loads they have none; that library is linked with `-Bsymbolic-functions`, so that it calls its own `pthread_create`.
//!
//! # Platforms
//!
//! Linux. Elsewhere the crate is empty.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "stands in the place of a function of the C library")]

use backtrail_sys::linux::SignalStack;
use libc::{c_int, c_void};
use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

type Start = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// What a thread is to do.
struct Task {
    start: Start,
    argument: *mut c_void,
}

thread_local! {
    /// Freed when the thread ends: also by `pthread_exit` and by cancellation, which run no destructors of frames.
    static STACK: RefCell<Option<SignalStack>> = const { RefCell::new(None) };
}

static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The function that this one stands in the place of: the C library's, or a sanitizer's.
fn next() -> Option<Create> {
    let mut next = NEXT.load(SeqCst);
    if next.is_null() {
        // SAFETY: the name is a C string.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
        NEXT.store(next, SeqCst);
    }
    // SAFETY: a function of this name has this type, by POSIX.
    (!next.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Create>(next) })
}

/// POSIX's function, with a stack for signal handlers in every thread.
///
/// # Safety
///
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let Some(create) = next() else { return libc::EAGAIN };
    let task = Box::into_raw(Box::new(Task { start, argument }));
    // SAFETY: the caller's promise; the new thread frees the task.
    let answer = unsafe { create(thread, attributes, run, task.cast()) };
    if answer != 0 {
        // SAFETY: there is no thread that would.
        drop(unsafe { Box::from_raw(task) });
    }
    answer
}

/// Nothing here is to be dropped once the thread runs: `pthread_exit` unwinds through this frame.
extern "C-unwind" fn run(task: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` for this thread alone.
    let Task { start, argument } = *unsafe { Box::from_raw(task.cast::<Task>()) };
    // Without memory for one the thread goes on as it would have.
    if let Ok(stack) = SignalStack::ensure() {
        let _ = STACK.try_with(|place| place.replace(Some(stack)));
    }
    start(argument)
}
