//! Reads anything as a report, and emits it: unchanged where nothing is filled in, readable where all is.
#![no_main]

use backtrail_core::Function;
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
    for frame in report.frames_mut() {
        if let Some(span) = &frame.span {
            assert!(data.get(span.clone()).is_some(), "a frame's span lies in the input");
        }
        let outer = Function { name: "outer".to_owned(), ..Function::default() };
        let inner = Function { name: "in\nner".to_owned(), inlined: true, ..Function::default() };
        frame.functions = vec![inner, outer];
    }
    let filled = emit(data, &report);
    let again = parse(&filled, &limits);
    // What tells JSON from other JSON may have stood behind an address.
    let is_text = detect(data) == Detected::AppleText;
    assert!(again.is_ok() || !is_text, "a filled report is a report");
});
