//! Calls of aarch64.

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(_before: &[u8]) -> bool {
    false
}
