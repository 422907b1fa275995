//! Reads anything as a mapping file of R8, and retraces anything with it: the text's other lines stay.
#![no_main]

use backtrail_symbolize::mapping::{Mapping, MappingHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = MappingHead::read(data);
    // A byte 0 parts the mapping from the text.
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (mapping, text) = data.split_at(at);
    let Some(mapping) = Mapping::new(mapping) else { return };
    let text = String::from_utf8_lossy(text.get(1..).unwrap_or_default());
    for is_verbose in [false, true] {
        let found = mapping.retrace(&text, is_verbose);
        // A line has at most 64 answers, each of some frames.
        assert!(found.len() <= 1 << 26, "{}", found.len());
    }
});
