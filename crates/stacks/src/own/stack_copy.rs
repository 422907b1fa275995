//! A thread with its registers and a copy of its stack, beside its frames.

use super::capturer::free_slot;
use super::{CaptureError, Capturer, RawStack, ThreadId};
use backtrail_capture::local;
use backtrail_core::{Avma, Registers};
use std::time::Instant;

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

    /// The frames, by rules that were compiled ahead of time.
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

impl Capturer {
    /// Makes room for copies of so many bytes ([`Capturer::copy_thread`]). Not for signal handlers.
    pub fn reserve_copies(&self, bytes: usize) {
        let mut claims: Vec<_> = std::iter::from_fn(|| super::job::slots().claim()).take(2).collect();
        for claim in &mut claims {
            claim.work().reserve_copy(bytes);
        }
    }

    /// Another thread's frames, registers and the innermost bytes of its stack, with the images as they were listed last.
    ///
    /// Neither allocates, if there is room already ([`Capturer::reserve_copies`]), nor locks; waits for the thread until
    /// `deadline` and for the timeout of the options at most.
    ///
    /// # Errors
    /// Why the thread did not answer; there are no registers then.
    pub fn copy_thread(
        &self,
        id: ThreadId,
        deadline: Instant,
        into: &mut StackCopy,
    ) -> Result<(), CaptureError> {
        into.frames.clear();
        (into.registers, into.copied) = (None, 0);
        let asked = Instant::now();
        let deadline = self.deadline(asked).min(deadline);
        let mut claim = free_slot(deadline)?;
        claim.work().also_copy(into.bytes.len());
        let sent = self.send(claim, id)?;
        let mut claim = local::wait(sent, self.directed, id, asked, deadline)?;
        claim.work().finish_copy(into);
        Ok(())
    }
}
