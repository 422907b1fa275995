//! Stopping threads, copying what they stand on, letting them go.

use super::facts::{self, ThreadFacts};
use super::maps::Maps;
use super::memory::LiveMemory;
use super::target::Target;
use super::usage::Usage;
use super::{Error, Options, stack};
use crate::gregset;
use crate::procfs::{Syscalls, ThreadState};
use backtrail_core::{AddrRange, Arch, Avma, Registers};
use backtrail_sys::linux::OsError;
use backtrail_sys::linux::ptrace::{self, RawRegisters, Seen, Tracee};
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

/// How long threads were stopped, as measured from outside: from the moment they were asked to stop to the one they were
/// let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// How many were.
    pub threads: usize,
    /// The longest time that one was.
    pub longest: Duration,
    /// How long all of them were stopped together, where they were.
    pub together: Option<Duration>,
}

/// What came of stopping a thread.
#[derive(Debug)]
pub(super) enum Outcome {
    Copied(Box<Copied>),
    /// It did not stop in this time.
    Unstoppable(Duration),
    /// This process traces it.
    Traced(u32),
    /// It has ended.
    Gone,
    Denied(String),
}

/// A thread's registers and stack.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) registers: Registers,
    pub(super) start: Avma,
    pub(super) bytes: Vec<u8>,
    /// Whether the stack is deeper than that.
    pub(super) is_cut: bool,
    pub(super) stopped_for: Duration,
}

/// Stops and copies every thread of `threads`, and those that begin meanwhile, which are added. The outcomes are
/// parallel to it.
pub(super) fn run(
    target: &Target,
    maps: &Maps,
    options: &Options,
    threads: &mut Vec<ThreadFacts>,
    usage: &mut Usage,
) -> Result<(Vec<Outcome>, Stops), Error> {
    // The end of this thread makes the kernel let go of threads that were asked to stop and have not.
    let worked = thread::scope(|scope| {
        let work = || {
            ptrace::hurry();
            let mut work = Work::new(target, maps, options);
            match options.consistent {
                true => work.together(threads, usage),
                false => work.one_by_one(threads, usage),
            }
            (work.outcomes, work.stops)
        };
        let worker = thread::Builder::new().name("backtrail-stop".to_owned()).spawn_scoped(scope, work);
        worker.map(thread::ScopedJoinHandle::join)
    });
    match worked {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(Error::Unreadable(target.id(), error)),
    }
}

struct Work<'t> {
    target: &'t Target,
    maps: &'t Maps,
    options: &'t Options,
    memory: LiveMemory,
    names: Syscalls,
    /// Where stacks are copied to. Written to once before any thread is stopped, so that no page of it is missing.
    buffer: Vec<u8>,
    outcomes: Vec<Outcome>,
    stops: Stops,
}

/// A seized thread that was asked to stop.
struct Held {
    /// Its place among the threads.
    index: usize,
    tracee: Tracee,
    asked: Instant,
}

/// Rounds of new threads; a process that starts them faster than they can be listed never ends doing so.
const MAX_ROUNDS: usize = 8;
/// What a thread is waited for before others have their turn; it is looked after between them.
const FIRST_WAIT: Duration = Duration::from_millis(3);
/// The same for one that is in uninterruptible sleep.
const FIRST_WAIT_ASLEEP: Duration = Duration::from_micros(300);
/// What a thread that only wants for a processor is waited for.
const BUSY_MACHINE: Duration = Duration::from_secs(3);
/// What one in uninterruptible sleep is waited for while all the others stand still.
const WHILE_OTHERS_STAND: Duration = Duration::from_millis(5);

impl<'t> Work<'t> {
    fn new(target: &'t Target, maps: &'t Maps, options: &'t Options) -> Self {
        let size = usize::try_from(options.stack_bytes).unwrap_or(0).saturating_add(4096);
        Self {
            target,
            maps,
            options,
            memory: target.memory(),
            names: Syscalls::of(target.arch().family()),
            buffer: vec![1; size],
            outcomes: Vec::new(),
            stops: Stops::default(),
        }
    }

    /// Each thread for itself.
    fn one_by_one(&mut self, threads: &mut Vec<ThreadFacts>, usage: &mut Usage) {
        let mut waiting: Vec<Held> = Vec::new();
        for _ in 0..MAX_ROUNDS {
            for index in self.outcomes.len()..threads.len() {
                let Some(facts) = threads.get_mut(index) else { break };
                facts.ask_what_it_waits_in(self.target, &self.names);
                let first_wait = match facts.state {
                    ThreadState::Uninterruptible => FIRST_WAIT_ASLEEP,
                    _ => FIRST_WAIT,
                };
                let outcome = match self.seize(index, facts) {
                    Ok(mut held) => {
                        held.ask();
                        match held.wait(first_wait) {
                            Seen::Running => {
                                let waited = held.asked.elapsed();
                                waiting.push(held);
                                Outcome::Unstoppable(waited)
                            }
                            seen => self.take(held, seen),
                        }
                    }
                    Err(outcome) => outcome,
                };
                self.outcomes.push(outcome);
                self.look_after(&mut waiting);
            }
            if !self.add_new(threads, usage) {
                break;
            }
        }
        self.wait_for_rest(&mut waiting);
        // What has not stopped even now is let go of by the end of this thread.
    }

