//! How the watched thread says that it lives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What the watched thread said last. Times are [`Moment::running`](super::Moment::running).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beat {
    /// Nothing yet: it is not expected to.
    None,
    /// That it works since then: the next beat is expected before long.
    Working(Duration),
    /// That it rests since then: it waits for something to do, for as long as that takes.
    Resting(Duration),
}

/// Where the watched thread leaves its last beat.
///
/// A beat is one relaxed store of one word, which is alone on its cache line: the monitor reads it a few times in a
/// second, and whatever it reads is a beat that was made. Beats and rests may be made in a signal handler.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Pulse(AtomicU64);

impl Pulse {
    /// A pulse without a beat.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Says that the thread works, and got on just now.
    #[inline]
    pub fn work(&self, now: Duration) {
        self.0.store(nanos(now) << 1, Ordering::Relaxed);
    }

    /// Says that the thread is about to wait for work.
    #[inline]
    pub fn rest(&self, now: Duration) {
        self.0.store(nanos(now) << 1 | 1, Ordering::Relaxed);
    }

    /// What was said last.
    pub fn last(&self) -> Beat {
        let word = self.0.load(Ordering::Relaxed);
        let at = Duration::from_nanos(word >> 1);
        match word {
            0 => Beat::None,
            _ if word & 1 == 1 => Beat::Resting(at),
            _ => Beat::Working(at),
        }
    }
}

/// 63 bits of nanoseconds last for 292 years. Never 0, which is no beat.
#[inline]
fn nanos(time: Duration) -> u64 {
    const BILLION: u64 = 1_000_000_000;
    let nanos = time.as_secs().wrapping_mul(BILLION).wrapping_add(u64::from(time.subsec_nanos()));
    nanos.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_is_read() {
        let pulse = Pulse::new();
        assert_eq!(pulse.last(), Beat::None);
        let at = Duration::new(1 << 33, 123_456_789);
        pulse.work(at);
        assert_eq!(pulse.last(), Beat::Working(at));
        pulse.rest(at);
        assert_eq!(pulse.last(), Beat::Resting(at));
        pulse.work(Duration::ZERO);
        assert_eq!(pulse.last(), Beat::Working(Duration::from_nanos(1)));
    }

    #[test]
    fn a_pulse_has_its_cache_lines_to_itself() {
        assert_eq!(size_of::<Pulse>(), 128);
    }
}
