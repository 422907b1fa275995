//! Results in the forms that people and programs read.

pub(crate) mod captured;
pub(crate) mod cfi;
mod diff;
pub(crate) mod group_counts;
pub(crate) mod groups;
pub(crate) mod images;
pub(crate) mod llvm;
mod locks;
mod missing;
pub(crate) mod rates;
pub(crate) mod report;
pub(crate) mod summary;
mod thread_list;
mod threads;
