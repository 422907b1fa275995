//! Walking stacks: backtrail's walk, framehop, libunwind, the `backtrace` crate and glibc, in one process on one stack.

use crate::{Result, sh};
use std::path::Path;
use std::process::Command;

pub(super) fn run(runs: usize) -> Result<()> {
    measure(runs, &super::peer("peers-unwind")?, &[])
}

/// The same of the library's captures, from registers to a list of frames.
pub(super) fn capture(runs: usize) -> Result<()> {
    // With frame pointers, so that following them is measured too; the others do not look at them.
    let flags = ["--config", "build.rustflags=[\"-Cforce-frame-pointers=yes\"]"];
    let program = sh::built_tool_with("peers-unwind", "peers-unwind", "tools-frame-pointers", &flags)?;
    measure(runs, &program, &["capture"])
}

fn measure(runs: usize, program: &Path, arguments: &[&str]) -> Result<()> {
    // Each run takes the median of 31 by itself; more than one shows how far they differ.
    for _ in 0..runs.min(3) {
        sh::run(Command::new(program).args(arguments))?;
    }
    Ok(())
}
