//! Processes that run: captured in every state that a process can be in, by the program as its users run it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

mod chosen;
mod deep;
mod denied;
mod effects;
mod files;
mod gdb;
mod locks;
mod missing;
mod states;
mod target;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod watch;
