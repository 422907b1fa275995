//! This process: its threads, asked one by one what they are doing, and its images.
//!
//! What a thread does when it is asked is the caller's [`Work`]: this module gets it there and back. Walking in place is
//! composed where unwinding is at hand too.

mod background_refresher;
#[cfg(target_os = "linux")]
mod images;
#[cfg(not(target_os = "linux"))]
#[path = "images_apple.rs"]
mod images;
mod signal_request;
#[cfg(target_os = "linux")]
mod status;
#[cfg(not(target_os = "linux"))]
#[path = "status_apple.rs"]
mod status;

#[cfg(target_os = "linux")]
use backtrail_sys::linux as os;
#[cfg(not(target_os = "linux"))]
use backtrail_sys::macos as os;

pub use background_refresher::BackgroundRefresher;
pub use backtrail_sys::{FAMILY, Shared};
pub use images::{Counters, LoadedImage, counters, images};
#[cfg(target_os = "linux")]
pub use images::{FoundImage, image_at};
#[cfg(not(target_os = "linux"))]
pub use os::process_start;
pub use os::{
    Claim, DirectedSignal, OsError, OwnMemory, OwnStack, Sent, Slots, Stopped, ThreadId, Work, threads,
};
pub use signal_request::{CaptureError, send, wait};
pub use status::Status;
