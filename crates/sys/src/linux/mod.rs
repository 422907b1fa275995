//! Linux.

mod error;
pub mod memory;
pub mod ptrace;

pub use error::OsError;
