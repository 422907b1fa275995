//! Mapped files that become shorter while they are read.
//!
//! The kernel answers a read beyond the new end of a mapped file with SIGBUS, which ends the process. The handler here
//! gives such a read zeros instead and notes it, so that whoever reads the file learns of it and can say so. Faults in
//! memory that is not a [`MappedRange`] go to the handler that was there before.
//!
//! The handler is installed when the first range is made. Where a program has put another handler in its place since, it
//! is installed above that one with the next range. Handlers that hand on what is not theirs see no difference.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use std::sync::{Mutex, TryLockError};

/// A file's bytes in memory, protected against its becoming shorter.
///
/// # Signal safety
///
/// Only [`is_truncated`](Self::is_truncated) is safe in a signal handler.
#[derive(Debug)]
pub struct MappedRange(Option<&'static Slot>);

impl MappedRange {
    /// Protects a mapping. Where that is not possible, or [was not wanted](handle_bus_errors), the range is not
    /// protected, and a read beyond the file's end is answered as if there were none.
    ///
    /// # Safety
    ///
    /// `start` and `size` are those of a mapping of a file for reading, of which nobody minds that its pages are
    /// replaced by zeros, and which is unmapped only after this was dropped.
    pub unsafe fn new(start: *const u8, size: usize) -> Self {
        let is_empty = start.is_null() || size == 0;
        if is_empty || !IS_WANTED.load(SeqCst) || !install() {
            return Self(None);
        }
        let slot = claim();
        slot.set(start.addr(), start.addr().saturating_add(size));
        Self(Some(slot))
    }

    /// Whether a read found that the file no longer reaches there. What was read since are zeros from some page on.
    pub fn is_truncated(&self) -> bool {
        self.0.is_some_and(|slot| slot.is_truncated.load(Acquire))
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.set(0, 0);
            slot.is_claimed.store(false, Release);
        }
    }
}

static IS_WANTED: AtomicBool = AtomicBool::new(true);

/// Whether ranges made from now on are protected; they are if nobody says otherwise. A program that wants SIGBUS for
/// itself alone calls this before the first file is mapped: no handler is installed then.
pub fn handle_bus_errors(is_wanted: bool) {
    IS_WANTED.store(is_wanted, SeqCst);
}

/// One range, as the handler finds it.
#[derive(Debug)]
struct Slot {
    is_claimed: AtomicBool,
    /// Odd while the range changes.
    version: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    is_truncated: AtomicBool,
}

impl Slot {
    const fn new() -> Self {
        Self {
            is_claimed: AtomicBool::new(false),
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_truncated: AtomicBool::new(false),
        }
    }

    /// Only for whoever has claimed the slot.
    fn set(&self, start: usize, end: usize) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), SeqCst);
        self.is_truncated.store(false, SeqCst);
        self.start.store(start, SeqCst);
        self.end.store(end, SeqCst);
        self.version.store(version.wrapping_add(2), SeqCst);
    }

    /// The end of the range, if `address` lies in it. A range that changes at this moment is not one that the
    /// interrupted thread reads, since a range lives as long as its readers.
    fn end_around(&self, address: usize) -> Option<usize> {
        let version = self.version.load(SeqCst);
        let (start, end) = (self.start.load(SeqCst), self.end.load(SeqCst));
        fence(SeqCst);
        let is_whole = version.is_multiple_of(2) && self.version.load(SeqCst) == version;
        (is_whole && (start..end).contains(&address)).then_some(end)
    }
}

/// Slots, and where there are more. Never freed: a handler may be looking.
#[derive(Debug)]
struct Slots {
    slots: [Slot; 64],
    next: AtomicPtr<Slots>,
}

impl Slots {
    const fn new() -> Self {
        Self { slots: [const { Slot::new() }; 64], next: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Self> {
        // SAFETY: null, or of a box that was leaked.
        unsafe { self.next.load(Acquire).as_ref() }
    }
}

static FIRST: Slots = Slots::new();

fn all_slots() -> impl Iterator<Item = &'static Slot> {
    std::iter::successors(Some(&FIRST), |slots| slots.next()).flat_map(|slots| &slots.slots)
}

/// A slot that nobody has.
fn claim() -> &'static Slot {
    let claim = |slot: &&Slot| {
        !slot.is_claimed.load(Relaxed)
            && slot.is_claimed.compare_exchange(false, true, SeqCst, Relaxed).is_ok()
    };
    loop {
        if let Some(slot) = all_slots().find(claim) {
            return slot;
        }
        let more = Box::into_raw(Box::new(Slots::new()));
        let last = std::iter::successors(Some(&FIRST), |slots| slots.next()).last().unwrap_or(&FIRST);
        let appended = last.next.compare_exchange(std::ptr::null_mut(), more, SeqCst, Relaxed);
        if appended.is_err() {
            // SAFETY: another thread has appended some meanwhile; nobody has seen these.
            drop(unsafe { Box::from_raw(more) });
        }
    }
}

