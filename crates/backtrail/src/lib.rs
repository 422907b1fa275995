//! Addresses into answers.
//!
//! Joins the crates below it. [`Symbols`] finds debug files by identity and keeps them open. [`Analysis`] takes a crash
//! report from bytes to an explained, attributed and symbolicated [`Report`]. [`Stacks`] captures processes, cores and
//! minidumps, [`capture`] the own process, [`hang`] a thread that hangs. [`Binary`] answers single addresses of one file.
//! [`json`] prints any of it for programs.
//!
//! ```
//! use backtrail::{Analysis, Limits, NoProgress, Symbols};
//!
//! # std::env::set_current_dir("../../fixtures/sample")?;
//! let symbols = Symbols::scan(&["symbols".into()], &NoProgress);
//! let report = std::fs::read("reports/null-member.ips")?;
//! let analysis = Analysis::new(&report, &symbols, &Limits::default())?;
//! assert_eq!(analysis.explanation.title, "Null pointer access: read at 0x10");
//! let innermost = &analysis.report.fault_frames()[0];
//! assert_eq!(innermost.names().next(), Some("celsius(reading const*)"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/library.md` is the guide, `examples/` has a small program for each task.
//!
//! Nothing here is signal safe but what `capture` says of its functions.
#![forbid(unsafe_code)]

mod analysis;
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
pub mod capture;
mod diff;
pub mod groups;
mod ips;
pub mod json;
pub mod rates;
pub mod sdk;
mod stacks;

pub use analysis::{Analysis, AnalysisError, Grouped};
pub use backtrail_core::{
    AddrRange, Address, Arch, Avma, Bias, BuildId, Confidence, Family, FileOffset, FrameAddress, Function,
    FunctionRef, ImageId, ParseIdError, Reason, Rva, Svma, Symbol, SymbolInfo, SymbolInfoRef, Trust,
};
pub use backtrail_demangle as demangle;
pub use backtrail_diagnose::{
    Added, Attribution, Beginning, Begins, Blamed, Explanation, Group, GroupRef, Groups, Joined, Layer,
    OwnerRule, Rules, RulesError, RulesErrorKind, Shown, ShownSort, blamed, is_crash, is_system,
    is_system_image, telling_stack,
};
pub use backtrail_hang as hang;
pub use backtrail_model::{
    AppInfo, Backtrace, Deadlock, DeadlockedThread, Detail, EndKind, Ended, Exception, Field, Frame, Image,
    ImageSymbols, Language, LockHolder, LockKind, LockSource, LockWait, Owner, OwnerKind, Process, Recursion,
    Register, Report, ReportedSymbol, Section, Source, SymbolStatus, Termination, Thread, Tree, TreeNode,
    Unit,
};
pub use backtrail_report::{Document, Error as ReportError, ErrorKind as ReportErrorKind, Limits, documents};
pub use backtrail_resolve::{
    AddressKind, Binary, BinarySymbol, ConvertFailure, ConvertProgress, ConvertSettings, ConvertSource,
    ConvertSources, Converted, Declaration, Details, Inspected, InspectedCommand, InspectedSegment,
    MappingFile, ObjectFormat, ObjectInfo, ObjectKind, OpenError, OpenOptions, SymbolOptions, Symbols,
    TableCache, TableFormat, TableStats, Verified, cfi, debug_id, inspect,
};
#[cfg(feature = "minidump")]
pub use backtrail_stacks::minidump_of_crash_file;
#[cfg(target_os = "linux")]
pub use backtrail_stacks::processes_named;
pub use backtrail_stacks::{PatternError, StackOptions, StacksError, StacksErrorKind, ThreadFilter};
pub use backtrail_store::{
    Archive, Counts, Error as FileError, ErrorKind as FileErrorKind, FileData, NoProgress, Progress,
    RemoteError, RemoteErrorKind, RemoteFile, RemoteFiles, RemoteKind, Unpacked, handle_bus_errors,
    truncated_files, unpack, unpack_file, unpacked_head,
};
#[cfg(feature = "debuginfod")]
pub use backtrail_store::{Debuginfod, DebuginfodError, DebuginfodOptions, FetchCounts};
pub use diff::{EarlierStacks, EarlierStacksError, MovedThread, StackDiff, ThreadLabel, UnmovedThread};
#[cfg(target_os = "linux")]
pub use stacks::symbolize;
pub use stacks::{CaptureKind, Stacks};
