//! arm: what its code and its stack frames look like.

mod a32;
pub(crate) mod call;
mod effect;
mod frame;
pub(crate) mod frame_pointer;
mod frame_setup;
pub(crate) mod prologue;
pub(crate) mod signal;
mod sweep;
mod t32;
