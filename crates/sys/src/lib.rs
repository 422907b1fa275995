//! The operating system's calls that capturing needs, each behind a safe function or a guard.
//!
//! This crate makes calls and decides nothing: which thread to stop, how long, and what the answers mean is the business
//! of the capture crate. It is the only room where `unsafe` calls to the system are allowed; every unsafe block says why
//! it is sound.
//!
//! [`linux`] stops threads of other processes, reads their memory, directs signals to threads of this process and lists
//! what its loader has mapped. `macos` does the same by Mach ports, for macOS and iOS. On other systems the crate is
//! empty.
#![allow(unsafe_code)]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod error;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod mach_exception;
pub mod mach_message;
pub mod mach_state;
#[cfg(any(target_os = "macos", target_os = "ios"))]
pub mod macos;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod mapped;
mod registers;
mod shared;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod unix;
mod volatile;

/// This system's module.
#[cfg(target_os = "linux")]
pub use linux as os;
/// This system's module.
#[cfg(any(target_os = "macos", target_os = "ios"))]
pub use macos as os;

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub use mapped::{MappedRange, handle_bus_errors};
pub use registers::{FAMILY, capture_registers};
pub use shared::Shared;
