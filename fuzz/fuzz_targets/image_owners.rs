//! What a server keeps of whose code is where in a build: whatever the bytes, reading ends, takes no more memory than they back, and what was
//! read is written again as the same.
#![no_main]

use backtrail::sdk::ImageOwners;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The hash at the end would keep everything else out.
    let mut bytes = data.to_vec();
    if let Some(end) = bytes.len().checked_sub(32) {
        let hash = blake3::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(hash.as_bytes());
    }
    let Some(owners) = ImageOwners::from_bytes(&bytes) else { return };
    assert!(owners.memory() <= 1024 + 16 * bytes.len());
    let _ = (owners.link_map(), owners.problems());
    assert_eq!(ImageOwners::from_bytes(&owners.to_bytes()), Some(owners));
});
