//! Linux.

mod error;

pub use error::OsError;
