//! Stacks that backtrail printed, stacks that gdb printed, and how they differ. For the chores that hold them against each other.
#![forbid(unsafe_code)]

pub mod compare;
pub mod gdb;
pub mod ours;

/// What fails with a sentence.
pub type Result<T> = std::result::Result<T, String>;
