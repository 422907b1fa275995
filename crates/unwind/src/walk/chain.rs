//! Following frame pointers and nothing else.

use super::{End, Failure, Frame, WalkEnd};
use backtrail_core::{Avma, Family, FrameAddress, ReadMemory, Registers, Trust};

/// A walk along the chain of saved frame pointers, for code that was compiled to keep one. Knows no images, so that
/// nothing tells when the chain is none: where code without frame pointers is on the way, its frames are missing or made
/// up, and so is the caller of a function that was interrupted before it had made its frame. Costs two reads a frame.
///
/// 32-bit ARM has no one layout of such a chain: there the walk ends with its first frame.
///
/// # Signal safety
///
/// Allocates nothing, takes no lock and calls nothing but `memory`.
#[derive(Debug)]
pub struct FramePointers<'a, M: ?Sized> {
    memory: &'a M,
    /// The captured address, until it was given.
    first: Option<Avma>,
    stack_pointer: Avma,
    frame_pointer: Avma,
    family: Family,
    /// Words of eight bytes, and the first frame was given.
    is_plain: bool,
    remaining: u64,
    ended: Option<WalkEnd>,
}

impl<'a, M: ReadMemory + ?Sized> FramePointers<'a, M> {
    /// A walk that starts with a thread's registers as captured.
    pub fn new(registers: &Registers, memory: &'a M, max_frames: u64) -> Self {
        let family = registers.family();
        let missing = |register| WalkEnd::Failed(Failure::MissingRegister(register, family));
        let ended = match (registers.pc(), registers.fp()) {
            (None, _) => Some(missing(family.pc())),
            (_, None) => Some(missing(family.fp())),
            _ => None,
        };
        Self {
            memory,
            first: registers.pc(),
            stack_pointer: registers.sp().unwrap_or_default(),
            frame_pointer: registers.fp().unwrap_or_default(),
            family,
            is_plain: false,
            remaining: max_frames,
            ended,
        }
    }

    /// How the walk ended; `None` while it has not.
    pub fn ended(&self) -> Option<WalkEnd> {
        self.ended.or((self.remaining == 0).then_some(WalkEnd::Limit))
    }

    /// The way of most steps; `None`, with nothing changed, where [`FramePointers::caller`] has to tell why not.
    #[inline]
    fn caller_of_eight_bytes(&mut self) -> Option<Frame> {
        const WORD: u64 = 8;
        let place = self.frame_pointer.get();
        if !self.is_plain || place < self.stack_pointer.get() || !place.is_multiple_of(WORD) || place == 0 {
            return None;
        }
        let next = self.memory.read_u64(self.frame_pointer).ok()?;
        let address = self.memory.read_u64(Avma::new(place.wrapping_add(WORD))).ok()?;
        (address != 0).then(|| self.go(next, address, place.wrapping_add(2 * WORD)))
    }

    #[inline(never)]
    fn caller(&mut self) -> Result<Frame, WalkEnd> {
        if let Some(pc) = self.first.take() {
            self.is_plain = self.ended.is_none() && self.family.word_size() == 8;
            let address = FrameAddress::Exact(self.strip(pc.get()));
            let (stack_pointer, trust) = (self.stack_pointer, Trust::Context);
            return Ok(Frame { address, stack_pointer, trust, is_after_signal: false, bytecode: None });
        }
        if let Some(ended) = self.ended {
            return Err(ended);
        }
        let word = u64::from(self.family.word_size());
        let place = self.frame_pointer;
        if place.get() == 0 {
            return Err(WalkEnd::EndOfStack(End::ZeroFramePointer));
        }
        if place < self.stack_pointer || place.get() & (word - 1) != 0 || self.family == Family::Arm {
            return Err(WalkEnd::Failed(Failure::NotAdvancing(place)));
        }
        let unreadable = |why| WalkEnd::Failed(Failure::Unreadable(why));
        let size = self.family.word_size();
        let next = self.memory.read_pointer(place, size).map_err(unreadable)?;
        let behind = Avma::new(place.get().wrapping_add(word));
        let address = self.memory.read_pointer(behind, size).map_err(unreadable)?;
        if address == 0 {
            return Err(WalkEnd::EndOfStack(End::ZeroReturnAddress));
        }
        Ok(self.go(next, address, place.get().wrapping_add(2 * word)))
    }

