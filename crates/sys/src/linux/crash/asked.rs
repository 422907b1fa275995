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
    /// It is called once the report is written.
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
///
/// A handler need not return: .NET's goes on where the exception is caught. What was kept then is over, and the place is the thread's
/// again.
pub(super) fn ask(thread: u32, info: *mut libc::siginfo_t, context: *mut c_void) -> Option<Asking> {
    if fault_of(thread, context).is_some() {
        return None;
    }
    let own = ASKED.iter().find(|place| place.thread.load(SeqCst) == thread);
    let free = |place: &&Asked| place.thread.compare_exchange(0, thread, SeqCst, SeqCst).is_ok();
    let place = own.or_else(|| ASKED.iter().find(free))?;
    place.info.store(info, SeqCst);
    place.context.store(context, SeqCst);
    Some(Asking(place))
}

/// The fault that this thread is asking about when another signal comes: what the kernel gave for it. Stacks grow down, so that
/// the kernel's frame of that one lies above the one of the later signal. Where it does not, its handler is left.
pub(super) fn fault_of(thread: u32, later: *const c_void) -> Option<(*mut libc::siginfo_t, *mut c_void)> {
    let place = ASKED.iter().find(|place| place.thread.load(SeqCst) == thread)?;
    let (info, context) = (place.info.load(SeqCst), place.context.load(SeqCst));
    (!info.is_null() && context.addr() > later.addr()).then_some((info, context))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_that_does_not_return_leaves_nothing_behind() {
        const THREAD: u32 = u32::MAX;
        let info = std::ptr::without_provenance_mut(8);
        let at = |address: usize| std::ptr::without_provenance_mut::<c_void>(address);
        let asking = ask(THREAD, info, at(0x2000)).unwrap();
        // Within the handler: of who was asked.
        assert_eq!(fault_of(THREAD, at(0x1000)), Some((info, at(0x2000))));
        assert!(ask(THREAD, info, at(0x1000)).is_none());
        // It went on elsewhere, and the next fault's frame lies where that one's lay.
        std::mem::forget(asking);
        for again in [0x2000, 0x3000] {
            assert_eq!(fault_of(THREAD, at(again)), None);
            std::mem::forget(ask(THREAD, info, at(again)).unwrap());
        }
        assert_eq!(ASKED.iter().filter(|place| place.thread.load(SeqCst) == THREAD).count(), 1);
        drop(ask(THREAD, info, at(0x3000)).unwrap());
        assert_eq!(fault_of(THREAD, at(0x1000)), None);
    }
}
