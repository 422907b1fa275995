//! Our answer, as `backtrail stacks` and `symbolicate` print it as JSON.

use crate::Result;
use crate::gdb::hexadecimal;
use serde_json::Value;
use std::process::Command;

/// One thread.
#[derive(Debug)]
pub struct Thread {
    /// The kernel's id.
    pub id: u64,
    /// Its name; may be empty.
    pub name: String,
    /// Whether the report is of it.
    pub is_crashed: bool,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// `end-of-stack`, `failed` or `truncated`, and why.
    pub ended: String,
    /// Why it ended so.
    pub because: String,
}

/// One frame of the stack.
#[derive(Debug)]
pub struct Frame {
    /// As the register or the stack has it.
    pub address: u64,
    /// How it was found.
    pub trust: String,
    /// The image's name; empty where it is in none.
    pub image: String,
    /// Innermost first; several where functions were inlined.
    pub functions: Vec<String>,
}

/// Runs backtrail, and gives what it printed.
///
/// # Errors
/// Where it fails, with what it said.
pub fn asked(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().map_err(|error| format!("cannot run timeout: {error}"))?;
    // 1 says that something has no name.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("backtrail ended with {}: {}", output.status, said.trim()));
    }
    Ok(output.stdout)
}

/// The threads of one report.
///
/// # Errors
/// Where there are none.
pub fn read(printed: &[u8]) -> Result<Vec<Thread>> {
    let value: Value = serde_json::from_slice(printed).map_err(|error| error.to_string())?;
    let threads = value.get("threads").and_then(Value::as_array).ok_or("no threads in the answer")?;
    Ok(threads.iter().map(thread).collect())
}

fn thread(value: &Value) -> Thread {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let frames = value.get("frames").and_then(Value::as_array);
    Thread {
        id: value.get("id").and_then(Value::as_u64).unwrap_or_default(),
        name: text("name"),
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
        address: hexadecimal(text("address")).unwrap_or_default(),
        trust: text("trust").to_owned(),
        image: text("image").to_owned(),
        functions: names,
    }
}
