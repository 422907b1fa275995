//! A thread with its registers and a copy of its stack, beside its frames.

use super::RawStack;
use backtrail_core::{Avma, Registers};

/// Room for a thread's registers, its frames and the innermost bytes of its stack.
///
/// # Signal safety
///
/// Making and dropping one allocates and frees; all else is safe in a signal handler.
#[derive(Debug)]
pub struct StackCopy {
    pub(super) frames: RawStack,
    pub(super) registers: Option<Registers>,
    pub(super) from: Avma,
    pub(super) bytes: Box<[u8]>,
    pub(super) copied: usize,
}

impl StackCopy {
    /// Room for so many frames and bytes.
    pub fn with_capacity(frames: usize, bytes: usize) -> Self {
        let (frames, bytes) = (RawStack::with_capacity(frames), vec![0; bytes].into_boxed_slice());
        Self { frames, registers: None, from: Avma::new(0), bytes, copied: 0 }
    }

    /// The frames.
    pub fn frames(&self) -> &RawStack {
        &self.frames
    }

    /// The registers; `None` where nothing was captured.
    pub fn registers(&self) -> Option<&Registers> {
        self.registers.as_ref()
    }

    /// Where the copy begins, and its bytes.
    pub fn bytes(&self) -> (Avma, &[u8]) {
        (self.from, self.bytes.get(..self.copied).unwrap_or_default())
    }
}
