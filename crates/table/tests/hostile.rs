//! Broken tables: an error or an answer, never a panic, never a loop.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod model;

use backtrail_table::{ErrorKind, Lookup, Table};
use model::{Model, Random, svma};

fn small() -> Vec<u8> {
    let mut model = Model::random(&mut Random(17), 3, 80);
    model.sections = vec![(0, 100, true)];
    model.build(|number| number).0
}

/// Everything that can be asked, on a table that may be broken.
fn ask_everything(data: &[u8], space: u64) {
    let Ok(table) = Table::open(data) else { return };
    let mut text = Vec::new();
    for at in 0..space {
        match table.lookup(svma(at)) {
            Lookup::Found(found) => {
                for frame in found.frames() {
                    text.clear();
                    [frame.name, frame.linkage_name]
                        .into_iter()
                        .flatten()
                        .for_each(|name| name.append_to(&mut text));
                    frame.file.inspect(|file| file.append_to(&mut text));
                }
                let _ = (found.function_start(), format!("{found:?}"));
            }
            Lookup::Symbol(symbol) => drop(symbol.name.map(|name| name.to_text())),
            Lookup::None(_) => {}
        }
    }
    let functions = table.functions().take(1000).filter(Result::is_ok).count();
    let symbols = table.symbols().take(1000).filter(Result::is_ok).count();
    let _ = (functions, symbols, table.check(), table.stats(), table.dropped());
}

/// Writes the checksums anew, so that what is broken behind them is read.
fn mend(bytes: &mut [u8]) {
    const HEADER: usize = 160;
    const ENTRY: usize = 32;
    let number = |bytes: &[u8], at: usize, size: usize| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(&bytes[at..at + size]);
        u64::from_le_bytes(wide) as usize
    };
    let count = number(bytes, 52, 4).min((bytes.len() - HEADER) / ENTRY);
    for entry in (0..count).map(|index| HEADER + index * ENTRY) {
        let (offset, size) = (number(bytes, entry + 8, 8), number(bytes, entry + 16, 8));
        if let Some(section) = offset.checked_add(size).and_then(|end| bytes.get(offset..end)) {
            let checksum = crc32fast::hash(section);
            bytes[entry + 4..entry + 8].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let directory = crc32fast::hash(&bytes[HEADER..HEADER + count * ENTRY]);
    bytes[HEADER - 8..HEADER - 4].copy_from_slice(&directory.to_le_bytes());
    let header = crc32fast::hash(&bytes[..HEADER - 4]);
    bytes[HEADER - 4..HEADER].copy_from_slice(&header.to_le_bytes());
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = small();
    for end in 0..bytes.len() {
        assert!(Table::open(&bytes[..end]).is_err(), "{end} bytes");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(Table::open(&longer).is_err());
}

#[test]
fn every_changed_byte_is_found_by_the_checksums() {
    let bytes = small();
    let table = Table::open(&bytes).unwrap();
    table.check().unwrap();
    let mut covered = vec![true; bytes.len()];
    // What lies between the sections is zero and belongs to none.
    let end = 160 + 6 * 32;
    let sections = (0..6).map(|index| 160 + index * 32).map(|at| {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        number(at + 8)..number(at + 8) + number(at + 16)
    });
    let sections: Vec<_> = sections.collect();
    covered[end..].fill(false);
    sections.into_iter().for_each(|section| covered[section].fill(true));
    let mut broken = bytes.clone();
    for at in (0..bytes.len()).filter(|at| covered[*at]) {
        broken[at] ^= 0x10;
        let found = Table::open(&broken).and_then(|table| table.check());
        let error = found.expect_err("a changed byte");
        let known = [
            ErrorKind::NotATable,
            ErrorKind::UnsupportedVersion,
            ErrorKind::Truncated,
            ErrorKind::Checksum,
            ErrorKind::Malformed,
        ];
        assert!(known.contains(&error.kind()), "byte {at:#x}: {error}");
        broken[at] = bytes[at];
    }
}

#[test]
fn what_is_malformed_is_named_with_its_place() {
    let bytes = small();
    let sections = |kind: u32| {
        let entry = (0..7).map(|index| 160 + index * 32).find(|at| bytes[*at..*at + 4] == kind.to_le_bytes());
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let entry = entry.unwrap();
        number(entry + 8)..number(entry + 8) + number(entry + 16)
    };
    let mut told = std::collections::BTreeSet::new();
    for at in (160 + 7 * 32)..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] = 0xff;
        mend(&mut broken);
        let Err(error) = Table::open(&broken).and_then(|table| table.check()) else { continue };
        let place = error.offset().unwrap();
        let section = (1..=7).find(|kind| sections(*kind).contains(&place));
        let section = section.unwrap_or_else(|| panic!("byte {at:#x}: {error}: not in a section"));
        if sections(section).contains(&(at as u64)) {
            told.insert(section);
        }
    }
    // Index, bodies, names, files: broken in one of them, named in the same.
    assert!(told.len() >= 4, "{told:?}");
}

#[test]
fn no_changed_byte_makes_a_panic() {
    let bytes = small();
    let mut random = Random(3);
    for at in 0..bytes.len() {
        for value in [0, 0xff, bytes[at] ^ 1, random.below(256) as u8] {
            let mut broken = bytes.clone();
            broken[at] = value;
            mend(&mut broken);
            ask_everything(&broken, 120);
        }
    }
}

#[test]
fn no_change_of_many_bytes_makes_a_panic() {
    let bytes = small();
    let mut random = Random(29);
    for _ in 0..1500 {
        let mut broken = bytes.clone();
        for _ in 0..=random.below(12) {
            let at = random.below(bytes.len() as u64) as usize;
            broken[at] = random.below(256) as u8;
        }
        mend(&mut broken);
        ask_everything(&broken, 120);
    }
}

#[test]
fn errors_say_what_was_expected_and_where() {
    let bytes = small();
    let message = |data: &[u8]| Table::open(data).expect_err("a broken table").to_string();
    assert_eq!(
        message(b"\x7fELF"),
        "not a symbol table file, at byte 0x0: expected the bytes 89 42 54 53 59 4d 0d 0a"
    );
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert_eq!(message(&newer), "not a version that is read here, at byte 0x8: expected version 1, found 2");
    assert_eq!(message(&bytes[..40]), "the file ends too early, at byte 0x28: expected 160 bytes");
    let mut damaged = bytes;
    damaged[24] ^= 1;
    assert_eq!(message(&damaged), "damaged symbol table file, at byte 0x9c: expected the header's checksum");
}
