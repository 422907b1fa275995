//! Each file is parsed once, however many reports or threads ask for it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use backtrail::{Analysis, Limits, NoProgress, StackOptions, Stacks, Symbols};
use backtrail_object::parse_count;
use backtrail_testkit::fixtures;
use std::collections::BTreeSet;

/// How many object files were parsed meanwhile.
fn parsed<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let before = parse_count();
    let result = act();
    (result, parse_count() - before)
}

// One test: the count is that of the whole process.
#[test]
fn each_object_is_parsed_once() {
    let sample = fixtures().join("sample");
    let symbols = Symbols::scan(std::slice::from_ref(&sample), &NoProgress);
    let report = std::fs::read(sample.join("reports/null-member.ips")).unwrap();
    let analyse = || Analysis::new(&report, &symbols, &Limits::default()).unwrap();
    let (analysis, first) = parsed(analyse);
    let images = &analysis.report.process.images;
    let files: BTreeSet<_> = images.iter().flat_map(|image| &image.symbols.files).collect();
    assert!(!files.is_empty());
    assert_eq!(first, files.len() as u64, "{files:?}");
    assert_eq!(parsed(analyse).1, 0, "the second report of a build needs nothing new");

    let stacks = fixtures().join("stacks");
    let symbols = Symbols::scan(std::slice::from_ref(&stacks), &NoProgress);
    let (core, program) = (stacks.join("orders.core"), stacks.join("orders"));
    let capture = || Stacks::core(&core, Some(&program), &symbols, &StackOptions::default()).unwrap();
    let (captured, first) = parsed(capture);
    let images = captured.report.process.images.len() as u64;
    assert!(first <= 2 * images, "{first} files were parsed for {images} images");

    #[cfg(target_os = "linux")]
    {
        let symbols = Symbols::new();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (captured, first) = parsed(|| Stacks::process(child.id(), &symbols, &StackOptions::default()));
        child.kill().unwrap();
        child.wait().unwrap();
        let Ok(captured) = captured else { return eprintln!("processes cannot be captured here") };
        let images = &captured.report.process.images;
        let files: BTreeSet<_> = images.iter().flat_map(|image| &image.symbols.files).collect();
        // What the files answer from, and images that memory alone has.
        assert!(first <= 1 + 2 * images.len() as u64, "{first} parsed, {files:?}");
    }
}
