//! x86_64: what its code and its stack frames look like.

pub(crate) mod call;
pub(crate) mod frame_pointer;
pub(crate) mod generated;
pub(crate) mod instruction;
pub(crate) mod prologue;
pub(crate) mod return_path;
pub(crate) mod signal;
pub(crate) mod stack_depth;
