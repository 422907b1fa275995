//! aarch64: what its code and its stack frames look like.

pub(crate) mod call;
mod frame;
pub(crate) mod frame_pointer;
mod instruction;
pub(crate) mod prologue;
pub(crate) mod signal;
