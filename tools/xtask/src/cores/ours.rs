//! Our answer, as `backtrail stacks --format json` prints it.

use super::make::Made;
use crate::{Result, sh};
use stacks_compared::ours::{Thread, asked, read};
use std::path::Path;
use std::process::Command;

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
