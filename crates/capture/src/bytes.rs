//! Little-endian numbers out of bytes, each read checked.

/// A number at a position; `None` past the end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number at a position; `None` past the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number at a position; `None` past the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A pointer-sized number at a position.
pub(crate) fn word_at(bytes: &[u8], at: usize, is_64: bool) -> Option<u64> {
    if is_64 { u64_at(bytes, at) } else { u32_at(bytes, at).map(u64::from) }
}

/// The text up to a NUL, or to the end; what is no UTF-8 becomes U+FFFD.
pub(crate) fn text(bytes: &[u8], max: usize) -> String {
    let end = bytes.iter().take(max).position(|byte| *byte == 0).unwrap_or(bytes.len().min(max));
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}
