//! `differ [--addresses N] [--examples N] [FILE…]`: unwind tables of real files as backtrail reads them, and as framehop and
//! `macho-unwind-info` do (`tools/peers/unwind`).

use crate::{Result, sh};
use std::process::Command;

/// Files that are usually there.
const USUAL: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/aarch64-linux-gnu/lib/libc.so.6",
    "fixtures/sample/app/Weather.app/Weather",
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let program = sh::built_tool("peers-unwind", "differ")?;
    let mut command = Command::new(program);
    command.current_dir(sh::root());
    if arguments.is_empty() {
        command.args(USUAL)
    } else {
        command.args(arguments)
    };
    sh::run(&mut command)
}
