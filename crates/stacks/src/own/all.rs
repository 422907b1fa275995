//! All threads of this process.

use super::capturer::free_slot;
use super::job::{Job, slots};
use super::{CaptureError, Capturer, RawStack, Stopped, ThreadId, ThreadStack};
use backtrail_capture::local::{self, Sent, Status};
use std::collections::VecDeque;
use std::time::Instant;

/// Threads that are asked at the same time: fewer than there are slots.
const AT_ONCE: usize = 32;

impl Capturer {
    /// The stacks of all threads, this one's from the caller on, with what they have used of the processor. Threads that
    /// begin meanwhile are left out, and so is the helper that keeps the list of images; those that end are listed with
    /// that for a reason.
    ///
    /// Allocates: where a thread holds the allocator's lock for ever, this waits for it. [`Capturer::thread`] does not.
    ///
    /// # Signal safety
    ///
    /// Not safe.
    #[inline(never)]
    pub fn all(&self) -> Vec<ThreadStack> {
        self.refresh();
        let own = ThreadId::current();
        let mut threads: Vec<_> = self.thread_ids().into_iter().map(facts).collect();
        threads.retain(|thread| thread.name != Capturer::REFRESHER);
        self.usage.fill_in(&mut threads);
        self.ask_all(&mut threads, own);
        let this = threads.iter_mut().find(|thread| thread.id == own);
        if let Some(Ok(stack)) = this.map(|thread| &mut thread.stack) {
            self.at(&Stopped::here(), 1, stack);
        }
        threads
    }

    /// Captures all but the calling thread, many at a time.
    fn ask_all(&self, threads: &mut [ThreadStack], own: ThreadId) {
        let mut waiting = VecDeque::with_capacity(AT_ONCE);
        for index in 0..threads.len() {
            let Some(id) = threads.get(index).map(|thread| thread.id) else { break };
            if id == own {
                set(threads, index, Ok(RawStack::with_capacity(self.options().max_frames)));
                continue;
            }
            let claim = loop {
                let has_room = waiting.len() < AT_ONCE;
                if let Some(claim) = has_room.then(|| slots().claim()).flatten() {
                    break Ok(claim);
                }
                // Others may have the slots, and wait for these: nobody who has some waits for more.
                match waiting.pop_front() {
                    Some(first) => self.settle(threads, first),
                    None => break free_slot(self.deadline(Instant::now())),
                }
            };
            let asked = Instant::now();
            match claim.and_then(|claim| self.send(claim, id, self.options().method)) {
                Ok(sent) => waiting.push_back(Asked { index, id, sent, asked }),
                Err(why) => set(threads, index, Err(why)),
            }
        }
        waiting.into_iter().for_each(|one| self.settle(threads, one));
    }

    fn settle(&self, threads: &mut [ThreadStack], Asked { index, id, sent, asked }: Asked) {
        let mut stack = RawStack::with_capacity(self.options().max_frames);
        let answer = self.receive(sent, id, asked, &mut stack);
        set(threads, index, answer.map(|()| stack));
    }

    /// The numbers of this process's threads.
    #[expect(clippy::unused_self, reason = "what it lists may depend on the options one day")]
    fn thread_ids(&self) -> Vec<ThreadId> {
        let mut ids = vec![ThreadId::new(0); 64];
        loop {
            match local::threads(&mut ids) {
                Ok(count) if count <= ids.len() => {
                    ids.truncate(count);
                    return ids;
                }
                Ok(count) => ids.resize(count * 2, ThreadId::new(0)),
                Err(_) => return Vec::new(),
            }
        }
    }
}

/// A thread that was asked.
struct Asked {
    index: usize,
    id: ThreadId,
    sent: Sent<Job>,
    asked: Instant,
}

fn set(threads: &mut [ThreadStack], index: usize, stack: Result<RawStack, CaptureError>) {
    if let Some(thread) = threads.get_mut(index) {
        thread.stack = stack;
    }
}

fn facts(id: ThreadId) -> ThreadStack {
    let status = Status::read(id);
    ThreadStack {
        id,
        name: status.map(|status| status.name().to_owned()).unwrap_or_default(),
        queue: status.and_then(|status| status.queue()),
        state: status.map(|status| status.state),
        is_main: id == ThreadId::main(),
        cpu: None,
        stack: Err(CaptureError::Gone),
    }
}
