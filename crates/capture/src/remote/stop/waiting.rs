//! Waiting for threads that are about to stop.

use backtrail_sys::linux::ptrace::{Seen, Tracee};
use std::thread;
use std::time::{Duration, Instant};

/// A seized thread that was asked to stop.
pub(super) struct SeizedThread {
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
pub(super) fn young(waiting: &[SeizedThread]) -> usize {
    waiting.iter().filter(|held| held.asked.elapsed() < SLOW).count()
}

impl SeizedThread {
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

/// A pause in waiting, for each thread that is waited for: about what it takes to wake up and stop on this thread's processor. This
/// thread goes before it: with a shorter pause it would only be in its way. Giving way (`sched_yield`) would mean to wait until all
/// others have had their slice, which is 1 ms and more on a busy machine.
pub(super) const PAUSE: Duration = Duration::from_micros(4);
/// What a pause grows to while none stops: others are before them then, and looking takes time from those.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_micros(80);
/// The same where all are waited for together.
pub(super) const LONGEST_PAUSE_FOR_ALL: Duration = Duration::from_millis(1);

/// Backoff between looks at threads that are about to stand.
pub(super) struct Backoff {
    /// Longer by this than the threads should take.
    more: Duration,
    longest: Duration,
}

impl Backoff {
    pub(super) fn up_to(longest: Duration) -> Self {
        Self { more: Duration::ZERO, longest }
    }

    /// Leaves so many threads alone for about as long as they take to stop, one behind the other.
    pub(super) fn sleep(&self, threads: usize) {
        let for_each = PAUSE * u32::try_from(threads).unwrap_or(1);
        thread::sleep((self.more + for_each).min(self.longest));
    }

    /// Makes the next pause by whether any has stopped.
    pub(super) fn adapt(&mut self, has_stopped: bool) {
        let longer = self.more.saturating_mul(2).clamp(PAUSE, self.longest);
        self.more = if has_stopped { Duration::ZERO } else { longer };
    }
}
