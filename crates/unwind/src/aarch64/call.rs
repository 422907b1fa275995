//! Calls of aarch64.

use super::instruction::{Effect, decode};

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(before: &[u8]) -> bool {
    before.last_chunk().is_some_and(|bytes| decode(u32::from_le_bytes(*bytes)) == Effect::Call)
}
