//! A thread that stands still, seen from itself.

use super::{OwnMemory, OwnStack};
use crate::capture_registers;
use backtrail_core::Registers;
use std::ffi::c_void;

/// A place where the calling thread stands still: what it was doing, seen from itself.
#[derive(Debug)]
pub struct Stopped {
    registers: Registers,
    memory: OwnMemory,
}

impl Stopped {
    /// The place that this is inlined into.
    ///
    /// # Signal safety
    ///
    /// Safe.
    #[inline(always)]
    pub fn here() -> Self {
        let registers = capture_registers();
        Self { memory: OwnMemory::around_here(registers.sp().unwrap_or_default()), registers }
    }

    /// The same on a stack whose bounds are known.
    ///
    /// # Signal safety
    ///
    /// Safe.
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
        Self { memory: OwnMemory::around(registers.sp().unwrap_or_default()), registers }
    }

    /// The registers of the code that was interrupted.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// The thread's stack, and other memory.
    pub fn memory(&self) -> &OwnMemory {
        &self.memory
    }
}
