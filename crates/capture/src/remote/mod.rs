//! Another process of this machine, captured while it runs. Linux.
//!
//! Each thread is stopped for as long as copying its registers and its stack takes, some microseconds; with
//! [`Options::consistent`] all of them are stopped together, so that the stacks are of one moment. No signal is sent, so
//! a stopped process stays stopped, a pending signal is delivered as if nothing had been, and calls that threads wait in
//! are begun again by the kernel. Stopping is done by a thread of its own: when that ends, however it does, the kernel
//! lets go of whatever was still held. See [`backtrail_sys::linux::ptrace`].
//!
//! Of a stack the bytes from the stack pointer up to the end of its mapping are copied, at most
//! [`Options::stack_bytes`]; that deeper part of a deep stack is in [`LiveMemory`], as it is after the thread went on.
//!
//! Threads that cannot be stopped (in uninterruptible sleep, or traced by a debugger) are told so; where the kernel says
//! what their stack pointer is, their stack is copied without stopping them: they do not run anyway.

mod deadlock;
mod denied;
mod error;
mod images;
mod kernel_stack;
mod lock_wait;
mod maps;
mod memory;
mod named;
mod options;
mod processors;
mod stack;
mod stack_arena;
mod stop;
mod target;
mod thread_info;
mod usage;

pub use backtrail_sys::linux::ptrace::RawRegisters;
pub use deadlock::Deadlock;
pub use error::Error;
pub use lock_wait::{LockHolder, LockWait};
pub use maps::{MappedFile, Maps};
pub use memory::LiveMemory;
pub use named::processes_named;
pub use options::Options;
pub use processors::{CpuAvoidance, workers};
pub use stop::Stops;
pub use target::Target;
pub use thread_info::{StackCopyMethod, ThreadInfo};
pub use usage::Usage;

use crate::gregset;
use crate::memory::Bytes;
use crate::procfs::{Syscalls, SystemCall};
use crate::{Limits, Memory, Process, Snapshot, Source, Thread, ThreadState};
use backtrail_core::{Avma, Registers};
use lock_wait::FutexMemory;
use std::collections::HashMap;
use std::time::Instant;
use stop::Outcome;
use usage::Watch;

/// A captured process.
#[derive(Debug)]
pub struct Captured {
    /// Its threads with their registers and stacks, its images and mapped ranges.
    pub snapshot: Snapshot<'static>,
    /// What else is known of each thread; parallel to the snapshot's.
    pub threads: Vec<ThreadInfo>,
    /// What is mapped where.
    pub maps: Maps,
    /// How long threads were stopped.
    pub stops: Stops,
    /// Threads that wait for each other.
    pub deadlocks: Vec<Deadlock>,
    /// CPU times as they were then; `None` of threads that the caller kept standing.
    pub usage: Option<Usage>,
}

/// Captures a process. `away` keeps the caller off the processors that the process runs on from then on.
///
/// # Errors
/// Where there is no such process, it may not be captured (the message says by which setting or capability), or it is
/// the caller's own.
pub fn capture(target: &Target, options: &Options, away: &mut CpuAvoidance) -> Result<Captured, Error> {
    let before = Watch::begin(target);
    let maps = target.maps(&options.limits)?;
    let ids = target.thread_ids()?;
    let mut facts = thread_info::read_all(target, &ids, away);
    facts.truncate(options.limits.threads);
    let before = before.used(target);
    let stopped = stop::run(target, &maps, options, away, &mut facts)?;
    check(target, &facts, &stopped.outcomes)?;
    let mut captured = assemble(target, options, maps, facts, stopped);
    captured.usage = Some(Usage::begin(target, &captured.threads, before));
    Ok(captured)
}

/// Registers as the kernel would lay them out, for a thread whose own, those that it is `standing` with, are of something else: of the
/// handler of its crash. `None` of a 32-bit thread.
pub fn raw_registers(registers: &Registers, standing: Option<&RawRegisters>) -> Option<RawRegisters> {
    RawRegisters::of(&gregset::raw(registers, standing.map_or(&[], RawRegisters::bytes))?)
}

