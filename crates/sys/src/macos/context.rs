//! What a signal handler is told of the code that it interrupted.

#[cfg(target_arch = "aarch64")]
use crate::mach_state::{ARM64_WORDS as WORDS, arm64_registers as registers};
#[cfg(target_arch = "x86_64")]
use crate::mach_state::{X86_64_WORDS as WORDS, x86_64_registers as registers};
use backtrail_core::Registers;
use std::ffi::c_void;

/// `struct __darwin_ucontext`, as far as its pointer to the registers. XNU, `bsd/sys/_types/_ucontext.h`.
#[repr(C)]
struct Context {
    _on_stack: i32,
    _blocked: u32,
    _stack: libc::stack_t,
    _link: *const c_void,
    _size: usize,
    state: *const State,
}

/// `struct __darwin_mcontext64`: 16 bytes of the exception (on both processors), then what `thread_get_state` gives. XNU,
/// `bsd/arm/_mcontext.h` and `bsd/i386/_mcontext.h`.
#[repr(C)]
struct State {
    _exception: [u64; 2],
    words: [u64; WORDS],
}

/// The registers in a handler's third argument.
///
/// # Safety
///
/// `context` is what the kernel gave a handler that has not returned yet.
pub(super) unsafe fn registers_of(context: *const c_void) -> Registers {
    // SAFETY: the caller's promise; the kernel writes both structures as a whole.
    registers(unsafe { &(*(*context.cast::<Context>()).state).words })
}
