//! Object files: bytes in, facts out.
//!
//! Mach-O (32 and 64 bit, both byte orders; fat, in archives, in dyld shared caches, in kernel collections) and ELF (32
//! and 64 bit, both byte orders; alone or in archives). Facts are identities, segments, sections (decompressed),
//! symbols, function starts, load commands, and the names of other files that hold debug info. What the debug info says
//! is none of this crate's business.
//!
//! # How to use it
//! [`identify`] tells from some kilobytes what a file is, and is meant for scans of thousands. [`slices`] takes a file
//! apart into single objects, [`Slice::parse`] reads the headers of one; the methods of [`Object`] read the rest when
//! asked.
//!
//! [`GoTable`] reads the table that Go's runtime has of its functions: names, files, lines, and how deep the stack is at each
//! instruction.
//!
//! # What the caller does
//! Supplies the bytes: this crate opens no file. Maps the file, or reads it, or implements [`ReadAt`].
//!
//! # Broken files
//! Every offset is checked, every count is checked against the bytes that are there, and [`Limits`] bound the rest. What
//! is broken in one table does not hide the others: [`Object::problems`] lists what was left out.
#![forbid(unsafe_code)]

mod archive;
mod budget;
mod compress;
mod elf;
mod error;
mod fat;
mod gopclntab;
mod identity;
mod limits;
mod link;
mod listed_object;
mod load_command;
mod macho;
mod object;
mod read_at;
mod relocation;
mod section;
mod slice;
mod sniff;
mod symbol;
mod view;

pub use crate::error::{Error, ErrorKind};
pub use crate::gopclntab::{GoFrame, GoFunction, GoPiece, GoTable};
pub use crate::identity::{Identity, identify, identify_each};
pub use crate::limits::Limits;
pub use crate::link::{DebugAltLink, DebugLink};
pub use crate::load_command::LoadCommand;
pub use crate::macho::cache::{CacheImage, CacheMapping, SharedCache, SubCache};
pub use crate::macho::debug_map::{DebugMapEntry, DebugMapFunction, DebugMapVariable};
pub use crate::macho::linking::Pointers;
#[doc(hidden)]
pub use crate::object::parse_count;
pub use crate::object::{Endian, Format, Kind, Object};
pub use crate::read_at::ReadAt;
pub use crate::relocation::{Import, Relocation, RelocationKind, RelocationTarget};
pub use crate::section::{FileRange, Section, Segment};
pub use crate::slice::{Slice, slices};
pub use crate::symbol::{Binding, Preference, Symbol, SymbolTable};
