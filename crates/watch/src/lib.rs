//! Watches processes from outside: of each crash and hang, a crash file is kept.
//!
//! The process needs nothing built in. It is followed by ptrace(2), which costs it nothing while nothing happens but for some
//! microseconds for each signal, new thread and new process. A signal that will end the process is seen before it does: then all
//! threads are stopped, copied and walked, a file is written, and the process ends as it would have, with the same status and core
//! dump. Signals that the program handles go to it untouched: what a virtual machine makes of its null pointers is no crash.
//!
//! Children are followed, too. `docs/watch.md` says what counts as a crash and as a hang.
//!
//! # Platforms
//!
//! Linux on `x86_64` and aarch64. Elsewhere the crate is empty.
#![forbid(unsafe_code)]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod core_pattern;
mod error;
mod file;
mod followed;
mod for_handler;
mod hang;
mod signals;
mod watcher;

pub use backtrail_sys::linux::tracer::Exit;
pub use core_pattern::keep_core;
pub use error::WatchError;
pub use for_handler::{serve_handler, start_again};
pub use watcher::{Cause, KeptReport, Options, Watched, watch};
