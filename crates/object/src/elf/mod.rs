//! ELF. The gABI, and GNU's additions as `<elf.h>` has them.

mod dynamic;
pub(crate) mod function_starts;
pub(crate) mod gnu_debugdata;
mod header;
mod id;
pub(crate) mod linking;
pub(crate) mod links;
pub(crate) mod load_commands;
mod parser;
pub(crate) mod relocations;
pub(crate) mod sections;
mod symbols;
mod tables;

pub(crate) use header::{arch_of, is_elf};
pub(crate) use parser::parse;
pub(crate) use symbols::read as symbols;
pub(crate) use tables::Tables;
