//! What threads wait by for work.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes those who wait for work, and says when there will be none any more.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<Rung>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Rung {
    times: u64,
    closed: bool,
}

impl Bell {
    /// There is work.
    pub(crate) fn ring(&self) {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).times += 1;
        self.changed.notify_all();
    }

    /// The server is about to end.
    pub(crate) fn close(&self) {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    /// How often it rang.
    pub(crate) fn times(&self) -> u64 {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).times
    }

    /// Waits until it rang more often than `seen`, is closed, or that time is over: a lease may have run out.
    pub(crate) fn wait(&self, seen: u64, longest: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |rung: &mut Rung| rung.times == seen && !rung.closed;
        drop(self.changed.wait_timeout_while(rung, longest, waits));
    }
}
