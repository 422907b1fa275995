//! Reports and the files that name their frames, against what is known of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test program"
)]

mod android;
mod apple_crash_file;
mod apple_kinds;
mod crashprobe;
mod exchange;
mod groups;
mod kernel_log;
mod many;
mod registers;
mod sample;
mod vendor_sample;
