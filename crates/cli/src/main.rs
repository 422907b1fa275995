//! The `backtrail` program.
#![forbid(unsafe_code)]
// The program is where printing happens.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod batches;
mod cmd;
mod input;
mod output;
mod progress;
mod render;

use clap::Parser as _;
use output::Failure;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    match cmd::run(&arguments) {
        Ok(outcome) => outcome.into(),
        // The reader went away, as `head` does: what it wanted it has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("backtrail: {failure}");
            ExitCode::from(2)
        }
    }
}
