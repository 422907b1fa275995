//! What a thread does in its signal handler.

use super::snapshot::Snapshot;
use super::{Method, RawStack, StackCopy, ThreadId, walk};
use backtrail_capture::local::{OwnMemory, Slots, Stopped, Work};
use backtrail_core::{Avma, MemorySlice, ReadMemory, Registers, Unreadable};
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
            // Takes memory when it is written to.
            self.copy = vec![0; size];
        }
    }

    /// Hands over registers, copy, and the frames that are found in the copy and, beyond it, in memory.
    pub(super) fn finish_copy(&mut self, into: &mut StackCopy) {
        let (Some(snapshot), Some(registers)) = (self.snapshot.take(), self.registers) else { return };
        let copied = self.copy.get(..self.copied).unwrap_or_default();
        let beyond = OwnMemory::without_stack();
        let memory = CopyThenMemory { copy: MemorySlice::new(self.from, copied), beyond };
        walk::copied(registers, &memory, &snapshot, &mut self.cache, &mut into.frames);
        into.frames.thread = self.stack.thread;
        into.from = self.from;
        for (to, from) in into.bytes.iter_mut().zip(copied) {
            *to = *from;
        }
        into.copied = self.copied.min(into.bytes.len());
        into.registers = Some(registers);
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
        (self.method, self.copied, self.registers) = (method, 0, None);
        self.snapshot = Some(snapshot);
    }

    /// Hands over what was captured. Of a copied stack the frames are found only here.
    pub(super) fn finish(&mut self, stack: &mut RawStack) {
        let snapshot = self.snapshot.take();
        let Some(registers) = self.registers else {
            stack.copy_from(&self.stack);
            return;
        };
        let bytes = self.copy.get(..self.copied).unwrap_or_default();
        if let Some(snapshot) = snapshot {
            walk::copied(registers, &MemorySlice::new(self.from, bytes), &snapshot, &mut self.cache, stack);
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

/// What was copied of a stack, and what lies in memory around it.
struct CopyThenMemory<'a> {
    copy: MemorySlice<'a>,
    beyond: OwnMemory,
}

impl ReadMemory for CopyThenMemory<'_> {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        self.copy.read(address, buf).or_else(|_| self.beyond.read(address, buf))
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
            Method::Rules => walk::in_place(at, snapshot, Some(&mut self.cache), 0, &mut self.stack),
            Method::FramePointers => {
                walk::by_frame_pointers(at, snapshot.generation(), 0, &mut self.stack);
            }
            Method::CopyStack(size) => {
                self.copy(at, size);
                self.registers = Some(*at.registers());
            }
        }
        self.stack.thread = thread;
    }
}
