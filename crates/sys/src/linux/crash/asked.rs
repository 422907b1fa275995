//! Runtimes whose faults are no crashes, mostly: they are asked before anything is told.
//!
//! HotSpot leaves null checks, stack checks and safepoints to faults, and handles them in its handler (`JVM_handle_linux_signal`);
//! where it cannot, it writes its own report and calls `abort`. Go turns faults of Go code into panics (`runtime.sigpanic`), and ends
//! the process at once for those of C code.

use super::super::stopped::Stopped;
use super::c_int;
use backtrail_core::{AddrRange, Avma};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Whether a handler that was there before is asked first about a fault, since it may be none of a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskedFirst {
    /// It is called when the report is written.
    No,
    /// It is asked about every fault; of a crash it raises SIGABRT.
    Always,
    /// It is asked about faults of this code.
    Within(AddrRange<Avma>),
}

struct Code {
    start: AtomicU64,
    /// 0 for none.
    end: AtomicU64,
}

/// By signal.
static CODE: [Code; super::SIGNALS] =
    [const { Code { start: AtomicU64::new(0), end: AtomicU64::new(0) } }; super::SIGNALS];

fn code_of(number: c_int) -> Option<&'static Code> {
    usize::try_from(number).ok().and_then(|number| CODE.get(number))
}

pub(super) fn keep(number: c_int, asked: AskedFirst) {
    let (start, end) = match asked {
        AskedFirst::No => (0, 0),
        AskedFirst::Always => (0, u64::MAX),
        AskedFirst::Within(code) => (code.start().get(), code.end().get()),
    };
    if let Some(code) = code_of(number) {
        code.start.store(start, SeqCst);
        code.end.store(end, SeqCst);
    }
}

/// Whether the handler from before is asked first about a fault.
pub(super) fn is_asked(number: c_int, context: *const c_void) -> bool {
    let Some(code) = code_of(number) else { return false };
    let end = code.end.load(SeqCst);
    if end == 0 || number == libc::SIGABRT {
        return false;
    }
    // SAFETY: the kernel's context of a handler that has not returned.
    let pc = unsafe { Stopped::interrupted(context) }.registers().pc();
    // Nothing is known of a jump to nowhere, but that the code it came from may be anybody's.
    pc.is_some_and(|pc| (code.start.load(SeqCst)..end).contains(&pc.get()))
}

/// Threads whose fault is being asked about.
const PLACES: usize = 64;
static ASKED: [Asked; PLACES] = [const {
    Asked {
        thread: AtomicU32::new(0),
        info: AtomicPtr::new(std::ptr::null_mut()),
        context: AtomicPtr::new(std::ptr::null_mut()),
    }
}; PLACES];

/// The fault of a thread that a handler is asked about, as long as this is there.
pub(super) struct Asked {
    thread: AtomicU32,
    info: AtomicPtr<libc::siginfo_t>,
    context: AtomicPtr<c_void>,
}

pub(super) struct Asking(&'static Asked);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.thread.store(0, SeqCst);
    }
}

/// Keeps the fault while it is asked about; `None` where the thread asks already, so that this is a crash of who was asked, or where
/// there is no more room.
pub(super) fn ask(thread: u32, info: *mut libc::siginfo_t, context: *mut c_void) -> Option<Asking> {
    if fault_of(thread).is_some() {
        return None;
    }
    let place =
        ASKED.iter().find(|place| place.thread.compare_exchange(0, thread, SeqCst, SeqCst).is_ok())?;
    place.info.store(info, SeqCst);
    place.context.store(context, SeqCst);
    Some(Asking(place))
}

/// The fault that this thread is asking about: what the kernel gave for it.
pub(super) fn fault_of(thread: u32) -> Option<(*mut libc::siginfo_t, *mut c_void)> {
    let place = ASKED.iter().find(|place| place.thread.load(SeqCst) == thread)?;
    let (info, context) = (place.info.load(SeqCst), place.context.load(SeqCst));
    (!info.is_null() && !context.is_null()).then_some((info, context))
}
