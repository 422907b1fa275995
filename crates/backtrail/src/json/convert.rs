//! What a conversion came to.

use crate::{ConvertSource, Converted};
use serde::Serialize;
use std::collections::BTreeMap;

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct ConvertedJson {
    /// The table's file.
    output: String,
    /// The files that it was made from.
    inputs: Vec<String>,
    id: Option<String>,
    arch: &'static str,
    functions: u64,
    inlined_calls: u64,
    rows: u64,
    symbols: u64,
    /// What was left out: how often, by reason.
    dropped: BTreeMap<String, u64>,
    seconds: f64,
    bytes_in: u64,
    bytes_out: u64,
    /// Bytes of each section.
    sections: BTreeMap<&'static str, u64>,
    problems: Vec<String>,
    verified: Option<VerifiedJson>,
}

/// What looking everything up again came to.
#[derive(Clone, Debug, Serialize)]
struct VerifiedJson {
    rows: u64,
    ranges: u64,
    differences: u64,
}

/// A conversion for programs.
pub fn converted(source: &ConvertSource, converted: &Converted) -> ConvertedJson {
    let stats = &converted.stats;
    ConvertedJson {
        output: converted.output.display().to_string(),
        inputs: source.file_names(),
        id: source.id.as_ref().map(ToString::to_string),
        arch: source.arch.name(),
        functions: stats.functions,
        inlined_calls: stats.inlines,
        rows: stats.rows,
        symbols: stats.symbols,
        dropped: converted.dropped.iter().cloned().collect(),
        seconds: converted.took.as_secs_f64(),
        bytes_in: converted.bytes_in,
        bytes_out: stats.bytes,
        sections: stats.sections.iter().copied().collect(),
        problems: converted.problems.clone(),
        verified: converted.verified.as_ref().map(|verified| VerifiedJson {
            rows: verified.rows,
            ranges: verified.ranges,
            differences: verified.differences,
        }),
    }
}
