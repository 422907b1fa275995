//! Breakpad symbol files: whatever the bytes, reading ends, and what was read can be written and read again.
#![no_main]

use backtrail_core::Svma;
use backtrail_table::breakpad::{Breakpad, BreakpadWriter};
use backtrail_table::exchange::{PlainPath, Sink};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = Breakpad::open(data) else { return };
    let _ = (file.module().id(), file.module().arch());
    let mut writer = BreakpadWriter::new(file.module().clone(), Svma::new(0));
    for number in 0..16 {
        let path = file.file(number).unwrap_or(PlainPath { directory: b"", name: b"?" });
        writer.file(path).unwrap();
    }
    let mut addresses = vec![Svma::new(0), Svma::new(u64::MAX)];
    for function in file.functions() {
        addresses.extend(function.ranges.iter().flat_map(|range| [range.start(), range.end()]));
        addresses.extend(function.rows.iter().map(|row| row.address).take(4));
        writer.function(&function).unwrap();
    }
    for (address, name) in file.publics() {
        addresses.push(address);
        writer.symbol(backtrail_core::AddrRange::from_size(address, 1), name).unwrap();
    }
    for address in addresses.iter().take(512) {
        if let Some(answer) = file.lookup(*address) {
            assert!(!answer.frames.is_empty() && answer.start <= *address);
        }
    }
    let mut out = Vec::new();
    let stack: Vec<_> =
        file.stack().iter().map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
    writer.finish(stack.iter().map(String::as_str), &mut out).unwrap();
    if Breakpad::is_breakpad(&out) {
        assert_eq!(Breakpad::open(&out).unwrap().stack().len(), stack.len());
    }
});
