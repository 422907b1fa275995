//! Stacks for signal handlers: without one a stack that overflowed has no room for the handler that would say so.

use crate::error::OsError;
use std::ffi::c_void;

/// Without the guards: what the kernel saves (AVX-512 has 3 KB, AMX 11 KB) and a handler that does little.
const SIZE: usize = 64 << 10;

/// The calling thread's stack for signal handlers, and an unmapped page at either end. Dropped by that thread, it is taken away
/// again.
#[derive(Debug)]
pub struct SignalStack {
    /// Null where the thread had one already, which is kept: runtimes have theirs for a reason.
    mapping: *mut c_void,
    size: usize,
}

impl SignalStack {
    /// Gives the calling thread one, if it has none.
    ///
    /// # Errors
    /// Where there is no memory.
    pub fn ensure() -> Result<Self, OsError> {
        // SAFETY: all zeros is a valid `stack_t`; the call fills it in.
        let mut now: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointers are valid or null.
        if unsafe { libc::sigaltstack(std::ptr::null(), &raw mut now) } != 0 {
            return Err(OsError::last("sigaltstack"));
        }
        if now.ss_flags & libc::SS_DISABLE == 0 {
            return Ok(Self { mapping: std::ptr::null_mut(), size: 0 });
        }
        Self::replace()
    }

    /// Gives the calling thread one in the place of any that it has: that of Rust's standard library has 8 KB, in which no handler can do
    /// much. Not on a stack for signal handlers.
    ///
    /// # Errors
    /// Where there is no memory.
    pub fn replace() -> Result<Self, OsError> {
        // SAFETY: no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let inside = SIZE.next_multiple_of(page);
        let size = inside + 2 * page;
        // SAFETY: a new private mapping, of which nothing can be accessed yet.
        let mapping = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0)
        };
        if mapping == libc::MAP_FAILED {
            return Err(OsError::last("mmap"));
        }
        let stack = Self { mapping, size };
        let start = mapping.cast::<u8>().wrapping_add(page).cast::<c_void>();
        let new = libc::stack_t { ss_sp: start, ss_flags: 0, ss_size: inside };
        // SAFETY: the range is inside of the mapping, which stays until the stack is taken away.
        let is_set = unsafe {
            libc::mprotect(start, inside, libc::PROT_READ | libc::PROT_WRITE) == 0
                && libc::sigaltstack(&raw const new, std::ptr::null_mut()) == 0
        };
        if is_set { Ok(stack) } else { Err(OsError::last("sigaltstack")) }
    }

    /// Leaves the thread its stack for as long as it lives.
    pub fn keep(self) {
        std::mem::forget(self);
    }

    /// Whether the thread had one before.
    pub fn was_there(&self) -> bool {
        self.mapping.is_null()
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        if self.mapping.is_null() {
            return;
        }
        // SAFETY: the stack is taken away before it is unmapped; the type is not `Send`, so that this is its thread.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &raw mut now);
            let is_ours = now.ss_sp.addr().wrapping_sub(self.mapping.addr()) < self.size;
            if is_ours {
                let none =
                    libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
                if libc::sigaltstack(&raw const none, std::ptr::null_mut()) != 0 {
                    return;
                }
            }
            libc::munmap(self.mapping, self.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_there_is_kept_and_ours_is_taken_away() {
        // Threads of Rust's standard library have one.
        let stack = SignalStack::ensure().unwrap();
        assert!(stack.was_there());
        // SAFETY: takes this thread's away, which nothing uses at the moment.
        unsafe {
            let mut before: libc::stack_t = std::mem::zeroed();
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            libc::sigaltstack(&raw const none, &raw mut before);
            let ours = SignalStack::ensure().unwrap();
            assert!(!ours.was_there());
            drop(ours);
            libc::sigaltstack(&raw const before, std::ptr::null_mut());
            let ours = SignalStack::replace().unwrap();
            assert!(!ours.was_there());
            drop(ours);
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(&raw const before, &raw mut now);
            assert_ne!(now.ss_flags & libc::SS_DISABLE, 0);
        }
    }
}
