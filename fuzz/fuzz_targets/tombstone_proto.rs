//! Reads anything as a tombstone in a protocol buffer.
#![no_main]

use backtrail_diagnose::{attribute, explain};
use backtrail_report::{Limits, emit, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut limits = Limits::default();
    limits.max_frames = 10_000;
    limits.max_items = 1_000;
    // What it is recognised by: a fingerprint and a process id.
    let input = [b"\x08\x01\x12\x05a/b:c\x28\x01".as_slice(), data].concat();
    let report = parse(&input, &limits);
    let Ok(report) = report else { panic!("it is one, however broken the rest") };
    assert!(emit(&input, &report) == input, "nothing is filled in, so nothing may change");
    assert!(!explain(&report).title.is_empty());
    let _ = attribute(&report, &explain(&report));
});
