//! Threads that crashed while the report of another one was being written: they wait in their handlers, with all signals blocked, and say
//! here where they stand.

use super::super::stopped::Stopped;
use super::{ThreadId, c_int};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering::SeqCst};

/// Of more threads than that nothing is known but that they are there.
const PLACES: usize = 128;
static WAITING: [Waiting; PLACES] = [const {
    Waiting {
        thread: AtomicU32::new(0),
        signal: AtomicI32::new(0),
        context: AtomicPtr::new(std::ptr::null_mut()),
    }
}; PLACES];

struct Waiting {
    thread: AtomicU32,
    signal: AtomicI32,
    context: AtomicPtr<c_void>,
}

/// The thread waits as long as this is there.
pub(super) struct Place(&'static Waiting);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.context.store(std::ptr::null_mut(), SeqCst);
        self.0.thread.store(0, SeqCst);
    }
}

/// Says where the calling thread stands; `None` where there is no more room.
pub(super) fn wait_here(thread: u32, signal: c_int, context: *mut c_void) -> Option<Place> {
    let is_free = |place: &&Waiting| place.thread.compare_exchange(0, thread, SeqCst, SeqCst).is_ok();
    let place = WAITING.iter().find(is_free)?;
    place.signal.store(signal, SeqCst);
    place.context.store(context, SeqCst);
    Some(Place(place))
}

/// Where a thread stands that crashed, too, and waits; and its signal. `None` where it does not wait. It does so for some time
/// ([`super::listen`]'s patience, and a second more): who needs longer reads the stack of a thread that goes on.
///
/// # Signal safety
///
/// Safe.
pub fn also_crashed(thread: ThreadId) -> Option<(Stopped, i32)> {
    let place = WAITING.iter().find(|place| place.thread.load(SeqCst) == thread.get())?;
    let context = place.context.load(SeqCst);
    if context.is_null() {
        return None;
    }
    // SAFETY: the kernel's context of a handler that has not returned, since the thread was still there afterwards.
    let stopped = unsafe { Stopped::interrupted(context) };
    let signal = place.signal.load(SeqCst);
    let is_same = place.context.load(SeqCst) == context && place.thread.load(SeqCst) == thread.get();
    is_same.then_some((stopped, signal))
}
