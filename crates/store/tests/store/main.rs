//! The store through its public face.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect shall fail"
)]

mod common;
mod locate;
mod resolve;
mod scan;
mod shrinking;
mod zips;
