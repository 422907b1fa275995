//! Reads crash reports into one model, explains and attributes them.
//!
//! [`parse`] takes the bytes of a report and gives a [`Report`]; [`emit()`] gives the bytes back with those frames
//! filled in that symbolizing found something for, and not a byte else changed. No I/O, no symbols: who calls this
//! looks up addresses and fills [`Frame::functions`] in between. [`explain()`] says what happened, [`attribute()`] whose
//! code it was; both work on the report alone, and better with the names that symbolizing filled in.
//!
//! Read so far: Apple's text reports of all versions and those of reporters that imitate them, Apple's `.ips` crash
//! reports, macOS's translated reports with the full one behind. Other kinds are recognized and named.
//!
//! # What holds for every reader
//!
//! - Nothing that a report says is lost: what the model has no place for is in [`Report::fields`] and
//!   [`Report::sections`], what is odd in [`Report::notes`].
//! - Input may be cut, mangled or hostile: reading never panics, costs are bounded by [`Limits`], and what can be
//!   read is read. [`Error`] is for inputs that are no report at all.
//! - Nothing is guessed: a field is `None` where the report does not say. Frames that only the registers tell are added
//!   by [`add_register_frames`], marked and noted.
#![forbid(unsafe_code)]

mod apple_ips;
mod apple_text;
mod attribute;
mod detect;
mod doubt;
mod emit;
mod error;
mod explain;
mod json;
mod limits;
mod model;
mod names;
mod notes;
mod read;
mod resolve;
mod stack;

pub use attribute::{Attribution, StaticOwner, StaticOwners, Verdict, attribute, attribute_with};
pub use detect::{Detected, detect};
pub use doubt::{add_register_frames, settle_register_frames};
pub use emit::emit;
pub use error::{Error, ErrorKind};
pub use explain::{Explanation, explain};
pub use limits::Limits;
pub use model::{
    AppInfo, Backtrace, EndKind, Ended, Exception, Field, Frame, Image, Process, Recursion, Register, Report,
    ReportKind, ReportedSymbol, Section, Termination, Thread,
};
pub use read::parse;
