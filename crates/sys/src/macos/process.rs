//! Clocks, and when processes began.

use crate::error::OsError;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Time since the machine was started, that in which it slept included: Apple's `CLOCK_MONOTONIC`, which unlike Linux's goes
/// on then (clock_gettime(3)).
pub fn boot_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let (seconds, rest) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    (answer == 0).then_some(Duration::new(seconds, rest))
}

/// What the standard library's `Instant` counts. Safe in a signal handler.
///
/// # Errors
/// None that is known.
pub fn monotonic_time() -> Result<Duration, OsError> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    if unsafe { libc::clock_gettime(libc::CLOCK_UPTIME_RAW, &raw mut time) } != 0 {
        return Err(OsError::last("clock_gettime"));
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
}

/// Whether a debugger has this process. Not for signal handlers.
pub fn is_traced() -> bool {
    /// `P_TRACED`; `sys/proc.h`.
    const TRACED: i32 = 0x800;
    process(std::process::id()).is_some_and(|process| process.flags & TRACED != 0)
}

/// `struct kinfo_proc` (`sys/sysctl.h`) begins with `struct extern_proc`: a union whose `p_starttime` is this, two pointers, flags.
#[repr(C)]
struct Process {
    started: libc::timeval,
    _pointers: [usize; 2],
    flags: i32,
    _rest: [u8; 612],
}

/// When a process began, since the epoch; `None` where there is no such process.
pub fn process_start(pid: u32) -> Option<Duration> {
    let process = process(pid)?;
    let (seconds, micros) = (process.started.tv_sec, process.started.tv_usec);
    let started = Duration::from_secs(u64::try_from(seconds).ok()?);
    Some(started + Duration::from_micros(u64::try_from(micros).ok()?))
}

fn process(pid: u32) -> Option<Process> {
    let mut words = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, i32::try_from(pid).ok()?];
    let mut size = size_of::<Process>();
    let mut process = MaybeUninit::<Process>::zeroed();
    // SAFETY: the kernel fills in at most `size` bytes, which is the structure's size; all zeros are one.
    let process = unsafe {
        let answer = libc::sysctl(
            words.as_mut_ptr(),
            4,
            process.as_mut_ptr().cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        );
        (answer == 0 && size >= size_of::<libc::timeval>()).then(|| process.assume_init())
    };
    process
}
