//! Clocks.

use super::OsError;
use std::time::Duration;

/// Time since the machine was started, that in which it was suspended included (`CLOCK_BOOTTIME`). Safe in a signal
/// handler.
///
/// # Errors
/// On kernels before 2.6.39.
pub fn boot_time() -> Result<Duration, OsError> {
    read(libc::CLOCK_BOOTTIME, "clock_gettime(CLOCK_BOOTTIME)")
}

/// What the standard library's `Instant` counts (`CLOCK_MONOTONIC`). Safe in a signal handler.
///
/// # Errors
/// None that is known.
pub fn monotonic_time() -> Result<Duration, OsError> {
    read(libc::CLOCK_MONOTONIC, "clock_gettime(CLOCK_MONOTONIC)")
}

/// The same as it was at the kernel's last tick, 1 to 10 ms ago (`CLOCK_MONOTONIC_COARSE`): a read of memory, no look at any
/// counter of the processor. Safe in a signal handler.
///
/// # Errors
/// On kernels before 2.6.32.
#[inline]
pub fn coarse_time() -> Result<Duration, OsError> {
    read(libc::CLOCK_MONOTONIC_COARSE, "clock_gettime(CLOCK_MONOTONIC_COARSE)")
}

/// The processor time that all threads of a process have used so far, those that ended too.
///
/// # Errors
/// `EINVAL` where there is no such process.
pub fn process_time(process: u32) -> Result<Duration, OsError> {
    /// `CPUCLOCK_SCHED`, of a process. Linux, `posix-timers_types.h`.
    const OF_PROCESS: libc::clockid_t = 2;
    let none = OsError { call: "clock_gettime", number: libc::EINVAL };
    let process = libc::clockid_t::try_from(process).map_err(|_| none)?;
    read((!process << 3) | OF_PROCESS, "clock_gettime")
}

#[inline]
fn read(clock: libc::clockid_t, call: &'static str) -> Result<Duration, OsError> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(OsError::last(call));
    }
    #[allow(clippy::useless_conversion, reason = "seconds have 32 bits on some systems")]
    let seconds = u64::try_from(i64::from(time.tv_sec)).unwrap_or(0);
    Ok(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_time_that_the_kernel_prints() {
        let before = boot_time().unwrap().as_secs_f64();
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let after = boot_time().unwrap().as_secs_f64();
        // It is printed in hundredths, the rest cut off.
        assert!(before - 0.02 < uptime && uptime <= after, "{before}, {uptime}, {after}");
    }

    #[test]
    fn a_process_has_used_what_its_threads_have() {
        let own = crate::linux::ThreadId::current().cpu_time().unwrap();
        let all = process_time(std::process::id()).unwrap();
        assert!(all >= own, "{all:?} and {own:?}");
        assert!(process_time(0x3fff_fff0).is_err());
    }

    #[test]
    fn the_coarse_clock_is_a_little_behind() {
        for _ in 0..1000 {
            let coarse = coarse_time().unwrap();
            let exact = monotonic_time().unwrap();
            assert!(coarse <= exact, "{coarse:?} and {exact:?}");
        }
    }
}
