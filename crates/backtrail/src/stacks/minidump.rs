//! Stacks of a minidump.
use super::*;
impl Stacks {
    /// To come.
    pub fn minidump(_: &std::path::Path, _: &crate::Symbols, _: &StackOptions) -> Result<Self, StacksError> {
        Err(StacksError("minidump: not yet".to_owned()))
    }
}
