//! `miri`: tests of what is `unsafe`, or shared between threads without a lock, in an interpreter that finds undefined
//! behaviour and data races. It knows few of the system's calls and no machine code, so that only what does without can be
//! run: the address sanitizer and valgrind see the rest (`ffi`).

use crate::{Result, sh};
use std::process::Command;

/// Packages, and parts of names of the tests that can be run; all others have no `unsafe` code of their own, or call the
/// system.
const TESTS: [(&str, &[&str]); 3] = [
    ("backtrail-core", &[]),
    ("backtrail-sys", &["shared::", "mach_state::"]),
    ("backtrail-capture", &["hang::beat::"]),
];

pub(crate) fn run(_arguments: &[String]) -> Result<()> {
    let installed = Command::new("cargo").args(["+nightly", "miri", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!("not run: needs `rustup component add --toolchain nightly miri rust-src`");
        return Ok(());
    }
    for (package, tests) in TESTS {
        let mut command = Command::new("cargo");
        command
            .args(["+nightly", "miri", "test", "--quiet", "--lib", "--package", package, "--"])
            .args(tests);
        // The compiler that runs this chore is not the one that miri needs.
        for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(variable);
        }
        sh::run(command.current_dir(sh::root()).env("MIRIFLAGS", "-Zmiri-disable-isolation"))?;
    }
    Ok(())
}
