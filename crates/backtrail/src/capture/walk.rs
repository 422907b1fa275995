//! Walking a stack where it lies.

use super::images::Snapshot;
use super::{Ended, OsError, RawFrame, RawStack, Stopped};
use backtrail_capture::local::OwnStack;
use backtrail_core::{FrameAddress, ReadMemory, Registers};
use backtrail_unwind::{Cache, Frame, FramePointers, Options, Recover, Walk};
use std::fmt;

/// How far a scan looks in place: few words, since each candidate's code is read through the kernel.
const SCAN_WORDS: u32 = 128;

/// What a thread keeps to itself, so that capturing its own stack is cheap: where its stack ends, and which rules led on
/// from the addresses it met before.
///
/// # Signal safety
///
/// Making one asks the C library and allocates; using it in a signal handler is safe.
pub struct ThreadCache {
    stack: OwnStack,
    cache: Box<Cache>,
    generation: u64,
}

impl ThreadCache {
    /// A cache for the calling thread. It cannot be given to another.
    ///
    /// # Errors
    /// Where the C library does not know the thread's stack.
    pub fn new() -> Result<Self, OsError> {
        Ok(Self { stack: OwnStack::find()?, cache: Box::default(), generation: 0 })
    }

    pub(super) fn stack(&self) -> &OwnStack {
        &self.stack
    }

    /// The rules, if they are of this list of images; else none yet.
    pub(super) fn rules(&mut self, generation: u64) -> &mut Cache {
        if self.generation != generation {
            self.cache.clear();
            self.generation = generation;
        }
        &mut self.cache
    }
}

impl fmt::Debug for ThreadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadCache").finish_non_exhaustive()
    }
}

/// Walks by compiled rules and leaves the frames behind the first `top` in `stack`.
///
/// # Signal safety
///
/// Safe: neither allocates nor locks.
#[inline]
pub(super) fn by_rules(
    at: &Stopped,
    snapshot: &Snapshot,
    cache: Option<&mut Cache>,
    top: usize,
    stack: &mut RawStack,
) {
    let options = Options {
        max_frames: limit(stack, top),
        scan_words: SCAN_WORDS,
        recover: Recover::Needed,
        ..Options::default()
    };
    let mut walk = Walk::new(*at.registers(), at.memory(), snapshot.compiled(), options);
    if let Some(cache) = cache {
        walk = walk.with_cache(cache);
    }
    fill(&mut walk, top, stack);
    stack.ended = walk.ended();
    stack.generation = snapshot.generation();
}

/// Walks by frame pointers.
///
/// # Signal safety
///
/// Safe: neither allocates nor locks.
#[inline]
pub(super) fn by_frame_pointers(at: &Stopped, generation: u64, top: usize, stack: &mut RawStack) {
    let mut walk = FramePointers::new(at.registers(), at.memory(), limit(stack, top));
    fill(&mut walk, top, stack);
    stack.ended = walk.ended();
    stack.generation = generation;
}

/// Walks a copy of a stack with all that images' files have. Not for signal handlers.
pub(super) fn copied<M: ReadMemory>(
    registers: Registers,
    memory: &M,
    snapshot: &Snapshot,
    stack: &mut RawStack,
) {
    let options = Options { max_frames: limit(stack, 0), ..Options::default() };
    let mut walk = Walk::new(registers, memory, snapshot.full(), options);
    fill(&mut walk, 0, stack);
    stack.ended = walk.ended();
    stack.generation = snapshot.generation();
}

fn limit(stack: &RawStack, top: usize) -> u64 {
    (stack.capacity() as u64).saturating_add(top as u64)
}

#[inline]
fn fill(walk: &mut impl Iterator<Item = Frame>, top: usize, stack: &mut RawStack) {
    stack.clear();
    for frame in walk.skip(top) {
        // What a signal handler returns to was never called: its address is that of its first instruction.
        if frame.is_after_signal
            && let Some(last) = stack.last_mut()
        {
            last.address = FrameAddress::Exact(last.address.raw());
        }
        let Frame { address, stack_pointer, trust, .. } = frame;
        if !stack.push(RawFrame { address, stack_pointer, trust }) {
            stack.ended = Some(Ended::Limit);
            return;
        }
    }
}
