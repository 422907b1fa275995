//! Whole command lines: see `crates/cli/tests/program/command_line.rs`.
#![no_main]

#[path = "../../crates/cli/tests/program/command_line.rs"]
mod command_line;

use backtrail_testkit::{TempDir, workspace_root};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static SEEDS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| command_line::seeds(&workspace_root()));
static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| TempDir::new("fuzz-command-line"));

fuzz_target!(|data: &[u8]| {
    command_line::check(data, &SEEDS, &DIRECTORY.join("files"));
});
