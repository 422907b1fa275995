//! Linux.

mod clock;
mod context;
// A thread is started there by a system call that is written for each processor.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod crash;
mod directory;
mod futex;
mod held;
mod interrupts;
mod kept_proc;
pub mod loader;
pub mod memory;
mod own_memory;
mod processors;
pub mod ptrace;
pub mod raw_file;
mod signal;
mod slots;
mod stopped;
mod threads;
pub mod tracer;

pub use crate::error::OsError;
pub use crate::unix::{KeptDirectory, SignalStack, at_exit};
pub use clock::{boot_time, coarse_time, monotonic_time, process_time};
pub use directory::Directory;
pub use interrupts::Interrupts;
pub use kept_proc::{is_kept, keep_open};
pub use own_memory::{OwnMemory, OwnStack};
pub use processors::KeptOff;
pub use signal::DirectedSignal;
pub use slots::{Claim, Sent, Slots, Work};
pub use stopped::Stopped;
use threads::own_stack;
pub use threads::{ThreadId, block_signals, threads};
