//! Divides anything into reports: never none, all of the input from the first on unless it was cleaned, and each part may be parsed.
#![no_main]

use backtrail_report::{Limits, documents, parse};
use libfuzzer_sys::fuzz_target;
use std::borrow::Cow;

fuzz_target!(|data: &[u8]| {
    let found = documents(data);
    assert!(!found.is_empty(), "an input is at least one report");
    let is_array = data.trim_ascii_start().starts_with(b"[");
    if found.iter().all(|document| matches!(document.bytes, Cow::Borrowed(_))) && !is_array {
        let whole: Vec<u8> = found.iter().flat_map(|document| document.bytes.iter().copied()).collect();
        assert!(data.ends_with(&whole), "the parts are the input from the first on");
    }
    let mut limits = Limits::default();
    limits.max_json_values = 100_000;
    for document in found.iter().take(100) {
        let _ = parse(&document.bytes, &limits);
    }
});
