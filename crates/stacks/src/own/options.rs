//! How capturing is to be done.

use super::RawStack;
use std::time::Duration;

/// How a stack is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Method {
    /// In place, by the images' unwind tables, compiled ahead of time.
    #[default]
    Rules,
    /// In place, along the frame pointers: cheapest, for programs that are compiled with them throughout.
    FramePointers,
    /// So many bytes of the stack are copied in place and walked afterwards, by whoever asked, with all that the images'
    /// files have: code is read too, which helps where tables are wrong or missing. Nothing is compiled ahead of time, so that
    /// a capturer is made in a tenth of the time; each new frame takes some microseconds instead. The calling thread's own stack is walked
    /// in place.
    CopyStack(usize),
}

/// How capturing is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The signal that threads are asked by; without one the highest real-time signal that nothing handles.
    pub signal: Option<i32>,
    /// Whether the handler runs on threads' signal stacks, where they have one: Go's runtime wants that, since its threads
    /// may be on stacks of a few kilobytes. Without it the thread's own stack needs some kilobytes of room.
    pub on_signal_stack: bool,
    /// How long a thread is waited for.
    pub timeout: Duration,
    /// Frames of one thread, where a capture makes the stack itself ([`Capturer::all`](super::Capturer::all)) or copies it.
    pub max_frames: usize,
    /// How a stack is walked.
    pub method: Method,
    /// How long a capture waits for the list of images to be brought up to date.
    pub loader_patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            signal: None,
            on_signal_stack: false,
            timeout: Duration::from_millis(200),
            max_frames: RawStack::CAPACITY,
            method: Method::default(),
            loader_patience: Duration::from_millis(100),
        }
    }
}
