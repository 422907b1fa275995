//! The watching thread, from inside.

use crate::beat::Beat;
use crate::event::{Event, WatchError};
use crate::journal::{Journal, Rules};
use crate::monitor as core;
use crate::monitor::SystemClock;
use crate::thread::OwnThread;
use crate::watched_thread::WatchedThread;
use crate::{Hang, Options};
use backtrail_stacks::own::{Capturer, ThreadId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

/// All that the watching thread has.
pub(crate) struct Run<H> {
    thread: OwnThread,
    stop: Arc<AtomicBool>,
    teller: Teller<H>,
    clock: SystemClock,
}

/// What becomes of the monitor's events.
struct Teller<H> {
    options: Options,
    handler: H,
    subject: WatchedThread,
    capturer: Arc<Capturer>,
    began: SystemTime,
    journal: Option<Journal>,
}

impl<H: FnMut(Event<'_>) + Send + 'static> Run<H> {
    pub(crate) fn new(
        id: ThreadId,
        beat: Beat,
        stop: Arc<AtomicBool>,
        options: Options,
        handler: H,
    ) -> Result<Self, WatchError> {
        let clock = beat.shared.clock;
        let capturer = match &options.capturer {
            Some(capturer) => Arc::clone(capturer),
            None => Arc::new(Capturer::new(<_>::default()).map_err(WatchError::Capture)?),
        };
        let subject = WatchedThread::new(u64::from(id.get()));
        let began = SystemTime::UNIX_EPOCH;
        let thread = OwnThread::new(id, beat, Arc::clone(&capturer));
        let teller = Teller { options, handler, subject, capturer, began, journal: None };
        Ok(Self { thread, stop, teller, clock })
    }

    pub(crate) fn watch(mut self) {
        let mut monitor = core::Monitor::new(self.teller.options.settings(), &self.clock);
        while !self.stop.load(Ordering::Acquire) {
            match monitor.poll(&self.clock, &mut self.thread) {
                core::Event::Began(hang, taken) => self.teller.begin(hang, taken),
                core::Event::Sampled(hang, taken) => self.teller.go_on(hang, taken),
                core::Event::Ended(hang) => self.teller.end(&hang),
                core::Event::Gone => return,
                _ => {}
            }
            thread::park_timeout(monitor.sleep(&self.clock));
        }
        if let Some(hang) = monitor.stop(&self.clock, &mut self.thread) {
            self.teller.end(&hang);
        }
    }
}

impl<H: FnMut(Event<'_>)> Teller<H> {
    fn begin(&mut self, hang: &core::Hang, taken: core::Taken) {
        let now = SystemTime::now();
        self.began = now.checked_sub(hang.lasted).unwrap_or(now);
        self.subject.process.images = self.capturer.images();
        self.journal = self.try_to(|teller| teller.open_journal(hang)).flatten();
        self.write(hang, taken);
        let hang = self.told(hang);
        (self.handler)(Event::Began(&hang));
    }

    fn go_on(&mut self, hang: &core::Hang, taken: core::Taken) {
        self.write(hang, taken);
    }

    fn end(&mut self, hang: &core::Hang) {
        if let Some(journal) = self.journal.take() {
            self.try_to(|_| journal.finish(hang));
        }
        // The loader may have been what it hung in.
        self.subject.process.images = self.capturer.images();
        let hang = self.told(hang);
        (self.handler)(Event::Ended(&hang));
    }

    fn told(&self, hang: &core::Hang) -> Hang {
        self.subject.hang(hang, self.began, self.options.threshold)
    }

    fn open_journal(&self, hang: &core::Hang) -> io::Result<Option<Journal>> {
        let Some(directory) = &self.options.directory else { return Ok(None) };
        let &Options { max_bytes, sync_every, keep, max_files, threshold, .. } = &self.options;
        let rules = Rules { max_bytes, sync_every, keep, max_files };
        Journal::begin(directory, &self.subject, hang, self.began, threshold, rules).map(Some)
    }

    /// A file that cannot be written is given up: the next hang gets a new one.
    fn write(&mut self, hang: &core::Hang, taken: core::Taken) {
        let Some(mut journal) = self.journal.take() else { return };
        if self.try_to(|_| journal.add(hang, taken)).is_some() {
            self.journal = Some(journal);
        }
    }

    fn try_to<T>(&mut self, act: impl FnOnce(&Self) -> io::Result<T>) -> Option<T> {
        match act(self) {
            Ok(done) => Some(done),
            Err(error) => {
                let problem = format!("a hang cannot be written to its file: {error}");
                (self.handler)(Event::Problem(&problem));
                None
            }
        }
    }
}
