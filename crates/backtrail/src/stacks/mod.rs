//! Captured stacks: from a saved stack, a core or a minidump to named frames.
//!
//! A snapshot's images are found (by build id, by path, in the snapshot's own memory), their unwind tables opened, each
//! thread walked, and each frame named. The result is a [`Report`] like one that was read from a crash report's text:
//! all that can be done with those can be done with it.

mod build;
mod core;
mod find;
mod folder;
mod from_memory;
mod images;
mod jit;
#[cfg(target_os = "linux")]
mod live;
mod live_memory;
#[cfg(feature = "minidump")]
mod minidump;
mod name;
mod offline;
mod perf_map;
mod place;
mod process_memory;
mod unwind_image;
mod walk;

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub(crate) use self::{find::Finder, unwind_image::UnwindImage};
#[cfg(target_os = "linux")]
pub(crate) use from_memory::InMemory;
pub(crate) use name::of_function;

use crate::ImageSymbols;
use crate::SymbolStatus;
use backtrail_report::Report;
use std::fmt;
use std::time::Duration;

/// The stacks of a captured process, walked and named.
#[derive(Debug)]
pub struct Stacks {
    /// The process, its threads and their frames, its images, what stopped it.
    pub report: Report,
    /// What is known of each image's symbols; parallel to the report's images.
    pub images: Vec<ImageSymbols>,
}

/// How stacks are to be walked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackOptions {
    /// Frames of one thread; a stack that overflowed has a million.
    pub max_frames: u64,
    /// Whether files may be taken from where they were on the machine that was captured, if their identity is right.
    pub use_mapped_paths: bool,
    /// What is found out of each frame.
    pub detail: Detail,
    /// Of a process that runs: whether its threads are stopped together, so that their stacks are of one moment.
    pub consistent: bool,
    /// Of a process that runs: whether the thread that stops others may be a real-time one, where it has to share a processor.
    /// The stops of a process on a busy machine are shorter then; `docs/live.md` has figures.
    pub real_time: bool,
    /// Of a process that runs: how long the threads' CPU usage is measured; zero for not at all.
    pub cpu_window: Duration,
}

/// What is found out of each frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// Its address and image.
    Addresses,
    /// The function's name, by symbol tables alone.
    Names,
    /// Functions that were inlined, files and lines too.
    #[default]
    Lines,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            max_frames: 1 << 20,
            use_mapped_paths: true,
            detail: Detail::Lines,
            consistent: false,
            real_time: false,
            cpu_window: Duration::from_millis(20),
        }
    }
}

/// Why there are no stacks: the input cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StacksError(String);

impl fmt::Display for StacksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StacksError {}

impl Stacks {
    /// Whether a frame stayed without a name for want of symbols, or a walk could not go on for want of a file.
    pub fn is_incomplete(&self) -> bool {
        let missing = |image: &ImageSymbols| {
            image.unnamed_frames > 0
                && !matches!(image.status, SymbolStatus::NoneNeeded | SymbolStatus::Found)
        };
        self.images.iter().any(missing)
    }
}
