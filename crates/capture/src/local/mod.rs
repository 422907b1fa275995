//! This process: its threads, asked one by one what they are doing, and its images.
//!
//! What a thread does when it is asked is the caller's [`Work`]: this module gets it there and back. Walking in place is
//! composed where unwinding is at hand too.

mod answer;
mod images;
mod keeper;
mod status;

pub use answer::{CaptureError, send, wait};
pub use backtrail_sys::linux::loader::Counters;
pub use backtrail_sys::linux::{
    Claim, DirectedSignal, OsError, OwnMemory, OwnStack, Sent, Slots, Stopped, ThreadId, Work, threads,
};
pub use backtrail_sys::{FAMILY, Shared};
pub use images::{LoadedImage, counters, images};
pub use keeper::Keeper;
pub use status::{State, Status};