/// Captures a process whose threads the caller keeps standing: it has seized them, and `registers` has those of each, by its id.
/// Nothing is said of CPU times. Threads without registers could not be stopped.
///
/// # Errors
/// As [`capture`]'s.
pub fn capture_standing(
    target: &Target,
    options: &Options,
    registers: &HashMap<u32, RawRegisters>,
) -> Result<Captured, Error> {
    let maps = target.maps(&options.limits)?;
    let ids = target.thread_ids()?;
    let mut facts = thread_info::read_all(target, &ids, &mut CpuAvoidance::default());
    facts.truncate(options.limits.threads);
    for thread in &mut facts {
        if let Some(registers) = registers.get(&thread.id) {
            // What the kernel says of it is that it stands.
            let is_in_call = gregset::call(target.arch().family(), registers.bytes()).is_some();
            thread.state = if is_in_call { ThreadState::Sleeping } else { ThreadState::Running };
            thread.waiting_in = None;
        }
    }
    let stopped = stop::copy_standing(target, &maps, options, registers, &facts);
    let mut captured = assemble(target, options, maps, facts, stopped);
    for thread in &mut captured.snapshot.threads {
        let raw = thread.id.and_then(|id| registers.get(&u32::try_from(id).ok()?));
        thread.thread_pointer =
            raw.and_then(|raw| gregset::thread_pointer(target.arch().family(), raw.bytes()));
    }
    Ok(captured)
}

/// Joins what was copied of the threads with what else is known.
fn assemble(
    target: &Target,
    options: &Options,
    maps: Maps,
    facts: Vec<ThreadInfo>,
    stopped: stop::Stopped,
) -> Captured {
    let stop::Stopped { outcomes, stacks, stops } = stopped;
    let mut notes = Vec::new();
    let mut pieces = Vec::new();
    let mut threads = Vec::new();
    let mut kept = Vec::new();
    let mut vanished = 0;
    let names = Syscalls::of(target.arch().family());
    let until = Instant::now() + options.patience;
    let ids = Ids::new(target, &facts, &outcomes);
    let place = StackContext { target, options, maps: &maps, names: &names, ids, until, stacks: &stacks };
    for (facts, outcome) in facts.into_iter().zip(outcomes) {
        if matches!(outcome, Outcome::Gone) && !facts.state.is_gone() {
            vanished += 1;
            continue;
        }
        let (facts, registers) = settle(&place, facts, outcome, &mut pieces);
        threads.push(thread(target, &facts, registers));
        kept.push(facts);
    }
    deadlock::check_joins(&mut kept, &threads, &maps);
    let unknown = kernel_stack::read(target, &mut kept, &threads, options);
    if unknown > 0 {
        notes.push(format!(
            "where in the kernel {unknown} threads wait is not known: they did not come back there in time"
        ));
    }
    let deadlocks = deadlock::find(&kept, options.consistent);
    if vanished > 0 {
        notes.push(format!("{vanished} threads ended while the process was captured"));
    }
    pieces.extend(pages(target, &maps));
    let memory = Memory::of(pieces);
    let images = images::find(target, &maps, &memory, &options.limits);
    let snapshot = Snapshot {
        source: Source::Process,
        arch: target.arch(),
        process: process(target),
        fault: None,
        threads,
        images,
        mappings: maps.all().to_vec(),
        memory,
        pointer_authentication: None,
        notes,
    };
    Captured { snapshot, threads: kept, maps, stops, deadlocks, usage: None }
}

/// Whether enough was got hold of for an answer: the same refusal for every thread is one of the process.
fn check(target: &Target, facts: &[ThreadInfo], outcomes: &[Outcome]) -> Result<(), Error> {
    let mut left = facts.iter().zip(outcomes).filter(|(facts, _)| !facts.state.is_gone()).peekable();
    if left.peek().is_none() {
        return Err(Error::NoSuchProcess(target.id()));
    }
    let denied = left.map(|(_, outcome)| match outcome {
        Outcome::Denied(why) => Some(why),
        _ => None,
    });
    let denied: Option<Vec<_>> = denied.collect();
    match denied.as_deref() {
        Some([why, ..]) => Err(Error::Denied(target.id(), (*why).clone())),
        _ => Ok(()),
    }
}

