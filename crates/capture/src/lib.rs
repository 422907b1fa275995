//! What a process was doing at one moment: threads with their registers, memory, and the images it had mapped.
//!
//! A [`Snapshot`] holds what was captured and nothing that was worked out: no names, no frames, no files. Its readers
//! take bytes:
//!
//! - [`offline`]: a saved stack as Android's libunwindstack keeps its test cases;
//! - [`elf_core`]: the core dump of a Linux process;
//! - [`crash_file`]: what a process's own crash handler wrote;
//! - `local`: the threads and images of this process, on Linux, macOS and iOS;
//! - [`mach`]: what an Apple process's memory and kernel answers mean, without any call;
//! - `minidump`: a minidump of Breakpad, Crashpad or Windows (feature `minidump`).
//! - `remote`: another process while it runs (Linux), with what [`procfs`] tells of it. It alone reads more than bytes.
//!
//! # What the caller does
//! Supplies the bytes, and afterwards the images' files: this crate opens none. A core leaves out what can be read from
//! the files that were mapped; [`Snapshot::images`] says which, and the caller overlays them.
//!
//! # Broken input
//! Every offset and count is checked against the bytes that are there, and [`Limits`] bound the rest. What is broken in
//! one thread or note does not hide the others: [`Snapshot::notes`] lists what is missing or odd, one sentence each.
#![forbid(unsafe_code)]

mod bytes;
pub mod crash_file;
pub mod elf_core;
mod error;
mod gregset;
mod limits;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod local;
pub mod mach;
mod maps;
mod memory;
#[cfg(feature = "minidump")]
pub mod minidump;
pub mod offline;
pub mod procfs;
#[cfg(target_os = "linux")]
pub mod remote;
mod snapshot;
mod thread_state;

pub use error::{Error, ErrorKind};
pub use limits::Limits;
pub use maps::{Mapping, parse_maps};
pub use memory::Memory;
pub use snapshot::{Fault, MappedImage, Process, Snapshot, Source, Thread};
pub use thread_state::ThreadState;
