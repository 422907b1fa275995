//! When a hang is one, and how closely it is looked at.

use std::time::Duration;

/// How a thread is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How late a beat is when the thread hangs. Default: 250 ms.
    pub threshold: Duration,
    /// Time between two captures of a hanging thread. Default: 10 ms.
    pub interval: Duration,
    /// After so many captures the interval doubles, and again after as many: a long hang is looked at for longer, not
    /// more. Default: 500.
    pub samples_per_interval: u64,
    /// What the interval grows to at most. Default: 1 s.
    pub longest_interval: Duration,
    /// How late the monitor may wake and still take the time for the watched thread's. Default: 100 ms.
    pub tolerance: Duration,
    /// How long a capture may take, with what is done with it, and still count as time of the watched thread: one that
    /// does not answer is the most interesting. Default: 1 s.
    pub capture_allowance: Duration,
    /// Captures of one hang. Default: 4,000, which with the other defaults is about twenty minutes.
    pub max_samples: u64,
    /// Nodes of a hang's tree; what further stacks have more is left out. Default: 20,000.
    pub max_nodes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: Duration::from_millis(250),
            interval: Duration::from_millis(10),
            samples_per_interval: 500,
            longest_interval: Duration::from_secs(1),
            tolerance: Duration::from_millis(100),
            capture_allowance: Duration::from_secs(1),
            max_samples: 4_000,
            max_nodes: 20_000,
        }
    }
}

impl Settings {
    /// The time between captures after `taken` of them.
    pub(super) fn interval_after(&self, taken: u64) -> Duration {
        let doublings = taken.checked_div(self.samples_per_interval).unwrap_or(0).min(31);
        let doublings = u32::try_from(doublings).unwrap_or(31);
        let interval = self.interval.saturating_mul(1 << doublings);
        interval.min(self.longest_interval.max(self.interval)).max(SHORTEST)
    }
}

/// No monitor sleeps for less: it would only heat the machine.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_doubles_up_to_its_end() {
        let settings = Settings::default();
        let after = |taken| settings.interval_after(taken).as_millis();
        assert_eq!([after(0), after(499), after(500), after(1_000), after(3_500)], [10, 10, 20, 40, 1_000]);
        assert_eq!(after(u64::MAX), 1_000);
        let fixed = Settings { samples_per_interval: 0, ..settings };
        assert_eq!(fixed.interval_after(1 << 40).as_millis(), 10);
        let restless = Settings { interval: Duration::ZERO, longest_interval: Duration::ZERO, ..settings };
        assert_eq!(restless.interval_after(0), SHORTEST);
    }
}