fn thread(target: &Target, facts: &ThreadInfo, registers: Option<Registers>) -> Thread {
    Thread {
        id: Some(facts.id.into()),
        name: Some(facts.name.clone()).filter(|name| !name.is_empty()),
        registers: registers.unwrap_or_else(|| Registers::new(target.arch().family())),
        is_crashed: false,
        state: Some(facts.state.to_string()),
        thread_pointer: None,
    }
}

impl Captured {
    /// Looks again what is mapped where, for stacks with addresses in no image: a process that is just starting maps its images
    /// after it was looked the first time. Says whether there is other code than before.
    pub fn renew(&mut self, target: &Target, limits: &Limits) -> bool {
        let Ok(maps) = target.maps(limits) else { return false };
        let code = |maps: &Maps| maps.all().iter().filter(|one| one.executable).cloned().collect::<Vec<_>>();
        if code(&maps) == code(&self.maps) {
            return false;
        }
        let snapshot = &mut self.snapshot;
        snapshot.memory = std::mem::take(&mut snapshot.memory).with(pages(target, &maps));
        snapshot.images = images::find(target, &maps, &snapshot.memory, limits);
        snapshot.mappings = maps.all().to_vec();
        self.maps = maps;
        true
    }
}

fn pages(target: &Target, maps: &Maps) -> Pieces {
    images::pages(target, maps).into_iter().map(|(start, bytes)| (start, Bytes::One(bytes))).collect()
}

/// What threads' stacks are settled by.
struct StackContext<'p> {
    target: &'p Target,
    options: &'p Options,
    maps: &'p Maps,
    names: &'p Syscalls,
    ids: Ids<'p>,
    /// How long a thread is waited for to sleep again.
    until: Instant,
    stacks: &'p stack_arena::CopiedStacks,
}

impl StackContext<'_> {
    /// Which lock a call waits for.
    fn lock_wait(&self, call: &SystemCall, memory: Option<&FutexMemory>) -> Option<LockWait> {
        let family = self.target.arch().family();
        let mut waits = lock_wait::lock_wait(family, call, memory, &self.ids)?;
        if matches!(waits.holder, LockHolder::Ended(_)) {
            // It may have unlocked before it ended. What is still so, now that it has, stays so.
            let now = FutexMemory::read(call, &self.target.memory());
            waits = lock_wait::lock_wait(family, call, now.as_ref(), &self.ids)?;
        }
        if let LockHolder::Thread(id) = &mut waits.holder {
            *id = self.ids.outer(*id)?;
        }
        Some(waits)
    }
}

/// The threads of a process by the ids that they know each other by: those of their own namespace.
struct Ids<'p> {
    target: &'p Target,
    /// The ids that we know them by, and whether they have ended.
    known: HashMap<u32, (u32, bool)>,
    /// Whether the process is in a namespace of its own.
    are_inner: bool,
}

impl<'p> Ids<'p> {
    fn new(target: &'p Target, threads: &[ThreadInfo], outcomes: &[Outcome]) -> Self {
        let known = threads.iter().zip(outcomes).map(|(thread, outcome)| {
            let is_ended = thread.state.is_gone() || matches!(outcome, Outcome::Gone);
            (thread.inner_id.unwrap_or(thread.id), (thread.id, is_ended))
        });
        let are_inner = threads.iter().any(|thread| thread.inner_id.is_some());
        Self { target, known: known.collect(), are_inner }
    }

    fn outer(&self, id: u32) -> Option<u32> {
        self.known.get(&id).map(|(outer, _)| *outer)
    }
}

impl lock_wait::Threads for Ids<'_> {
    fn is_alive(&self, id: u32) -> bool {
        self.known.get(&id).is_some_and(|(_, is_ended)| !is_ended)
    }

    fn is_ended(&self, id: u32) -> bool {
        match self.known.get(&id) {
            Some((_, is_ended)) => *is_ended,
            // One that has begun since threads were listed is there.
            None => !self.are_inner && self.target.state_of(id).is_none_or(ThreadState::is_gone),
        }
    }
}

