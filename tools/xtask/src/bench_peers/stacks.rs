//! All stacks of processes of 1, 64 and 1,000 threads: backtrail, eu-stack and gdb, and what pauses the process sees.

use super::race::{Runner, race};
use crate::{Result, inputs, sh};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SOURCE: &str = include_str!("stacks/target.c");
const THREADS: [&str; 3] = ["1", "64", "1000"];
const GDB: &str = "gdb thread apply all bt";
/// A distribution wants more runs than a median.
const PAUSES_PER_RUN: usize = 10;

pub(super) fn run(runs: usize) -> Result<()> {
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    let program = built()?;
    for threads in THREADS {
        println!("{threads} threads that wait\n");
        let target = Target::start(&program, &[threads])?;
        compare(&groups(&backtrail, &target.id), runs)?;
        drop(target);
        println!("{threads} threads that wait, and one that spins\n");
        let mut target = Target::start(&program, &[threads, "spin"])?;
        let groups = groups(&backtrail, &target.id);
        compare(&groups, runs)?;
        let runners: Vec<_> = groups.into_iter().flat_map(|(_, runners)| runners).collect();
        pauses(&mut target, &runners, runs)?;
    }
    Ok(())
}

fn compare(groups: &[(&str, Vec<Runner>)], runs: usize) -> Result<()> {
    groups
        .iter()
        .try_for_each(|(title, runners)| race(title, runners, Path::new("/dev/null"), runs).map(drop))
}

fn groups(backtrail: &Path, id: &str) -> [(&'static str, Vec<Runner>); 3] {
    let ours = |name, options: &[&str]| Runner::new(name, backtrail, &[&["stacks", id], options].concat());
    let theirs =
        |name, options: &[&str]| Runner::new(name, "eu-stack", &[&["-n", "0", "-p", id], options].concat());
    let gdb = ["-q", "-batch", "-nx", "-p", id, "-ex", "thread apply all bt"];
    [
        (
            "addresses",
            vec![
                ours("backtrail --detail addresses", &["--detail", "addresses"]),
                ours("backtrail --detail addresses --consistent", &["--detail", "addresses", "--consistent"]),
                theirs("eu-stack -q", &["-q"]),
            ],
        ),
        ("names", vec![ours("backtrail --detail names", &["--detail", "names"]), theirs("eu-stack", &[])]),
        (
            "inlines and lines",
            vec![
                ours("backtrail", &[]),
                theirs("eu-stack -i -s", &["-i", "-s"]),
                Runner::new(GDB, "gdb", &gdb),
            ],
        ),
    ]
}

/// What the spinning thread sees of each tool, and of nothing: a program that sleeps as long as the fastest of them takes.
fn pauses(target: &mut Target, runners: &[Runner], runs: usize) -> Result<()> {
    let nothing = Runner::new("nobody", "sleep", &["0.1"]);
    let runners: Vec<_> = std::iter::once(&nothing).chain(runners).collect();
    let mut seen: Vec<Vec<Pause>> = vec![Vec::new(); runners.len()];
    // In turn, so that what else the machine does falls on all alike.
    for round in 0..runs * PAUSES_PER_RUN {
        for (runner, seen) in runners.iter().zip(&mut seen) {
            // Its process stands for seconds: a few times tell as much.
            if runner.name() == GDB && round >= runs {
                continue;
            }
            target.pause()?;
            runner.once(Path::new("/dev/null"))?;
            seen.push(target.pause()?);
        }
    }
    println!(
        "| longest pause of the spinning thread, µs | runs | not running: median | p99 | worst | stopped: median | p99 | worst |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (runner, seen) in runners.iter().zip(seen) {
        let all = |of: fn(&Pause) -> u64| spread(seen.iter().map(of).collect());
        let (whole, stopped) = (all(|pause| pause.whole), all(|pause| pause.stopped));
        println!("| {} | {} | {whole} | {stopped} |", runner.name(), seen.len());
    }
    println!();
    Ok(())
}

/// Median, 99th percentile and worst.
fn spread(mut values: Vec<u64>) -> String {
    values.sort_unstable();
    let at = |hundredths: usize| {
        let rank = (values.len() * hundredths).div_ceil(100).saturating_sub(1);
        values.get(rank).copied().unwrap_or_default()
    };
    format!("{} | {} | {}", at(50), at(99), at(100))
}

/// Microseconds.
#[derive(Clone, Copy)]
struct Pause {
    /// In which it did not run, whatever the reason.
    whole: u64,
    /// In which it was stopped: what it waited for a processor is left out.
    stopped: u64,
}

struct Target {
    id: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err("no pipes".to_owned()) };
        let mut target = Self { id: String::new(), child, input, output: BufReader::new(output) };
        target.id = target.line()?;
        Ok(target)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| format!("the target said nothing: {error}"))?;
        Ok(line.trim().to_owned())
    }

    /// The longest since it was asked the last time.
    fn pause(&mut self) -> Result<Pause> {
        self.input.write_all(b"\n").map_err(|error| format!("the target is gone: {error}"))?;
        let line = self.line()?;
        let mut numbers = line.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(whole)), Some(Ok(stopped))) => Ok(Pause { whole, stopped }),
            _ => Err(format!("expected two numbers from the target: {line}")),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn built() -> Result<PathBuf> {
    let directory = inputs::directory().join("stacks");
    sh::make_directory(&directory)?;
    let (source, program) = (directory.join("target.c"), directory.join("target"));
    sh::write(&source, SOURCE)?;
    sh::run(Command::new("cc").args(["-g", "-O1", "-pthread", "-o"]).arg(&program).arg(&source))?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        assert_eq!(spread((1..=200).collect()), "100 | 198 | 200");
        assert_eq!((spread(vec![7]), spread(Vec::new())), ("7 | 7 | 7".to_owned(), "0 | 0 | 0".to_owned()));
    }
}
