//! This process's memory, read without risk.

use super::{OsError, ThreadId, own_stack};
use crate::volatile;
use backtrail_core::{AddrRange, Avma, ReadMemory, Unreadable};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The smallest page of any architecture; larger pages are multiples of it.
const PAGE: u64 = 4096;
/// How far above what is known to be readable the stack is looked for, page by page. What lies further away is read as
/// any other memory.
const REACH: u64 = 1 << 20;
/// Below the stack pointer: x86-64's red zone. System V ABI, "The Stack Frame".
const RED_ZONE: u64 = 128;

/// A thread's stack and whatever else of this process can be read: by that thread, while it stands still.
///
/// The stack is read where it lies, as far as it is known to be mapped. That is told by the thread's bounds, or found out
/// page by page, by a system call that fails on addresses that are not mapped; it works on any stack, a coroutine's or a
/// signal's too. Everything else is read through the kernel (`process_vm_readv`), which fails instead of faulting; where
/// that is not to be had (an emulator, a sandbox), memory is read where it lies after the same question, and would fault
/// if another thread unmapped it at that moment.
///
/// # Signal safety
///
/// Safe: neither allocates nor locks, and makes no calls but these two.
#[derive(Debug)]
pub struct OwnMemory {
    low: u64,
    high: Cell<u64>,
    /// How many addresses from `low` on have a whole word in there: one comparison tells both bounds.
    words: Cell<u64>,
    /// The stack is the thread's own.
    _stays: PhantomData<*const ()>,
}

/// The widest word, which is read at once.
const WORD: u64 = 8;

impl OwnMemory {
    #[inline]
    fn new(low: u64, high: u64) -> Self {
        let memory = Self { low, high: Cell::new(low), words: Cell::new(0), _stays: PhantomData };
        memory.reaches(high);
        memory
    }

    #[inline]
    fn reaches(&self, high: u64) {
        self.high.set(high);
        self.words.set(high.saturating_sub(self.low).saturating_sub(WORD - 1));
    }

    /// Memory around the calling thread's stack pointer, of whose stack nothing is known.
    #[inline]
    pub(crate) fn around(stack_pointer: Avma) -> Self {
        let low = below(stack_pointer) & !(PAGE - 1);
        Self::new(low, low)
    }

    /// The same where the stack pointer is this function's caller's own: the page that it points into is there.
    #[inline]
    pub(crate) fn around_here(stack_pointer: Avma) -> Self {
        let page = stack_pointer.get() & !(PAGE - 1);
        Self::new(page, page.saturating_add(PAGE))
    }

    /// Memory without a stack: all of it is read through the kernel.
    pub fn without_stack() -> Self {
        Self::new(u64::MAX, u64::MAX)
    }

    /// Has memory be read where it lies from now on, by all threads: under a filter of system calls the kernel may end who asks it to read.
    pub fn read_in_place() {
        WAY.store(IN_PLACE, Relaxed);
    }

    /// Copies the stack from `from` on, as far as it is mapped and `into` has room; says how many bytes it were.
    pub fn copy_stack(&self, from: Avma, into: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = from.get().saturating_add(done as u64);
            let piece = (PAGE - at % PAGE).min(rest.len() as u64) as usize;
            let Some(room) = rest.get_mut(..piece) else { break };
            if !self.has(at, piece as u64) {
                break;
            }
            copy(at, room);
            done += piece;
        }
        done
    }

    /// Whether so many bytes are within what is known to be mapped; finds more out if need be.
    #[inline]
    fn has(&self, address: u64, size: u64) -> bool {
        // Nothing ends behind the last address.
        let Some(end) = address.checked_add(size) else { return false };
        (address >= self.low && end <= self.high.get()) || self.extend(address, end)
    }

    /// The same of a word or less.
    #[inline]
    fn has_word(&self, address: u64) -> bool {
        address.wrapping_sub(self.low) < self.words.get() || self.has(address, WORD)
    }

    /// Asks for the pages above, up to the one that holds the last byte.
    #[inline(never)]
    fn extend(&self, address: u64, end: u64) -> bool {
        if address < self.low || end > self.high.get().saturating_add(REACH) {
            return false;
        }
        while self.high.get() < end {
            // Bounds that were given need not end with a page.
            let page = self.high.get() & !(PAGE - 1);
            if !is_mapped(page) {
                return false;
            }
            self.reaches(page.saturating_add(PAGE));
        }
        true
    }
}

