//! Files of more than 4 GiB: small ones, spread over sparse files. What lies where is the only difference to the small ones,
//! so the answers are the same.

use crate::run::{Run, backtrail};
use backtrail_testkit::{TempDir, fixtures};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join("symbolize/bin").join(name)).unwrap()
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut number = [0; 8];
    number[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(number)
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// Writes pieces at their offsets with holes between them. `None` where the file system wants holes to be full, or
/// has no files of this size.
fn sparse(path: PathBuf, pieces: &[(u64, &[u8])]) -> Option<PathBuf> {
    let mut file = File::create(&path).unwrap();
    for (offset, bytes) in pieces {
        let written = file.seek(SeekFrom::Start(*offset)).and_then(|_| file.write_all(bytes));
        if let Err(error) = written {
            eprintln!("no sparse files here: {error}");
            return None;
        }
    }
    is_sparse(&file).then_some(path)
}

#[cfg(unix)]
fn is_sparse(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.sync_all().unwrap();
    let blocks = file.metadata().unwrap().blocks();
    // Of 512 bytes each.
    let is_sparse = blocks < (64 << 20) / 512;
    if !is_sparse {
        eprintln!("no sparse files here: {blocks} blocks are taken");
    }
    is_sparse
}

#[cfg(not(unix))]
fn is_sparse(_: &File) -> bool {
    eprintln!("sparse files have to be asked for here");
    false
}

/// A section of a 64-bit ELF file.
struct Section {
    name: String,
    /// Of its header.
    at: usize,
    offset: usize,
    size: usize,
}

fn sections(elf: &[u8]) -> Vec<Section> {
    let (table, count) = (number(elf, 0x28, 8) as usize, number(elf, 0x3c, 2) as usize);
    let of = |index: usize, field: usize, size| number(elf, table + index * 64 + field, size) as usize;
    let names = of(number(elf, 0x3e, 2) as usize, 0x18, 8);
    let name = |at: usize| elf[at..].split(|byte| *byte == 0).next().unwrap();
    let section = |index| Section {
        name: String::from_utf8_lossy(name(names + of(index, 0, 4))).into_owned(),
        at: table + index * 64,
        offset: of(index, 0x18, 8),
        size: of(index, 0x20, 8),
    };
    (0..count).map(section).collect()
}

/// The same file with debug info from 4 GiB on, symbols from 2 GiB on, and the section headers behind 5 GiB.
fn spread(elf: &[u8], to: PathBuf) -> Option<PathBuf> {
    let mut elf = elf.to_vec();
    let all = sections(&elf);
    let mut pieces = Vec::new();
    for (index, section) in (0..).zip(&all) {
        let base = match &*section.name {
            name if name.starts_with(".debug_") => 4 * GIB,
            ".symtab" | ".strtab" | ".shstrtab" => 2 * GIB,
            _ => continue,
        };
        // The one before ends across the border.
        let offset = base - 64 + index * 0x10_0000;
        put(&mut elf, section.at + 0x18, offset);
        pieces.push((offset, elf[section.offset..section.offset + section.size].to_vec()));
    }
    let (headers, end) = (number(&elf, 0x28, 8) as usize, 5 * GIB + 24);
    pieces.push((end, elf[headers..headers + 64 * all.len()].to_vec()));
    put(&mut elf, 0x28, end);
    let first = all.iter().filter(|one| one.name.starts_with(".debug_")).map(|one| one.offset).min().unwrap();
    elf.truncate(first);
    pieces.push((0, elf));
    let pieces: Vec<_> = pieces.iter().map(|(offset, bytes)| (*offset, &**bytes)).collect();
    sparse(to, &pieces)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn done(arguments: &[&str]) -> Run {
    let run = backtrail(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    run
}

/// An answer may be that something is not known.
fn looked_up(arguments: &[&str]) -> String {
    let run = backtrail(arguments);
    assert!(run.code <= 1, "{arguments:?}: {}", run.whole());
    run.stdout
}

/// What every format answers for all code of a fixture.
fn answers(file: &Path) -> String {
    let addresses: Vec<String> = (0x4000f0..0x400276u64).step_by(3).map(|one| format!("{one:#x}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let lookup =
        looked_up(&[&["lookup", "--format", "json", "-e", text(file)], addresses.as_slice()].concat());
    let gnu = done(&[&["addr2line", "-afip", "-e", text(file)], addresses.as_slice()].concat());
    lookup + &gnu.stdout
}

#[test]
fn debug_info_behind_4_gib_is_read() {
    let directory = TempDir::new("large-elf");
    let (small, name) = (fixture("gcc-dwarf5.elf"), "gcc-dwarf5.elf");
    let Some(large) = spread(&small, directory.join(name)) else { return };
    let small = directory.write("small/gcc-dwarf5.elf", small);
    let expected = answers(&small);
    assert!(expected.contains("/src/chain.h"), "{expected}");
    assert_eq!(answers(&large), expected);
    assert_eq!(
        done(&["images", text(&large)]).stdout.lines().count(),
        done(&["images", text(&small)]).stdout.lines().count()
    );
    for format in ["btsym", "gsym", "breakpad"] {
        let convert = |input: &Path, output: &str| {
            let output = directory.join(output);
            let verify: &[&str] = if format == "btsym" { &["--verify"] } else { &[] };
            done(&[&["convert", "--format", format, text(input), "-o", text(&output)], verify].concat());
            std::fs::read(output).unwrap()
        };
        let (of_large, of_small) = (convert(&large, "large.out"), convert(&small, "small.out"));
        assert!(of_large == of_small, "{format}: {} and {} bytes", of_large.len(), of_small.len());
    }
}

/// DWARF's 64-bit form exists for sections of more than 4 GiB. Here it is that of the strings: 4 GiB of zeros, then those
/// that are used.
#[test]
fn strings_behind_4_gib_are_found() {
    let directory = TempDir::new("large-strings");
    let mut elf = fixture("clang-dwarf64.elf");
    let small = directory.write("small.elf", &elf);
    let all = sections(&elf);
    let find = |name: &str| all.iter().find(|section| section.name == name).unwrap();
    let (strings, offsets) = (find(".debug_str"), find(".debug_str_offsets"));
    let mut at = offsets.offset;
    while at < offsets.offset + offsets.size {
        assert_eq!(number(&elf, at, 4), 0xffff_ffff);
        let end = at + 12 + number(&elf, at + 4, 8) as usize;
        for entry in (at + 16..end).step_by(8) {
            let moved = number(&elf, entry, 8) + 4 * GIB;
            put(&mut elf, entry, moved);
        }
        at = end;
    }
    let text_of_strings = elf[strings.offset..strings.offset + strings.size].to_vec();
    put(&mut elf, strings.at + 0x18, GIB);
    put(&mut elf, strings.at + 0x20, 4 * GIB + strings.size as u64);
    let pieces = [(0, &*elf), (5 * GIB, &*text_of_strings)];
    let Some(large) = sparse(directory.join("large.elf"), &pieces) else { return };
    let functions = |file: &Path| {
        let code = sections(&elf).into_iter().find(|section| section.name == ".text").unwrap();
        let start = number(&elf, code.at + 0x10, 8);
        let addresses = (start..start + code.size as u64).step_by(3).map(|one| format!("{one:#x}"));
        let addresses: Vec<String> = addresses.collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        looked_up(&[&["lookup", "-e", text(file)], addresses.as_slice()].concat())
    };
    let expected = functions(&small);
    assert!(expected.contains("leaf") && expected.contains("chain.h"), "{expected}");
    assert_eq!(functions(&large), expected);
    let table = directory.join("large.btsym");
    done(&["convert", "--verify", text(&large), "-o", text(&table)]);
    assert_eq!(functions(&table), expected);
}

/// Each section of a table has 64 bits to say where it is.
#[test]
fn a_table_of_more_than_4_gib_is_read() {
    let directory = TempDir::new("large-table");
    let small = directory.write("small.elf", fixture("gcc-dwarf5.elf"));
    let table = directory.join("small.btsym");
    done(&["convert", text(&small), "-o", text(&table)]);
    let bytes = std::fs::read(&table).unwrap();
    let count = number(&bytes, 52, 4) as usize;
    let mut head = bytes[..160 + 32 * count].to_vec();
    let mut pieces = Vec::new();
    let mut end = 0;
    for index in 0..count {
        let entry = 160 + 32 * index;
        let (offset, size) = (number(&bytes, entry + 8, 8) as usize, number(&bytes, entry + 16, 8) as usize);
        let moved = (index as u64 + 1) * GIB - 16;
        put(&mut head, entry + 8, moved);
        pieces.push((moved, &bytes[offset..offset + size]));
        end = end.max(moved + size as u64);
    }
    assert!(end > 4 * GIB);
    put(&mut head, 16, end);
    let checksum = crc32(&head[160..]);
    head[152..156].copy_from_slice(&checksum.to_le_bytes());
    let header = crc32(&head[..156]);
    head[156..160].copy_from_slice(&header.to_le_bytes());
    pieces.push((0, &head));
    let Some(large) = sparse(directory.join("large.btsym"), &pieces) else { return };
    let of = |file: &Path| {
        looked_up(&["lookup", "--format", "json", "-e", text(file), "0x400113", "0x40014b", "0x10"])
    };
    assert_eq!(of(&large).replace("large.btsym", "small.btsym"), of(&table));
    assert!(of(&table).contains("leaf"));
}

/// The checksum of zip files.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}
