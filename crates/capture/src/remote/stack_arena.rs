//! Where stacks are copied to.
//!
//! What it gains, by `copies_into_pages_that_are_there` on two busy processors: a thread whose stack has 64 KiB in use stands for
//! a quarter of the time that a copy into new memory takes (8 of 30 µs), with 256 KiB for a fifth (23 of 116 µs, in one of a hundred
//! copies 8 ms). Of 8 KiB nothing can be seen.

use crate::memory::Bytes;
use backtrail_sys::linux::memory::populate;
use std::ops::Range;
use std::sync::Arc;

/// Room for so many bytes is made at a time.
const CHUNK: usize = 1 << 20;
/// With less room than this the next chunk is made: most stacks have fewer bytes in use.
const LOW: usize = 64 << 10;

/// Room for stacks. Its pages are there before any thread is stopped, so that no thread stands while they are made.
pub(super) struct StackArena {
    chunk: Vec<u8>,
    used: usize,
    full: Vec<Arc<Vec<u8>>>,
    /// For what does not fit into the rest of the chunk.
    spare: Vec<u8>,
    most: usize,
}

/// Where a stack was copied to.
#[derive(Clone, Debug, Default)]
pub(super) struct StackSlice {
    chunk: usize,
    range: Range<usize>,
}

/// All that was copied.
pub(super) struct CopiedStacks(Vec<Arc<Vec<u8>>>);

impl CopiedStacks {
    /// The bytes of one.
    pub(super) fn bytes(&self, kept: &StackSlice) -> Option<Bytes<'static>> {
        let chunk = self.0.get(kept.chunk)?;
        Some(Bytes::Shared(Arc::clone(chunk), kept.range.clone()))
    }
}

impl StackArena {
    /// An arena of which no stack needs more than `most` bytes. There is none yet.
    pub(super) fn new(most: usize) -> Self {
        Self { chunk: Vec::new(), used: 0, full: Vec::new(), spare: Vec::new(), most }
    }

    /// Makes room where there is little. To be called while no thread stands.
    pub(super) fn refill(&mut self) {
        if self.spare.len() < self.most {
            self.spare = pages(self.most);
        }
        if self.chunk.len() - self.used < LOW {
            self.renew(CHUNK);
        }
    }

    fn renew(&mut self, size: usize) {
        let chunk = std::mem::replace(&mut self.chunk, pages(size));
        self.full.push(Arc::new(chunk));
        self.used = 0;
    }

    /// Up to so many bytes, to be written to before [`StackArena::keep`].
    pub(super) fn get(&mut self, size: usize) -> &mut [u8] {
        let end = self.used.saturating_add(size);
        match self.chunk.get_mut(self.used..end) {
            Some(room) => room,
            None => {
                let size = size.min(self.spare.len());
                self.spare.get_mut(..size).unwrap_or_default()
            }
        }
    }

    /// Keeps the first `copied` of the `size` bytes that were asked for.
    pub(super) fn keep(&mut self, size: usize, copied: usize) -> StackSlice {
        if self.used.saturating_add(size) > self.chunk.len() {
            if self.used + copied > self.chunk.len() {
                self.renew(copied.max(CHUNK));
            }
            let bytes = self.spare.get(..copied).unwrap_or_default();
            if let Some(place) = self.chunk.get_mut(self.used..self.used + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        let range = self.used..self.used + copied;
        self.used = range.end;
        StackSlice { chunk: self.full.len(), range }
    }

    /// Adds a chunk that was filled elsewhere, and keeps parts of it.
    pub(super) fn add(
        &mut self,
        bytes: Vec<u8>,
        parts: impl Iterator<Item = Range<usize>>,
    ) -> Vec<StackSlice> {
        // What is in the present chunk is known by its place among them.
        if self.used > 0 {
            self.renew(CHUNK);
        }
        let chunk = self.full.len();
        self.full.push(Arc::new(bytes));
        parts.map(|range| StackSlice { chunk, range }).collect()
    }

    pub(super) fn finish(mut self) -> CopiedStacks {
        self.full.push(Arc::new(self.chunk));
        CopiedStacks(self.full)
    }
}

/// Bytes whose pages are there.
pub(super) fn pages(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    if !populate(&mut bytes) {
        bytes.fill(1);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_all_sizes_are_kept() {
        let mut room = StackArena::new(300 << 10);
        let mut kept = Vec::new();
        for number in 0..40_u8 {
            if number % 5 == 0 {
                room.refill();
            }
            let size = match number % 4 {
                0 => 300 << 10,
                1 => 1,
                2 => 0,
                _ => 50 << 10,
            };
            let place = room.get(size);
            assert_eq!(place.len(), size);
            // Of some, less than asked for can be read.
            let copied = if number % 3 == 0 { size / 2 } else { size };
            place[..copied].fill(number);
            kept.push((number, copied, room.keep(size, copied)));
        }
        let parts = room.add(vec![77; 10], std::iter::once(2..4));
        kept.push((77, 2, parts[0].clone()));
        let stacks = room.finish();
        for (number, size, kept) in kept {
            let bytes = stacks.bytes(&kept).unwrap();
            assert!(bytes.len() == size && bytes.iter().all(|byte| *byte == number), "{number}");
        }
        // More than was said to be the most is cut off.
        let mut room = StackArena::new(10);
        room.refill();
        assert_eq!(room.get(2 << 20).len(), 10);
    }

    #[test]
    #[ignore = "a measurement: cargo test -p backtrail-capture copies_into_pages -- --ignored --nocapture"]
    fn copies_into_pages_that_are_there() {
        use crate::remote::LiveMemory;
        use backtrail_core::Avma;
        use std::time::Instant;
        let source = vec![1; 256 << 10];
        let memory = LiveMemory::new(std::process::id());
        let copy = |to: &mut [u8]| {
            let began = Instant::now();
            assert_eq!(memory.copy_now(Avma::new(source.as_ptr() as u64), to), to.len());
            began.elapsed()
        };
        for size in [8 << 10, 64 << 10, 256 << 10] {
            let mut arena = StackArena::new(256 << 10);
            let (mut prepared, mut fresh) = (Vec::new(), Vec::new());
            for _ in 0..200 {
                arena.refill();
                prepared.push(copy(arena.get(size)));
                arena.keep(size, size);
                // What the allocator gives a second time has its pages.
                let mut bytes = vec![0; size];
                fresh.push(copy(&mut bytes));
                std::mem::forget(bytes);
            }
            prepared.sort();
            fresh.sort();
            for (name, times) in [("prepared", prepared), ("fresh", fresh)] {
                println!("{size:7} bytes, {name:8}: median {:?}, p99 {:?}", times[100], times[197]);
            }
        }
    }
}
