//! Noticing that a thread hangs, and what it did meanwhile: the part that decides.
//!
//! The watched thread *beats* ([`Pulse`]); a [`Monitor`] on another thread is polled now and then. Where a beat is late by
//! [`Settings::threshold`], a [`Hang`] begins: the thread's stack is captured again and again into a [`Tree`], until the
//! next beat. Everything from outside comes through two traits, [`Clock`] and [`Watched`], so that all of it can be driven
//! by made-up time ([`SystemClock`] has the real one). Nothing here starts a thread, sleeps, opens a file or names a frame.
//!
//! # What counts as late
//! Only time in which the monitor itself kept its appointments. Between two polls the monitor sleeps, and it knows how
//! long it had asked for. Where it wakes later by more than [`Settings::tolerance`], neither it nor the watched thread may
//! have run: the machine slept, the process was stopped by a debugger or `SIGSTOP`, a virtual machine was paused. The whole
//! step is a *gap* then and counts for nothing. That a clock is set back is a gap too. What remains is a thread that is
//! stopped alone, which [`Watched::is_stopped`] tells.
//!
//! ```text
//! let mut monitor = Monitor::new(settings, &clock);
//! loop {
//!     match monitor.poll(&clock, &mut watched) {
//!         Event::Ended(hang) => …,          // or Began, Sampled, Gone
//!         Event::Nothing => {}
//!     }
//!     sleep(monitor.sleep(&clock));
//! }
//! ```
#![doc(alias = "watchdog")]

mod beat;
mod clock;
mod record;
mod settings;
mod state;
mod system;
mod tree;
mod watched;

pub use beat::{Beat, Pulse};
pub use clock::{Clock, Moment};
pub use record::{Activity, End, Excused, Hang, SampleCounts};
pub use settings::Settings;
pub use state::{Event, Monitor, Taken};
pub use system::SystemClock;
pub use tree::{Node, NodeId, Tree};
pub use watched::{Missed, Sample, Usage, Watched};
