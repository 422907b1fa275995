//! GSYM files: whatever the bytes, reading ends, and what was read can be written and read again.
#![no_main]

use backtrail_core::Svma;
use backtrail_table::exchange::{PlainPath, Sink};
use backtrail_table::gsym::{Gsym, GsymWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(gsym) = Gsym::open(data) else { return };
    let mut writer = GsymWriter::new(gsym.id(), gsym.image_base());
    let mut numbers = Vec::new();
    for number in 1..64 {
        let path = gsym.file(number).unwrap_or(PlainPath { directory: b"", name: b"?" });
        numbers.push(writer.file(path).unwrap());
    }
    let mut addresses = vec![Svma::new(0), Svma::new(u64::MAX)];
    for function in gsym.functions().flatten() {
        addresses.extend(function.ranges.iter().flat_map(|range| [range.start(), range.end()]));
        addresses.extend(function.rows.iter().map(|row| row.address).take(4));
        writer.function(&function).unwrap();
    }
    for address in addresses.iter().take(512) {
        let _ = gsym.merged(*address);
        if let Some(answer) = gsym.lookup(*address) {
            assert!(!answer.frames.is_empty() && answer.start <= *address);
        }
    }
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    let again = Gsym::open(&out).unwrap();
    assert!(again.functions().all(|function| function.is_ok()));
});
