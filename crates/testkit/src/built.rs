//! What a test runs that is not built with it.

use std::path::Path;
use std::process::Command;

/// Has the cargo that runs the tests build something of the package in `directory`, as the tests were built, and gives its
/// messages, a JSON object a line.
///
/// # Panics
///
/// Where it cannot be built.
#[expect(clippy::panic, reason = "fails the test that called")]
pub fn cargo_build(directory: &Path, arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg("build").args(arguments).arg("--message-format=json");
    let output =
        command.current_dir(directory).output().unwrap_or_else(|error| panic!("cannot run cargo: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