/// Where the bytes end that a function may use below its stack pointer.
#[inline]
fn below(stack_pointer: Avma) -> u64 {
    stack_pointer.get().saturating_sub(RED_ZONE)
}

/// The bounds of the calling thread's stack, which stays mapped for as long as the thread lives.
#[derive(Debug)]
pub struct OwnStack {
    range: AddrRange<Avma>,
    _stays: PhantomData<*const ()>,
}

impl OwnStack {
    /// Asks the C library. Not for signal handlers: it may read files to know.
    ///
    /// # Errors
    /// Where the C library does not know.
    pub fn find() -> Result<Self, OsError> {
        Ok(Self { range: own_stack()?, _stays: PhantomData })
    }

    /// Memory as seen from a place where the stack pointer is this. Elsewhere than on this stack (a coroutine's, a
    /// signal's) nothing is known of it, and pages are asked for.
    ///
    /// # Signal safety
    ///
    /// Safe.
    #[inline]
    pub fn memory(&self, stack_pointer: Avma) -> OwnMemory {
        if !self.range.contains(stack_pointer) {
            return OwnMemory::around(stack_pointer);
        }
        OwnMemory::new(below(stack_pointer), self.range.end().get())
    }
}

impl ReadMemory for OwnMemory {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        if self.has(address.get(), buf.len() as u64) {
            copy(address.get(), buf);
            return Ok(());
        }
        elsewhere(address.get(), buf).then_some(()).ok_or(Unreadable { address })
    }

    #[inline]
    fn read_u32(&self, address: Avma) -> Result<u32, Unreadable> {
        if self.has(address.get(), 4) {
            return Ok(u32::from_le(word(address.get())));
        }
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    #[inline]
    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        if self.has_word(address.get()) {
            return Ok(u64::from_le(word(address.get())));
        }
        let mut bytes = [0; WORD as usize];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Copies bytes that were found to be mapped.
#[inline]
fn copy(from: u64, into: &mut [u8]) {
    // SAFETY: callers ask first. Others may write to the bytes meanwhile: they mean nothing until they are checked.
    unsafe { volatile::copy(from as usize as *const u8, into) };
}

/// A word, or half of one, that was found to be mapped.
#[inline]
fn word<T: Copy>(from: u64) -> T {
    // SAFETY: as `copy`; callers want integers.
    unsafe { (from as usize as *const T).read_unaligned() }
}

/// Whether the page at `address` can be read. The kernel copies a set of signals from there before it looks at what to do
/// with it, which is nothing that it knows: `EFAULT` for bad addresses, `EINVAL` for good ones.
fn is_mapped(address: u64) -> bool {
    const NOTHING: libc::c_int = !0;
    const SET_BYTES: usize = 8;
    let Ok(place) = usize::try_from(address & !7) else { return false };
    if place == 0 {
        return false;
    }
    // SAFETY: the kernel answers with an error whatever the address is; rt_sigprocmask(2).
    let answer =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NOTHING, place, std::ptr::null::<u8>(), SET_BYTES) };
    // SAFETY: errno is this thread's own.
    answer == -1 && unsafe { *libc::__errno_location() } == libc::EINVAL
}

const UNTRIED: u8 = 0;
const BY_KERNEL: u8 = 1;
const IN_PLACE: u8 = 2;
static WAY: AtomicU8 = AtomicU8::new(UNTRIED);

