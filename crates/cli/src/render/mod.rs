//! Results in the forms that people and programs read.

pub(crate) mod captured;
pub(crate) mod cfi;
pub(crate) mod html;
pub(crate) mod llvm;
pub(crate) mod mapped;
pub(crate) mod paths;
pub(crate) mod stack;
pub(crate) mod style;
pub(crate) mod text;
pub(crate) mod threads;
