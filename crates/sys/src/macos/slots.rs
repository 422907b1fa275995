//! Suspending a thread, and looking at it meanwhile. The types are those of Linux's slots, so that what is above need not
//! know which way it is done.

use super::error::check;
use super::{OsError, OwnMemory, OwnStack, ThreadId, ffi};
use crate::capture_registers;
#[cfg(target_arch = "aarch64")]
use crate::mach_state::{ARM64_WORDS, arm64_registers};
#[cfg(target_arch = "x86_64")]
use crate::mach_state::{X86_64_WORDS, x86_64_registers};
use backtrail_core::Registers;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Instant;

/// A thread that stands still: what it was doing.
#[derive(Debug)]
pub struct Stopped {
    registers: Registers,
    memory: OwnMemory,
}

impl Stopped {
    /// The place that this is inlined into.
    #[inline(always)]
    pub fn here() -> Self {
        Self { registers: capture_registers(), memory: OwnMemory::without_stack() }
    }

    /// The same on a stack whose bounds are known.
    #[inline(always)]
    pub fn here_on(stack: &OwnStack) -> Self {
        let registers = capture_registers();
        Self { memory: stack.memory(registers.sp().unwrap_or_default()), registers }
    }

    /// The code that a signal handler interrupted, by the handler's third argument.
    ///
    /// # Safety
    ///
    /// `context` is what the kernel gave a handler that has not returned yet, on this thread.
    ///
    /// # Signal safety
    ///
    /// Safe.
    pub unsafe fn interrupted(context: *const c_void) -> Self {
        // SAFETY: the caller's promise.
        let registers = unsafe { super::context::registers_of(context) };
        Self { registers, memory: OwnMemory::without_stack() }
    }

    /// A thread that stands still for as long as this lives: in an exception that nobody has answered yet.
    ///
    /// # Errors
    /// Where the kernel does not give its registers.
    ///
    /// # Signal safety
    ///
    /// Safe.
    pub(super) fn in_exception(thread: ThreadId) -> Result<Self, OsError> {
        Ok(Self { registers: registers(thread)?, memory: OwnMemory::without_stack() })
    }

    /// One of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self { registers: Registers::new(crate::FAMILY), memory: OwnMemory::without_stack() }
    }

    /// The registers.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// The thread's stack, and other memory.
    pub fn memory(&self) -> &OwnMemory {
        &self.memory
    }
}

/// A suspended thread; it goes on when this is dropped.
///
/// While it lives its owner must neither allocate nor take any lock: the thread may hold it.
#[derive(Debug)]
pub struct Suspended(ThreadId);

impl Suspended {
    /// Suspends a thread other than the calling one.
    ///
    /// # Errors
    /// Where the thread is gone, or it is the calling one.
    pub fn stop(thread: ThreadId) -> Result<Self, OsError> {
        if thread == ThreadId::current() {
            return Err(OsError { call: "thread_suspend", number: ffi::INVALID_ARGUMENT });
        }
        // SAFETY: a port's name; the kernel refuses those that are no thread's.
        check("thread_suspend", unsafe { ffi::thread_suspend(thread.port()) })?;
        Ok(Self(thread))
    }

    /// Its registers.
    ///
    /// # Errors
    /// Where the kernel does not give them.
    pub fn look(&self) -> Result<Stopped, OsError> {
        Ok(Stopped { registers: registers(self.0)?, memory: OwnMemory::without_stack() })
    }
}

#[cfg(target_arch = "aarch64")]
fn registers(thread: ThreadId) -> Result<Registers, OsError> {
    /// `ARM_THREAD_STATE64`.
    const FLAVOR: i32 = 6;
    let mut words = [0; ARM64_WORDS];
    state(thread, FLAVOR, &mut words)?;
    Ok(arm64_registers(&words))
}

#[cfg(target_arch = "x86_64")]
fn registers(thread: ThreadId) -> Result<Registers, OsError> {
    /// `x86_THREAD_STATE64`.
    const FLAVOR: i32 = 4;
    let mut words = [0; X86_64_WORDS];
    state(thread, FLAVOR, &mut words)?;
    Ok(x86_64_registers(&words))
}

/// What the processor says of a thread's exception, as [`Exception`](crate::mach_exception::Exception) has it; 0 where the kernel does
/// not tell. Safe in a signal handler.
pub(super) fn syndrome(thread: ThreadId) -> u64 {
    /// `ARM_EXCEPTION_STATE64` and `x86_EXCEPTION_STATE64`, of two words each: the address and what else there is, in either order.
    const FLAVOR: i32 = if cfg!(target_arch = "aarch64") { 7 } else { 6 };
    let mut words = [0; 2];
    match (state(thread, FLAVOR, &mut words), words) {
        (Ok(()), [_, told]) if cfg!(target_arch = "aarch64") => told & u64::from(u32::MAX),
        (Ok(()), [told, _]) => told,
        (Err(_), _) => 0,
    }
}