/// Reads memory that may be anything.
fn elsewhere(address: u64, into: &mut [u8]) -> bool {
    if into.is_empty() {
        return true;
    }
    if usize::try_from(address.saturating_add(into.len() as u64)).is_err() {
        return false;
    }
    if WAY.load(Relaxed) == UNTRIED {
        let probe = 1u8;
        let mut copied = [0];
        let works = by_kernel(&raw const probe as u64, &mut copied) && copied == [1];
        WAY.store(if works { BY_KERNEL } else { IN_PLACE }, Relaxed);
    }
    match WAY.load(Relaxed) {
        BY_KERNEL => by_kernel(address, into),
        _ => in_place(address, into),
    }
}

fn by_kernel(address: u64, into: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as usize as *mut _, iov_len: into.len() };
    // Any thread has the memory. The process's first one may have ended before the others, and has none then.
    let thread = ThreadId::current().raw();
    // SAFETY: the local vector is `into`; the kernel checks the other.
    let copied = unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied).is_ok_and(|copied| copied == into.len())
}

fn in_place(address: u64, into: &mut [u8]) -> bool {
    let last = address.saturating_add(into.len() as u64 - 1);
    let mut page = address & !(PAGE - 1);
    while page <= last {
        if !is_mapped(page) {
            return false;
        }
        page += PAGE;
    }
    copy(address, into);
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    /// Two pages, of which the second cannot be read.
    fn half_mapped() -> u64 {
        // SAFETY: a new mapping of its own.
        unsafe {
            let page = PAGE as usize * 16;
            let start = libc::mmap(
                std::ptr::null_mut(),
                page * 2,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.cast::<u8>().add(page).cast(), page, libc::PROT_NONE), 0);
            std::ptr::write_bytes(start.cast::<u8>(), 7, page);
            start as u64 + page as u64
        }
    }

    #[test]
    fn what_is_not_mapped_is_an_error_in_each_way() {
        let edge = half_mapped();
        for way in [by_kernel, in_place] {
            let mut bytes = [0; 8];
            assert!(way(edge - 8, &mut bytes) || way as *const () == by_kernel as *const (), "{edge:#x}");
            assert!(!way(edge - 4, &mut bytes));
            assert!(!way(edge, &mut bytes));
            assert!(!way(8, &mut bytes));
        }
        assert!(is_mapped(edge - PAGE));
        assert!(!is_mapped(edge) && !is_mapped(0) && !is_mapped(1 << 62));
    }

    #[test]
    fn a_stack_is_read_up_to_its_end() {
        let edge = half_mapped();
        let memory = OwnMemory::around(Avma::new(edge - 3 * PAGE));
        assert_eq!(memory.read_u64(Avma::new(edge - 8)), Ok(0x0707_0707_0707_0707));
        assert_eq!(memory.high.get(), edge);
        let address = Avma::new(edge - 4);
        assert_eq!(memory.read_u64(address), Err(Unreadable { address }));
        assert_eq!(memory.read_u32(address), Ok(0x0707_0707));
        let mut room = vec![0; 5 * PAGE as usize];
        let from = edge - 2 * PAGE - 3;
        assert_eq!(memory.copy_stack(Avma::new(from), &mut room), 2 * PAGE as usize + 3);
        // Nothing is read behind the last address, whatever is known of the stack.
        for memory in [memory, OwnMemory::without_stack()] {
            let last = Avma::new(u64::MAX);
            assert_eq!(memory.read_u64(last), Err(Unreadable { address: last }));
            assert_eq!(memory.read_u32(last), Err(Unreadable { address: last }));
        }
        let memory = OwnMemory::without_stack();
        // Elsewhere: any memory.
        let number = 0x1234u64;
        assert_eq!(memory.read_u64(Avma::new(&raw const number as u64)), Ok(0x1234));
    }
}
