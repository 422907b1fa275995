//! `bench-peers`: times backtrail and its peers on the same inputs, in turn (A B A B …), and prints medians, ratios and
//! memory. What the figures were is in `docs/performance.md`; no test asserts them.
//!
//! Each part is a file: a new one is added here and nowhere else. Crates that are measured are in `tools/peers`;
//! programs come from the packages `llvm-22`, `elfutils` and `time` of Debian.

mod convert;
mod demangle;
mod lookups;
mod race;
mod stacks;
mod tables;
mod unwind;

use crate::{Result, sh};
use std::path::PathBuf;

/// A part: its name, what it measures, and its code, which gets how often each thing is run.
type Part = (&'static str, &'static str, fn(usize) -> Result<()>);

const PARTS: &[Part] = &[
    ("lookups", "addresses of debug files, without a table", lookups::run),
    ("convert", "debug info into symbol table files", convert::run),
    ("tables", "a million addresses of symbol table files", tables::run),
    ("unwind", "ns per frame of a stack in the own process", unwind::run),
    ("capture", "ns per frame of a capture of the own thread, µs of another", unwind::capture),
    (
        "stacks",
        "all stacks of processes of 1, 64 and 1,000 threads, and the pauses that they see",
        stacks::run,
    ),
    ("demangle", "names of real programs", demangle::run),
];

const DEFAULT_RUNS: usize = 7;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (runs, names) = parse(arguments)?;
    for (name, what, part) in PARTS {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            println!("\n## {name}: {what}\n");
            part(runs)?;
        }
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(usize, Vec<String>)> {
    let (mut runs, mut names) = (DEFAULT_RUNS, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--runs" {
            let value = rest.next().and_then(|value| value.parse().ok()).filter(|runs| *runs > 0);
            runs = value.ok_or("--runs needs a number above 0")?;
        } else if PARTS.iter().any(|(name, ..)| name == argument) {
            names.push(argument.clone());
        } else {
            let known: Vec<_> = PARTS.iter().map(|(name, ..)| *name).collect();
            return Err(format!("no part called {argument}; there are {}", known.join(", ")));
        }
    }
    Ok((runs, names))
}

/// Builds one of the crates in `tools/peers`.
fn peer(package: &str) -> Result<PathBuf> {
    sh::built_tool(package, package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_chosen_by_name() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parse(&[]), Ok((DEFAULT_RUNS, Vec::new())));
        assert_eq!(parse(&words("lookups --runs 3")), Ok((3, words("lookups"))));
        assert!(parse(&words("--runs 0")).is_err());
        assert!(parse(&words("looks")).is_err());
    }
}
