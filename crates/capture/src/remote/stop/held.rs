//! One thread that is about to stand.

use backtrail_sys::linux::ptrace::{Seen, Tracee};
use std::time::{Duration, Instant};

/// A seized thread that was asked to stop.
pub(super) struct Held {
    /// Its place among the threads.
    pub(super) index: usize,
    pub(super) tracee: Tracee,
    pub(super) asked: Instant,
    /// When it was last seen not to stand.
    pub(super) moved: Instant,
    /// Whether it ran when it was last asked about.
    pub(super) is_running: bool,
}

/// After this time a thread takes long: it may sleep for long.
pub(super) const SLOW: Duration = Duration::from_millis(2);

/// How many of them do not take long, so far.
pub(super) fn young(waiting: &[Held]) -> usize {
    waiting.iter().filter(|held| held.asked.elapsed() < SLOW).count()
}

impl Held {
    pub(super) fn ask(&mut self) {
        self.asked = Instant::now();
        self.moved = self.asked;
        // That it is gone shows when it is waited for.
        let _ = self.tracee.interrupt();
    }

    /// Looks up to so many times whether it stands, without a pause: where it runs on another processor it stops within
    /// microseconds.
    pub(super) fn look(&mut self, times: u32) -> Seen {
        for _ in 0..times {
            let now = Instant::now();
            match self.tracee.poll() {
                Seen::Running => self.moved = now,
                seen => return seen,
            }
        }
        Seen::Running
    }
}
