//! A crash handler inside of the program: whatever signal ends it, a file says why, with all threads.
//!
//! ```no_run
//! use backtrail_crash::{self as crash, Options};
//!
//! let handler = crash::install(Options::new("/var/lib/orders/crashes"))?;
//! crash::note("version", "1.4.2");
//! crash::breadcrumb("orders loaded");
//! // At the next start:
//! for file in crash::pending("/var/lib/orders/crashes".as_ref())? {
//!     // … send it, if the user agreed …
//!     crash::sent(&file)?;
//! }
//! # drop(handler);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `backtrail symbolicate FILE` reads what it leaves; `docs/crash.md` says what is in it and which limits stand.
//!
//! # How it works
//!
//! The signal's handler wakes a thread that was started by [`install()`] and waits for it, for a bounded time. That thread writes the
//! file: it allocates nothing, takes no lock, and makes system calls only. Then the signal goes to whoever handled it before, so
//! that the program ends as it would have without.
//!
//! # Platforms
//!
//! Linux on `x86_64` and aarch64. On macOS and iOS the same collects what Mach's exception ports tell of (`backtrail_sys::macos::crash`); that
//! is type-checked and linked, and nobody has run it. Elsewhere the crate is empty.
#![forbid(unsafe_code)]
#![cfg(all(
    any(target_os = "linux", target_os = "macos", target_os = "ios"),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod collect;
mod error;
mod exception;
mod extra;
mod fixed_text;
mod images;
mod install;
mod line;
#[cfg(any(test, not(target_os = "linux")))]
mod ns_exception;
mod number;
mod options;
mod panic_hook;
mod pending;
mod prepared;
mod program;
#[cfg(target_os = "linux")]
mod runtimes;
mod sections;
mod seen;
mod sessions;
#[cfg(feature = "upload")]
pub mod upload;
#[cfg(target_os = "linux")]
mod watcher;

pub use backtrail_sys::os::OsError;
pub use error::InstallError;
pub use exception::{exception, exception_at};
pub use extra::Extra;
pub use install::{Handler, SignalStack, install, protect_thread};
pub use options::{Options, Requests};
pub use pending::{pending, sent};
pub use program::{breadcrumb, note};
pub use seen::{Seen, image_of};
pub use sessions::pending_sessions;
