//! Any bytes as a crash file.
#![no_main]

use backtrail_capture::{Limits, crash_file};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(file) = crash_file::read(data, &Limits::default()) {
        let snapshot = &file.snapshot;
        assert!(snapshot.memory.size() <= data.len() as u64);
        assert!(snapshot.threads.len() + snapshot.images.len() + file.notes.len() <= data.len());
        // A file that is cut off has nothing that the whole one lacks.
        let half = data.get(..data.len() / 2).unwrap_or_default();
        if let Ok(cut) = crash_file::read(half, &Limits::default()) {
            assert!(cut.snapshot.threads.len() <= snapshot.threads.len());
        }
    }
});
