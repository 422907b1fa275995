//! A helper thread that keeps something up to date.

use super::os::block_signals;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A thread that does one thing whenever it is asked to. Whoever asks waits for it only as long as they want: what it
/// does may have to wait for locks that somebody holds for ever.
pub struct BackgroundRefresher {
    shared: Arc<Shared>,
    /// The process that the thread is in: a fork leaves it behind, perhaps with the lock.
    process: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How often it was asked for.
    asked: u64,
    /// The request that it has begun with last, and that it has done last.
    begun: u64,
    done: u64,
    begun_at: Option<Instant>,
    is_over: bool,
}

impl BackgroundRefresher {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives no further thread.
    pub fn start(name: &str, mut act: impl FnMut() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name(name.to_owned()).stack_size(1 << 20).spawn(move || {
            // The program's handlers are not for this thread.
            block_signals();
            while let Some(request) = own.next() {
                act();
                own.finish(request);
            }
        })?;
        Ok(Self { shared, process: std::process::id() })
    }

    /// Has the thread do its work once from the beginning and waits for that, up to `patience`; says whether it was done.
    /// Allocates nothing. In the child of a fork there is no such thread, and nothing is done.
    pub fn ask(&self, patience: Duration) -> bool {
        if self.is_left_behind() {
            return false;
        }
        let deadline = Instant::now().checked_add(patience);
        let mut state = self.shared.lock();
        // What it is at may have missed the latest change: it has to be done once more.
        state.asked += 1;
        let wanted = state.asked;
        self.shared.changed.notify_all();
        while state.done < wanted {
            // One that hangs is waited for once, not by everybody.
            let at_it = state.begun_at.filter(|_| state.begun > state.done);
            let hangs = at_it.is_some_and(|begun| begun.elapsed() >= patience);
            let left =
                deadline.map_or(patience, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() || hangs {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl BackgroundRefresher {
    fn is_left_behind(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next request. One run serves all that asked before it.
    fn next(&self) -> Option<u64> {
        let mut state = self.lock();
        while !state.is_over && state.asked == state.done {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (state.begun, state.begun_at) = (state.asked, Some(Instant::now()));
        (!state.is_over).then_some(state.begun)
    }

    fn finish(&self, request: u64) {
        self.lock().done = request;
        self.changed.notify_all();
    }
}

impl Drop for BackgroundRefresher {
    /// Does not wait for the thread: it may hang.
    fn drop(&mut self) {
        if !self.is_left_behind() {
            self.shared.lock().is_over = true;
            self.shared.changed.notify_all();
        }
    }
}

impl fmt::Debug for BackgroundRefresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundRefresher").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn it_does_what_it_is_asked_and_nobody_waits_for_one_that_hangs() {
        let runs = Arc::new(AtomicU32::new(0));
        let gate = Arc::new(Mutex::new(()));
        let (own_runs, own_gate) = (Arc::clone(&runs), Arc::clone(&gate));
        let refresher = BackgroundRefresher::start("refresher", move || {
            drop(own_gate.lock());
            own_runs.fetch_add(1, SeqCst);
        });
        let refresher = refresher.unwrap();
        assert!(refresher.ask(LONG));
        assert!(refresher.ask(LONG));
        assert_eq!(runs.load(SeqCst), 2);
        let closed = gate.lock().unwrap();
        assert!(!refresher.ask(Duration::from_millis(200)));
        assert!(!refresher.ask(Duration::ZERO));
        // Had each of these waited, they would have taken more than six minutes.
        let before = Instant::now();
        for _ in 0..2000 {
            assert!(!refresher.ask(Duration::from_millis(200)));
        }
        assert!(before.elapsed() < Duration::from_secs(180), "it hangs, and was waited for");
        drop(closed);
        while !refresher.ask(LONG) {}
        assert!(runs.load(SeqCst) >= 4);
    }
}
