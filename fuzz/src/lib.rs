//! What several targets do alike.

use backtrail_diagnose::{attribute, explain};
use backtrail_model::Source;
use backtrail_report::{Limits, parse};

/// A reporter's report, whole or damaged, is read within limits and explained. `start` is what its kind is known by, so that
/// the fuzzer need not find it.
pub fn reporter(start: &[u8], data: &[u8]) {
    let mut limits = Limits::default();
    limits.max_frames = 1_000;
    limits.max_items = 1_000;
    limits.max_json_values = 100_000;
    let Ok(report) = parse(&[start, data].concat(), &limits) else { return };
    assert!(!matches!(report.source, Source::ElfCore | Source::Minidump));
    let frames: usize = report.process.threads.iter().map(|thread| thread.frames.len()).sum();
    let others: usize = report.process.backtraces.iter().map(|backtrace| backtrace.frames.len()).sum();
    assert!(frames + others <= limits.max_frames, "the limit of frames holds");
    let explanation = explain(&report);
    assert!(!explanation.title.is_empty());
    assert!(!attribute(&report, &explanation).evidence.is_empty());
}
