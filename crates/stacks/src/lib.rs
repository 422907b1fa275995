//! From captured processes to stacks: registers, memory and images become frames. No names.
//!
//! A snapshot of a process that runs, a core, a minidump or a saved stack is joined with its images' files, and each thread
//! is walked by their unwind tables. The result is a [`Captured`]: a report like one that was read from a crash report's
//! text, and the files that can name its frames. The own process is captured by [`own`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "processes that run are read on Linux alone")
)]

mod abort_message;
mod build;
mod core;
mod cpp_exception;
mod crash_file;
mod directory;
mod filter;
mod from_memory;
mod images;
mod jit;
#[cfg(target_os = "linux")]
mod live;
mod live_memory;
mod loaded_image;
#[cfg(target_os = "linux")]
mod locks;
#[cfg(any(test, target_os = "macos", target_os = "ios"))]
mod mapped_tables;
#[cfg(feature = "minidump")]
mod minidump;
mod offline;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod own;
mod process_memory;
#[cfg(target_os = "linux")]
mod standing;
mod unwind_image;
mod walk;

pub use crate::core::{core, core_bytes};
pub use crate::crash_file::crash_file_bytes;
#[cfg(feature = "minidump")]
pub use crate::minidump::{minidump, minidump_bytes, minidump_of_crash_file};
#[cfg(target_os = "linux")]
pub use backtrail_capture::remote::processes_named;
pub use filter::{PatternError, ThreadFilter};
#[cfg(target_os = "linux")]
pub use live::{images_of, process};
pub use offline::offline;
#[cfg(target_os = "linux")]
pub use standing::{CapturedCrash, Standing, dumping, standing};

use backtrail_model::{Detail, Report};
use backtrail_store::LoadedFiles;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A process that was captured and walked.
#[derive(Debug)]
pub struct Captured {
    /// The process, its threads and their frames, its images, what stopped it.
    pub report: Report,
    /// The files behind the images' code, by which frames can be named.
    pub files: Vec<LoadedFiles>,
    /// Where the process writes down the names of code that it makes at run time, if it does.
    pub perf_map: Option<PathBuf>,
    /// Whether a walk was led to what is no code: what is mapped there may be newer than the list of mappings.
    met_no_code: bool,
    workers: Option<rayon::ThreadPool>,
}

impl Captured {
    fn new(report: Report, files: Vec<LoadedFiles>) -> Self {
        Self { report, files, perf_map: None, met_no_code: false, workers: None }
    }

    /// Does work on the processors that the capture left to the captured process: none of those that it runs on.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.workers {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// How stacks are to be walked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackOptions {
    /// Frames of one thread; a stack that overflowed has a million.
    pub max_frames: u64,
    /// Whether files may be taken from where they were on the machine that was captured, if their identity is right.
    pub use_mapped_paths: bool,
    /// What will be found out of each frame: debug files are looked for only where they are wanted.
    pub detail: Detail,
    /// Of a process that runs: whether its threads are stopped together, so that their stacks are of one moment.
    pub consistent: bool,
    /// Of a process that runs: whether the thread that stops others may be a real-time one, where it has to share a processor.
    /// The stops of a process on a busy machine are shorter then; `docs/live.md` has figures.
    pub real_time: bool,
    /// Which threads are walked; all others are left out of the report.
    pub threads: ThreadFilter,
    /// Of a process that runs: whether threads that used no processor time in [`cpu_window`](Self::cpu_window) are left out, and the
    /// busiest come first.
    pub busy_only: bool,
    /// Of a process that runs: whether sleeping threads' stacks in the kernel are asked for (root may); those of threads in
    /// uninterruptible sleep always are.
    pub kernel_stacks: bool,
    /// Of a process that runs: how long the threads' CPU usage is measured; zero for not at all.
    pub cpu_window: Duration,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            max_frames: 1 << 20,
            use_mapped_paths: true,
            detail: Detail::default(),
            consistent: false,
            real_time: false,
            threads: ThreadFilter::default(),
            busy_only: false,
            kernel_stacks: false,
            cpu_window: Duration::from_millis(20),
        }
    }
}

/// Why there are no stacks: the input cannot be read, or the process may not be captured.
#[derive(Debug)]
#[non_exhaustive]
pub struct StacksError {
    kind: StacksErrorKind,
    what: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What sort of thing a [`StacksError`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum StacksErrorKind {
    /// There is no such process.
    NoSuchProcess,
    /// The caller may not read that process.
    Denied,
    /// The process has no stacks that can be captured: it has ended, is a thread of the kernel, or the caller itself; or what
    /// the system tells of it cannot be read.
    Process,
    /// The input is no capture, or cannot be read.
    Input,
}

impl StacksError {
    /// What sort of error this is.
    pub fn kind(&self) -> StacksErrorKind {
        self.kind
    }

    fn new(what: impl Into<String>) -> Self {
        Self { kind: StacksErrorKind::Input, what: what.into(), source: None }
    }

    fn from_error(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { kind: StacksErrorKind::Input, what: error.to_string(), source: Some(Box::new(error)) }
    }

    /// This error, which happened to the input of that name.
    fn within(self, name: impl fmt::Display) -> Self {
        Self { what: format!("{name}: {}", self.what), ..self }
    }

    /// `error`, which happened to the input of this name.
    fn of(name: impl fmt::Display, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { what: format!("{name}: {error}"), ..Self::from_error(error) }
    }
}

#[cfg(target_os = "linux")]
impl StacksError {
    fn of_process(error: backtrail_capture::remote::Error) -> Self {
        use backtrail_capture::remote::Error;
        let kind = match &error {
            Error::NoSuchProcess(_) => StacksErrorKind::NoSuchProcess,
            Error::Denied(..) => StacksErrorKind::Denied,
            _ => StacksErrorKind::Process,
        };
        Self { kind, ..Self::from_error(error) }
    }
}

impl fmt::Display for StacksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for StacksError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
