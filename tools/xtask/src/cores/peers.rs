//! What gdb and eu-stack say.

use super::builds::Machine;
use super::make::Made;
use crate::{Result, sh};
use std::collections::HashMap;
use std::process::Command;

/// One thread's frames.
#[derive(Debug, Default)]
pub(super) struct Stack {
    pub(super) frames: Vec<Frame>,
    /// Why there are no more, in the tool's words; empty where it saw the end of the stack.
    pub(super) stopped: String,
}

/// One frame of the stack. gdb's tail calls, which have none, are left out.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) address: u64,
    /// Functions: inlined ones and the one that they are in; 0 where it is not known.
    pub(super) functions: usize,
    pub(super) name: String,
}

/// Stacks by thread.
pub(super) type Stacks = HashMap<u64, Stack>;

/// How long gdb may take, in seconds. Behind a signal's handler in cores of qemu-aarch64 7.2 gdb 13 takes for ever.
const PATIENCE: &str = "300";
const PATIENCE_EMULATED: &str = "60";

/// gdb's answer; `None` where it is not installed, or does not come to an end, which is said.
pub(super) fn gdb(machine: Machine, made: &Made) -> Result<Option<Stacks>> {
    let name = if machine == Machine::Host { "gdb" } else { "gdb-multiarch" };
    if !is_installed(name) {
        return Ok(None);
    }
    let patience = if machine == Machine::Host { PATIENCE } else { PATIENCE_EMULATED };
    let mut command = gdb_command(name, patience);
    if let Some(directory) = &made.debug_directory {
        command.arg("-iex").arg(format!("set debug-file-directory {}:/usr/lib/debug", directory.display()));
    }
    if let Some(system) = made.system {
        command.arg("-iex").arg(format!("set sysroot {system}"));
    }
    asked(command.arg(&made.program).arg("-c").arg(&made.core), name)
}

/// gdb's answer of a process that runs; `None` where it is not installed.
pub(super) fn gdb_of(process: u32) -> Result<Option<Stacks>> {
    if !is_installed("gdb") {
        return Ok(None);
    }
    asked(gdb_command("gdb", PATIENCE).args(["-p", &process.to_string()]), "gdb")
}

fn gdb_command(name: &str, patience: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", patience, name, "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    command
}

fn asked(command: &mut Command, name: &str) -> Result<Option<Stacks>> {
    /// `timeout` ends like what it has killed.
    const KILLED: i32 = 128 + 9;
    let script = sh::root().join("tools/xtask/src/cores/frames.py");
    let output = command.arg("-x").arg(script).output();
    let output = output.map_err(|error| format!("cannot run timeout: {error}"))?;
    if output.status.code().is_none_or(|code| code == KILLED) {
        println!("not compared: {name} did not come to an end: {command:?}");
        return Ok(None);
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let stacks = read_gdb(&printed);
    if stacks.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} has no threads: {}", said.trim()));
    }
    Ok(Some(stacks))
}

fn read_gdb(printed: &str) -> Stacks {
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
                match words.next() {
                    Some("inline") => inlined += 1,
                    // Made from debug info, between two frames of the stack.
                    Some("tailcall") => inlined = 0,
                    _ => {
                        let name = words.collect::<Vec<_>>().join(" ");
                        let frame = Frame { address, functions: inlined + 1, name };
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

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// eu-stack's answer; `None` where it is not installed or cannot read such cores.
pub(super) fn eu_stack(made: &Made) -> Result<Option<Stacks>> {
    if made.system.is_some() || !is_installed("eu-stack") {
        return Ok(None);
    }
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120", "eu-stack", "-n", "0", "--core"]).arg(&made.core);
    command.arg("-e").arg(&made.program).env("DEBUGINFOD_URLS", "");
    let output = command.output().map_err(|error| format!("cannot run timeout: {error}"))?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let mut stacks = Stacks::new();
    let mut thread = 0;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["TID", id] => {
                thread = id.trim_end_matches(':').parse().unwrap_or_default();
                let about = format!("tid {thread} at");
                let stopped = complaints.lines().find(|line| line.contains(&about)).unwrap_or_default();
                stacks.insert(thread, Stack { frames: Vec::new(), stopped: stopped.to_owned() });
            }
            [number, address, ref name @ ..] if number.starts_with('#') => {
                let address = hexadecimal(address).unwrap_or_default();
                let frame = Frame { address, functions: 0, name: name.join(" ") };
                stacks.entry(thread).or_default().frames.push(frame);
            }
            _ => {}
        }
    }
    Ok((!stacks.is_empty()).then_some(stacks))
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
