//! The reports in few bytes, for the test that every change has to pass.

use crate::Result;
use crate::reports::Report;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Of each bug these builds, each with another release and another way.
const BUILDS: [&str; 3] = ["x86_64 -O0 0 menu", "x86_64 -O2 1 script", "x86_64 -O3 2 menu"];

/// Whether the reports have that build.
pub(crate) fn is_wanted(build: &str) -> bool {
    BUILDS.contains(&build)
}

/// Frames of a stack, those that repeat counted once.
const MAX_FRAMES: usize = 20;

/// Writes a line for each report and, below it, one for each frame: how often it follows itself, image, build id, offset, names
/// from the innermost inlined one out. Tabs are between them.
pub(crate) fn write(file: &Path, reports: &[Report]) -> Result<()> {
    let mut out = String::new();
    for report in reports {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "report\t{}\t{}\t{}", report.bug, report.build, report.event);
        let mut frames: Vec<(usize, String)> = Vec::new();
        for frame in &report.frames {
            let line = line_of(frame);
            match frames.last_mut() {
                Some((count, last)) if *last == line => *count += 1,
                _ => frames.push((1, line)),
            }
        }
        for (count, line) in frames.iter().take(MAX_FRAMES) {
            let _ = writeln!(out, "frame\t{count}\t{line}");
        }
    }
    fs::write(file, out).map_err(|error| format!("{}: {error}", file.display()))
}

fn line_of(frame: &Value) -> String {
    let text = |path: &str| frame.pointer(path).and_then(Value::as_str).unwrap_or("-").to_owned();
    let functions = frame.get("functions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut names: Vec<String> = functions
        .iter()
        .filter_map(|function| function.get("name").and_then(Value::as_str).map(str::to_owned))
        .collect();
    if names.is_empty() {
        names.extend(frame.pointer("/symbol/name").and_then(Value::as_str).map(str::to_owned));
    }
    let place = [text("/image"), text("/image_id"), text("/relative_pc")];
    place.into_iter().chain(names).collect::<Vec<_>>().join("\t")
}
