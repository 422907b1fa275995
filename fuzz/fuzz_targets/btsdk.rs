//! Fingerprints: whatever the bytes, reading ends, and what was read is written again as the same bytes, but for numbers that
//! were longer than needed. Looking for the library in addresses ends, too.
#![no_main]

use backtrail_core::{Arch, Rva};
use backtrail_sdk::{BuildStacks, CodeOffset, Fingerprint, mine};
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
    let offset = |word: &[u8; 4]| CodeOffset::Return(Rva::new(u32::from_le_bytes(*word).into()));
    let stack: Vec<_> = data.as_chunks::<4>().0.iter().take(64).map(|word| Some(offset(word))).collect();
    for (arch, is_mach_o) in [(Arch::Arm64, true), (Arch::X86_64, false)] {
        let mut build = BuildStacks::new(arch, is_mach_o);
        build.stacks = vec![stack.clone()];
        for found in mine(&build, &[], std::slice::from_ref(&fingerprint)) {
            assert!(found.hits <= found.addresses && !found.chance.is_nan());
        }
    }
});
