//! The debuginfod client, against a server that misbehaves and against the real one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect shall fail"
)]

mod faults;
mod real;
mod tls;
