//! Links apps with known static libraries, strips them, and measures by the linker's own map whether the libraries' code is
//! found again. `cargo xtask sdk-truth` runs it; docs/sdk.md has its figures.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod app;
mod cases;
mod copies;
mod elf;
mod judge;
mod libraries;
mod mine;
mod speed;
mod stamps;

use std::process::ExitCode;

/// What fails with a sentence.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match cases::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sdk-truth: {message}");
            ExitCode::FAILURE
        }
    }
}
