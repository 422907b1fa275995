//! The program as its users run it: every output under snapshot, bad input, exit codes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

mod android;
mod bad_input;
mod command_line;
mod command_lines;
mod containers;
mod convert;
mod corpus;
mod debuginfod;
mod exit_codes;
mod front_ends;
mod group;
mod hostile_text;
mod interrupted;
#[cfg(target_pointer_width = "64")]
mod large_files;
mod outputs;
mod owners;
mod rates;
mod run;
mod schema;
#[cfg(feature = "server")]
mod serve;
mod snapshots;
mod stacks;
mod streams;
mod symbol_files;
#[cfg(feature = "server")]
mod tables;
#[cfg(all(feature = "server", feature = "debuginfod"))]
mod upload;
