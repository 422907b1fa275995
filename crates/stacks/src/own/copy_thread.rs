//! Copying another thread's stack beside its walk.

use super::capturer::free_slot;
use super::{CaptureError, Capturer, StackCopy, ThreadId};
use backtrail_capture::local;
use std::time::Instant;

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
