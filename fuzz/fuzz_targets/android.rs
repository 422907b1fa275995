//! Reads anything as text of Android or of Java: tombstones, ANR traces, Java stacks, logs of them. Nothing is filled in, so
//! nothing may change; whatever is read can be explained.
#![no_main]

use backtrail_diagnose::{attribute, explain};
use backtrail_report::{Limits, emit, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut limits = Limits::default();
    limits.max_frames = 10_000;
    limits.max_items = 1_000;
    // A line that makes the rest a report of these kinds, whatever it is.
    let input = [b"*** *** *** *** *** *** *** ***\n".as_slice(), data].concat();
    let Ok(mut report) = parse(&input, &limits) else { return };
    assert!(emit(&input, &report) == input, "nothing is filled in, so nothing may change");
    for frame in report.process.frames_mut() {
        if let Some(span) = &frame.span {
            assert!(input.get(span.clone()).is_some(), "a frame's span lies in the input");
        }
    }
    assert!(!explain(&report).title.is_empty());
    let _ = attribute(&report, &explain(&report));
});
