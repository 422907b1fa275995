//! Programs run in turn on the same work.

use crate::{Result, sh};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program with its arguments.
pub(super) struct Runner {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Runner {
    pub(super) fn new(name: &'static str, program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { name, program: program.into(), arguments }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// One run that is not timed.
    pub(super) fn once(&self, input: &Path) -> Result<()> {
        self.run(input, &crate::inputs::directory().join("time.txt")).map(|_| ())
    }

    /// One run with that file as standard input: how long, and the most memory in KiB that it held.
    fn run(&self, input: &Path, scratch: &Path) -> Result<(Duration, u64)> {
        let stdin = File::open(input).map_err(|error| format!("cannot read {}: {error}", input.display()))?;
        // GNU time knows the peak of memory; the clock is ours, since its own counts hundredths of a second.
        let mut command = Command::new("/usr/bin/time");
        command.args(["-q", "-f", "%M", "-o"]).arg(scratch).arg(&self.program).args(&self.arguments);
        command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let status = command.status().map_err(|error| format!("cannot run /usr/bin/time: {error}"))?;
        let took = start.elapsed();
        // 1 is what some say where an address has no name.
        if status.code().is_none_or(|code| code > 1) {
            return Err(format!("{}: ended with {status}", self.name));
        }
        let memory = sh::read(scratch)?;
        let memory = memory.trim().parse().map_err(|_| format!("{}: cannot be run: {memory}", self.name))?;
        Ok((took, memory))
    }
}

/// What the runs of one program came to.
pub(super) struct Outcome {
    name: &'static str,
    pub(super) seconds: f64,
    megabytes: f64,
}

/// Runs all of `runners` in turn, `runs` times after one that warms the caches, and prints a table. The first is ours.
pub(super) fn race(title: &str, runners: &[Runner], input: &Path, runs: usize) -> Result<Vec<Outcome>> {
    let scratch = crate::inputs::directory().join("time.txt");
    let mut measured = vec![(Vec::new(), 0); runners.len()];
    for round in 0..=runs {
        for (runner, (times, memory)) in runners.iter().zip(&mut measured) {
            let (took, peak) = runner.run(input, &scratch)?;
            if round > 0 {
                times.push(took.as_secs_f64());
                *memory = peak.max(*memory);
            }
        }
    }
    let results = runners.iter().zip(measured).map(|(runner, (times, peak))| Outcome {
        name: runner.name,
        seconds: median(times),
        megabytes: peak as f64 * 1024.0 / 1e6,
    });
    let results: Vec<_> = results.collect();
    print(title, &results);
    Ok(results)
}

fn print(title: &str, results: &[Outcome]) {
    let Some(ours) = results.first() else { return };
    println!("| {title} | median | times ours | peak memory | times ours |");
    println!("| --- | --- | --- | --- | --- |");
    for result in results {
        println!(
            "| {} | {:.3} s | {:.1} | {:.0} MB | {:.1} |",
            result.name,
            result.seconds,
            result.seconds / ours.seconds,
            result.megabytes,
            result.megabytes / ours.megabytes
        );
    }
    println!();
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(median(Vec::new()).is_nan());
    }
}
