//! Every report of the corpus through the program.

use crate::run::{backtrail, with_input};
use std::path::{Path, PathBuf};

fn reports(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_original_comes_back_byte_for_byte_without_symbols() {
    let Some(corpus) = backtrail_testkit::corpus() else { return };
    let mut checked = 0;
    for directory in [
        "apple/text",
        "apple/ips",
        "crashprobe/reports/arm64",
        "crashprobe/reports/armv7",
        "crashprobe/reports/x86_64",
    ] {
        for path in reports(&corpus.join(directory)) {
            let original = std::fs::read(&path).unwrap();
            let run = with_input(&["symbolicate", "--format", "crash", "-"], &original);
            assert!(run.code < 2, "{}: {}", path.display(), run.stderr);
            assert!(run.stdout.as_bytes() == original, "{} changed", path.display());
            checked += 1;
        }
    }
    assert!(checked >= 140, "{checked}");
}

#[test]
fn a_directory_of_reports_gives_a_line_each() {
    let Some(corpus) = backtrail_testkit::corpus() else { return };
    let directory = corpus.join("crashprobe/reports/arm64");
    let symbols = corpus.join("crashprobe/dSYMs");
    let (directory_name, symbols) = (directory.to_str().unwrap(), symbols.to_str().unwrap());
    let run = backtrail(&["symbolicate", directory_name, "-s", symbols, "--format", "json"]);
    assert_eq!(run.code, 1, "system images have no symbols here: {}", run.stderr);
    assert_eq!(run.stdout.lines().count(), reports(&directory).len());
}
