//! Text out of bytes.

use std::borrow::Cow;

/// The text of `bytes`; what is no UTF-8 becomes U+FFFD.
///
/// The standard library's lossy reading goes byte by byte; its checked one reads plain text words at a time, and nearly all
/// text is plain.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Bytes as hexadecimal digits, two each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
