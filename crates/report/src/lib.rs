//! Reads crash reports into one model, explains and attributes them.
#![forbid(unsafe_code)]

mod model;

pub use model::{
    AppInfo, Backtrace, Exception, Field, Frame, Image, Process, Recursion, Register, Report, ReportKind,
    ReportedSymbol, Section, Termination, Thread,
};
