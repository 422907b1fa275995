//! Any bytes as a symbol table file: opened, asked for addresses, listed, checked.
#![no_main]

use backtrail_core::Svma;
use backtrail_table::{Lookup, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mended = mend(data);
    let Ok(table) = Table::open(&mended) else { return };
    let mut text = Vec::new();
    let base = table.header().image_base.get();
    let addresses =
        || (0..400).chain([u64::MAX - base, u64::MAX / 2]).map(|at| Svma::new(base.wrapping_add(at)));
    for (address, many) in table.lookup_many(addresses()) {
        let one = table.lookup(address);
        assert_eq!(format!("{many:?}"), format!("{one:?}"));
        match one {
            Lookup::Found(found) => {
                for frame in found.frames() {
                    text.clear();
                    for name in [frame.name, frame.linkage_name].into_iter().flatten() {
                        name.append_to(&mut text);
                    }
                    frame.file.inspect(|file| file.append_to(&mut text));
                }
            }
            Lookup::Symbol(symbol) => drop(symbol.name.map(|name| name.to_text())),
            Lookup::None(_) => {}
        }
    }
    for function in table.functions().take(1000).flatten() {
        assert!(function.ranges.iter().all(|range| range.start() <= range.end()));
    }
    let _ = table.symbols().take(1000).flatten().count();
    let _ = (table.check(), table.stats());
});

/// Writes the checksums anew: behind them is what is to be broken.
fn mend(data: &[u8]) -> Vec<u8> {
    const HEADER: usize = 160;
    const ENTRY: usize = 32;
    let mut bytes = data.to_vec();
    if bytes.len() < HEADER {
        return bytes;
    }
    let size = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&size.to_le_bytes());
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let count = usize::from(bytes[52]).min((bytes.len() - HEADER) / ENTRY);
    for entry in (0..count).map(|index| HEADER + index * ENTRY) {
        let (offset, size) = (number(&bytes, entry + 8), number(&bytes, entry + 16));
        if let Some(section) = offset.checked_add(size).and_then(|end| bytes.get(offset..end)) {
            let checksum = crc32fast::hash(section);
            bytes[entry + 4..entry + 8].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let directory = crc32fast::hash(&bytes[HEADER..HEADER + count * ENTRY]);
    bytes[HEADER - 8..HEADER - 4].copy_from_slice(&directory.to_le_bytes());
    let header = crc32fast::hash(&bytes[..HEADER - 4]);
    bytes[HEADER - 4..HEADER].copy_from_slice(&header.to_le_bytes());
    bytes
}
