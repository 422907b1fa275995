//! Reports of events that are no crashes: memory events, panics of the kernel, hangs, limits, snapshots, metrics.
//!
//! One file a family. Each says what it was, which limit was passed, what was observed and who it was, from the report's own
//! words.

pub(super) mod jetsam;
pub(super) mod machine;
pub(super) mod metrickit;
pub(super) mod other;
pub(super) mod panic;
pub(super) mod samples;
pub(super) mod stackshot;
#[cfg(test)]
mod tests;

use super::facts::{Facts, field};
use backtrail_model::{Process, Report, Source};

/// Whether the report is of an event whose stacks, if any, show no place of a fault.
pub(super) fn has_no_place(facts: &Facts<'_>) -> bool {
    let of_many = matches!(
        facts.report.source,
        Source::AppleJetsam | Source::ApplePanic | Source::AppleStackshot | Source::AppleIpsOther
    );
    // The innermost frame of the heaviest stack is told by the rules of samples.
    let is_told = facts.report.source == Source::AppleSamples
        && facts.suspect.as_ref().is_some_and(|suspect| suspect.position == 0);
    of_many || is_told || (facts.report.event.is_some() && facts.stack.is_empty())
}

/// What a process is called in a sentence.
fn name_of(process: &Process) -> String {
    let name = process.name.as_deref().or(process.identifier.as_deref()).unwrap_or("the process");
    process.pid.map_or_else(|| name.to_owned(), |pid| format!("{name} [{pid}]"))
}

/// The report's own process, then the others.
fn all(report: &Report) -> impl Iterator<Item = &Process> {
    std::iter::once(&report.process).chain(&report.processes)
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let megabytes = bytes as f64 / (1024.0 * 1024.0);
    if megabytes >= 1024.0 { format!("{:.2} GB", megabytes / 1024.0) } else { format!("{megabytes:.1} MB") }
}
