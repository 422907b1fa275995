//! A captured stack: addresses, no names.

use super::{ThreadId, WalkEnd};
use backtrail_core::{Avma, FrameAddress, Trust};
use std::fmt;

/// One frame of a captured stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawFrame {
    /// The code address and how to look it up.
    pub address: FrameAddress,
    /// The stack pointer while the frame's function is at that address.
    pub stack_pointer: Avma,
    /// How the frame was found.
    pub trust: Trust,
}

const NONE: RawFrame = RawFrame {
    address: FrameAddress::Exact(Avma::new(0)),
    stack_pointer: Avma::new(0),
    trust: Trust::Context,
};

/// A stack of some frames at most, innermost first.
///
/// # Signal safety
///
/// Making, cloning and dropping one allocates and frees; all else is safe in a signal handler.
#[derive(Clone)]
pub struct RawStack {
    frames: Box<[RawFrame]>,
    count: usize,
    pub(super) ended: Option<WalkEnd>,
    pub(super) thread: Option<ThreadId>,
    /// Which list of images was current.
    pub(super) generation: u64,
}

impl RawStack {
    /// How many frames a stack has room for where nothing is said.
    pub const CAPACITY: usize = 256;

    /// A stack with room for [`RawStack::CAPACITY`] frames.
    pub fn new() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }

    /// A stack with room for so many frames.
    pub fn with_capacity(frames: usize) -> Self {
        let frames = vec![NONE; frames].into_boxed_slice();
        Self { frames, count: 0, ended: None, thread: None, generation: 0 }
    }

    /// The frames, innermost first.
    pub fn frames(&self) -> &[RawFrame] {
        self.frames.get(..self.count).unwrap_or_default()
    }

    /// Why there is no further frame; `None` where nothing was captured.
    pub fn ended(&self) -> Option<WalkEnd> {
        self.ended
    }

    /// Whose stack it is.
    pub fn thread(&self) -> Option<ThreadId> {
        self.thread
    }

    /// How many frames there is room for.
    pub fn capacity(&self) -> usize {
        self.frames.len()
    }

    /// Forgets what was captured.
    pub fn clear(&mut self) {
        (self.count, self.ended, self.thread) = (0, None, None);
    }

    /// Forgets all frames whose stack pointer lies below `stack_pointer`: those that were called, directly or not, by the
    /// frame that has it.
    pub fn skip_below(&mut self, stack_pointer: Avma) {
        let inner = self.frames().iter().position(|frame| frame.stack_pointer >= stack_pointer);
        self.skip(inner.unwrap_or(self.count));
    }

    /// Forgets the `top` innermost frames.
    pub fn skip(&mut self, top: usize) {
        let top = top.min(self.count);
        self.frames.copy_within(top..self.count, 0);
        self.count -= top;
    }

    /// All places for frames; what they hold counts once [`RawStack::set`] says so.
    pub(super) fn room(&mut self) -> &mut [RawFrame] {
        &mut self.frames
    }

    /// Says how many frames there are, why there is no further one, and which list of images was current.
    pub(super) fn set(&mut self, count: usize, ended: Option<WalkEnd>, generation: u64) {
        self.count = count.min(self.frames.len());
        (self.ended, self.generation) = (ended, generation);
    }

    /// Takes over what `other` has, as far as there is room. Allocates nothing.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.count = other.count.min(self.frames.len());
        self.frames.iter_mut().zip(other.frames()).for_each(|(place, frame)| *place = *frame);
        self.ended = if self.count < other.count { Some(WalkEnd::Limit) } else { other.ended };
        (self.thread, self.generation) = (other.thread, other.generation);
    }
}

impl Default for RawStack {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for RawStack {
    /// The same frames with the same end.
    fn eq(&self, other: &Self) -> bool {
        self.frames() == other.frames() && self.ended == other.ended
    }
}

impl Eq for RawStack {}

impl fmt::Debug for RawStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStack")
            .field("thread", &self.thread)
            .field("frames", &self.frames())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(addresses: &[u64], room: usize) -> RawStack {
        let mut stack = RawStack::with_capacity(room);
        for (place, address) in stack.room().iter_mut().zip(addresses) {
            let stack_pointer = Avma::new(address * 16);
            *place = RawFrame { address: FrameAddress::Return(Avma::new(*address)), stack_pointer, ..NONE };
        }
        stack.set(addresses.len(), None, 0);
        stack
    }

    fn addresses(stack: &RawStack) -> Vec<u64> {
        stack.frames().iter().map(|frame| frame.address.raw().get()).collect()
    }

    #[test]
    fn frames_beyond_the_room_are_not_kept() {
        let mut small = stack(&[1, 2, 3], 2);
        assert_eq!(addresses(&small), [1, 2]);
        let mut large = stack(&[4, 5, 6], 8);
        large.ended = Some(WalkEnd::EndOfStack(super::super::End::Undefined));
        small.copy_from(&large);
        assert_eq!((addresses(&small), small.ended()), (vec![4, 5], Some(WalkEnd::Limit)));
    }

    #[test]
    fn inner_frames_are_skipped_by_number_and_by_place() {
        let mut some = stack(&[1, 2, 3, 4], 4);
        some.skip(1);
        assert_eq!(addresses(&some), [2, 3, 4]);
        some.skip_below(Avma::new(3 * 16));
        assert_eq!(addresses(&some), [3, 4]);
        some.skip(9);
        assert!(some.frames().is_empty());
    }
}
