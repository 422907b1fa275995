//! Runs the program in the workspace's directory, so that the paths in its output are the same everywhere.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run printed, and how it ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn backtrail(arguments: &[&str]) -> Run {
    with_input(arguments, b"")
}

pub(crate) fn with_input(arguments: &[&str], input: &[u8]) -> Run {
    run(Path::new(env!("CARGO_BIN_EXE_backtrail")), arguments, input)
}

/// With these environment variables.
pub(crate) fn with_environment(variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
    command.args(arguments).envs(variables.iter().copied());
    start(command, b"")
}

/// Runs any program in the same way.
pub(crate) fn run(program: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let mut command = Command::new(program);
    command.args(arguments);
    start(command, input)
}

fn start(mut command: Command, input: &[u8]) -> Run {
    command.current_dir(backtrail_testkit::workspace_root()).env("COLUMNS", "100");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A run that ends early closes its end of the pipe, which is its right.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().unwrap_or_else(|| panic!("{command:?}: ended by a signal")),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Run {
    /// Everything, in one text.
    pub(crate) fn whole(&self) -> String {
        let mut whole = self.stdout.clone();
        if !self.stderr.is_empty() {
            whole.push_str("--- standard error\n");
            whole.push_str(&self.stderr);
        }
        whole.push_str(&format!("--- exit code {}\n", self.code));
        whole
    }
}
