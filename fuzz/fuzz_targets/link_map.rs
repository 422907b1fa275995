//! Link maps: whatever the text, reading ends, the pieces are in order, and ranges of files say what addresses say.
#![no_main]

use backtrail_sdk::LinkMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(map) = LinkMap::parse(data) else { return };
    let starts: Vec<_> = map.pieces().map(|piece| piece.range.start()).collect();
    assert!(starts.is_sorted() && !starts.is_empty());
    for (range, file) in map.file_ranges() {
        assert_eq!(map.file_at(range.start()), Some(file));
    }
});
