//! Which builds have a library's code, told by addresses alone.

use crate::sdk::{Build, Sighting};
use serde::Serialize;

/// One build with what may be in it.
#[derive(Clone, Debug, Serialize)]
pub struct MinedJson<'a> {
    build: BuildJson<'a>,
    libraries: Vec<SightingJson<'a>>,
    /// Those that have frames in a library that is claimed.
    reports: Vec<MinedReportJson<'a>>,
}

#[derive(Clone, Debug, Serialize)]
struct BuildJson<'a> {
    name: &'a str,
    id: String,
    arch: &'static str,
    version: Option<&'a str>,
    reports: usize,
}

#[derive(Clone, Debug, Serialize)]
struct SightingJson<'a> {
    name: &'a str,
    version: &'a str,
    /// `null`: not decidable, the best place only.
    confidence: Option<&'static str>,
    how: &'static str,
    /// Offsets from the image's start; the end is not part of it.
    ranges: Vec<RangeJson>,
    hits: usize,
    misses: usize,
    calls: usize,
    addresses: usize,
    tried: u64,
    chance: f64,
    elsewhere: f64,
}

#[derive(Clone, Debug, Serialize)]
struct RangeJson {
    start: String,
    end: String,
}

#[derive(Clone, Debug, Serialize)]
struct MinedReportJson<'a> {
    report: &'a str,
    frames: Vec<MinedFrameJson<'a>>,
}

#[derive(Clone, Debug, Serialize)]
struct MinedFrameJson<'a> {
    stack: usize,
    crashed: bool,
    frame: u32,
    offset: String,
    library: &'a str,
}

/// One build and the libraries that may be in it, for programs.
pub fn mined<'a>(build: &'a Build, libraries: &'a [Sighting]) -> MinedJson<'a> {
    let sightings = libraries.iter().map(|found| SightingJson {
        name: &found.name,
        version: &found.version,
        confidence: found.confidence.map(backtrail_core::Confidence::as_str),
        how: found.how,
        ranges: found
            .ranges
            .iter()
            .map(|(start, end)| RangeJson { start: start.to_string(), end: end.to_string() })
            .collect(),
        hits: found.hits,
        misses: found.misses,
        calls: found.calls,
        addresses: found.addresses,
        tried: found.tried,
        chance: found.chance,
        elsewhere: found.elsewhere,
    });
    let reports = build.reports.iter().map(|report| MinedReportJson {
        report: &report.name,
        frames: report
            .frames
            .iter()
            .filter_map(|frame| {
                Some(MinedFrameJson {
                    stack: frame.stack,
                    crashed: frame.crashed,
                    frame: frame.index,
                    offset: frame.address.rva().to_string(),
                    library: libraries.iter().find(|found| found.owns(frame.address))?.name.as_str(),
                })
            })
            .collect(),
    });
    MinedJson {
        build: BuildJson {
            name: &build.name,
            id: build.id.to_string(),
            arch: build.arch().name(),
            version: build.version.as_deref(),
            reports: build.reports.len(),
        },
        libraries: sightings.collect(),
        reports: reports.filter(|report| !report.frames.is_empty()).collect(),
    }
}
