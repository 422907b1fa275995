//! Link maps: whatever the text, reading ends, and the pieces are in order.
#![no_main]

use backtrail_sdk::LinkMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(map) = LinkMap::parse(data) else { return };
    let starts: Vec<_> = map.pieces().map(|piece| piece.range.start()).collect();
    assert!(starts.is_sorted() && !starts.is_empty());
});
