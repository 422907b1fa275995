//! From addresses to names: the only place where that happens.
//!
//! [`Symbols`] names the frames of a process, whatever input it came from; [`Binary`] answers addresses of one file. Both
//! look an address up in the same way, in debug info, symbol tables, symbol files of other tools, or a table that was
//! made of them before ([`TableCache`], [`ConvertSources`]). What a binary holds for unwinding, and else, is listed by
//! [`cfi`] and [`inspect()`]. Whose code lies where in an image is written to its frames along with their names
//! ([`OwnerSources`]).
#![forbid(unsafe_code)]

mod binary;
mod cache;
pub mod cfi;
mod convert;
mod details;
mod external;
mod files;
mod frames;
mod image_owners;
mod image_symbolizer;
mod in_file;
mod inspect;
mod mapping_file;
mod object_info;
mod owners;
mod perf_map;
mod retrace;
mod symbol_names;
mod symbols;
mod table_of_image;

pub use backtrail_object::{Format as ObjectFormat, Kind as ObjectKind};
pub use backtrail_table::breakpad::debug_id;
pub use binary::{AddressKind, Binary, BinarySymbol, OpenError, OpenOptions};
pub use cache::TableCache;
pub use convert::{
    ConvertFailure, ConvertProgress, ConvertSettings, ConvertSource, ConvertSources, Converted, TableFormat,
    TableStats, Verified,
};
pub use details::{Declaration, Details};
pub use frames::SymbolizeLoaded;
pub use image_owners::{ImageOwners, OwnerFinder};
pub use inspect::{Inspected, InspectedCommand, InspectedSegment, inspect};
pub use mapping_file::MappingFile;
pub use object_info::ObjectInfo;
pub use owners::OwnerSources;
pub use perf_map::PerfMap;
pub use symbols::{SymbolOptions, Symbols};
