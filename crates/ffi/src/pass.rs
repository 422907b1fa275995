//! What goes over the border: texts, handles, structures with a size.

use crate::status::{BACKTRAIL_INVALID, Failure};
use std::ffi::{CStr, c_char};

/// A text from C; `None` for null.
///
/// # Safety
/// `text` is null or a string that ends with a zero and stays as it is for `'a`.
pub(crate) unsafe fn optional_text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Failure::new(BACKTRAIL_INVALID, format!("{what} is no UTF-8")))?;
    Ok(Some(text))
}

/// A text from C that must be there.
///
/// # Safety
/// As for [`optional_text`].
pub(crate) unsafe fn needed_text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    unsafe { optional_text(text, what) }?.ok_or_else(|| Failure::null(what))
}

/// As much of a text from C as is UTF-8; `None` for null. Safe in a signal handler.
///
/// # Safety
/// As for [`optional_text`].
pub(crate) unsafe fn valid_text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_bytes().utf8_chunks().next().map_or("", |chunk| chunk.valid()))
}

/// What a handle stands for.
///
/// # Safety
/// `handle` is null or was given out by this library and not freed for `'a`.
pub(crate) unsafe fn handle<'a, T>(handle: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// Gives a new handle out.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn give<T>(out: *mut *mut T, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::null("out"));
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { out.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Takes a handle back and drops it. Null is nothing.
///
/// # Safety
/// `handle` is null or was given out by [`give`] and not taken back.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: the caller's promise.
        let value = unsafe { Box::from_raw(handle) };
        crate::status::quiet((), move || drop(value));
    }
}

/// A structure that begins with its size as the caller knows it.
///
/// # Safety
/// The implementing type is `repr(C)`, begins with a `u32` that is its size, and any bytes are a valid value of it.
pub(crate) unsafe trait Sized32: Copy {
    /// All zero, but for the size.
    const EMPTY: Self;
}

/// Smaller than this is no version of any structure.
const SMALLEST: usize = 8;

/// A structure from C, with what an older caller does not know left empty. Null is an empty one.
///
/// # Safety
/// `from` is null or begins with a `u32` that says how many bytes may be read there.
pub(crate) unsafe fn options<T: Sized32>(from: *const T) -> Result<T, Failure> {
    let mut value = T::EMPTY;
    if from.is_null() {
        return Ok(value);
    }
    // SAFETY: not null; the caller's promise.
    let size = usize::try_from(unsafe { from.cast::<u32>().read() }).unwrap_or(0);
    if size < SMALLEST {
        return Err(Failure::new(BACKTRAIL_INVALID, "the options' size is not set"));
    }
    // SAFETY: so many bytes are there on both sides; the trait's promise makes any of them valid.
    unsafe {
        std::ptr::copy_nonoverlapping(
            from.cast::<u8>(),
            (&raw mut value).cast::<u8>(),
            size.min(size_of::<T>()),
        );
    }
    Ok(value)
}

/// Fills a structure of C's, as far as it reaches.
///
/// # Safety
/// `to` is null or begins with a `u32` that says how many bytes may be written there.
pub(crate) unsafe fn fill<T: Sized32>(to: *mut T, value: T) -> Result<(), Failure> {
    const HEAD: usize = size_of::<u32>();
    if to.is_null() {
        return Err(Failure::null("out"));
    }
    // SAFETY: not null; the caller's promise.
    let size = usize::try_from(unsafe { to.cast::<u32>().read() }).unwrap_or(0);
    if size < SMALLEST {
        return Err(Failure::new(BACKTRAIL_INVALID, "the size of the structure is not set"));
    }
    let bytes = size.min(size_of::<T>()).saturating_sub(HEAD);
    // SAFETY: so many bytes are there on both sides; the size itself stays the caller's.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const value).cast::<u8>().add(HEAD),
            to.cast::<u8>().add(HEAD),
            bytes,
        );
    }
    Ok(())
}
