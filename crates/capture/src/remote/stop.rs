//! Stopping threads, copying what they stand on, letting them go.

mod outcome;
mod stop_all;
mod waiting;

pub use outcome::Stops;
pub(super) use outcome::{Copied, Outcome, Stopped};

use super::error::Error;
use super::lock_wait::FutexMemory;
use super::maps::Maps;
use super::memory::LiveMemory;
use super::options::Options;
use super::processors::{CpuAvoidance, workers};
use super::stack;
use super::stack_arena::{StackArena, StackSlice};
use super::target::Target;
use super::thread_info::{self, ThreadInfo, Waiting};
use crate::ThreadState;
use crate::gregset::{self, Layout};
use crate::procfs::Syscalls;
use backtrail_core::{AddrRange, Arch, Avma};
use backtrail_sys::linux::OsError;
use backtrail_sys::linux::ptrace::{self, RawRegisters, Seen, Tracee};
use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};
use waiting::{Backoff, LONGEST_PAUSE, PAUSE, SLOW, SeizedThread, young};

/// Stops and copies every thread of `threads`, and those that begin meanwhile, which are added. The outcomes are
/// parallel to it.
pub(super) fn run(
    target: &Target,
    maps: &Maps,
    options: &Options,
    away: &CpuAvoidance,
    threads: &mut Vec<ThreadInfo>,
) -> Result<Stopped, Error> {
    let is_crowded = away.is_crowded();
    // Asked before the other thread begins, which would count as one that runs.
    let hurries_most = options.real_time && !options.consistent && (is_crowded || workers() == 1);
    // The end of this thread makes the kernel let go of threads that were asked to stop and have not.
    let worked = thread::scope(|scope| {
        let work = || {
            ptrace::raise_nice();
            let mut work = Work::new(target, maps, options);
            work.outcomes.reserve(threads.len());
            work.is_crowded = is_crowded;
            match options.consistent {
                true => work.stop_all(threads),
                false => {
                    if hurries_most {
                        // Only where it must: threads that are about to stop are put to run beside one like that, of all
                        // processors, and come to run there only while it sleeps. Linux 6.18: its place looks free.
                        ptrace::set_sched_fifo();
                    }
                    work.one_by_one(threads);
                }
            }
            Stopped { outcomes: work.outcomes, stacks: work.arena.finish(), stops: work.stops }
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

/// What was copied of a thread while it stood.
#[derive(Clone, Copy)]
struct CopiedStack {
    arch: Arch,
    place: Option<(AddrRange<Avma>, bool)>,
    /// Of the room that was asked for, and of what is in it.
    size: usize,
    copied: usize,
    futex: Option<FutexMemory>,
}

/// Copies the threads that somebody keeps standing; `registers` has those of each, by its id. The outcomes are parallel to
/// `threads`.
pub(super) fn copy_standing(
    target: &Target,
    maps: &Maps,
    options: &Options,
    registers: &HashMap<u32, RawRegisters>,
    threads: &[ThreadInfo],
) -> Stopped {
    let mut work = Work::new(target, maps, options);
    for facts in threads {
        work.arena.refill();
        let outcome = match registers.get(&facts.id) {
            Some(raw) => {
                let copied = work.copy(raw);
                work.copied_alone(Duration::ZERO, raw, copied)
            }
            None if facts.state.is_gone() => Outcome::Gone,
            None => Outcome::Unstoppable(options.patience),
        };
        work.outcomes.push(outcome);
    }
    Stopped { outcomes: work.outcomes, stacks: work.arena.finish(), stops: Stops::default() }
}

struct Work<'t> {
    target: &'t Target,
    maps: &'t Maps,
    options: &'t Options,
    memory: LiveMemory,
    names: Syscalls,
    /// The numbers of `futex`, and of the call that it goes on by.
    futex_calls: [Option<u64>; 3],
    /// What this thread keeps off besides what its creator does.
    away: CpuAvoidance,
    layout: Layout,
    /// Where stacks are copied to.
    arena: StackArena,
    /// Room for the stacks of all together: of those that rest, and of those that run.
    prepared: Vec<Vec<u8>>,
    /// How often the next thread is looked at.
    looks: u32,
    /// Whether there is no processor but those that the process runs on.
    is_crowded: bool,
    outcomes: Vec<Outcome>,
    stops: Stops,
}

/// Rounds of new threads; a process that starts them faster than they can be listed never ends doing so.
const MAX_ROUNDS: usize = 8;
/// How often a thread is looked at, at most, before the next is asked to stop too; it is then looked after between others.
/// Where processors are free, threads stop at once; where they are not, the waits for one overlap, and looking only takes
/// time from them: each look in vain halves the next thread's.
const LOOKS: u32 = 16;
/// The same for a thread that runs: it stops on its own processor as soon as that is told, and would stand still while this
/// thread is waking up.
const LOOKS_AT_RUNNING: u32 = 250;
/// Threads that may be waited for at a time, which is also how many may stand while one is copied. What wakes up to stop, some
/// microseconds each, may do that before others of the process, on their processors: it is all copied before more are asked.
const IN_FLIGHT: usize = 4;
/// Where the process's own threads are on every processor, this thread, which goes before them, works no longer than this without
/// standing aside for as long.
const TURN: Duration = Duration::from_micros(200);
/// What a thread that only wants for a processor is waited for.
const BUSY_MACHINE: Duration = Duration::from_secs(3);

impl<'t> Work<'t> {
    fn new(target: &'t Target, maps: &'t Maps, options: &'t Options) -> Self {
        let names = Syscalls::of(target.arch().family());
        let size = usize::try_from(options.stack_bytes).unwrap_or(0).saturating_add(4096);
        Self {
            target,
            maps,
            options,
            memory: target.memory(),
            futex_calls: ["futex", "futex_time64", "restart_syscall"].map(|name| names.number(name)),
            names,
            away: CpuAvoidance::default(),
            layout: Layout::of(target.arch().family()),
            arena: StackArena::new(size),
            prepared: Vec::new(),
            looks: LOOKS,
            is_crowded: false,
            outcomes: Vec::new(),
            stops: Stops::default(),
        }
    }

    /// Each thread for itself.
    fn one_by_one(&mut self, threads: &mut Vec<ThreadInfo>) {
        let mut waiting: Vec<SeizedThread> = Vec::new();
        let mut turn = Instant::now();
        for _ in 0..MAX_ROUNDS {
            for index in self.outcomes.len()..threads.len() {
                let Some(facts) = threads.get(index) else { break };
                if waiting.is_empty() {
                    self.arena.refill();
                }
                let outcome = self.begin(index, facts, &mut waiting);
                self.outcomes.push(outcome);
                if young(&waiting) >= IN_FLIGHT {
                    self.let_settle(&mut waiting);
                }
                if self.is_crowded && turn.elapsed() > TURN {
                    self.let_settle(&mut waiting);
                    thread::sleep(TURN);
                    turn = Instant::now();
                }
                if waiting.iter().any(|held| held.is_running) {
                    // It stands as soon as it comes to run, while the next ones are asked.
                    self.look_after(&mut waiting);
                }
            }
            // None is to stand while they are listed.
            self.let_settle(&mut waiting);
            if !self.add_new(threads) {
                break;
            }
        }
        self.wait_for_rest(&mut waiting);
        // What has not stopped even now is let go of by the end of this thread.
    }

    /// Asks a thread to stop, and copies it if it does at once; else it is one of those that are waited for.
    fn begin(&mut self, index: usize, facts: &ThreadInfo, waiting: &mut Vec<SeizedThread>) -> Outcome {
        if facts.state == ThreadState::Running {
            // It does not wait for the others', which would go before it.
            self.let_settle(waiting);
        }
        let mut held = match self.seize(index, facts) {
            Ok(held) => held,
            Err(outcome) => return outcome,
        };
        held.ask();
        match held.look(if held.is_running { LOOKS_AT_RUNNING } else { self.looks }) {
            Seen::Running => {
                self.looks = (self.looks / 2).max(1);
                waiting.push(held);
                Outcome::Unstoppable(Duration::ZERO)
            }
            seen => {
                self.looks = (self.looks * 2).min(LOOKS);
                self.take(held, seen)
            }
        }
    }

    /// Waits until none is waited for, those left out that take long.
    fn let_settle(&mut self, waiting: &mut Vec<SeizedThread>) {
        self.look_after(waiting);
        let mut backoff = Backoff::up_to(LONGEST_PAUSE);
        loop {
            let young = young(waiting);
            if young == 0 {
                break;
            }
            backoff.sleep(young);
            let before = waiting.len();
            self.look_after(waiting);
            backoff.adapt(waiting.len() < before);
        }
    }

    #[allow(clippy::result_large_err, reason = "as rare as large")]
    fn seize(&self, index: usize, facts: &ThreadInfo) -> Result<SeizedThread, Outcome> {
        if facts.state.is_gone() {
            return Err(Outcome::Gone);
        }
        match Tracee::seize(facts.id) {
            Ok(tracee) => {
                let now = Instant::now();
                let is_running = facts.state == ThreadState::Running;
                Ok(SeizedThread { index, tracee, asked: now, moved: now, is_running })
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
    fn look_after(&mut self, waiting: &mut Vec<SeizedThread>) {
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
    fn wait_for_rest(&mut self, waiting: &mut Vec<SeizedThread>) {
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
    fn take(&mut self, held: SeizedThread, seen: Seen) -> Outcome {
        if seen == Seen::Gone {
            return Outcome::Gone;
        }
        let Ok(raw) = held.tracee.registers() else { return Outcome::Gone };
        let stood = self.copy(&raw);
        let moved = held.moved;
        held.tracee.detach();
        let stopped_for = moved.elapsed();
        self.copied_alone(stopped_for, &raw, stood)
    }

    /// Copies what a thread with these registers stands on.
    fn copy(&mut self, raw: &RawRegisters) -> CopiedStack {
        let arch = gregset::arch_by_size(raw.bytes().len()).unwrap_or(self.target.arch());
        let (mut size, mut copied) = (0, 0);
        let place =
            stack::stack_pointer(arch, raw.bytes()).map(|sp| stack::range(sp, self.maps, self.options));
        if let Some((range, _)) = place {
            let room = self.arena.get(usize::try_from(range.size()).unwrap_or_default());
            size = room.len();
            copied = self.memory.copy(range.start(), room);
        }
        CopiedStack { arch, place, size, copied, futex: self.futex(arch, raw) }
    }

    fn copied_alone(&mut self, stopped_for: Duration, raw: &RawRegisters, stack: CopiedStack) -> Outcome {
        let CopiedStack { arch, place, size, copied, futex } = stack;
        let stack = self.arena.keep(size, copied);
        self.copied(stopped_for, arch, raw, futex, place, stack)
    }

    /// What lies around the word that a stopped thread waits for in `futex`; also where the kernel may have begun that call anew.
    fn futex(&self, arch: Arch, raw: &RawRegisters) -> Option<FutexMemory> {
        let call = gregset::call(arch.family(), raw.bytes())?;
        self.futex_calls.contains(&Some(call.number)).then(|| FutexMemory::read(&call, &self.memory))?
    }

    fn copied(
        &mut self,
        stopped_for: Duration,
        arch: Arch,
        raw: &RawRegisters,
        futex: Option<FutexMemory>,
        place: Option<(AddrRange<Avma>, bool)>,
        stack: StackSlice,
    ) -> Outcome {
        self.stops.threads += 1;
        self.stops.longest = self.stops.longest.max(stopped_for);
        if arch.family() != self.layout.family() {
            self.layout = Layout::of(arch.family());
        }
        let registers = self.layout.read(raw.bytes());
        let call = gregset::call(arch.family(), raw.bytes()).zip(registers.pc());
        Outcome::Copied(Copied {
            registers,
            call: call.map(|(call, pc)| Waiting { call, program_counter: pc }),
            futex,
            start: place.map_or(Avma::new(0), |(range, _)| range.start()),
            stack,
            is_cut: place.is_some_and(|(_, is_cut)| is_cut),
            stopped_for,
        })
    }

    /// Adds threads that began since; whether there are any.
    fn add_new(&mut self, threads: &mut Vec<ThreadInfo>) -> bool {
        let ids = self.target.thread_ids().unwrap_or_default();
        let known: HashSet<u32> = threads.iter().map(|facts| facts.id).collect();
        let new = ids.into_iter().filter(|id| !known.contains(id));
        let before = threads.len();
        threads.extend(new.filter_map(|id| thread_info::one(self.target, id, &self.names, &mut self.away)));
        threads.truncate(self.options.limits.threads);
        threads.len() > before
    }
}
