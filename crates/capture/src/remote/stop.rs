//! Stopping threads, copying what they stand on, letting them go.

use super::facts::{self, ThreadFacts};
use super::maps::Maps;
use super::memory::LiveMemory;
use super::target::Target;
use super::usage::Usage;
use super::{Error, Options, stack};
use crate::gregset;
use crate::ThreadState;
use crate::procfs::Syscalls;
use backtrail_core::{AddrRange, Arch, Avma, Registers};
use backtrail_sys::linux::OsError;
use backtrail_sys::linux::ptrace::{self, RawRegisters, Seen, Tracee};
use std::collections::HashSet;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// How long threads stood still, as measured from outside: from the last moment they were seen running (or asleep in the
/// kernel) to the one they were let go of. At most as long they really stood.
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

/// What came of stopping all threads.
pub(super) struct Stopped {
    /// Parallel to the threads.
    pub(super) outcomes: Vec<Outcome>,
    /// The bytes that were copied of all stacks.
    pub(super) stacks: Vec<u8>,
    pub(super) stops: Stops,
}

/// A thread's registers and stack.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) registers: Registers,
    pub(super) start: Avma,
    /// Where its bytes are among all that were copied.
    pub(super) bytes: Range<usize>,
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
) -> Result<Stopped, Error> {
    // The end of this thread makes the kernel let go of threads that were asked to stop and have not.
    let worked = thread::scope(|scope| {
        let work = || {
            ptrace::hurry();
            let mut work = Work::new(target, maps, options);
            match options.consistent {
                true => work.together(threads, usage),
                false => work.one_by_one(threads, usage),
            }
            Stopped { outcomes: work.outcomes, stacks: work.stacks, stops: work.stops }
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
    /// All stacks that were copied one by one, one behind the other.
    stacks: Vec<u8>,
    outcomes: Vec<Outcome>,
    stops: Stops,
}

/// A seized thread that was asked to stop.
struct Held {
    /// Its place among the threads.
    index: usize,
    tracee: Tracee,
    asked: Instant,
    /// When it was last seen not to stand.
    moved: Instant,
}

/// Bytes of stacks that there is room for before any thread is stopped; more is made where it is needed.
const USUAL_STACKS: usize = 8 << 20;
/// Rounds of new threads; a process that starts them faster than they can be listed never ends doing so.
const MAX_ROUNDS: usize = 8;
/// How often a thread is looked at before the next is asked to stop too; it is then looked after between others. Where
/// processors are free, threads stop at once; where they are not, the waits for one overlap.
const LOOKS: u32 = 20;
/// Threads that may be waited for at a time, which is also how many may stand while one is copied.
const IN_FLIGHT: usize = 8;
/// After this time a thread no longer counts as one of them: it may sleep for long.
const SLOW: Duration = Duration::from_millis(2);
/// A pause in waiting. Giving way (`sched_yield`) would mean to wait until all others have had their slice, which is 1 ms
/// and more on a busy machine.
const PAUSE: Duration = Duration::from_micros(3);
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
            stacks: Vec::with_capacity(USUAL_STACKS),
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
                let outcome = match self.seize(index, facts) {
                    Ok(mut held) => {
                        held.ask();
                        match held.look(LOOKS) {
                            Seen::Running => {
                                waiting.push(held);
                                Outcome::Unstoppable(Duration::ZERO)
                            }
                            seen => self.take(held, seen),
                        }
                    }
                    Err(outcome) => outcome,
                };
                self.outcomes.push(outcome);
                self.look_after(&mut waiting);
                while waiting.iter().filter(|held| held.asked.elapsed() < SLOW).count() >= IN_FLIGHT {
                    thread::sleep(PAUSE);
                    self.look_after(&mut waiting);
                }
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
            Ok(tracee) => {
                let now = Instant::now();
                Ok(Held { index, tracee, asked: now, moved: now })
            }
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
            match held.look(1) {
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
        const LONG_PAUSE: Duration = Duration::from_micros(100);
        let began = Instant::now();
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
                thread::sleep(if began.elapsed() < SLOW { PAUSE } else { LONG_PAUSE });
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
        let moved = held.moved;
        held.tracee.detach();
        let stopped_for = moved.elapsed();
        let before = self.stacks.len();
        self.stacks.extend_from_slice(self.buffer.get(..copied).unwrap_or_default());
        self.copied(stopped_for, arch, &raw, place, before..before + copied)
    }

    fn copied(
        &mut self,
        stopped_for: Duration,
        arch: Arch,
        raw: &RawRegisters,
        place: Option<(AddrRange<Avma>, bool)>,
        bytes: Range<usize>,
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
                    // Any other state is that of a thread that is about to stand.
                    if state == Some(ThreadState::Uninterruptible) || Instant::now() > limit {
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
            let outcome = self.copied(together, arch, &raw, Some(place), at..at + copied);
            self.set(index, outcome);
            at += size;
        }
        self.stacks = bytes;
        self.stops.together = Some(together);
    }
}

impl Held {
    fn ask(&mut self) {
        self.asked = Instant::now();
        self.moved = self.asked;
        // That it is gone shows when it is waited for.
        let _ = self.tracee.interrupt();
    }

    /// Looks up to so many times whether it stands, without a pause: where it runs on another processor it stops within
    /// microseconds.
    fn look(&mut self, times: u32) -> Seen {
        for _ in 0..times {
            let now = Instant::now();
            match self.tracee.poll() {
                Seen::Running => self.moved = now,
                seen => return seen,
            }
        }
        Seen::Running
    }

    /// Waits until it stands, for so long at most.
    fn wait(&mut self, limit: Duration) -> Seen {
        let began = Instant::now();
        loop {
            let seen = self.look(LOOKS);
            if seen != Seen::Running || began.elapsed() > limit {
                return seen;
            }
            thread::sleep(PAUSE);
        }
    }
}
