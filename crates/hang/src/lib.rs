//! Catches a thread in the act of hanging.
//!
//! The thread that must not hang (the main thread of a program with windows, an event loop, a worker with a deadline) says
//! now and then that it gets on: it *beats*. A `Watch` on a thread of its own notices when a beat is late, and captures
//! the thread's stack again and again until it recovers. The answer is a [`Hang`]: how long, busy or waiting, the stack
//! that most of the time was spent in, and the tree of all.
//!
//! ```no_run
//! use backtrail_hang::{Event, Options, Watch};
//!
//! let watch = Watch::current_thread(Options::default(), |event| {
//!     if let Event::Ended(hang) = event {
//!         eprintln!("{hang}");
//!     }
//! })?;
//! let beat = watch.beat();
//! # let events: std::sync::mpsc::Receiver<()> = std::sync::mpsc::channel().1;
//! loop {
//!     beat.rest();                        // waits for as long as it takes
//!     let event = events.recv()?;
//!     beat.tick();                        // works from here on
//!     // … handle the event …
//! #   let _ = event;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to beat
//! `Beat::tick` goes to the top of the loop; it costs a look at the clock and one store. `Beat::rest` goes before
//! whatever waits for work: who rests is never late. A loop that cannot be told apart (a runtime's) gets a task that ticks
//! on a timer: while something blocks the loop's thread, the timer does not come to run.
//!
//! # What is no hang
//! A machine that was suspended, a process that a debugger or `SIGSTOP` stopped, a virtual machine that was paused: see
//! `monitor`, the part that decides.
//!
//! # Files
//! With `Options::directory` a hang is written to a file there while it lasts, one line a capture, so that it is not lost
//! when the process is killed for it. When the hang ends the file is removed, or completed (`Options::keep`). What an
//! earlier run did not survive, [`unfinished()`] finds.
#![forbid(unsafe_code)]

mod log;
mod merge;
mod model;
pub mod monitor;
mod read;
mod text;
mod time;
mod unfinished;

// Watching needs captures of other threads.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod beat;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod event;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod journal;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod lines;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod options;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod run;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod thread;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod watch;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod watched_thread;

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub use beat::{Beat, Work};
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub use event::{Event, WatchError};
pub use model::{Activity, End, Excused, Hang};
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub use options::Options;
pub use read::ReadError;
pub use time::millis;
pub use unfinished::{Unfinished, unfinished};
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub use watch::Watch;

#[cfg(test)]
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
mod tests;
