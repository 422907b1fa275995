//! By which number a crash file has a thread.

use backtrail_capture::local::Status;
use backtrail_stacks::own::ThreadId;

/// The number: Linux's own, and the low half of the one that Apple's systems give, for which alone `status` is asked. Safe in a signal handler.
pub(crate) fn number(thread: ThreadId, status: impl FnOnce() -> Option<Status>) -> u32 {
    #[cfg(target_os = "linux")]
    {
        let _ = status;
        thread.get()
    }
    #[cfg(not(target_os = "linux"))]
    {
        status().map_or_else(|| thread.get(), |status| status.number())
    }
}
