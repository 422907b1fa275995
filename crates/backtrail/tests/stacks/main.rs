//! Stacks of cores, of saved memory and of live processes, and the unwind tables that they are walked by.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test program"
)]

mod cores;
mod crashes;
mod offline;
mod runtimes;
mod stack_cfi;
mod unwind_tables;
