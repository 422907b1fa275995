//! How calls end.

use crate::text;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// It worked.
pub const BACKTRAIL_OK: i32 = 0;
/// An argument is wrong: a null pointer, a number that means nothing, a text that is no UTF-8.
pub const BACKTRAIL_INVALID: i32 = 1;
/// The system refused.
pub const BACKTRAIL_SYSTEM: i32 = 2;
/// A file cannot be read, or not for what was asked.
pub const BACKTRAIL_UNREADABLE: i32 = 3;
/// There is no such thread, or no such row.
pub const BACKTRAIL_GONE: i32 = 4;
/// The thread did not answer.
pub const BACKTRAIL_SILENT: i32 = 5;
/// A mistake in the library.
pub const BACKTRAIL_PANIC: i32 = 6;
/// The library was built without this part.
pub const BACKTRAIL_ABSENT: i32 = 7;

/// The ABI that this library has; it rises when programs have to be built anew.
const ABI_VERSION: u32 = 0;

/// Why a call failed.
pub(crate) struct Failure {
    status: i32,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: i32, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(BACKTRAIL_INVALID, format!("{what} is null"))
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs what a function does, and turns its end into a status. The message is kept for [`backtrail_last_error`].
pub(crate) fn guard(act: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let end = catch_unwind(AssertUnwindSafe(act));
    let failure = match end {
        Ok(Ok(())) => return BACKTRAIL_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Failure::new(BACKTRAIL_PANIC, format!("a mistake in backtrail: {}", text.unwrap_or_default()))
        }
    };
    // A thread that is ending may have no place for the message any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text::text(&failure.message));
    failure.status
}

/// Runs what has no way to fail; a panic leaves `otherwise`.
pub(crate) fn quiet<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(otherwise)
}

/// The ABI's number; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_abi_version() -> u32 {
    ABI_VERSION
}

/// The library's version; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Why the last call of this thread failed; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
