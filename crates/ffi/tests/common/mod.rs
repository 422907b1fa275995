//! What tests of the C library share.

use backtrail_testkit::cargo_build;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shared and the static library, built as this test was, with all of their parts.
pub(crate) fn libraries() -> (PathBuf, PathBuf) {
    let text = cargo_build(root(), &["--package", "backtrail-ffi", "--lib", "--features", "upload"]);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files: Vec<PathBuf> = messages
        .filter(|message| message["target"]["name"] == "backtrail_ffi")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| Some(PathBuf::from(file.as_str()?)))
        .collect();
    let one = |ending: &str| {
        let mut files = files.iter().filter(|file| file.extension().is_some_and(|own| own == ending));
        files.next().unwrap_or_else(|| panic!("no .{ending} among {files:?}")).clone()
    };
    (one("so"), one("a"))
}

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "no {program} here");
        eprintln!("skipped: no {program} here");
    }
    found
}

pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Puts the shared library into a directory under the names that programs look for.
pub(crate) fn put_shared(directory: &Path, shared: &Path) {
    std::fs::copy(shared, directory.join("libbacktrail.so.0")).unwrap();
    std::os::unix::fs::symlink("libbacktrail.so.0", directory.join("libbacktrail.so")).unwrap();
}
