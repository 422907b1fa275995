//! Walking stacks: backtrail's walk, framehop, libunwind, the `backtrace` crate and glibc, in one process on one stack.

use crate::{Result, sh};
use std::process::Command;

pub(super) fn run(runs: usize) -> Result<()> {
    measure(runs, &[])
}

/// The same of the library's captures, from registers to a list of frames.
pub(super) fn capture(runs: usize) -> Result<()> {
    measure(runs, &["capture"])
}

fn measure(runs: usize, arguments: &[&str]) -> Result<()> {
    let program = super::peer("peers-unwind")?;
    // Each run takes the median of 31 by itself; more than one shows how far they differ.
    for _ in 0..runs.min(3) {
        sh::run(Command::new(&program).args(arguments))?;
    }
    Ok(())
}
