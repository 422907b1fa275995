//! Reads anything as a report, and emits it: unchanged where nothing is filled in, readable where all is.
#![no_main]

use backtrail_core::Function;
use backtrail_diagnose::{add_register_frames, settle_register_frames};
use backtrail_model::Report;
use backtrail_report::{Detected, Limits, detect, emit, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = detect(data);
    let mut limits = Limits::default();
    limits.max_frames = 10_000;
    limits.max_items = 1_000;
    limits.max_json_values = 100_000;
    let Ok(mut report) = parse(data, &limits) else { return };
    assert!(emit(data, &report) == data, "nothing is filled in, so nothing may change");
    check_register_frames(&report);
    for frame in report.process.frames_mut() {
        if let Some(span) = &frame.span {
            assert!(data.get(span.clone()).is_some(), "a frame's span lies in the input");
        }
        let outer = Function { name: "outer".to_owned(), ..Function::default() };
        let inner = Function { name: "in\nner".to_owned(), inlined: true, ..Function::default() };
        frame.functions = vec![inner, outer];
    }
    let filled = emit(data, &report);
    let again = parse(&filled, &limits);
    // What tells JSON from other JSON may have stood behind an address, and what is left may have more zeros than a text.
    let is_text = detect(data) == Detected::AppleText && !data.contains(&0);
    assert!(again.is_ok() || !is_text, "a filled report is a report");
});

/// Frames that only the registers tell: few, marked, in their order, each once.
fn check_register_frames(report: &Report) {
    let mut with = report.clone();
    add_register_frames(&mut with);
    assert_eq!(with.process.threads.len(), report.process.threads.len());
    for (with, without) in with.process.threads.iter().zip(&report.process.threads) {
        let added = with.frames.len().checked_sub(without.frames.len());
        assert!(added.is_some_and(|added| added <= 2), "no frame is lost, and two registers tell of callers");
        let stated =
            |frames: &[backtrail_model::Frame]| frames.iter().filter(|frame| frame.span.is_some()).count();
        assert_eq!(stated(&with.frames), stated(&without.frames), "what the report states stays");
    }
    let before: usize = with.process.threads.iter().map(|thread| thread.frames.len()).sum();
    let taken = settle_register_frames(&mut with).len();
    let after: usize = with.process.threads.iter().map(|thread| thread.frames.len()).sum();
    assert_eq!(before, after + taken, "what is taken back is given back");
    let mut twice = with.clone();
    add_register_frames(&mut twice);
    settle_register_frames(&mut twice);
    let again: usize = twice.process.threads.iter().map(|thread| thread.frames.len()).sum();
    assert!(again <= before, "asking twice adds nothing");
}
