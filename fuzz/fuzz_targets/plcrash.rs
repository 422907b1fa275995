//! PLCrashReporter's binary reports, whole or damaged: read within limits, explained, never with a frame that lies outside of what was stated.
#![no_main]

use backtrail_diagnose::{attribute, explain};
use backtrail_model::Source;
use backtrail_report::{Limits, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut limits = Limits::default();
    limits.max_frames = 1_000;
    limits.max_items = 1_000;
    limits.max_json_values = 100_000;
    let input = [&b"plcrash\x01"[..], data].concat();
    let Ok(report) = parse(&input, &limits) else { return };
    assert!(!matches!(report.source, Source::ElfCore | Source::Minidump));
    let frames: usize = report.process.threads.iter().map(|thread| thread.frames.len()).sum();
    let others: usize = report.process.backtraces.iter().map(|backtrace| backtrace.frames.len()).sum();
    assert!(frames + others <= limits.max_frames, "the limit of frames holds");
    assert!(!explain(&report).title.is_empty());
    assert!(!attribute(&report, &explain(&report)).evidence.is_empty());
});
