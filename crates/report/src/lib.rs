//! Reads crash reports into the model, and writes them again with names filled in.
//!
//! [`documents()`] divides an input into its reports, as people paste and join them. [`parse`] takes the bytes of one and gives a
//! [`Report`](backtrail_model::Report); [`emit()`] gives the bytes back
//! with those frames filled in that symbolizing found something for, and not a byte else changed. No I/O, no symbols.
//!
//! Read so far: Apple's text reports of all versions and those of reporters that imitate them; Apple's `.ips` of every type
//! (crashes, memory events, panics, stackshots; all others as fields and sections); macOS's translated reports with the full
//! one behind; `sample`, spindump and the reports on hangs and limits; panics as text; payloads of MetricKit; crash logs of
//! Swift's runtime; Android's tombstones as text and as protocol buffers, ANR traces; Java exceptions and thread dumps; what
//! sanitizers, debuggers, languages' runtimes, Java virtual machines and Linux's kernel write. Other kinds are recognized and
//! named.
//!
//! # What holds for every reader
//!
//! - Nothing that a report says is lost: what the model has no place for is in [`Report::fields`](backtrail_model::Report::fields) and
//!   [`Report::sections`](backtrail_model::Report::sections), what is odd in [`Report::notes`](backtrail_model::Report::notes).
//! - Input may be cut, mangled or hostile: reading never panics, costs are bounded by [`Limits`], and what can be
//!   read is read. [`Error`] is for inputs that are no report at all.
//! - Nothing is guessed: a field is `None` where the report does not say.
#![forbid(unsafe_code)]

mod android;
mod apple_ips;
mod apple_text;
mod bugsnag;
mod call_tree;
mod crashlytics;
mod detect;
mod documents;
mod emit;
mod error;
mod exception_log;
mod fragment;
mod jetsam_text;
mod json;
mod kscrash;
mod last_words;
mod leftovers;
mod limits;
mod log_prefix;
mod logcat;
mod members;
mod memory;
mod metrickit;
mod notes;
mod numbers;
mod panic_text;
mod plcrash;
mod protobuf;
mod read;
mod runtimes;
mod sentry;
mod signal_words;
mod stack;
mod swift_backtrace;
mod text;
mod thrown_script;
mod words;

pub use detect::{Detected, detect};
pub use documents::{Document, documents};
pub use emit::emit;
pub use error::{Error, ErrorKind};
pub use limits::Limits;
pub use read::parse;