    fn seize(&self, index: usize, facts: &ThreadFacts) -> Result<Held, Outcome> {
        if facts.state.is_gone() {
            return Err(Outcome::Gone);
        }
        match Tracee::seize(facts.id) {
            Ok(tracee) => Ok(Held { index, tracee, asked: Instant::now() }),
            Err(error) => Err(self.why_not(facts.id, error)),
        }
    }

    fn why_not(&self, id: u32, error: OsError) -> Outcome {
        const ESRCH: i32 = 3;
        if error.number == ESRCH || self.target.state_of(id).is_none_or(ThreadState::is_gone) {
            return Outcome::Gone;
        }
        match self.target.tracer_of(id) {
            Some(tracer) => Outcome::Traced(tracer),
            None => Outcome::Denied(self.target.why_denied()),
        }
    }

    /// Takes what stopped threads are there, without waiting.
    fn look_after(&mut self, waiting: &mut Vec<Held>) {
        let mut at = 0;
        while let Some(held) = waiting.get_mut(at) {
            match held.tracee.poll() {
                Seen::Running => at += 1,
                seen => {
                    let held = waiting.swap_remove(at);
                    let index = held.index;
                    let outcome = self.take(held, seen);
                    self.set(index, outcome);
                }
            }
        }
    }

    fn set(&mut self, index: usize, outcome: Outcome) {
        if let Some(place) = self.outcomes.get_mut(index) {
            *place = outcome;
        }
    }

    /// Waits for what did not stop at once, as long as each is worth it.
    fn wait_for_rest(&mut self, waiting: &mut Vec<Held>) {
        const PAUSE: Duration = Duration::from_micros(300);
        while !waiting.is_empty() {
            self.look_after(waiting);
            let mut at = 0;
            while let Some(held) = waiting.get(at) {
                let waited = held.asked.elapsed();
                if waited < self.patience(held.tracee.id(), waited) {
                    at += 1;
                } else {
                    self.set(held.index, Outcome::Unstoppable(waited));
                    waiting.swap_remove(at);
                }
            }
            if !waiting.is_empty() {
                thread::sleep(PAUSE);
            }
        }
    }

    /// How long a thread is waited for, by what it does.
    fn patience(&self, id: u32, waited: Duration) -> Duration {
        if waited < self.options.patience {
            return self.options.patience;
        }
        match self.target.state_of(id) {
            Some(ThreadState::Uninterruptible) => self.options.patience,
            Some(_) => BUSY_MACHINE.max(self.options.patience),
            None => Duration::ZERO,
        }
    }

    /// Copies what a thread that was waited for stands on, and lets it go.
    fn take(&mut self, held: Held, seen: Seen) -> Outcome {
        if seen == Seen::Gone {
            return Outcome::Gone;
        }
        let Ok(raw) = held.tracee.registers() else { return Outcome::Gone };
        let arch = gregset::arch_by_size(raw.bytes().len()).unwrap_or(self.target.arch());
        let mut copied = 0;
        let place =
            stack::stack_pointer(arch, raw.bytes()).map(|sp| stack::range(sp, self.maps, self.options));
        if let Some((range, _)) = place {
            let size = usize::try_from(range.size()).unwrap_or_default().min(self.buffer.len());
            copied = self.memory.copy(range.start(), self.buffer.get_mut(..size).unwrap_or_default());
        }
        let asked = held.asked;
        held.tracee.detach();
        let bytes = self.buffer.get(..copied).unwrap_or_default().to_vec();
        self.copied(asked.elapsed(), arch, &raw, place, bytes)
    }

    fn copied(
        &mut self,
        stopped_for: Duration,
        arch: Arch,
        raw: &RawRegisters,
        place: Option<(AddrRange<Avma>, bool)>,
        bytes: Vec<u8>,
    ) -> Outcome {
        self.stops.threads += 1;
        self.stops.longest = self.stops.longest.max(stopped_for);
        Outcome::Copied(Box::new(Copied {
            registers: gregset::registers(arch.family(), raw.bytes()),
            start: place.map_or(Avma::new(0), |(range, _)| range.start()),
            bytes,
            is_cut: place.is_some_and(|(_, is_cut)| is_cut),
            stopped_for,
        }))
    }

