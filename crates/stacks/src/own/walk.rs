//! Walking a stack where it lies.

use super::snapshot::Snapshot;
use super::{OsError, RawFrame, RawStack, Stopped, ThreadId, WalkEnd};
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
    thread: ThreadId,
    cache: Box<Cache>,
    generation: u64,
}

impl ThreadCache {
    /// A cache for the calling thread. It cannot be given to another.
    ///
    /// # Errors
    /// Where the C library does not know the thread's stack.
    pub fn new() -> Result<Self, OsError> {
        let (stack, thread) = (OwnStack::find()?, ThreadId::current());
        Ok(Self { stack, thread, cache: Box::default(), generation: 0 })
    }

    /// Whose it is.
    pub(super) fn thread(&self) -> ThreadId {
        self.thread
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

/// Walks by what the images have and leaves the frames behind the first `top` in `stack`.
///
/// # Signal safety
///
/// Safe: neither allocates nor locks.
#[inline]
pub(super) fn in_place(
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
        // The loader lists no code that was made at run time.
        knows_all_code: false,
        ..Options::default()
    };
    let mut walk = Walk::new(*at.registers(), at.memory(), snapshot.images(), options);
    if let Some(cache) = cache {
        walk = walk.with_cache(cache);
    }
    fill(top, snapshot.generation(), stack, |filling| {
        walk.each(|frame| filling.take(frame));
        if walk.uncalled().is_some() && filling.has_room {
            filling.is_returned_to();
        }
        walk.ended()
    });
}

/// Walks by frame pointers.
///
/// # Signal safety
///
/// Safe: neither allocates nor locks.
#[inline]
pub(super) fn by_frame_pointers(at: &Stopped, generation: u64, top: usize, stack: &mut RawStack) {
    let mut walk = FramePointers::new(at.registers(), at.memory(), limit(stack, top));
    fill(top, generation, stack, |filling| {
        while walk.next().is_some_and(|frame| filling.take(&frame)) {}
        walk.ended()
    });
}

/// Walks a copy of a stack with all that images' files have.
///
/// # Signal safety
///
/// Safe: neither allocates nor locks.
pub(super) fn copied<M: ReadMemory>(
    registers: Registers,
    memory: &M,
    snapshot: &Snapshot,
    cache: &mut Cache,
    stack: &mut RawStack,
) {
    let options = Options { max_frames: limit(stack, 0), knows_all_code: false, ..Options::default() };
    let mut walk = Walk::new(registers, memory, snapshot.images(), options).with_cache(cache);
    fill(0, snapshot.generation(), stack, |filling| {
        walk.each(|frame| filling.take(frame));
        walk.ended()
    });
}

fn limit(stack: &RawStack, top: usize) -> u64 {
    (stack.capacity() as u64).saturating_add(top as u64)
}

/// Takes frames as they come and keeps those behind the first `top`.
struct Filling<'a> {
    frames: &'a mut [RawFrame],
    count: usize,
    top: usize,
    has_room: bool,
}

impl Filling<'_> {
    /// Says whether there is room for more.
    #[inline(always)]
    fn take(&mut self, frame: &Frame) -> bool {
        if self.top > 0 {
            self.top -= 1;
            return true;
        }
        if frame.is_after_signal {
            self.is_returned_to();
        }
        let Some(place) = self.frames.get_mut(self.count) else {
            self.has_room = false;
            return false;
        };
        let Frame { address, stack_pointer, trust, .. } = *frame;
        *place = RawFrame { address, stack_pointer, trust };
        self.count += 1;
        true
    }

    /// What a signal handler returns to was never called: its address is that of its first instruction.
    #[cold]
    fn is_returned_to(&mut self) {
        if let Some(last) = self.count.checked_sub(1).and_then(|last| self.frames.get_mut(last)) {
            last.address = FrameAddress::Exact(last.address.raw());
        }
    }
}

/// Has `walk` fill the stack and say how it ended.
#[inline(always)]
fn fill(
    top: usize,
    generation: u64,
    stack: &mut RawStack,
    walk: impl FnOnce(&mut Filling<'_>) -> Option<WalkEnd>,
) {
    stack.clear();
    let mut filling = Filling { frames: stack.room(), count: 0, top, has_room: true };
    let ended = walk(&mut filling);
    let (count, has_room) = (filling.count, filling.has_room);
    stack.set(count, if has_room { ended } else { Some(WalkEnd::Limit) }, generation);
}
