//! Texts for C.

use std::ffi::{CString, c_char};

/// A text for C; what follows a zero byte in it is lost.
pub(crate) fn text(text: &str) -> CString {
    let until_zero = text.split('\0').next().unwrap_or_default();
    CString::new(until_zero).unwrap_or_default()
}

/// The pointer of a text that may be missing.
pub(crate) fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}
