//! What Linux and Apple's systems have alike: files and stacks that a crash finds ready.

pub mod at_exit;
pub(crate) mod kept;
mod kept_directory;
mod raw_file;
mod signal_stack;

pub use kept_directory::KeptDirectory;
pub use raw_file::{RawFile, c_path, set_aside, system};
pub use signal_stack::SignalStack;
