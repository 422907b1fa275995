//! What a program does when it exits.

/// Has the C library call a function when the process exits by `exit` or by returning from `main`. Not when a signal ends it, nor by
/// `_exit`. A child by `fork` calls it as well.
pub fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function takes nothing, and can be called at any time.
    unsafe { libc::atexit(function) };
}
