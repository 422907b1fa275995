//! GSYM, LLVM's symbol file: read in both byte orders, written little-endian.
//!
//! Version 1 as llvm-gsymutil 22 writes it (`llvm/include/llvm/DebugInfo/GSYM`). Of version 2 there are several drafts
//! and no release that writes it, so it is refused.
//!
//! The file is a header; the functions' start addresses as offsets from the header's base address, sorted; for each of
//! them the file offset of its function information; the source files as pairs of strings; the strings; and the
//! function information. That is a size, a name, and a list of typed pieces: line rows as a program like DWARF's, the
//! tree of inlined calls, functions whose code was merged with this one, and call sites.

mod bytes;
mod header;
mod info;
mod inlines;
mod lines;
mod reader;
mod writer;

pub use reader::{Gsym, GsymFunctions};
pub use writer::GsymWriter;

#[cfg(test)]
mod tests;
