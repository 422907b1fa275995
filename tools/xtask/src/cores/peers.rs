//! What gdb and eu-stack say.

use super::builds::Machine;
use super::make::Made;
use crate::Result;
use stacks_compared::gdb::{self, Answer, Frame, Stack, Stacks, hexadecimal};
use std::process::Command;

/// How long gdb may take, in seconds. Behind a signal's handler in cores of qemu-aarch64 7.2 gdb 13 takes for ever.
const PATIENCE: &str = "300";
const PATIENCE_EMULATED: &str = "60";

/// gdb's answer; `None` where it is not installed, or does not come to an end, which is said.
pub(super) fn gdb_of_core(machine: Machine, made: &Made) -> Result<Option<Stacks>> {
    let name = if machine == Machine::Host { "gdb" } else { "gdb-multiarch" };
    if !is_installed(name) {
        return Ok(None);
    }
    let patience = if machine == Machine::Host { PATIENCE } else { PATIENCE_EMULATED };
    let mut command = gdb::command(name, patience);
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
    asked(gdb::command("gdb", PATIENCE).args(["-p", &process.to_string()]), "gdb")
}

fn asked(command: &mut Command, name: &str) -> Result<Option<Stacks>> {
    match gdb::asked(command)? {
        Answer::Stacks(stacks) => Ok(Some(stacks)),
        Answer::Late => {
            println!("not compared: {name} did not come to an end: {command:?}");
            Ok(None)
        }
    }
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
                let frame = Frame { address, functions: 0, name: name.join(" "), is_signals: false };
                stacks.entry(thread).or_default().frames.push(frame);
            }
            _ => {}
        }
    }
    Ok((!stacks.is_empty()).then_some(stacks))
}

pub(super) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
