//! Fingerprints: whatever the bytes, reading ends, and what was read is written again as the same bytes, but for numbers that
//! were longer than needed.
#![no_main]

use backtrail_sdk::Fingerprint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The hash at the end would keep everything else out.
    let mut bytes = data.to_vec();
    if let Some(end) = bytes.len().checked_sub(8) {
        let hash = blake3::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&hash.as_bytes()[..8]);
    }
    let Ok(fingerprint) = Fingerprint::from_bytes(&bytes) else { return };
    let written = fingerprint.to_bytes();
    assert!(written.len() <= bytes.len());
    assert_eq!(Fingerprint::from_bytes(&written).unwrap(), fingerprint);
});
