//! Addresses into answers.
//!
//! Joins the crates below it: [`Symbols`] finds debug files by identity and keeps them open, [`Analysis`] takes a
//! crash report from bytes to an explained, attributed and symbolicated model, [`Binary`] answers single addresses of
//! one file, [`json`] prints any of it for programs.
//!
//! ```no_run
//! use backtrail::{Analysis, Limits, NoProgress, Symbols};
//!
//! let symbols = Symbols::scan(&["symbols".into()], &NoProgress);
//! let report = std::fs::read("App.ips")?;
//! let analysis = Analysis::new(&report, &symbols, &Limits::default())?;
//! println!("{}", analysis.explanation.title);
//! for frame in analysis.report.fault_frames() {
//!     println!("{:?}", frame.names().collect::<Vec<_>>());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here is signal safe but what `capture` says of its functions.
#![forbid(unsafe_code)]

mod analysis;
mod binary;
mod cache;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod capture;
pub mod cfi;
mod convert;
mod details;
mod facts;
mod foreign;
mod go_frames;
pub mod hang;
mod inspect;
pub mod json;
mod open_image;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only processes that run need it"))]
mod stacks;
mod symbolicate;
mod symbols;
mod unpack;
mod unwind_tables;

pub use analysis::{Analysis, ImageSymbols, SymbolStatus};
pub use backtrail_core::{
    AddrRange, Address, Arch, Avma, Bias, Family, FileOffset, FrameAddress, Function, ImageId, Reason, Rva,
    Svma, Symbol, Trust,
};
pub use backtrail_demangle as demangle;
pub use backtrail_report::{
    AppInfo, Attribution, Backtrace, EndKind, Ended, Error as ReportError, Exception, Explanation, Field,
    Frame, Image, Limits, Process, Recursion, Register, Report, ReportKind, ReportedSymbol, Section,
    Termination, Thread, Verdict,
};
pub use backtrail_store::{Counts, NoProgress, Progress};
pub use backtrail_symbolize::TextFunction;
pub use binary::{Binary, Located, OpenError, OpenOptions, Placement, Shown};
pub use cache::TableCache;
pub use convert::{
    ConvertFailure, ConvertProgress, ConvertSettings, ConvertSource, ConvertSources, Converted, TableFormat,
    TableStats, Verified,
};
pub use details::{Declaration, Details};
pub use facts::Facts;
pub use inspect::{Inspected, inspect};
pub use stacks::{Detail, StackOptions, Stacks, StacksError};
pub use symbols::Symbols;
pub use unwind_tables::UnwindTables;
