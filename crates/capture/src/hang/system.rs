//! The system's clocks.

use super::{Clock, Moment};
use std::time::{Duration, Instant};

/// The clocks of this machine.
///
/// `running` is the standard library's [`Instant`]: `CLOCK_MONOTONIC` on Linux and `CLOCK_UPTIME_RAW` on Apple's systems, both
/// of which stand still while the machine is suspended.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Counts from now on.
    pub fn new() -> Self {
        // A beat is never at zero, not even the first.
        let now = Instant::now();
        Self { origin: now.checked_sub(Duration::from_secs(1)).unwrap_or(now) }
    }

    /// [`Moment::running`] alone: what a beat needs.
    #[inline]
    pub fn running(&self) -> Duration {
        self.origin.elapsed()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let running = self.running();
        Moment { running, elapsed: elapsed().unwrap_or(running) }
    }
}

#[cfg(target_os = "linux")]
fn elapsed() -> Option<Duration> {
    backtrail_sys::linux::boot_time().ok()
}

#[cfg(any(target_os = "macos", target_os = "ios"))]
fn elapsed() -> Option<Duration> {
    backtrail_sys::macos::boot_time()
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn elapsed() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on_at_the_same_pace() {
        let clock = SystemClock::new();
        // The two are read one after the other, and the thread may stand for long in between.
        let are_close = || {
            let before = clock.now();
            std::thread::sleep(Duration::from_millis(20));
            let after = clock.now();
            let ran = after.running - before.running;
            let passed = after.elapsed - before.elapsed;
            assert!(ran >= Duration::from_millis(20));
            passed.abs_diff(ran) <= Duration::from_millis(1)
        };
        assert!((0..500).any(|_| are_close()));
    }
}
