//! The promise of captures: no allocation in the handler, nor in the thread that asks. An allocator ends the process on
//! the first one, and another test holds the allocator's lock for as long as a capture lasts.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    unsafe_code,
    reason = "a test's helpers may, and signals cannot be handled without"
)]

use backtrail::capture::{Capturer, Method, Options, RawStack, Stopped, ThreadCache, ThreadId, WalkEnd};
use backtrail_testkit::Guarded;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// One test at a time: they lock the allocator.
static ALONE: Mutex<()> = Mutex::new(());
static AT: AtomicU32 = AtomicU32::new(0);
static OVER: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn outer(depth: usize) {
    if depth > 0 {
        outer(depth - 1);
    } else {
        AT.store(ThreadId::current().get(), SeqCst);
        while !OVER.load(SeqCst) {
            black_box(depth);
        }
    }
    black_box(depth);
}

/// Ends the other thread, also where a check fails.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        Guarded::lock(false);
        Guarded::forbid(false);
        OVER.store(true, SeqCst);
    }
}

/// A thread that must not allocate, handlers included, while `check` runs on this one.
fn beside(check: impl FnOnce(ThreadId)) {
    AT.store(0, SeqCst);
    OVER.store(false, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            Guarded::forbid(true);
            outer(40);
            Guarded::forbid(false);
        });
        while AT.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let _over = Over;
        check(ThreadId::new(AT.load(SeqCst)));
    });
}

fn capturer(method: Method) -> Capturer {
    let mut options = Options::default();
    options.method = method;
    options.timeout = std::time::Duration::from_secs(30);
    Capturer::new(options).unwrap()
}

#[test]
fn neither_the_handler_nor_who_asks_allocates() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for method in [Method::Rules, Method::FramePointers, Method::CopyStack(32 << 10)] {
        let capturer = capturer(method);
        let mut stack = RawStack::new();
        beside(|id| {
            // The first capture by anyone may not allocate either.
            Guarded::forbid(true);
            let answers = [0; 100].map(|_| capturer.thread(id, &mut stack).is_ok());
            Guarded::forbid(false);
            assert_eq!(answers, [true; 100]);
        });
        if method != Method::FramePointers {
            assert!(stack.frames().len() > 45, "{stack:?}");
            assert!(matches!(stack.ended(), Some(WalkEnd::EndOfStack(_))), "{stack:?}");
        }
    }
}

#[test]
fn the_own_stack_is_captured_without_allocating() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for method in [Method::Rules, Method::FramePointers, Method::CopyStack(32 << 10)] {
        let capturer = capturer(method);
        let mut cache = ThreadCache::new().unwrap();
        let mut stack = RawStack::new();
        Guarded::forbid(true);
        capturer.current(&mut stack);
        capturer.current_cached(&mut cache, 0, &mut stack);
        capturer.current_cached(&mut cache, 1, &mut stack);
        Guarded::forbid(false);
        assert!(method == Method::FramePointers || stack.frames().len() > 5, "{stack:?}");
    }
}

static OWN: Mutex<Option<Capturer>> = Mutex::new(None);

extern "C" fn own_handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    static mut STACK: Option<RawStack> = None;
    // SAFETY: one thread runs this, once to make the room and once to use it.
    #[allow(clippy::deref_addrof, reason = "a reference to a mutable static is what the lint's advice makes")]
    let stack = unsafe { &mut *(&raw mut STACK) };
    let Some(stack) = stack else {
        *stack = Some(RawStack::new());
        return;
    };
    let guard = OWN.try_lock().unwrap();
    let capturer = guard.as_ref().unwrap();
    Guarded::forbid(true);
    // SAFETY: what the kernel gave.
    let at = unsafe { Stopped::interrupted(context) };
    capturer.at(&at, 0, stack);
    Guarded::forbid(false);
    AT.store(u32::try_from(stack.frames().len()).unwrap(), SeqCst);
}

#[test]
fn handlers_of_the_programs_own_may_capture() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for method in [Method::Rules, Method::CopyStack(0)] {
        *OWN.lock().unwrap() = Some(capturer(method));
        AT.store(0, SeqCst);
        // SAFETY: the handler is one for its kind.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = own_handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
            libc::raise(libc::SIGUSR2);
            libc::raise(libc::SIGUSR2);
        }
        assert!(AT.load(SeqCst) > 5, "{method:?}");
    }
}

#[test]
fn a_thread_that_holds_the_allocators_lock_is_captured() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for method in [Method::Rules, Method::CopyStack(32 << 10)] {
        let capturer = capturer(method);
        let mut stack = RawStack::new();
        beside(|id| {
            Guarded::lock(true);
            let answers = [0; 10].map(|_| capturer.thread(id, &mut stack).is_ok());
            Guarded::lock(false);
            assert_eq!(answers, [true; 10]);
        });
        assert!(stack.frames().len() > 45, "{stack:?}");
    }
}