type Pieces = Vec<(Avma, Bytes<'static>)>;

/// A thread's registers by what came of stopping it; its stack goes to `pieces`.
fn settle(
    place: &StackContext<'_>,
    mut facts: ThreadInfo,
    outcome: Outcome,
    pieces: &mut Pieces,
) -> (ThreadInfo, Option<Registers>) {
    let because = match outcome {
        Outcome::Copied(copied) => {
            facts.stack_copy = StackCopyMethod::Stopped(copied.stopped_for);
            facts.is_cut = copied.is_cut;
            if let Some(call) = &copied.call {
                facts.waits_in(call, place.target, place.names, place.until);
                if facts.waiting_in.as_deref().is_some_and(|name| matches!(name, "futex" | "futex_time64")) {
                    facts.waits_for = place.lock_wait(&call.call, copied.futex.as_ref());
                }
            }
            pieces.extend(place.stacks.bytes(&copied.stack).map(|bytes| (copied.start, bytes)));
            return (facts, Some(copied.registers));
        }
        Outcome::Gone => "it has ended".to_owned(),
        Outcome::Unstoppable(waited) => {
            format!("it could not be stopped within {} ms (uninterruptible sleep)", waited.as_millis())
        }
        Outcome::Traced(tracer) => format!("it is traced by process {tracer}{}", target::called(tracer)),
        Outcome::Denied(why) => why,
    };
    facts.ask_what_it_waits_in(place.target, place.names);
    match stack::without_stopping(place.target, facts.id, place.options, place.maps) {
        Some((registers, start, bytes)) => {
            facts.stack_copy = StackCopyMethod::Unstopped(because);
            pieces.push((start, Bytes::One(bytes.into())));
            (facts, Some(registers))
        }
        None => {
            facts.stack_copy = StackCopyMethod::Not(because);
            (facts, None)
        }
    }
}

/// Which process it is.
pub fn process(target: &Target) -> Process {
    Process {
        pid: Some(target.id().into()),
        name: target.name(),
        executable: target.executable(),
        command_line: target.command_line(),
        os: target::kernel(),
        time: None,
    }
}

/// The images of a process, without stopping it: what [`capture`] finds, and no threads.
///
/// # Errors
/// As [`capture`]'s.
pub fn images(target: &Target, limits: &Limits) -> Result<(Snapshot<'static>, Maps), Error> {
    let maps = target.maps(limits)?;
    let memory = Memory::new(images::pages(target, &maps));
    let images = images::find(target, &maps, &memory, limits);
    let snapshot = Snapshot {
        source: Source::Process,
        arch: target.arch(),
        process: process(target),
        fault: None,
        threads: Vec::new(),
        images,
        mappings: maps.all().to_vec(),
        memory,
        pointer_authentication: None,
        notes: Vec::new(),
    };
    Ok((snapshot, maps))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    struct Waiting(Child);

    impl Drop for Waiting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn what_was_mapped_since_is_found_by_looking_again() {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn();
        let child = Waiting(child.unwrap());
        // It has begun when it waits for its input, with all that it maps mapped.
        let began = std::time::Instant::now();
        let waits =
            || std::fs::read_to_string(format!("/proc/{}/syscall", child.0.id())).unwrap().starts_with("0 ");
        while !waits() && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let target = Target::open(child.0.id()).unwrap();
        let options = Options::default();
        let mut captured = match capture(&target, &options, &mut CpuAvoidance::default()) {
            Ok(captured) => captured,
            Err(Error::Denied(..)) => return eprintln!("skipped: must not stop other processes"),
            Err(error) => panic!("{error}"),
        };
        let (maps, snapshot) = (captured.maps.clone(), captured.snapshot.clone());
        assert!(!snapshot.images.is_empty() && captured.threads[0].waiting_in.as_deref() == Some("read"));
        assert!(!captured.renew(&target, &options.limits), "nothing changed");
        // As it was before the process had mapped anything.
        captured.maps = Maps::default();
        captured.snapshot.images.clear();
        captured.snapshot.mappings.clear();
        assert!(captured.renew(&target, &options.limits));
        assert_eq!(captured.maps.all(), maps.all());
        assert_eq!(captured.snapshot.images, snapshot.images);
        assert_eq!(captured.snapshot.mappings, snapshot.mappings);
        assert_eq!(captured.snapshot.memory.size(), snapshot.memory.size());
    }
}
