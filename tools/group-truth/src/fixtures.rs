//! The reports in few bytes, for the test that every change has to pass.

use crate::Result;
use crate::reports::Report;
use serde_json::json;
use std::fs;
use std::path::Path;

/// Writes one line a report: of each bug a few builds, with names and without.
pub(crate) fn write(file: &Path, reports: &[Report]) -> Result<()> {
    let wanted = |report: &&Report| {
        let of_builds =
            ["x86_64 -O0 0 menu", "x86_64 -O2 1 script", "arm64 -O2 2 menu", "arm64 -O0 1 script"];
        of_builds.contains(&report.build.as_str())
            && matches!(report.form.as_str(), "whole" | "without names")
    };
    let mut lines = String::new();
    for report in reports.iter().filter(wanted) {
        let frames: Vec<_> = report
            .frames
            .iter()
            .take(14)
            .map(|frame| {
                let names =
                    frame.pointer("/functions").and_then(|it| it.as_array()).cloned().unwrap_or_default();
                let names: Vec<_> =
                    names.iter().filter_map(|function| function.get("name").cloned()).collect();
                let names = if names.is_empty() {
                    frame.pointer("/symbol/name").cloned().into_iter().collect()
                } else {
                    names
                };
                json!({ "image": frame.get("image"), "pc": frame.get("relative_pc"), "names": names })
            })
            .collect();
        let line = json!({ "bug": report.bug, "build": report.build, "form": report.form, "signal": report.event, "frames": frames });
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    fs::write(file, lines).map_err(|error| format!("{}: {error}", file.display()))
}