/// Times that the handler is installed above another one that took its place. Each has a function of its own, so that
/// the one below, when it hands on what is not its own, never comes back to where it was called from.
const LEVELS: usize = 4;
const HANDLERS: [Handler; LEVELS] = [handle::<0>, handle::<1>, handle::<2>, handle::<3>];
type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// What was there before, for each level. Never freed: a handler may be looking.
static PREVIOUS: [AtomicPtr<libc::sigaction>; LEVELS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; LEVELS];
/// How many levels are in use.
static USED: Mutex<usize> = Mutex::new(0);
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// Sees to it that the handler is installed, and says whether it is.
fn install() -> bool {
    if is_installed() {
        return true;
    }
    /// Another thread is done with it long before. After a fork in that moment it never is.
    const ATTEMPTS: usize = 10_000;
    for _ in 0..ATTEMPTS {
        match USED.try_lock() {
            Ok(mut used) => return is_installed() || install_level(&mut used),
            Err(TryLockError::Poisoned(poisoned)) => return install_level(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    false
}

fn is_installed() -> bool {
    let current = exchange(None).map(|action| action.sa_sigaction);
    current.is_some_and(|current| HANDLERS.iter().any(|handler| *handler as usize == current))
}

fn install_level(used: &mut usize) -> bool {
    let (Some(handler), Some(place)) = (HANDLERS.get(*used), PREVIOUS.get(*used)) else { return false };
    // SAFETY: no preconditions.
    if let Ok(size) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) {
        PAGE.store(size.max(1), SeqCst);
    }
    let Some(before) = exchange(None) else { return false };
    // First, so that the first foreign fault finds it.
    place.store(Box::into_raw(Box::new(before)), SeqCst);
    // SAFETY: all zeros is a valid `sigaction`.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = *handler as usize;
    ours.sa_mask = before.sa_mask;
    // On the thread's signal stack, where it has one: Go's runtime wants that.
    let flags = before.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
    let Some(replaced) = exchange(Some(&ours)) else { return false };
    if replaced.sa_sigaction != before.sa_sigaction {
        place.store(Box::into_raw(Box::new(replaced)), SeqCst);
    }
    *used += 1;
    true
}

/// Sets what SIGBUS does, or nothing; the answer is what it did before.
fn exchange(new: Option<&libc::sigaction>) -> Option<libc::sigaction> {
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: all zeros is a valid `sigaction`; the call fills it in.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid or null.
    let answer = unsafe { libc::sigaction(libc::SIGBUS, new, &raw mut old) };
    (answer == 0).then_some(old)
}

/// The handler. Neither allocates nor locks, and leaves `errno` as it was.
extern "C" fn handle<const LEVEL: usize>(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = errno();
    // SAFETY: errno is this thread's own, and `info` is the kernel's. Codes above zero are those of faults, which have
    // an address.
    unsafe {
        let saved = *errno;
        let is_ours = (*info).si_code > 0 && give_zeros((*info).si_addr().addr());
        if !is_ours {
            hand_on(LEVEL, number, info, context);
        }
        *errno = saved;
    }
}

/// Puts zeros in place of what a range's file no longer has: from the page of `address` to the range's end. `false`
/// where no range has this address.
fn give_zeros(address: usize) -> bool {
    let found = all_slots().find_map(|slot| Some((slot, slot.end_around(address)?)));
    let Some((slot, end)) = found else { return false };
    let page = PAGE.load(Relaxed);
    let start = address / page * page;
    // First, so that nobody sees a zero and no reason for it.
    slot.is_truncated.store(true, SeqCst);
    // SAFETY: these pages are of the range, and whoever made it promised that they may become zeros.
    unsafe { map_zeros(start, end.saturating_sub(start)) }
}

/// # Safety
///
/// Whatever is mapped there may be replaced.
unsafe fn map_zeros(start: usize, size: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // The call itself: allocators and sanitizers put functions of their own in the place of the C library's, and those
    // may lock.
    #[cfg(target_os = "linux")]
    {
        #[cfg(target_pointer_width = "64")]
        const CALL: libc::c_long = libc::SYS_mmap;
        #[cfg(target_pointer_width = "32")]
        const CALL: libc::c_long = libc::SYS_mmap2;
        // SAFETY: the caller's promise.
        let answer = unsafe { libc::syscall(CALL, start, size, libc::PROT_READ, flags, -1, 0usize) };
        answer != -1
    }
    #[cfg(not(target_os = "linux"))]
    {
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: the caller's promise.
        unsafe { libc::mmap(start, size, libc::PROT_READ, flags, -1, 0) != libc::MAP_FAILED }
    }
}

/// Hands what is not ours to the handler that was there before.
///
/// # Safety
///
/// The arguments are what the kernel gave our handler.
unsafe fn hand_on(level: usize, number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.get(level).map_or(std::ptr::null_mut(), |previous| previous.load(SeqCst));
    // SAFETY: never freed once it is there.
    let previous = unsafe { previous.as_ref() };
    // SAFETY: the kernel gave it.
    let is_fault = unsafe { (*info).si_code } > 0;
    let address = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    if address == libc::SIG_IGN && !is_fault {
        return;
    }
    let is_once = previous.is_some_and(|previous| previous.sa_flags & libc::SA_RESETHAND != 0);
    let is_default = address == libc::SIG_DFL || address == libc::SIG_IGN;
    if is_default || is_once {
        // SAFETY: all zeros is the default action.
        exchange(Some(&unsafe { std::mem::zeroed() }));
    }
    if is_default {
        // A fault comes again as soon as the handler returns, and then ends the process as if there were no handler;
        // a signal that somebody sent has to be sent again. The kernel does not let anybody ignore a fault.
        if !is_fault {
            // SAFETY: no preconditions. It waits until the handler returns.
            unsafe { libc::raise(number) };
        }
        return;
    }
    let is_with_info = previous.is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: whoever installed it promised a function of the kind that its flags tell.
    unsafe {
        if is_with_info {
            std::mem::transmute::<usize, Handler>(address)(number, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(c_int)>(address)(number);
        }
    }
}

fn errno() -> *mut c_int {
    // SAFETY: no preconditions; the place is this thread's own.
    #[cfg(target_os = "linux")]
    return unsafe { libc::__errno_location() };
    // SAFETY: as before.
    #[cfg(not(target_os = "linux"))]
    return unsafe { libc::__error() };
}

#[cfg(test)]
mod tests;
