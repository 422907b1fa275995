//! Time as the monitor sees it.

use std::time::Duration;

/// Two clocks read together, each counted from some moment of its own that stays the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// Time in which the machine ran: `CLOCK_MONOTONIC` on Linux, `CLOCK_UPTIME_RAW` on Apple's systems. Beats are told
    /// in this time.
    pub running: Duration,
    /// All time, that in which the machine was suspended too: `CLOCK_BOOTTIME`, `CLOCK_MONOTONIC_RAW`. Where there is no
    /// such clock, the same as `running`.
    pub elapsed: Duration,
}

/// Something that knows the time.
pub trait Clock {
    /// The present moment.
    fn now(&self) -> Moment;
}
