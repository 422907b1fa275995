//! Tables from addresses to values: pairs of how far the value and the address go on, in numbers of seven bits a byte.

use super::bytes::take_uleb;

/// The pieces of a function that have one value each, in order.
pub(super) struct Values<'a> {
    bytes: &'a [u8],
    quantum: u64,
    value: i32,
    /// Where the next piece starts, in bytes from the function's start.
    at: u64,
    /// Bytes of the function.
    size: u64,
}

impl<'a> Values<'a> {
    pub(super) fn new(bytes: &'a [u8], quantum: u8, size: u64) -> Self {
        Self { bytes, quantum: quantum.into(), value: -1, at: 0, size }
    }
}

impl Iterator for Values<'_> {
    /// Where the piece ends, and its value.
    type Item = (u64, i32);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.size {
            return None;
        }
        let delta = u32::try_from(take_uleb(&mut self.bytes)?).ok()?;
        // Only the first piece may have the value that all begin with.
        if delta == 0 && self.at > 0 {
            return None;
        }
        let delta = if delta & 1 == 0 { delta >> 1 } else { !(delta >> 1) };
        self.value = self.value.wrapping_add(delta.cast_signed());
        // A piece without bytes would not get on.
        let bytes = take_uleb(&mut self.bytes)?.checked_mul(self.quantum).filter(|bytes| *bytes > 0)?;
        self.at = self.at.checked_add(bytes)?.min(self.size);
        Some((self.at, self.value))
    }
}
