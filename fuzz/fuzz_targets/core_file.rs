//! Any bytes as an ELF core.
#![no_main]

use backtrail_capture::{Limits, elf_core};
use backtrail_core::ReadMemory as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(snapshot) = elf_core::read(data, Some(data), &Limits::default()) else { return };
    assert!(!snapshot.threads.is_empty());
    assert!(snapshot.memory.size() <= data.len() as u64 * 2 + 1 || snapshot.memory.ranges().count() > 1);
    let mut end = None;
    for range in snapshot.memory.ranges() {
        assert!(!range.is_empty() && end.is_none_or(|end| end <= range.start()));
        assert!(snapshot.memory.read(range.start(), &mut [0]).is_ok());
        end = Some(range.end());
    }
});
