//! What an answer of the kernel's means.

use crate::error::OsError;

/// What an answer of the kernel's means.
pub(super) fn check(call: &'static str, answer: super::ffi::Answer) -> Result<(), OsError> {
    if answer == super::ffi::SUCCESS { Ok(()) } else { Err(OsError { call, number: answer }) }
}
