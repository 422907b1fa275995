//! The C++ exception that ends the program, as a terminate handler tells it.

use crate::fixed_text::FixedText;
use backtrail_sys::os::ThreadId;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Whose it is; zero for nobody's.
static THREAD: AtomicU32 = AtomicU32::new(0);
static TYPE: FixedText<128> = FixedText::new();
static WHAT: FixedText<128> = FixedText::new();
/// Bytes that either text has at most.
pub(crate) const LONGEST: usize = 1024;

/// Tells which C++ exception is about to end the program: to be called in a terminate handler, on the thread that it was called
/// on. `type_name` is what `std::type_info::name` gives, `what` what the exception says, empty where it says nothing. The crash file
/// has both if that thread aborts next. Where several threads end at once, the first one's is kept.
///
/// # Signal safety
///
/// Safe.
pub fn exception(type_name: &[u8], what: &[u8]) {
    let own = ThreadId::current().get();
    if THREAD.compare_exchange(0, own, SeqCst, SeqCst).is_ok() || THREAD.load(SeqCst) == own {
        TYPE.set(type_name);
        WHAT.set(what);
    }
}

/// What the thread told: type and words. Safe in a signal handler.
pub(crate) fn of<'b>(
    thread: ThreadId,
    name: &'b mut [u8],
    what: &'b mut [u8],
) -> Option<(&'b [u8], &'b [u8])> {
    let name = TYPE.get(name).filter(|_| THREAD.load(SeqCst) == thread.get())?;
    Some((name, WHAT.get(what).unwrap_or_default()))
}
