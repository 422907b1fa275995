//! Crashes a program at known bugs, in many builds, and measures whether `backtrail group` puts the reports together by bug:
//! `cargo run --manifest-path tools/Cargo.toml -p group-truth -- BACKTRAIL DIR [--held-out | --new | --all]`. docs/group.md has its
//! figures. Needs g++.
//!
//! `-- BACKTRAIL DIR --many COUNT REPORTS SYMBOLS` writes COUNT variants of the reports of a directory into DIR, groups them with
//! symbols, and says how long that took. It fails where the groups are not those of the originals.
//!
//! `-- BACKTRAIL DIR --corpus CORPUS` groups reports that others labelled: syzbot, ClusterFuzz, CrashProbe.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod builds;
mod corpus;
mod fixtures;
mod many;
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
            eprintln!("group-truth: the groups are not those of the bugs");
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
        return Err(
            "expected BACKTRAIL DIR [--held-out | --new | --all | --fixtures FILE | --many COUNT REPORTS SYMBOLS | \
             --corpus CORPUS]"
                .to_owned(),
        );
    };
    let directory = Path::new(directory);
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    if let [option, count, reports, symbols] = options
        && option == "--many"
    {
        let count = count.parse().map_err(|_| format!("--many: expected a number, found {count:?}"))?;
        let (program, reports, symbols) = (Path::new(program), Path::new(reports), Path::new(symbols));
        return many::Many { program, directory, reports, symbols, count }.run();
    }
    if let [option, corpus] = options
        && option == "--corpus"
    {
        corpus::run(Path::new(program), directory, Path::new(corpus))?;
        return Ok(true);
    }
    if let Some(at) = options.iter().position(|option| option == "--fixtures") {
        let file = options.get(at + 1).ok_or("--fixtures: expected a file")?;
        let bugs = program::Which::All.bugs();
        let cores = builds::crash_all(directory, &bugs, fixtures::is_wanted)?;
        fixtures::write(Path::new(file), &reports::read_whole(Path::new(program), &cores)?)?;
        return Ok(true);
    }
    let which = match options {
        [] => program::Which::LookedAt,
        [option] if option == "--held-out" => program::Which::KeptBack,
        [option] if option == "--new" => program::Which::New,
        [option] if option == "--all" => program::Which::All,
        other => return Err(format!("unexpected: {}", other.join(" "))),
    };
    let bugs = which.bugs();
    let cores = builds::crash_all(directory, &bugs, |_| true)?;
    let reports = reports::read_all(Path::new(program), directory, &cores)?;
    println!("{} bugs, {} reports, {}", bugs.len(), reports.len(), which.as_str());
    Ok(score::print_all(&reports))
}
