//! DWARF 2 to 5: addresses to functions, inlined calls and lines.
//!
//! Nothing is kept that borrows from the sections: caches hold numbers and offsets, and every lookup makes its
//! [`View`](view::View) anew. So sections may be mapped or decompressed, units are read once by whoever comes first,
//! and all of it is shared between threads.

mod abbrev;
mod aranges;
mod budget;
mod details;
mod error;
mod file;
mod files;
mod functions;
mod header;
mod index;
mod inlines;
mod line_program;
mod lines;
mod lookup;
mod names;
mod reader;
mod scopes;
mod sections;
mod spans;
mod split;
mod supplementary;
mod unit;
mod units;
mod value;
mod view;

pub use files::FilePath;

pub(crate) use details::{Declared, FoundDetails};
pub(crate) use error::Malformed;
pub(crate) use file::DwarfFile;
pub(crate) use lookup::{Found, Frame};
pub(crate) use sections::{SectionSource, Sections};
pub(crate) use supplementary::Supplementary;
