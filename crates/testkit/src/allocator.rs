//! An allocator that tells on whoever allocates.
#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

thread_local! {
    static FORBIDDEN: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Whether the allocator is locked for everybody.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, which ends the process where allocating or freeing is forbidden: in signal handlers and
/// wherever else a promise says so. A test's program makes it its own:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: backtrail_testkit::Guarded = backtrail_testkit::Guarded;
/// ```
#[derive(Debug)]
pub struct Guarded;

impl Guarded {
    /// Forbids the calling thread, with the signal handlers that run on it, to allocate or free, or allows it again.
    pub fn forbid(is_forbidden: bool) {
        FORBIDDEN.set(is_forbidden);
    }

    /// Locks the allocator as a thread does that is in the midst of allocating: everybody else waits. Or unlocks it.
    pub fn lock(is_locked: bool) {
        LOCKED.store(is_locked, SeqCst);
    }

    /// How often the calling thread has allocated.
    pub fn count() -> usize {
        COUNT.get()
    }

    fn pass() {
        if FORBIDDEN.get() {
            // A panic would allocate.
            std::process::abort();
        }
        while LOCKED.load(SeqCst) {
            std::thread::yield_now();
        }
    }
}

// SAFETY: all work is the system's.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::pass();
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::pass();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
