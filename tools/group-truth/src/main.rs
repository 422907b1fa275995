//! Crashes a program at known bugs, in many builds, and measures whether `backtrail group` puts the reports together by bug:
//! `cargo run --manifest-path tools/Cargo.toml -p group-truth -- BACKTRAIL DIR [--held-out] [--fixtures FILE]`. docs/group.md has its
//! first figures. Needs g++.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod builds;
mod fixtures;
mod program;
mod reports;
mod score;

use std::path::Path;
use std::process::ExitCode;

/// What fails with a sentence.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("group-truth: reports of different bugs were put into one group");
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("group-truth: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<bool> {
    let [program, directory, options @ ..] = arguments else {
        return Err("expected BACKTRAIL DIR [--held-out] [--fixtures FILE]".to_owned());
    };
    let directory = Path::new(directory);
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let is_held_out = options.iter().any(|option| option == "--held-out");
    let cores = builds::crash_all(directory)?;
    let reports = reports::read_all(Path::new(program), directory, &cores)?;
    if let Some(at) = options.iter().position(|option| option == "--fixtures") {
        let file = options.get(at + 1).ok_or("--fixtures: expected a file")?;
        fixtures::write(Path::new(file), &reports)?;
    }
    let wanted = |bug: &str| {
        program::BUGS.iter().position(|it| it.name == bug).is_some_and(|at| (at % 2 == 1) == is_held_out)
    };
    let chosen: Vec<_> = reports.into_iter().filter(|report| wanted(&report.bug)).collect();
    println!(
        "{} bugs, {} reports, {}",
        program::BUGS.len().div_ceil(2),
        chosen.len(),
        if is_held_out { "kept back" } else { "looked at" }
    );
    Ok(score::print_all(&chosen))
}
