//! Mach-O. `<mach-o/loader.h>`, `<mach-o/nlist.h>`, `<mach-o/stab.h>`.

pub(crate) mod cache;
pub(crate) mod debug_map;
mod exports;
pub(crate) mod fileset;
pub(crate) mod function_starts;
mod header;
pub(crate) mod linking;
pub(crate) mod load_commands;
mod local_symbols;
mod parser;
mod placement;
mod symbols;

pub(crate) use header::{arch, arch_of};
pub(crate) use parser::{Tables, parse};
pub(crate) use placement::Placement;
pub(crate) use symbols::read as symbols;
