//! Calls of arm.

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(_before: &[u8], _thumb: bool) -> bool {
    false
}
