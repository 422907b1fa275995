//! Linux.

mod clock;
mod context;
mod error;
mod futex;
pub mod loader;
mod own_memory;
mod signal;
mod slots;
mod threads;

pub use clock::boot_time;
pub use context::registers_of;
pub use error::OsError;
pub use own_memory::OwnMemory;
pub use signal::{DirectedSignal, Stopped};
pub use slots::{Claim, Sent, Slots, Work};
pub use threads::{ThreadId, block_signals, own_stack, threads};
