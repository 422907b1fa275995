//! The `backtrail` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let console = backtrail_cli::Console::of_process();
    ExitCode::from(backtrail_cli::run(std::env::args_os().collect(), &console))
}
