//! All stacks of a process of 1,000 threads: backtrail, eu-stack and gdb, and what pauses the process sees.

use super::race::{Runner, race};
use crate::{Result, inputs, sh};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SOURCE: &str = include_str!("stacks/target.c");
const THREADS: &str = "1000";

pub(super) fn run(runs: usize) -> Result<()> {
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    let mut target = Target::start()?;
    let id = target.id.clone();
    let ours = |name, options: &[&str]| Runner::new(name, &backtrail, &[&["stacks", &*id], options].concat());
    let theirs =
        |name, options: &[&str]| Runner::new(name, "eu-stack", &[&["-n", "0", "-p", &*id], options].concat());
    let gdb = ["-q", "-batch", "-nx", "-p", &*id, "-ex", "thread apply all bt"];
    let groups = [
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
                Runner::new("gdb thread apply all bt", "gdb", &gdb),
            ],
        ),
    ];
    let mut pauses = Vec::new();
    for (title, runners) in &groups {
        race(title, runners, Path::new("/dev/null"), runs)?;
        for runner in runners {
            target.longest_pause()?;
            let mut longest = Vec::new();
            for _ in 0..runs.min(5) {
                runner.once(Path::new("/dev/null"))?;
                longest.push(target.longest_pause()?);
            }
            longest.sort_unstable();
            pauses.push((runner.name(), longest));
        }
    }
    println!("| longest pause of a spinning thread, seen by itself | best run | median run |");
    println!("| --- | --- | --- |");
    for (name, longest) in pauses {
        let best = longest.first().copied().unwrap_or_default();
        println!(
            "| {name} | {best} µs | {} µs |",
            longest.get(longest.len() / 2).copied().unwrap_or_default()
        );
    }
    Ok(())
}

struct Target {
    id: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    fn start() -> Result<Self> {
        let program = built()?;
        let mut command = Command::new(&program);
        let mut child = command
            .arg(THREADS)
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

    /// The longest since it was asked the last time, in microseconds.
    fn longest_pause(&mut self) -> Result<u64> {
        self.input.write_all(b"\n").map_err(|error| format!("the target is gone: {error}"))?;
        self.line()?.parse().map_err(|_| "the target said no number".to_owned())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn built() -> Result<PathBuf> {
    let folder = inputs::folder().join("stacks");
    sh::make_folder(&folder)?;
    let (source, program) = (folder.join("target.c"), folder.join("target"));
    sh::write(&source, SOURCE)?;
    sh::run(Command::new("cc").args(["-g", "-O1", "-pthread", "-o"]).arg(&program).arg(&source))?;
    Ok(program)
}
