//! Breakpad's symbol files (`.sym`): text, one record a line.
//!
//! As <https://chromium.googlesource.com/breakpad/breakpad/+/HEAD/docs/symbol_files.md> has them, and as Mozilla's
//! dump_syms writes them: `MODULE`, `INFO`, `FILE`, `INLINE_ORIGIN`, `FUNC` with its `INLINE` and line records, `PUBLIC`.
//! `STACK` records tell how to unwind; they are kept as they are.
//!
//! Addresses count from the image base, so an [`Svma`](backtrail_core::Svma) here is one of an image based at 0.

mod id;
mod module;
mod nest;
mod parse;
mod reader;
mod writer;

pub use id::{debug_id, image_id};
pub use module::Module;
pub use reader::Breakpad;
pub use writer::BreakpadWriter;

#[cfg(test)]
mod tests;
