//! The watched thread's side.

use crate::monitor::{Pulse, SystemClock};
use std::fmt;
use std::sync::Arc;

/// What the watched thread beats with. Cheap to clone; every clone is the same beat. May be used after the watch stopped:
/// nobody listens then.
///
/// # Signal safety
/// [`tick`](Self::tick) and [`rest`](Self::rest) allocate nothing and take no lock.
#[derive(Clone)]
pub struct Beat {
    pub(crate) shared: Arc<Shared>,
}

/// What both sides have.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pulse: Pulse,
    pub(crate) clock: SystemClock,
}

impl Beat {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::new(Shared { pulse: Pulse::new(), clock: SystemClock::new() }) }
    }

    /// Says that the thread works, and got on. The next beat is expected within the threshold.
    #[inline]
    pub fn tick(&self) {
        self.shared.pulse.work(self.shared.clock.beat());
    }

    /// Says that the thread waits for something to do, for as long as that takes.
    #[inline]
    pub fn rest(&self) {
        self.shared.pulse.rest(self.shared.clock.beat());
    }

    /// Ticks now, and rests when the guard is dropped: for a thread that is only sometimes asked to be quick.
    #[must_use = "the thread rests again when this is dropped"]
    pub fn work(&self) -> Work<'_> {
        self.tick();
        Work { beat: self }
    }
}

impl fmt::Debug for Beat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Beat").field(&self.shared.pulse.last()).finish()
    }
}

/// A piece of work that is to be done without a hang; see [`Beat::work`].
#[derive(Debug)]
pub struct Work<'b> {
    beat: &'b Beat,
}

impl Work<'_> {
    /// Says that the work got on.
    #[inline]
    pub fn tick(&self) {
        self.beat.tick();
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.beat.rest();
    }
}
