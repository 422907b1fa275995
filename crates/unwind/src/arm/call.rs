//! Calls of arm.

use super::effect::Effect;
use super::{a32, t32};

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(before: &[u8], thumb: bool) -> bool {
    if !thumb {
        return before
            .last_chunk()
            .is_some_and(|bytes| a32::decode(u32::from_le_bytes(*bytes)) == Effect::Call);
    }
    let half = |back: usize| {
        let start = before.len().checked_sub(back)?;
        before.get(start..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
    };
    let (first, second) = (half(4), half(2));
    let is_long = |first: u16| t32::size(first) == 4;
    if let (Some(first), Some(second)) = (first, second)
        && is_long(first)
        && t32::decode_long(first, second) == Effect::Call
    {
        return true;
    }
    second.is_some_and(|half| !is_long(half) && t32::decode_short(half) == Effect::Call)
}
