//! Waiting for a word to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The kernel's `struct timespec` of `SYS_futex`: of machine words, also where the C library's has 64 bits.
#[repr(C)]
struct Timeout {
    seconds: libc::c_long,
    nanoseconds: libc::c_long,
}

/// Sleeps while `word` is `expected`, until it is woken, interrupted, or `timeout` is over. The caller looks again.
pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = Timeout {
        seconds: libc::c_long::try_from(timeout.as_secs()).unwrap_or(libc::c_long::MAX),
        nanoseconds: libc::c_long::from(timeout.subsec_nanos()),
    };
    // SAFETY: both pointers are valid for the call; futex(2).
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const timeout,
        );
    }
}

/// Wakes who waits for `word`. Safe in a signal handler.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: the pointer is valid for the call; futex(2).
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            libc::c_int::MAX,
        );
    }
}