    /// Adds threads that began since; whether there are any.
    fn add_new(&self, threads: &mut Vec<ThreadFacts>, usage: &mut Usage) -> bool {
        let ids = self.target.thread_ids().unwrap_or_default();
        let known: HashSet<u32> = threads.iter().map(|facts| facts.id).collect();
        let new = ids.into_iter().filter(|id| !known.contains(id));
        let before = threads.len();
        threads.extend(new.filter_map(|id| facts::one(self.target, id, usage)));
        threads.truncate(self.options.limits.threads);
        threads.len() > before
    }

    /// All threads at one moment.
    fn together(&mut self, threads: &mut Vec<ThreadFacts>, usage: &mut Usage) {
        let mut held: Vec<Held> = Vec::with_capacity(threads.len());
        let mut began = None;
        for facts in threads.iter_mut() {
            facts.ask_what_it_waits_in(self.target, &self.names);
        }
        for _ in 0..MAX_ROUNDS {
            let first = held.len();
            for index in self.outcomes.len()..threads.len() {
                let Some(facts) = threads.get(index) else { break };
                let outcome = match self.seize(index, facts) {
                    Ok(one) => {
                        held.push(one);
                        Outcome::Gone
                    }
                    Err(outcome) => outcome,
                };
                self.outcomes.push(outcome);
            }
            began.get_or_insert_with(Instant::now);
            let mut new = held.split_off(first);
            new.iter_mut().for_each(Held::ask);
            let limit = Instant::now() + BUSY_MACHINE;
            held.extend(new.into_iter().filter_map(|one| self.stop_with_others(one, limit)));
            if self.has_all(threads) || !self.add_new(threads, usage) {
                break;
            }
        }
        self.take_all(held, began.unwrap_or_else(Instant::now));
    }

    /// Whether no thread began since they were listed, by the kernel's count.
    fn has_all(&self, threads: &[ThreadFacts]) -> bool {
        let known = threads.iter().filter(|facts| facts.state != ThreadState::Dead).count() as u64;
        self.target.thread_count().is_some_and(|count| count <= known)
    }

    /// Waits until a thread stands; `None` where it does not.
    fn stop_with_others(&mut self, mut held: Held, limit: Instant) -> Option<Held> {
        let seen = loop {
            match held.wait(WHILE_OTHERS_STAND) {
                Seen::Running => {
                    let state = self.target.state_of(held.tracee.id());
                    if state != Some(ThreadState::Running) && state.is_some() || Instant::now() > limit {
                        break Seen::Running;
                    }
                }
                seen => break seen,
            }
        };
        match seen {
            Seen::Stopped => return Some(held),
            Seen::Running => self.set(held.index, Outcome::Unstoppable(held.asked.elapsed())),

            Seen::Gone => self.set(held.index, Outcome::Gone),
        }
        None
    }

    /// Copies what all of them stand on, then lets all go.
    fn take_all(&mut self, held: Vec<Held>, began: Instant) {
        let mut taken = Vec::with_capacity(held.len());
        let mut ranges = Vec::with_capacity(held.len());
        for one in &held {
            let Ok(raw) = one.tracee.registers() else { continue };
            let arch = gregset::arch_by_size(raw.bytes().len()).unwrap_or(self.target.arch());
            let Some(sp) = stack::stack_pointer(arch, raw.bytes()) else { continue };
            let place = stack::range(sp, self.maps, self.options);
            ranges.push(place.0);
            taken.push((one.index, arch, raw, place));
        }
        let sizes: Vec<_> =
            ranges.iter().map(|range| usize::try_from(range.size()).unwrap_or_default()).collect();
        let mut bytes = vec![0; sizes.iter().sum()];
        let copied = self.memory.copy_all(&ranges, &mut bytes);
        held.into_iter().for_each(|one| one.tracee.detach());
        let together = began.elapsed();
        let mut at = 0;
        for (((index, arch, raw, place), size), copied) in taken.into_iter().zip(sizes).zip(copied) {
            let stack = bytes.get(at..at + copied).unwrap_or_default().to_vec();
            at += size;
            let outcome = self.copied(together, arch, &raw, Some(place), stack);
            self.set(index, outcome);
        }
        self.stops.together = Some(together);
    }
}

impl Held {
    fn ask(&mut self) {
        self.asked = Instant::now();
        // That it is gone shows when it is waited for.
        let _ = self.tracee.interrupt();
    }

    /// Waits for it to stand. First on the processor, since that takes microseconds where it runs on another one; then
    /// others are let onto this one, since it may want it.
    fn wait(&mut self, limit: Duration) -> Seen {
        const SPINS: u32 = 30;
        const YIELDING: Duration = Duration::from_millis(1);
        const PAUSE: Duration = Duration::from_micros(50);
        let mut spins = 0;
        let began = Instant::now();
        loop {
            let seen = self.tracee.poll();
            if seen != Seen::Running {
                return seen;
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
                continue;
            }
            let waited = began.elapsed();
            if waited > limit {
                return Seen::Running;
            }
            if waited < YIELDING { thread::yield_now() } else { thread::sleep(PAUSE) }
        }
    }
}
