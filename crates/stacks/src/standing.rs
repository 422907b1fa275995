//! A process whose threads somebody keeps standing, as a crash file.

use crate::live::{add_facts, walk};
use crate::{Captured, StackOptions, StacksError};
use backtrail_capture::crash_file::format::{Event, MessageKind};
use backtrail_capture::crash_file::{self, CrashFile};
use backtrail_capture::remote::{self, Captured as Snapshots, LiveMemory, RawRegisters, Target};
use backtrail_capture::{Fault, Limits, Memory, Snapshot, elf_core};
use backtrail_core::{Avma, Registers, Trust};
use backtrail_model::Report;
use backtrail_store::Index;
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A process whose threads the caller has seized and keeps standing.
#[derive(Debug)]
pub struct Standing<'s> {
    /// The process.
    pub pid: u32,
    /// Registers of the threads, by their ids. A thread without is said to have been out of reach.
    pub registers: &'s HashMap<u32, RawRegisters>,
    /// The thread that crashed, and by what.
    pub crashed: Option<(u32, Fault)>,
    /// What happened, where it is no crash.
    pub event: Option<Event>,
}

/// What became of such a process.
#[derive(Debug)]
pub struct CapturedCrash {
    /// Its threads, walked; without names.
    pub captured: Captured,
    /// The bytes of a crash file that has them (`docs/crash-file.md`).
    pub file: Vec<u8>,
}

/// Captures a process that stands, walks its threads, and makes a crash file of it.
///
/// # Errors
/// Where there is no such process or it may not be captured, and for architectures that crash files do not have.
pub fn standing(
    process: Standing<'_>,
    index: &Index,
    options: &StackOptions,
) -> Result<CapturedCrash, StacksError> {
    let target = Target::open(process.pid).map_err(StacksError::of_process)?;
    let how = remote::Options::default();
    let mut snapshots =
        remote::capture_standing(&target, &how, process.registers).map_err(StacksError::of_process)?;
    let snapshot = &mut snapshots.snapshot;
    snapshot.process.time = SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
    if let Some((id, fault)) = process.crashed {
        let crashed = snapshot.threads.iter_mut().find(|thread| thread.id == Some(id.into()));
        crashed.into_iter().for_each(|thread| thread.is_crashed = true);
        snapshot.fault = Some(fault);
    }
    let mut captured = walk(&target, &snapshots, index, options);
    for thread in &mut captured.report.process.threads {
        let facts = usize::try_from(thread.number).ok().and_then(|at| snapshots.threads.get(at));
        facts.into_iter().for_each(|facts| add_facts(thread, facts));
    }
    let file = crash_file(&target, &snapshots, &captured.report, process.event);
    let file = crash_file::write(&file).map_err(StacksError::from_error)?;
    Ok(CapturedCrash { captured, file })
}

/// Captures a process whose core the kernel is about to write: `head` has the headers and notes of that core, the memory is read
/// from the process, which the kernel keeps until the core has been taken. core(5), "Piping core dumps to a program".
///
/// # Errors
/// As [`standing`]'s, and where `head` is no core of one.
pub fn dumping(
    pid: u32,
    head: &[u8],
    index: &Index,
    options: &StackOptions,
) -> Result<CapturedCrash, StacksError> {
    let limits = Limits::default();
    let snapshot = elf_core::read(head, None, &limits).map_err(StacksError::from_error)?;
    let raw = elf_core::raw_registers(head, &limits).map_err(StacksError::from_error)?;
    let registers = raw.into_iter().filter_map(|(id, raw)| Some((id, RawRegisters::of(raw)?))).collect();
    // The kernel writes the thread that crashed first.
    let crashed = snapshot.threads.first().and_then(|thread| u32::try_from(thread.id?).ok());
    standing(
        Standing { pid, registers: &registers, crashed: crashed.zip(snapshot.fault), event: None },
        index,
        options,
    )
}

