//! Calls of x86: those of `x86_64`, and `call gs:[16]`, by which glibc enters the kernel.

use crate::x86_64::call;

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(before: &[u8]) -> bool {
    call::direct(before) || call::indirect(before)
}