    #[inline]
    fn go(&mut self, frame_pointer: u64, address: u64, stack_pointer: u64) -> Frame {
        self.frame_pointer = Avma::new(frame_pointer);
        self.stack_pointer = Avma::new(stack_pointer);
        Frame {
            address: FrameAddress::Return(self.strip(address)),
            stack_pointer: self.stack_pointer,
            trust: Trust::FramePointer,
            is_after_signal: false,
            bytecode: None,
        }
    }

    /// Takes a pointer authentication code away. Without images the widest address is the best guess.
    #[inline]
    fn strip(&self, address: u64) -> Avma {
        if self.family == Family::Aarch64 && address >> 48 != 0 {
            return Avma::new(address & (u64::MAX >> 16));
        }
        Avma::new(address)
    }
}

impl<M: ReadMemory + ?Sized> Iterator for FramePointers<'_, M> {
    type Item = Frame;

    #[inline]
    fn next(&mut self) -> Option<Frame> {
        // The walk's end leaves nothing remaining.
        self.remaining = self.remaining.checked_sub(1)?;
        if let Some(frame) = self.caller_of_eight_bytes() {
            return Some(frame);
        }
        match self.caller() {
            Ok(frame) => Some(frame),
            Err(ended) => {
                (self.ended, self.remaining, self.is_plain) = (Some(ended), 0, false);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use backtrail_core::MemorySlice;

    const STACK: u64 = 0x7ffe_0000_0000;

    fn walk(words: &[u64], fp: u64, max_frames: u64) -> (Vec<u64>, Option<WalkEnd>) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = MemorySlice::new(Avma::new(STACK), &bytes);
        let mut registers = Registers::new(Family::X86_64);
        registers.set(Family::X86_64.pc(), 0x1000);
        registers.set(Family::X86_64.sp(), STACK);
        registers.set(Family::X86_64.fp(), fp);
        let mut walk = FramePointers::new(&registers, &memory, max_frames);
        let frames = walk.by_ref().map(|frame| frame.address.raw().get()).collect();
        (frames, walk.ended())
    }

    #[test]
    fn the_chain_is_followed_to_its_zero() {
        let words = [7, STACK + 32, 0x2000, 8, 0, 0x3000];
        let (frames, ended) = walk(&words, STACK + 8, 100);
        assert_eq!(frames, [0x1000, 0x2000, 0x3000]);
        assert_eq!(ended, Some(WalkEnd::EndOfStack(End::ZeroFramePointer)));
        assert_eq!(walk(&words, STACK + 8, 2), ([0x1000, 0x2000].to_vec(), Some(WalkEnd::Limit)));
    }

    #[test]
    fn what_is_no_chain_ends_the_walk() {
        let stuck = |at| Some(WalkEnd::Failed(Failure::NotAdvancing(Avma::new(at))));
        // Below the stack pointer, not aligned, a loop, outside of the stack.
        assert_eq!(walk(&[0; 4], STACK - 8, 100), ([0x1000].to_vec(), stuck(STACK - 8)));
        assert_eq!(walk(&[0; 4], STACK + 4, 100), ([0x1000].to_vec(), stuck(STACK + 4)));
        let looped = walk(&[0, STACK + 8, 0x2000], STACK + 8, 100);
        assert_eq!(looped, ([0x1000, 0x2000].to_vec(), stuck(STACK + 8)));
        let (frames, ended) = walk(&[0; 4], STACK + 4096, 100);
        assert_eq!(frames, [0x1000]);
        assert!(matches!(ended, Some(WalkEnd::Failed(Failure::Unreadable(_)))));
    }
}
