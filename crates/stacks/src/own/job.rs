//! What a thread does in its signal handler.

use super::snapshot::Snapshot;
use super::{Method, RawStack, StackCopy, ThreadId, walk};
use backtrail_capture::local::{Slots, Stopped, Work};
use backtrail_core::{Avma, MemorySlice, Registers};
use backtrail_unwind::Cache;
use std::sync::{Arc, OnceLock};

/// Captures that may be under way in the process at the same time.
const SLOTS: usize = 40;

/// One capture: prepared by who asks, done by who is asked.
pub(super) struct Job {
    snapshot: Option<Arc<Snapshot>>,
    method: Method,
    stack: RawStack,
    cache: Cache,
    /// Which list of images the cache is of.
    generation: u64,
    copy: Vec<u8>,
    /// What was copied: from where, and how much.
    from: Avma,
    copied: usize,
    registers: Option<Registers>,
    /// Bytes of the stack that are copied beside the walk, and the registers that were kept along with them.
    also: usize,
    seen: Option<Registers>,
}

/// The process's slots: a signal that comes late must find its own, whoever asked.
pub(super) fn slots() -> &'static Slots<Job> {
    static ALL: OnceLock<Slots<Job>> = OnceLock::new();
    ALL.get_or_init(|| Slots::new(SLOTS, Job::new))
}

impl Job {
    fn new() -> Self {
        Self {
            snapshot: None,
            method: Method::Rules,
            stack: RawStack::with_capacity(0),
            cache: Cache::new(),
            generation: 0,
            copy: Vec::new(),
            from: Avma::new(0),
            copied: 0,
            registers: None,
            also: 0,
            seen: None,
        }
    }

    /// Makes room for what will be captured. Allocates where there is too little.
    pub(super) fn reserve(&mut self, method: Method, max_frames: usize) {
        if self.stack.capacity() < max_frames {
            self.stack = RawStack::with_capacity(max_frames);
        }
        if let Method::CopyStack(size) = method
            && self.copy.len() < size
        {
            self.copy.resize(size, 0);
        }
    }

    /// Makes room for a copy beside the walk.
    pub(super) fn reserve_copy(&mut self, size: usize) {
        if self.copy.len() < size {
            self.copy.resize(size, 0);
        }
    }

    /// Has the next capture copy so many bytes of the stack beside the walk.
    pub(super) fn also_copy(&mut self, size: usize) {
        self.reserve_copy(size);
        self.also = size;
    }

    /// Hands over frames, registers and copy.
    pub(super) fn finish_copy(&mut self, into: &mut StackCopy) {
        self.snapshot = None;
        into.frames.copy_from(&self.stack);
        into.from = self.from;
        let copied = self.copy.get(..self.copied).unwrap_or_default();
        for (to, from) in into.bytes.iter_mut().zip(copied) {
            *to = *from;
        }
        into.copied = self.copied.min(into.bytes.len());
        into.registers = self.seen.take();
    }

    /// Prepares a capture.
    pub(super) fn prepare(
        &mut self,
        snapshot: Arc<Snapshot>,
        method: Method,
        max_frames: usize,
        id: ThreadId,
    ) {
        self.reserve(method, max_frames);
        if self.generation != snapshot.generation() {
            self.cache.clear();
            self.generation = snapshot.generation();
        }
        self.stack.clear();
        self.stack.thread = Some(id);
        (self.method, self.copied, self.registers, self.seen) = (method, 0, None, None);
        self.snapshot = Some(snapshot);
    }

    /// Hands over what was captured. Of a copied stack the frames are found only here, which allocates.
    pub(super) fn finish(&mut self, stack: &mut RawStack) {
        let snapshot = self.snapshot.take();
        let Some(registers) = self.registers else {
            stack.copy_from(&self.stack);
            return;
        };
        let bytes = self.copy.get(..self.copied).unwrap_or_default();
        if let Some(snapshot) = snapshot {
            walk::copied(registers, &MemorySlice::new(self.from, bytes), &snapshot, stack);
            stack.thread = self.stack.thread;
        }
    }
}

impl Job {
    fn copy(&mut self, at: &Stopped, size: usize) {
        let sp = at.registers().sp().unwrap_or_default();
        // Leaf functions use bytes below the stack pointer (x86-64's red zone).
        self.from = sp.checked_sub(128).unwrap_or(sp);
        let room = self.copy.get_mut(..size).unwrap_or_default();
        self.copied = at.memory().copy_stack(self.from, room);
    }
}

impl Work for Job {
    /// # Signal safety
    ///
    /// Safe: everything that is written to was made before.
    fn run(&mut self, at: &Stopped) {
        let thread = self.stack.thread;
        let Some(snapshot) = &self.snapshot else { return };
        match self.method {
            Method::Rules => walk::by_rules(at, snapshot, Some(&mut self.cache), 0, &mut self.stack),
            Method::FramePointers => {
                walk::by_frame_pointers(at, snapshot.generation(), 0, &mut self.stack);
            }
            Method::CopyStack(size) => {
                self.copy(at, size);
                self.registers = Some(*at.registers());
            }
        }
        let also = std::mem::take(&mut self.also);
        if also > 0 {
            self.copy(at, also);
            self.seen = Some(*at.registers());
        }
        self.stack.thread = thread;
    }
}
