//! All threads stopped at one moment.

use super::waiting::{Backoff, LONGEST_PAUSE_FOR_ALL, SeizedThread};
use super::{BUSY_MACHINE, LOOKS_AT_RUNNING, MAX_ROUNDS, Outcome, Work};
use crate::ThreadState;
use crate::gregset;
use crate::remote::stack;
use crate::remote::stack_arena::pages;
use crate::remote::thread_info::ThreadInfo;
use backtrail_sys::linux::ptrace::{self, Seen};
use std::time::{Duration, Instant};

/// What one in uninterruptible sleep is waited for while all the others stand still.
const WHILE_OTHERS_STAND: Duration = Duration::from_millis(5);

/// Room that is made for each thread's stack beforehand, and for all of them at most. What they need is known only when they
/// stand.
const PREPARED: usize = 8 << 10;
const MOST_PREPARED: usize = 32 << 20;

impl Work<'_> {
    /// All threads at one moment: that in which the last of those that run comes to stand. They are stopped after those that
    /// sleep, and let go before them, so that what works is held up the least; nothing that stands changes meanwhile.
    pub(super) fn stop_all(&mut self, threads: &mut Vec<ThreadInfo>) {
        let (mut running, mut resting) = (Vec::new(), Vec::with_capacity(threads.len()));
        self.prepare(threads);
        let mut began = None;
        for _ in 0..MAX_ROUNDS {
            let (mut new_running, mut new_resting) = (Vec::new(), Vec::new());
            for index in self.outcomes.len()..threads.len() {
                let Some(facts) = threads.get(index) else { break };
                let outcome = match self.seize(index, facts) {
                    Ok(one) if facts.state == ThreadState::Running => {
                        new_running.push(one);
                        Outcome::Gone
                    }
                    Ok(one) => {
                        new_resting.push(one);
                        Outcome::Gone
                    }
                    Err(outcome) => outcome,
                };
                self.outcomes.push(outcome);
            }
            began.get_or_insert_with(Instant::now);
            self.interrupt_all(new_resting, &mut resting);
            if !new_running.is_empty() && self.options.real_time {
                // The others had to come to run in order to stop, and do no more; these are stopped at once.
                ptrace::set_sched_fifo();
            }
            self.interrupt_all(new_running, &mut running);
            if self.has_all(threads) || !self.add_new(threads) {
                break;
            }
        }
        let began = began.unwrap_or_else(Instant::now);
        let asked = running.iter().map(|held| held.asked).min();
        self.take_all(running, asked.unwrap_or(began));
        self.stops.running = asked.map(|_| self.stops.longest);
        self.take_all(resting, began);
        self.stops.together = Some(began.elapsed());
    }

    /// Stops all of `waiting`, and adds those that stand to `held`. All are asked before any is waited for. They stop one behind
    /// the other on the processors that they wake up on, this thread's too: so they are left alone for about as long as that takes,
    /// before each look.
    fn interrupt_all(&mut self, mut waiting: Vec<SeizedThread>, held: &mut Vec<SeizedThread>) {
        let began = Instant::now();
        let limit = began + BUSY_MACHINE;
        waiting.iter_mut().for_each(SeizedThread::ask);
        let mut backoff = Backoff::up_to(LONGEST_PAUSE_FOR_ALL);
        loop {
            let before = waiting.len();
            for mut one in std::mem::take(&mut waiting) {
                match one.look(if one.is_running { LOOKS_AT_RUNNING } else { 1 }) {
                    Seen::Stopped => held.push(one),
                    Seen::Gone => self.set(one.index, Outcome::Gone),
                    Seen::Running if self.is_hopeless(&one, began.elapsed(), limit) => {
                        self.set(one.index, Outcome::Unstoppable(one.asked.elapsed()));
                    }
                    Seen::Running => waiting.push(one),
                }
            }
            if waiting.is_empty() {
                break;
            }
            backoff.sleep(waiting.len());
            backoff.adapt(waiting.len() < before);
        }
    }

    /// Whether a thread is not waited for any longer.
    fn is_hopeless(&self, held: &SeizedThread, waited: Duration, limit: Instant) -> bool {
        // In any other state than uninterruptible sleep it is about to stand.
        waited > WHILE_OTHERS_STAND
            && (Instant::now() > limit
                || self.target.state_of(held.tracee.id()) == Some(ThreadState::Uninterruptible))
    }

    /// Whether no thread began since they were listed, by the kernel's count.
    fn has_all(&self, threads: &[ThreadInfo]) -> bool {
        let known = threads.iter().filter(|facts| facts.state != ThreadState::Dead).count() as u64;
        self.target.thread_count().is_some_and(|count| count <= known)
    }

    /// Copies what all of them stand on, then lets all go, that were asked to stop no earlier than `began`.
    fn take_all(&mut self, held: Vec<SeizedThread>, began: Instant) {
        let mut taken = Vec::with_capacity(held.len());
        let mut ranges = Vec::with_capacity(held.len());
        for one in &held {
            let Ok(raw) = one.tracee.registers() else { continue };
            let arch = gregset::arch_by_size(raw.bytes().len()).unwrap_or(self.target.arch());
            let Some(sp) = stack::stack_pointer(arch, raw.bytes()) else { continue };
            let place = stack::range(sp, self.maps, self.options);
            ranges.push(place.0);
            taken.push((one.index, arch, raw, self.futex(arch, &raw), place));
        }
        let sizes: Vec<_> =
            ranges.iter().map(|range| usize::try_from(range.size()).unwrap_or_default()).collect();
        let mut bytes = self.bytes(sizes.iter().sum());
        let copied = self.memory.copy_all(&ranges, &mut bytes);
        held.into_iter().for_each(|one| one.tracee.detach());
        let stood = began.elapsed();
        let mut end = 0;
        let parts = sizes.iter().zip(&copied).map(|(size, copied)| {
            let start = end;
            end += size;
            start..start + copied
        });
        let kept = self.arena.add(bytes, parts);
        for ((index, arch, raw, futex, place), stack) in taken.into_iter().zip(kept) {
            let outcome = self.copied(stood, arch, &raw, futex, Some(place), stack);
            self.set(index, outcome);
        }
    }

    /// Makes room for what will be copied.
    fn prepare(&mut self, threads: &[ThreadInfo]) {
        let running = threads.iter().filter(|facts| facts.state == ThreadState::Running).count();
        let room = |count: usize| pages((count * PREPARED).min(MOST_PREPARED));
        self.prepared = vec![room(threads.len() - running), room(running)];
    }

    /// So many bytes, of those that were made before any thread was stopped, if these are enough.
    fn bytes(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = self.prepared.pop().unwrap_or_default();
        if bytes.len() < size {
            return pages(size);
        }
        bytes.truncate(size);
        bytes
    }
}
