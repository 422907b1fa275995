//! Another thread's stack, copied and walked.

use super::capturer::free_slot;
use super::{CaptureError, Capturer, Method, StackCopy, ThreadId};
use backtrail_capture::local;
use std::time::Instant;

impl Capturer {
    /// Another thread's registers, the innermost bytes of its stack and its frames, with the images as they were listed last. Where the
    /// copy ends, frames are looked for in memory as it is then, which is right where the thread stands still until this returns.
    ///
    /// Neither allocates, where this was made for copies of so many bytes ([`Method::CopyStack`]), nor locks; waits for the thread until
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
        let sent = self.send(free_slot(deadline)?, id, Method::CopyStack(into.bytes.len()))?;
        let mut claim = local::wait(sent, self.directed, id, asked, deadline)?;
        claim.work().finish_copy(into);
        Ok(())
    }
}