fn state(thread: ThreadId, flavor: i32, words: &mut [u64]) -> Result<(), OsError> {
    let mut count = u32::try_from(words.len() * 2).unwrap_or(0);
    // SAFETY: the kernel fills in at most `count` words of four bytes, for which there is room.
    let answer =
        unsafe { ffi::thread_get_state(thread.port(), flavor, words.as_mut_ptr().cast(), &raw mut count) };
    check("thread_get_state", answer)
}

impl Drop for Suspended {
    fn drop(&mut self) {
        // SAFETY: suspended by this.
        unsafe { ffi::thread_resume(self.0.port()) };
    }
}

/// What is done while a thread is suspended.
pub trait Work: Send + 'static {
    /// Runs on the thread that asks, while the other is suspended: it must not allocate, lock or panic.
    fn run(&mut self, at: &Stopped);
}

/// Linux's way of asking; here there is nothing to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectedSignal(());

impl DirectedSignal {
    /// Takes nothing.
    ///
    /// # Errors
    /// Never.
    pub fn take(_number: Option<i32>, _on_signal_stack: bool) -> Result<Self, OsError> {
        Ok(Self(()))
    }

    /// No signal.
    pub fn number(self) -> i32 {
        0
    }

    /// Nobody takes it away.
    ///
    /// # Errors
    /// Never.
    pub fn is_ours(self) -> Result<bool, OsError> {
        Ok(true)
    }
}

struct Slot<W> {
    is_used: AtomicBool,
    work: Mutex<W>,
}

/// Some slots for one kind of work, so that captures find room that is made already.
pub struct Slots<W: 'static> {
    slots: Vec<&'static Slot<W>>,
}

impl<W: Work> Slots<W> {
    /// Makes `count` slots. They are never freed.
    pub fn new(count: usize, mut make: impl FnMut() -> W) -> Self {
        let slot = || {
            let slot: &_ =
                Box::leak(Box::new(Slot { is_used: AtomicBool::new(false), work: Mutex::new(make()) }));
            // The standard library's lock allocates here when it is taken for the first time.
            drop(slot.work.lock());
            slot
        };
        Self { slots: std::iter::repeat_with(slot).take(count).collect() }
    }

    /// A slot that nobody uses.
    pub fn claim(&self) -> Option<Claim<W>> {
        let free = self.slots.iter().find(|slot| !slot.is_used.swap(true, SeqCst))?;
        Some(Claim { slot: free })
    }
}

impl<W> fmt::Debug for Slots<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots", self.slots.len())
    }
}

/// A slot in use; free again when this is dropped.
pub struct Claim<W: 'static> {
    slot: &'static Slot<W>,
}

impl<W: Work> Claim<W> {
    /// The work, to be prepared before and looked at afterwards.
    pub fn work(&mut self) -> std::sync::MutexGuard<'_, W> {
        // Never contended: the claim is the only one of its slot.
        self.slot.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Suspends a thread of this process, does the work and lets it go on.
    ///
    /// # Errors
    /// Where the thread is gone.
    pub fn send(self, _signal: DirectedSignal, thread: ThreadId) -> Result<Sent<W>, OsError> {
        // Held before the thread is suspended: afterwards nothing may be waited for.
        let mut work = match self.slot.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(work)) => work.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(OsError { call: "claim", number: 0 }),
        };
        let suspended = Suspended::stop(thread)?;
        let looked = suspended.look();
        if let Ok(at) = &looked {
            work.run(at);
        }
        drop(suspended);
        drop(work);
        looked.map(|_| Sent { claim: self, _like: PhantomData })
    }
}

impl<W: 'static> Drop for Claim<W> {
    fn drop(&mut self) {
        self.slot.is_used.store(false, SeqCst);
    }
}

impl<W> fmt::Debug for Claim<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").finish_non_exhaustive()
    }
}

/// Work that is done.
pub struct Sent<W: 'static> {
    claim: Claim<W>,
    _like: PhantomData<W>,
}

impl<W: Work> Sent<W> {
    /// Gives the slot back: nothing is waited for.
    ///
    /// # Errors
    /// Never.
    pub fn wait(self, _deadline: Instant) -> Result<Claim<W>, Self> {
        Ok(self.claim)
    }
}

impl<W> fmt::Debug for Sent<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sent").finish_non_exhaustive()
    }
}
