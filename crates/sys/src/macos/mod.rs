//! macOS and iOS: Mach ports. Type-checked and linked for these targets; nobody has run it yet.
//!
//! A thread is not asked by a signal but suspended from outside, looked at and let go; the interface is like Linux's all
//! the same. While a thread is suspended the one that looks must neither allocate nor lock: the other may hold the lock.

mod context;
pub mod crash;
mod error;
mod exception_ports;
mod ffi;
mod images;
pub mod objc;
mod own_memory;
mod ports;
mod process;
pub mod raw_file;
mod slots;
mod threads;

pub use crate::error::OsError;
pub use crate::unix::{KeptDirectory, SignalStack, at_exit};
pub use images::{Counters, Loaded, counters, follow_images, images};
pub use own_memory::{OwnMemory, OwnStack};
pub use process::{boot_time, is_traced, monotonic_time, process_start};
pub use slots::{Claim, DirectedSignal, Sent, Slots, Stopped, Suspended, Work};
pub use threads::{Facts, RunState, ThreadId, block_signals, queue_offsets, threads};
