//! DWARF 2 to 5: addresses to functions, inlined calls and lines.
//!
//! Nothing is kept that borrows from the sections: caches hold numbers and offsets, and every lookup makes its
//! [`View`] anew. So sections may be mapped or decompressed, units are read once by whoever comes first,
//! and all of it is shared between threads.

mod abbrev;
mod aranges;
mod budget;
mod claims;
mod details;
mod fields;
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
mod plan;
mod range_list;
mod reader;
mod reading;
mod rows;
mod scopes;
mod sections;
mod skip;
mod spans;
mod split;
mod stated;
mod supplementary;
mod unit;
mod units;
mod value;
mod view;

pub use files::FilePath;
pub(crate) use files::FileTable;

pub(crate) use abbrev::AbbrevTable;
pub(crate) use claims::{Claim, Claims};
pub(crate) use details::{Declared, FoundDetails};
pub(crate) use fields::{Fields, Role, Slot};
pub(crate) use file::{Abbrevs, DwarfFile};
pub(crate) use inlines::number as number_of;
pub(crate) use line_program::Location;
pub(crate) use lookup::{DebugInfoAnswer, Frame};
pub(crate) use names::{Names, collect_with as collect_names};
pub(crate) use plan::{Entry, Plan, Way};
pub(crate) use reader::Reader;
pub(crate) use rows::Rows;
pub(crate) use scopes::{qualify, scopes_of_all};
pub(crate) use sections::{SectionSource, Sections};
pub(crate) use stated::{follow, read_stated};
pub(crate) use supplementary::Supplementary;
pub(crate) use unit::Unit;
pub(crate) use value::{Kind as ValueKind, Pcs, Value};
pub(crate) use view::View;
