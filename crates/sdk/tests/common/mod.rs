//! Compilers, linkers and their companions, as Debian names them.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "for tests")]

use std::process::Command;

/// The program of the newest LLVM that Debian has it of.
pub(crate) fn tool(name: &str) -> Option<String> {
    let names =
        [22, 19, 16, 14].map(|version| format!("{name}-{version}")).into_iter().chain([name.to_owned()]);
    let found = names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        eprintln!("{name} is not here: test left out");
    }
    found
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
