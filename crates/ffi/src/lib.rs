//! Backtrail as a C library: captures of this process's threads, names for addresses, the hang monitor,
//! the crash handler.
//!
//! `include/backtrail.h` is the reference: it says of every function what it does, who owns what, and where it may be
//! called. A test compares it with what is here. `docs/c-api.md` shows how to build with it.
//!
//! # Rules
//! - Handles are opaque; each has a function that frees it.
//! - No panic gets out: it becomes [`BACKTRAIL_PANIC`](status::BACKTRAIL_PANIC).
//! - Structures begin with their size as the caller knows it. Newer versions add fields at the end; what a caller does not
//!   know is left at its default, what the library does not know is left alone.
//! - Enumerations are plain integers, since C may hand over any.
//!
//! This crate is, beside `sys`, `altstack` and one file of `store`, where unsafe code is: pointers from C are believed, as far as the
//! header demands of the caller.
#![allow(unsafe_code)]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod capture;
#[cfg(all(
    any(target_os = "linux", target_os = "macos", target_os = "ios"),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod crash;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod hang;
pub mod names;
mod pass;
pub mod status;
mod text;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod threads;
#[cfg(all(
    any(target_os = "linux", target_os = "macos", target_os = "ios"),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod upload;
