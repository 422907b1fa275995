//! What a capture is to be like.

use crate::Limits;
use std::time::Duration;

/// How a process is to be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether all threads are stopped together.
    pub consistent: bool,
    /// Bytes of a thread's stack that are copied while it is stopped.
    pub stack_bytes: u64,
    /// How long a thread in uninterruptible sleep is waited for.
    pub patience: Duration,
    /// Whether the thread that stops others may go before all that is not real-time itself (`SCHED_FIFO`, sched(7)), where it has
    /// to share a processor with them. On a busy machine the stops are shorter then; what else runs on that processor waits for
    /// them. Takes `CAP_SYS_NICE`; without that nothing changes.
    pub real_time: bool,
    /// Whether sleeping threads' stacks in the kernel are asked for, too; those in uninterruptible sleep always are.
    pub kernel_stacks: bool,
    /// Bounds on the rest.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            consistent: false,
            stack_bytes: 256 << 10,
            patience: Duration::from_millis(100),
            real_time: false,
            kernel_stacks: false,
            limits: Limits::default(),
        }
    }
}
