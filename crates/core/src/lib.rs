//! The words that all of backtrail shares.
//!
//! Four address spaces that look alike and are never the same: an [`Avma`] is where something is in a running
//! process, an [`Svma`] is where the file says it is, an [`Rva`] counts from the image base and a [`FileOffset`]
//! is a position in the file. Each is a type of its own; [`Bias`] is the only bridge from the process to the file.
//!
//! Besides: [`Arch`], the identity of an image ([`ImageId`]), how a frame's address is to be read
//! ([`FrameAddress`]) and how it was found ([`Trust`]), a thread's [`Registers`] and memory ([`ReadMemory`]), and what symbolizing answers ([`Function`], [`Symbol`],
//! [`Reason`]); and the one calendar ([`Utc`]) and reader of base64 ([`base64()`]).
//!
//! This crate does no I/O, needs `alloc` but not `std`, and has no dependencies.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod addr;
mod arch;
mod base64;
mod confidence;
mod frame;
mod id;
mod memory;
mod registers;
mod symbol;
mod utc;

pub use addr::{AddrRange, Address, Avma, Bias, FileOffset, Rva, Svma};
pub use arch::{Arch, Family};
pub use base64::{base64, base64_digit};
pub use confidence::Confidence;
pub use frame::{FrameAddress, Trust};
pub use id::{BuildId, ImageId, ParseIdError};
pub use memory::{MemorySlice, ReadMemory, Unreadable};
pub use registers::{REGISTER_COUNT, Register, Registers};
pub use symbol::{Function, FunctionRef, Reason, Symbol, SymbolInfo, SymbolInfoRef};
pub use utc::Utc;
