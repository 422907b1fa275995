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
    let words: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match args::FrontEnd::of(&words) {
        Some((tool, call)) => stand_in(tool, tool.words(call, words)),
        None => finish(cmd::run(&args::Arguments::parse()), "backtrail", 2),
    }
}

/// Runs as the tool that scripts expect: with its name in messages, and 1 as the exit code of every failure.
fn stand_in(tool: args::FrontEnd, words: Vec<String>) -> ExitCode {
    match args::Arguments::try_parse_from(words) {
        Ok(arguments) => finish(cmd::run(&arguments), tool.name(), 1),
        Err(error) => {
            // Help and version come as errors, too.
            let code = u8::from(error.use_stderr());
            let _ = error.print();
            ExitCode::from(code)
        }
    }
}

fn finish(result: Result<output::Outcome, Failure>, name: &str, code: u8) -> ExitCode {
    match result {
        Ok(outcome) => outcome.into(),
        // The reader went away, as `head` does: what it wanted it has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Verbatim(message)) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
        Err(failure) => {
            eprintln!("{name}: {failure}");
            ExitCode::from(code)
        }
    }
}
