//! The program as its users run it: every output under snapshot, bad input, exit codes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

mod bad_input;
mod convert;
mod corpus;
mod front_ends;
mod interrupted;
#[cfg(target_pointer_width = "64")]
mod large_files;
mod run;
mod schema;
mod snapshots;
mod stacks;
mod symbol_files;
