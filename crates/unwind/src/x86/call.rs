//! Calls of x86.

/// See [`crate::arch::follows_call`].
pub(crate) fn follows_call(_before: &[u8]) -> bool {
    false
}
