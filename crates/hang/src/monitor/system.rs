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
    /// The same for the coarse clock.
    coarse: Option<Duration>,
}

impl SystemClock {
    /// Counts from now on.
    pub fn new() -> Self {
        // A beat is never at zero, not even the first.
        let now = Instant::now();
        let origin = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        Self { origin, coarse: coarse_origin(now - origin) }
    }

    /// [`Moment::running`], on Linux as it was a few milliseconds ago: what a beat needs. Exact to the kernel's tick (1 to
    /// 10 ms), which is little against any threshold, and a quarter of the price of the exact time.
    #[inline]
    pub fn beat(&self) -> Duration {
        self.coarse.and_then(coarse_since).unwrap_or_else(|| self.running())
    }

    fn running(&self) -> Duration {
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

/// What the clock of [`coarse_since`] showed so long ago.
#[cfg(target_os = "linux")]
fn coarse_origin(ago: Duration) -> Option<Duration> {
    backtrail_sys::linux::monotonic_time().ok()?.checked_sub(ago)
}

#[cfg(not(target_os = "linux"))]
fn coarse_origin(_: Duration) -> Option<Duration> {
    None
}

#[cfg(target_os = "linux")]
#[inline]
fn coarse_since(origin: Duration) -> Option<Duration> {
    backtrail_sys::linux::coarse_time().ok()?.checked_sub(origin)
}

#[cfg(not(target_os = "linux"))]
fn coarse_since(_: Duration) -> Option<Duration> {
    None
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
