//! The record that every input fills: crash reports, cores, minidumps, captures of processes that run.
//!
//! A field is `None` or empty where the input did not say; nothing is guessed here. What an input says beyond the model
//! stays readable in [`Report::fields`] and [`Report::sections`]. Readers fill everything but names; these are added by
//! whoever looks addresses up ([`Frame::functions`], [`Image::symbols`]).
#![forbid(unsafe_code)]

mod field;
mod frame;
mod image;
mod image_index;
mod lock;
mod owner;
mod process;
mod report;
mod tree;

pub use field::{Field, Section};
pub use frame::{Detail, Frame, Language, ReportedSymbol};
pub use image::{Image, ImageSymbols, SymbolStatus};
pub use image_index::ImageIndex;
pub use lock::{Deadlock, DeadlockedThread, LockHolder, LockKind, LockSource, LockWait};
pub use owner::{Owner, OwnerKind};
pub use process::{Backtrace, EndKind, Ended, Process, Recursion, Register, Thread};
pub use report::{AppInfo, Exception, Report, Source, Termination, ThrowingRuntime, ThrownException};
pub use tree::{Tree, TreeNode, Unit};
