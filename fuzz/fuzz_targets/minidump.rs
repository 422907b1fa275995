//! Any bytes as a minidump.
#![no_main]

use backtrail_capture::{Limits, minidump};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(snapshot) = minidump::read(data, &Limits::default()) {
        assert!(snapshot.memory.ranges().count() <= data.len());
    }
});
