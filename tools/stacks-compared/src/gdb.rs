//! What gdb says.

use crate::Result;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// One thread's frames.
#[derive(Debug, Default)]
pub struct Stack {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Why there are no more, in the tool's words; empty where it saw the end of the stack.
    pub stopped: String,
}

/// One frame of the stack. gdb's tail calls, which have none, are left out.
#[derive(Clone, Debug)]
pub struct Frame {
    /// As the register or the stack has it.
    pub address: u64,
    /// Functions: inlined ones and the one that they are in; 0 where it is not known.
    pub functions: usize,
    /// The function that is not inlined.
    pub name: String,
    /// Whether the kernel made it for a signal's handler.
    pub is_signals: bool,
}

/// Stacks by thread.
pub type Stacks = HashMap<u64, Stack>;

/// What gdb answered.
#[derive(Debug)]
pub enum Answer {
    /// Its stacks.
    Stacks(Stacks),
    /// It was ended, since it took too long.
    Late,
}

/// gdb, which is ended after so many seconds, and asks nobody for debug info.
pub fn command(name: &str, patience: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", patience, name, "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    command
}

/// Has a gdb print the stacks of what its command line names.
///
/// # Errors
/// Where it has no stacks, with what it said.
pub fn asked(command: &mut Command) -> Result<Answer> {
    /// `timeout` ends like what it has killed.
    const KILLED: i32 = 128 + 9;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/frames.py");
    let output = command.arg("-x").arg(script).output();
    let output = output.map_err(|error| format!("cannot run timeout: {error}"))?;
    if output.status.code().is_none_or(|code| code == KILLED) {
        return Ok(Answer::Late);
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let stacks = read(&printed);
    if stacks.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("gdb has no threads: {}", said.trim()));
    }
    Ok(Answer::Stacks(stacks))
}

fn read(printed: &str) -> Stacks {
    let mut stacks = Stacks::new();
    let (mut thread, mut inlined) = (0, 0);
    for line in printed.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("@thread") => {
                thread = words.next().and_then(|id| id.parse().ok()).unwrap_or_default();
                stacks.insert(thread, Stack::default());
                inlined = 0;
            }
            Some("@frame") => {
                let address = words.next().and_then(hexadecimal).unwrap_or_default();
                let kind = words.next();
                match kind {
                    Some("inline") => inlined += 1,
                    // Made from debug info, between two frames of the stack.
                    Some("tailcall") => inlined = 0,
                    _ => {
                        let name = words.collect::<Vec<_>>().join(" ");
                        let is_signals = kind == Some("signal");
                        let frame = Frame { address, functions: inlined + 1, name, is_signals };
                        stacks.entry(thread).or_default().frames.push(frame);
                        inlined = 0;
                    }
                }
            }
            Some("@end") => {
                let why = words.collect::<Vec<_>>().join(" ");
                let is_end = matches!(why.as_str(), "outermost" | "no reason");
                stacks.entry(thread).or_default().stopped = if is_end { String::new() } else { why };
            }
            _ => {}
        }
    }
    stacks
}

/// A number with or without `0x`.
pub fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}
