//! Stacks of this process: of the calling thread, of any other, of all.
//!
//! ```no_run
//! use backtrail_stacks::own::{Capturer, Options, RawStack, ThreadId};
//!
//! // Ahead of time: compiles what the images' unwind tables say.
//! let capturer = Capturer::new(Options::default())?;
//!
//! // This thread, from the caller of `current` on.
//! let mut stack = RawStack::new();
//! capturer.current(&mut stack);
//!
//! // Any other, or all of them.
//! let worker = std::thread::spawn(|| std::thread::park());
//! let id = ThreadId::of(&worker).ok_or("the thread has ended")?;
//! capturer.thread(id, &mut stack)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How another thread is captured
//!
//! It gets a signal whose handler captures its registers and either walks in place, by rules that were compiled ahead of
//! time or by frame pointers, or copies the stack to be walked afterwards ([`Method`]). The handler allocates nothing,
//! takes no lock and calls nothing of the C library, so that it does not matter what the thread was at: in `malloc`, in
//! the loader, in `printf`. Nothing is suspended; the thread goes on as soon as its handler returns. The thread that asks
//! takes no lock either that the captured one could hold, and does not allocate, save where a function says so.
//!
//! Threads that block the signal, that wait in the kernel without taking signals or that are stopped do not answer: see
//! [`CaptureError`]. What the signal interrupts is restarted (`SA_RESTART`), save the few calls that Linux never restarts
//! (`poll`, `epoll_wait`, `nanosleep`: signal(7)), which return `EINTR`.
//!
//! # Images
//!
//! The list of images is kept ahead of time by a helper thread, which follows `dlopen` and `dlclose` by the loader's
//! counters. Captures ask it first and wait for it for [`Options::loader_patience`] at most: if a thread hangs with the
//! loader's lock, captures go on with the images as they were last.
//!
//! # Platforms
//!
//! Linux on `x86_64`, x86, aarch64 and arm, with glibc or musl. On macOS and iOS (arm64, `x86_64`) a thread is suspended,
//! walked from outside through the kernel and let go; while it is suspended the thread that asks neither allocates nor
//! locks. That part is type-checked and linked, and what it stands on is tested with made-up memory, but nobody has run
//! it yet.

mod all;
mod capturer;
mod copy_thread;
#[cfg(target_os = "linux")]
mod file;
#[cfg(not(target_os = "linux"))]
#[path = "file_apple.rs"]
mod file;
mod job;
mod listed;
mod open;
mod options;
mod raw;
mod snapshot;
mod stack_copy;
mod thread;
mod walk;

pub use backtrail_capture::ThreadState;
pub use backtrail_capture::local::{CaptureError, OsError, OwnMemory, OwnStack, Stopped, ThreadId};
pub use backtrail_core::{ReadMemory, Register, Registers, Unreadable};
pub use backtrail_unwind::{End, ExpressionError, Failure, Malformed, WalkEnd};
pub use capturer::Capturer;
pub use listed::CapturedProcess;
pub use options::{Method, Options};
pub use raw::{RawFrame, RawStack};
pub use stack_copy::StackCopy;
pub use thread::{Cpu, ThreadStack};
pub use walk::ThreadCache;
