//! Packed reports and archives of them: bounded, whatever they state.
#![no_main]

use backtrail_store::{Archive, unpack};
use libfuzzer_sys::fuzz_target;

const MAX: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    if let Ok(unpacked) = unpack(data.to_vec(), MAX) {
        assert!(unpacked.data.len() <= MAX.max(data.len()));
    }
    let Ok(archive) = Archive::of_bytes("in.zip", data.to_vec().into(), MAX) else { return };
    for position in 0..archive.members().len().min(100) {
        if let Ok(bytes) = archive.read(position) {
            assert!(bytes.len() <= MAX);
        }
    }
});
