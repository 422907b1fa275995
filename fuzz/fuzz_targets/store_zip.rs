//! A zip out of unknown hands: looked through, every file in it opened.
#![no_main]

use std::path::Path;

use backtrail_store::{ErrorKind, Index, ScanOptions};
use libfuzzer_sys::fuzz_target;

/// Little of everything, so that an input that makes us work without end shows as slow.
const INFLATED: u64 = 16 << 20;

fuzz_target!(|data: &[u8]| {
    let mut options = ScanOptions::default();
    options.limits.inflated_bytes = INFLATED;
    options.limits.nested_zip_bytes = 1 << 20;
    options.limits.member_bytes = 4 << 20;
    let index = Index::of_bytes(Path::new("in.zip"), data.to_vec(), &options);
    for entry in index.entries() {
        match index.open(entry) {
            Ok(data) => {
                assert!(data.len() as u64 <= options.limits.member_bytes.max(entry.identity.range.size()))
            }
            Err(error) => assert_ne!(error.kind(), ErrorKind::NotAFile, "{error}"),
        }
        for name in entry.names() {
            assert!(index.named(name).contains(&entry), "{name} does not lead to {}", entry.location);
        }
        if let Some(id) = &entry.identity.id {
            assert!(index.find(id, Some(entry.identity.arch)).contains(&entry));
        }
        assert!(!entry.location.to_string().contains(char::is_control));
    }
    for problem in index.problems() {
        assert!(!problem.place().contains(char::is_control), "{problem:?}");
    }
});
