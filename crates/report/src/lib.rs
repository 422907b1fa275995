//! Reads crash reports into one model, explains and attributes them.
#![forbid(unsafe_code)]

mod attribute;
mod explain;
mod model;
mod names;

pub use attribute::{Attribution, StaticOwner, StaticOwners, Verdict, attribute, attribute_with};
pub use explain::{Explanation, explain};
pub use model::{
    AppInfo, Backtrace, Exception, Field, Frame, Image, Process, Recursion, Register, Report, ReportKind,
    ReportedSymbol, Section, Termination, Thread,
};
