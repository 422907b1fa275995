//! The watching thread, from outside.

use crate::Options;
use crate::beat::Beat;
use crate::event::{Event, WatchError};
use crate::run::Run;
use backtrail_stacks::own::ThreadId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Watches one thread of this process, from a thread of its own, until it is dropped.
///
/// It costs four looks in a second while nothing hangs.
#[derive(Debug)]
pub struct Watch {
    beat: Beat,
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches the calling thread. It rests until its first beat. `handler` is called on the watching thread.
    ///
    /// # Errors
    /// Where no thread can be started, or stacks cannot be captured on this system.
    pub fn current_thread(
        options: Options,
        handler: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, WatchError> {
        Self::start(ThreadId::current(), options, handler)
    }

    /// Watches the process's first thread.
    ///
    /// # Errors
    /// As for [`current_thread`](Self::current_thread).
    pub fn main_thread(
        options: Options,
        handler: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, WatchError> {
        Self::start(ThreadId::main(), options, handler)
    }

    /// Watches any thread.
    ///
    /// # Errors
    /// As for [`current_thread`](Self::current_thread).
    pub fn thread(
        id: ThreadId,
        options: Options,
        handler: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, WatchError> {
        Self::start(id, options, handler)
    }

    fn start(
        id: ThreadId,
        options: Options,
        handler: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, WatchError> {
        let beat = Beat::new();
        let stop = Arc::new(AtomicBool::new(false));
        let run = Run::new(id, beat.clone(), Arc::clone(&stop), options, handler)?;
        let builder = thread::Builder::new().name("backtrail-hang".to_owned());
        let watcher = builder.spawn(move || run.watch()).map_err(WatchError::Spawn)?;
        Ok(Self { beat, stop, watcher: Some(watcher) })
    }

    /// What the watched thread beats with.
    pub fn beat(&self) -> Beat {
        self.beat.clone()
    }

    /// Stops watching, as dropping does. A hang that lasts ends, and the handler is told, before this returns.
    pub fn stop(self) {}
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let Some(watcher) = self.watcher.take() else { return };
        watcher.thread().unpark();
        // The handler may own the watch; it cannot wait for itself.
        if watcher.thread().id() != thread::current().id() {
            // A handler that panicked has said so.
            let _ = watcher.join();
        }
    }
}
