//! Programs to capture, and the program that captures them.

use backtrail_testkit::{Schema, TempDir};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

pub(crate) const THREADS: &str = include_str!("targets/threads.c");
pub(crate) const CALLS: &str = include_str!("targets/calls.c");
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const CRASH: &str = include_str!("targets/crash.c");
pub(crate) const DEADLOCK: &str = include_str!("targets/deadlock.c");
pub(crate) const DEEP: &str = include_str!("targets/deep.c");
pub(crate) const NAMED: &str = include_str!("targets/named.c");
pub(crate) const ODD: &str = include_str!("targets/odd.c");
pub(crate) const TIMED: &str = include_str!("targets/timed.c");
const PROBE: &str = include_str!("targets/probe.c");

/// Whether a process may trace another of the same user here: containers (seccomp) and machines (Yama) forbid it. Found out
/// by a program of the test's own, and told in one line where it is so.
pub(crate) fn may_trace() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let directory = TempDir::new("live-probe");
        // Without a compiler the tests have nothing to trace.
        let Some(program) = compiled(&directory, PROBE, "cc", &[]) else { return true };
        let said = run(&mut Command::new(program)).stdout;
        if said.trim() != "yes" {
            eprintln!("skipped: processes may not be traced here: {}", said.trim());
        }
        said.trim() == "yes"
    });
    *MAY
}

/// Compiles a C program; `None`, and one line, where there is no compiler for it.
pub(crate) fn compiled(
    directory: &TempDir,
    source: &str,
    compiler: &str,
    options: &[&str],
) -> Option<PathBuf> {
    let file = directory.write("program.c", source);
    let program = directory.join("program");
    let mut command = Command::new(compiler);
    command.arg("-o").arg(&program).arg(file).args(["-g", "-pthread"]).args(options);
    match command.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            let first = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
            eprintln!("skipped: {compiler} {options:?} cannot build it here: {first}");
            None
        }
        Err(error) => {
            eprintln!("skipped: {compiler}: {error}");
            None
        }
    }
}

/// The same for a program to be captured; `None`, and one line, also where that is forbidden.
pub(crate) fn traceable(
    directory: &TempDir,
    source: &str,
    compiler: &str,
    options: &[&str],
) -> Option<PathBuf> {
    if may_trace() { compiled(directory, source, compiler, options) } else { None }
}

/// A program that runs, until its input is closed.
pub(crate) struct Target {
    pub(crate) id: u32,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts a program that says its process id on a line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut target = Self { id: 0, child, input, output };
        target.id = target.line().trim().parse().unwrap_or(0);
        target
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Gives it a line and takes its answer.
    pub(crate) fn ask(&mut self) -> String {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
        self.line()
    }

    /// Closes its input, and gives its last line.
    pub(crate) fn finish(mut self) -> String {
        drop(self.input.take());
        self.line()
    }

    /// The id of the process that was started, where that is another than the one it named.
    pub(crate) fn started(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a run of the program printed, and how it ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_backtrail"))
}

pub(crate) fn run(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn backtrail(arguments: &[&str]) -> Run {
    run(Command::new(program()).args(arguments))
}

/// The stacks of a process, as JSON.
pub(crate) fn stacks(id: u32, options: &[&str]) -> Value {
    let id = id.to_string();
    let run = backtrail(&[&["stacks", &id, "--format", "json"], options].concat());
    assert!(matches!(run.code, Some(0 | 1)), "{:?}: {}", run.code, run.stderr);
    let value = serde_json::from_str(&run.stdout).unwrap();
    Schema::new().check("stacks", &value).unwrap();
    value
}

/// The names of a thread's functions, innermost first.
pub(crate) fn names(thread: &Value) -> Vec<String> {
    let frames = thread["frames"].as_array().unwrap().iter();
    let names = frames.flat_map(|frame| {
        let functions = frame["functions"].as_array().unwrap().iter();
        let functions: Vec<_> = functions.filter_map(|function| function["name"].as_str()).collect();
        let symbol = frame["symbol"]["name"].as_str().filter(|_| functions.is_empty());
        functions.into_iter().chain(symbol).map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

/// A line of a thread's or process's `status`.
pub(crate) fn status(id: u32, key: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// The ids of a process's threads.
pub(crate) fn thread_ids(id: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(crate) fn signal(name: &str, id: u32) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}

/// Waits until something holds, for a minute at most.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}: not after a minute");
}

/// Copies a program that is to be run. Not by this process: another test that forks meanwhile would inherit the file that is
/// written to, and what somebody writes to cannot be run (`ETXTBSY`).
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}
