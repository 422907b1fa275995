//! Real reports against counts taken from the files by other means.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails")]

mod android;
mod apple_kinds;
mod conversions;
mod counts;
mod cuts;
mod kinds;
mod losses;
mod pairs;
mod reporters;
mod runtimes;

use backtrail_model::Report;
use backtrail_report::{Limits, parse};
use std::path::{Path, PathBuf};

fn read(path: &Path) -> (Vec<u8>, Report) {
    let input = std::fs::read(path).unwrap();
    let report =
        parse(&input, &Limits::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (input, report)
}

/// Every file below a directory of the corpus whose name ends so; none where the corpus is absent.
fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let Some(directory) = backtrail_testkit::corpus_file(directory) else { return Vec::new() };
    let (mut found, mut open) = (Vec::new(), vec![directory]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every text report of the corpus, `.ips` with a text body included.
fn text_reports() -> Vec<PathBuf> {
    let mut found = files("apple/text", "");
    found.extend(files("crashprobe/reports", ".crash"));
    found.extend(files("apple/ips", "AppleDemo.ips"));
    found.extend(files("apple/ips", "AppleConverted.log"));
    found.extend(files("apple/plcrash", "log_report_xamarin"));
    found
}

/// Every report of the corpus whose body is JSON.
fn json_reports() -> Vec<PathBuf> {
    let mut found = files("crashprobe/reports", ".ips");
    found.extend(files("apple/ips", "AppleJson.ips"));
    found.extend(files("apple/ips", "DuckDuckGo-ExampleCrash.ips"));
    found
}

/// A file of one report is not divided, whatever lines it has; dividing and reading gives what reading gives.
#[test]
fn a_report_is_one_document() {
    let directories = [
        "apple/sample",
        "apple/ips",
        "apple/text",
        "apple/metrickit",
        "apple/kscrash",
        "android",
        "kinds/apple-hang",
        "kinds/apple-resource",
        "kinds/apple-panic",
        "kinds/apple-jetsam",
        "kinds/apple-watchdog",
        "kinds/apple-ips-other",
        "kinds/apple-simulator",
        "kinds/swift-backtrace",
        "kinds/android-tombstone",
        "kinds/android-tombstone-pb",
        "kinds/android-anr",
        "kinds/java",
        "kinds/java-threaddump",
    ];
    let paths = directories.iter().flat_map(|directory| files(directory, ""));
    let mut divided = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let whole = parse(&bytes, &Limits::default());
        let documents = backtrail_report::documents(&bytes);
        if whole.is_ok() && documents.len() != 1 {
            let name = path.file_name().unwrap_or_default().display();
            divided.push(format!("{name}: {}", documents.len()));
        }
    }
    // Payloads of several diagnostics.
    let expected =
        ["xcode_simulated.json: 4", "xcode_simulated_macOS_12.json: 4", "xcode_simulated_macOS_13.json: 5"];
    assert!(divided == expected || backtrail_testkit::corpus().is_none(), "{divided:?}");
}