fn crash_file<'s>(
    target: &Target,
    snapshots: &'s Snapshots,
    report: &Report,
    event: Option<Event>,
) -> CrashFile<'s> {
    let mut snapshot = snapshots.snapshot.clone();
    snapshot.memory = memory(&snapshot, &target.memory());
    for (thread, facts) in snapshot.threads.iter_mut().zip(&snapshots.threads) {
        if let remote::StackCopyMethod::Not(why) = &facts.stack_copy {
            thread.state = Some(why.clone());
        }
    }
    let mut file = CrashFile::new(snapshot);
    for thread in &report.process.threads {
        // Frames found by scanning are guesses, which the reader makes for itself.
        let sure = thread.frames.iter().take_while(|frame| frame.trust != Trust::Scan);
        let frames: Vec<_> = sure.filter_map(|frame| frame.address).collect();
        file.walked.extend(thread.id.map(|id| (id, frames)));
    }
    let said = report.app_info.iter().map(|info| (MessageKind::Abort, info.lines.join("\n")));
    file.messages = said.collect();
    file.exception =
        report.thrown.as_ref().map(|thrown| (thrown.name.clone(), thrown.reason.clone().unwrap_or_default()));
    file.event = event;
    (file.open_file_count, file.open_files) = target.open_files(MAX_OPEN_FILES);
    file.limits = target.resource_limits();
    file
}

/// Open files that are listed; all are counted.
const MAX_OPEN_FILES: usize = 256;
/// Bytes of the stack of the thread that crashed, of each other one, and of all.
const STACK: u64 = 64 << 10;
const OTHER_STACK: u64 = 16 << 10;
const ALL_STACKS: u64 = 16 << 20;
/// Bytes before and behind what a register of the thread that crashed points to.
const NEAR: u64 = 256;
/// What a function may use below its stack pointer without moving it. System V ABI x86_64, 3.2.2.
const RED_ZONE: u64 = 128;

/// What of a process's memory is kept: parts of stacks, and what lies near the registers of the thread that crashed.
fn memory<'m>(snapshot: &Snapshot<'m>, live: &LiveMemory) -> Memory<'m> {
    let mut pieces: Vec<(Avma, Cow<'m, [u8]>)> = Vec::new();
    let mut left = ALL_STACKS;
    let (crashed, others): (Vec<_>, Vec<_>) = snapshot.threads.iter().partition(|thread| thread.is_crashed);
    for thread in crashed.iter().chain(&others) {
        let Some(sp) = thread.registers.sp() else { continue };
        let size = if thread.is_crashed { STACK } else { OTHER_STACK }.min(left);
        let start = Avma::new(sp.get().saturating_sub(RED_ZONE));
        // The stack pointer of a stack that has overflowed lies where nothing is mapped.
        let bytes = snapshot.memory.own_bytes_from(start).or_else(|| snapshot.memory.own_bytes_from(sp));
        let Some(bytes) = bytes else { continue };
        let start = if snapshot.memory.own_bytes_from(start).is_some() { start } else { sp };
        let bytes = bytes.get(..usize::try_from(size).unwrap_or(0)).unwrap_or(bytes);
        left = left.saturating_sub(bytes.len() as u64);
        pieces.push((start, bytes.to_vec().into()));
    }
    for thread in crashed {
        pieces.extend(near(&thread.registers, live));
    }
    Memory::new(pieces)
}

fn near<'m>(registers: &Registers, live: &LiveMemory) -> Vec<(Avma, Cow<'m, [u8]>)> {
    const PAGE: u64 = 4096;
    let mut pieces = Vec::new();
    for (_, value) in registers.iter().filter(|(_, value)| *value >= PAGE) {
        let (start, end) = (value.saturating_sub(NEAR), value.saturating_add(NEAR));
        // A page that cannot be read does not cost the other.
        let middle = (start | (PAGE - 1)).saturating_add(1).min(end);
        for (from, to) in [(start, middle), (middle, end)] {
            let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(0)];
            if !bytes.is_empty() && live.copy(Avma::new(from), &mut bytes) == bytes.len() {
                pieces.push((Avma::new(from), bytes.into()));
            }
        }
    }
    pieces
}
