//! Our answer, as `backtrail stacks --format json` prints it.

use super::make::Made;
use crate::{Result, sh};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: u64,
    pub(super) is_crashed: bool,
    pub(super) frames: Vec<Frame>,
    /// `end-of-stack`, `failed` or `truncated`, and why.
    pub(super) ended: String,
    pub(super) because: String,
}

/// One frame of the stack.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) address: u64,
    pub(super) trust: String,
    /// The image's name; empty where it is in none.
    pub(super) image: String,
    /// Innermost first; several where functions were inlined.
    pub(super) functions: Vec<String>,
}

pub(super) fn stacks(program: &Path, made: &Made) -> Result<Vec<Thread>> {
    let mut command = command(program);
    command.arg("--core").arg(&made.ours);
    if made.is_program_named {
        command.arg("-e").arg(&made.program);
    }
    for directory in &made.symbols {
        command.arg("-s").arg(directory);
    }
    let printed = asked(&mut command)?;
    if std::env::var_os("CORES_DUMP").is_some() {
        sh::write(&made.ours.with_extension("json"), &printed)?;
    }
    read(&printed)
}

/// Those of a process that runs.
pub(super) fn stacks_of(program: &Path, process: u32) -> Result<Vec<Thread>> {
    read(&asked(command(program).arg(process.to_string()))?)
}

fn command(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120"]).arg(program).args(["stacks", "--format", "json"]);
    command
}

fn asked(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().map_err(|error| format!("cannot run timeout: {error}"))?;
    // 1 says that something has no name.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("backtrail ended with {}: {}", output.status, said.trim()));
    }
    Ok(output.stdout)
}

fn read(printed: &[u8]) -> Result<Vec<Thread>> {
    let value: Value = serde_json::from_slice(printed).map_err(|error| error.to_string())?;
    let threads = value.get("threads").and_then(Value::as_array).ok_or("no threads in the answer")?;
    Ok(threads.iter().map(thread).collect())
}

fn thread(value: &Value) -> Thread {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let frames = value.get("frames").and_then(Value::as_array);
    Thread {
        id: value.get("id").and_then(Value::as_u64).unwrap_or_default(),
        is_crashed: value.get("crashed").and_then(Value::as_bool).unwrap_or_default(),
        frames: frames.into_iter().flatten().map(frame).collect(),
        ended: text("ended"),
        because: text("ended_because"),
    }
}

fn frame(value: &Value) -> Frame {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = |value: &Value| Some(value.get("name")?.as_str()?.to_owned());
    let functions = value.get("functions").and_then(Value::as_array);
    let mut names: Vec<String> = functions.into_iter().flatten().filter_map(name).collect();
    if names.is_empty() {
        names.extend(value.get("symbol").and_then(name));
    }
    Frame {
        address: u64::from_str_radix(text("address").trim_start_matches("0x"), 16).unwrap_or_default(),
        trust: text("trust").to_owned(),
        image: text("image").to_owned(),
        functions: names,
    }
}
