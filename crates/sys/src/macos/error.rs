//! A call that failed.

use std::fmt;

/// A call that failed: which one, and the kernel's code (`kern_return_t`, or `errno` of a call of the C library).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OsError {
    /// The call by its usual name: `thread_suspend`.
    pub call: &'static str,
    /// The code, `KERN_INVALID_ARGUMENT` (4) and its like.
    pub number: i32,
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: code {}", self.call, self.number)
    }
}

impl std::error::Error for OsError {}

/// What an answer of the kernel's means.
pub(super) fn check(call: &'static str, answer: super::ffi::Answer) -> Result<(), OsError> {
    if answer == super::ffi::SUCCESS { Ok(()) } else { Err(OsError { call, number: answer }) }
}
