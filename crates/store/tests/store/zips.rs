//! Zips: good ones, broken ones and hostile ones.

use std::io::Write;
use std::path::Path;

use crate::common::*;
use backtrail_core::Arch;
use backtrail_store::{ErrorKind, Index, ScanOptions};
use zip::write::{SimpleFileOptions, ZipWriter};

/// Position of the `n`th `magic`.
fn nth(bytes: &[u8], magic: &[u8; 4], n: usize) -> usize {
    bytes.windows(4).enumerate().filter(|(_, window)| window == magic).nth(n).unwrap().0
}

const LOCAL: &[u8; 4] = b"PK\x03\x04";
const FILE: &[u8; 4] = b"PK\x01\x02";
const END: &[u8; 4] = b"PK\x05\x06";

fn kinds(index: &Index) -> Vec<ErrorKind> {
    index.problems().iter().map(backtrail_store::Error::kind).collect()
}

#[test]
fn members_open_as_they_were() {
    let (small, large) = (dsym(1, 100), dsym(2, 3_000_000));
    let bytes = zip(&[(DWARF_OF_APP, &large, Deflated), ("stored", &small, Stored), ("text", b"no", Stored)]);
    let index = scan_bytes(bytes);
    assert_eq!(problems(&index), [""; 0]);
    let [app, stored] = index.entries() else { panic!("{:?}", index.entries()) };
    assert_eq!(app.location.to_string(), format!("in.zip!{DWARF_OF_APP}"));
    assert_eq!(app.names(), ["App", "App.app"]);
    let opened = index.open(app).unwrap();
    assert_eq!(*opened, large);
    assert_eq!(index.open(app).unwrap().as_ptr(), opened.as_ptr(), "inflated once");
    assert_eq!(*index.open(stored).unwrap(), small);
}

#[test]
fn stored_members_of_files_are_mapped_in_place() {
    let temp = backtrail_testkit::TempDir::new("stored");
    temp.write("a.zip", zip(&[("x", &dsym(1, 100), Stored), ("y", &dsym(2, 100), Deflated)]));
    let index = scan(&[temp.path()]);
    let mapped: Vec<_> = index.entries().iter().map(|e| index.open(e).unwrap().is_mapped()).collect();
    assert_eq!(mapped, [true, false]);
    assert_eq!(*index.open(&index.entries()[0]).unwrap(), dsym(1, 100));
    std::fs::write(temp.join("a.zip"), "shorter").unwrap();
    let error = index.open(&index.entries()[1]).unwrap_err().to_string();
    assert!(error.contains("a.zip!y: its local header at"), "{error}");
}

#[test]
fn headers_deep_in_a_member_are_reached() {
    let slices = [macho(X86_64, MH_DSYM, Some(1), 2_000_000), dsym(2, 2_000_000), dsym(3, 500)];
    let (fat, elf) = (fat(&slices), elf(4, true, 3_000_000));
    let index = scan_bytes(zip(&[("fat", &fat, Deflated), ("elf", &elf, Deflated)]));
    assert_eq!(problems(&index), [""; 0]);
    let found = index.find(&uuid(3), Some(Arch::Arm64))[0];
    assert_eq!(*index.open(found).unwrap(), slices[2]);
    let found = index.find(&build_id(4), None)[0];
    assert!(found.identity.has_debug_info);
    assert_eq!(*index.open(found).unwrap(), elf);
}

#[test]
fn zips_in_zips_are_read_one_level_deep() {
    let inner = zip(&[(DWARF_OF_APP, &dsym(1, 5000), Deflated)]);
    let middle = zip(&[("dSYMs/inner.zip", &inner, Deflated), ("b", &dsym(2, 100), Stored)]);
    let outer = zip(&[("middle.zip", &middle, Stored), ("deflated.zip", &inner, Deflated)]);
    let index = scan_bytes(outer);
    let places: Vec<_> = index.entries().iter().map(|entry| entry.location.to_string()).collect();
    assert_eq!(places, [format!("in.zip!deflated.zip!{DWARF_OF_APP}"), "in.zip!middle.zip!b".into()]);
    assert_eq!(*index.open(&index.entries()[0]).unwrap(), dsym(1, 5000));
    let expected = "in.zip!middle.zip!dSYMs/inner.zip: left unread: a zip within more than 1 others";
    assert_eq!(problems(&index), [expected]);

    let mut options = ScanOptions::default();
    options.limits.zip_depth = 2;
    let index = Index::of_bytes(Path::new("in.zip"), zip(&[("middle.zip", &middle, Deflated)]), &options);
    assert_eq!(index.entries().len(), 2);
    options.limits.nested_zip_bytes = 100;
    let index = Index::of_bytes(Path::new("in.zip"), zip(&[("middle.zip", &middle, Deflated)]), &options);
    assert_eq!((index.entries().len(), kinds(&index)), (0, vec![ErrorKind::Limit]));
}

#[test]
fn names_are_only_shown() {
    let names = ["../../etc/passwd", "/abs", "__MACOSX/._a", "a/._b", "e\u{1b}[31m\nvil"];
    let file = dsym(1, 50);
    let members: Vec<_> = names.iter().map(|name| (*name, &file[..], Stored)).collect();
    let index = scan_bytes(zip(&members));
    let places: Vec<_> = index.entries().iter().map(|entry| entry.location.to_string()).collect();
    assert_eq!(places, ["in.zip!../../etc/passwd", "in.zip!/abs", "in.zip!e\\u{1b}[31m\\u{a}vil"]);
    assert!(index.entries().iter().all(|entry| *index.open(entry).unwrap() == file));
}

#[test]
fn two_members_of_one_name_are_both_found() {
    let mut bytes = zip(&[("same", &dsym(1, 50), Stored), ("diff", &dsym(2, 60), Stored)]);
    while let Some(at) = bytes.windows(4).position(|window| window == b"diff") {
        bytes[at..at + 4].copy_from_slice(b"same");
    }
    let index = scan_bytes(bytes);
    assert_eq!(index.named("same").len(), 2);
    assert_eq!(*index.open(index.find(&uuid(1), None)[0]).unwrap(), dsym(1, 50));
    assert_eq!(*index.open(index.find(&uuid(2), None)[0]).unwrap(), dsym(2, 60));
}

#[test]
fn members_over_each_other_are_left_out() {
    let mut bytes =
        zip(&[("a", &dsym(1, 500), Stored), ("b", &dsym(2, 500), Stored), ("c", &dsym(3, 9), Stored)]);
    // The second member's header says that it begins in the first one's data.
    let second = nth(&bytes, FILE, 1);
    bytes[second + 42..second + 46].copy_from_slice(&60u32.to_le_bytes());
    let index = scan_bytes(bytes.clone());
    assert_eq!(index.entries().len(), 2);
    let expected = "in.zip: at offset 0x3c: 1 members lie over others and are left out, such as b over a";
    assert_eq!(problems(&index), [expected]);
    // The same member listed twice is one.
    bytes[second + 42..second + 46].copy_from_slice(&0u32.to_le_bytes());
    let index = scan_bytes(bytes);
    assert_eq!((index.entries().len(), problems(&index).len()), (2, 0));
}

#[test]
fn what_states_to_be_a_bomb_is_not_inflated() {
    let mut file = fat(&[dsym(1, 50), dsym(2, 50)]);
    // The second slice lies behind 200 MB of zeros.
    let far = 200u32 << 20;
    let slice = file.split_off(8192);
    file[36..40].copy_from_slice(&far.to_be_bytes());
    file.resize(far as usize, 0);
    file.extend(slice);
    let bytes = zip(&[("bomb", &file, Deflated), ("good", &dsym(3, 50), Stored)]);
    assert!(bytes.len() < 1 << 20);
    let index = scan_bytes(bytes.clone());
    assert_eq!((index.entries().len(), kinds(&index)), (1, vec![ErrorKind::Limit]));
    assert!(problems(&index)[0].contains("which only a zip bomb does"), "{:?}", problems(&index));

    // One that lies about its size ends where it says it does.
    let mut lying = zip(&[("lie", &dsym(1, 1 << 20), Deflated)]);
    let header = nth(&lying, FILE, 0);
    lying[header + 24..header + 28].copy_from_slice(&100_000u32.to_le_bytes());
    let index = scan_bytes(lying);
    let error = index.open(index.find(&uuid(1), None)[0]).unwrap_err().to_string();
    assert_eq!(error, "in.zip!lie: states 100000 bytes, its data gives more than 100000");
}

#[test]
fn the_budget_of_a_scan_is_kept() {
    let slices = [macho(X86_64, MH_DSYM, Some(1), 3_000_000), dsym(2, 100)];
    let mut options = ScanOptions::default();
    options.limits.inflated_bytes = 1_000_000;
    let bytes = zip(&[("fat", &fat(&slices), Deflated)]);
    let index = Index::of_bytes(Path::new("in.zip"), bytes, &options);
    assert_eq!(kinds(&index), [ErrorKind::Limit]);
    assert!(problems(&index)[0].contains("inflated all it may"), "{:?}", problems(&index));
}

#[test]
fn a_size_that_cannot_be_is_refused_before_memory_is_taken() {
    let mut bytes = zip(&[("a", &dsym(1, 10_000), Deflated)]);
    let header = nth(&bytes, FILE, 0);
    bytes[header + 24..header + 28].copy_from_slice(&0xfff0_0000u32.to_le_bytes());
    let mut options = ScanOptions::default();
    options.limits.ratio = u64::MAX;
    let index = Index::of_bytes(Path::new("in.zip"), bytes, &options);
    let error = index.open(&index.entries()[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Compression);
    assert!(error.to_string().contains("its data cannot give more than"), "{error}");
}

#[test]
fn broken_members_say_what_is_wrong() {
    let good = zip(&[("a", &dsym(1, 5000), Deflated)]);
    let file = nth(&good, FILE, 0);
    let open = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let index = scan_bytes(bytes);
        let opened = index.entries().first().map(|entry| index.open(entry).map(drop));
        (problems(&index).join("; "), opened.and_then(Result::err).map(|error| error.to_string()))
    };
    let (scanned, opened) = open(&|bytes| bytes[file + 16] ^= 1);
    assert_eq!(scanned, "");
    assert!(opened.unwrap().contains("in.zip!a: expected CRC"));
    let (_, opened) = open(&|bytes| bytes[1500..1600].fill(0xff));
    assert!(opened.unwrap().starts_with("in.zip!a: "));
    let (scanned, _) = open(&|bytes| bytes[31..60].fill(0xff));
    assert!(scanned.contains("in.zip!a: expected DEFLATE data"), "{scanned}");
    let (scanned, _) = open(&|bytes| bytes[0] = b'Q');
    assert_eq!(scanned, "", "first bytes that are not a zip's make it none");
    let (scanned, _) = open(&|bytes| bytes[file + 42] = 1);
    assert!(scanned.contains("in.zip!a: expected its local header (PK 3 4) at 0x1 of the zip"), "{scanned}");
    let (scanned, _) = open(&|bytes| bytes[file] = 0);
    assert!(scanned.contains("expected a file header (PK 1 2)"), "{scanned}");
    let (scanned, _) = open(&|bytes| bytes[file + 20..file + 24].fill(0x7f));
    assert!(scanned.contains("expected it to end before the directory"), "{scanned}");
}

#[test]
fn a_zip_cut_anywhere_is_an_error_and_no_more() {
    let good = zip(&[("a", &dsym(1, 300), Deflated), ("b", &dsym(2, 300), Stored)]);
    for len in 4..good.len() {
        let index = scan_bytes(good[..len].to_vec());
        assert_eq!(index.problems().len(), 1, "{len}");
        assert_eq!(kinds(&index), [ErrorKind::Zip], "{len}");
    }
    let index = scan_bytes(good[..100].to_vec());
    let expected =
        "in.zip: at offset 0x64: expected a zip's end record (PK 5 6) in the last 64 KiB: cut off, or no zip";
    assert_eq!(problems(&index), [expected]);
}

#[test]
fn encrypted_and_unknown_methods_are_named_once() {
    let mut bytes =
        zip(&[("a", &dsym(1, 50), Deflated), ("b", &dsym(2, 50), Deflated), ("c", &dsym(3, 50), Stored)]);
    for n in 0..2 {
        let at = nth(&bytes, FILE, n);
        bytes[at + 8] |= 1;
    }
    let index = scan_bytes(bytes.clone());
    assert_eq!(problems(&index), ["in.zip: 2 members are encrypted and cannot be read"]);
    assert_eq!(index.entries().len(), 1);
    let at = nth(&bytes, FILE, 2);
    bytes[at + 10] = 93;
    let index = scan_bytes(bytes);
    assert_eq!(kinds(&index), [ErrorKind::Encrypted, ErrorKind::NotRead]);
    assert!(problems(&index)[1].contains("1 members are packed by a method that is not read, such as 93"));
}

#[test]
fn zips_written_as_streams_are_read() {
    let (one, two) = (dsym(1, 40_000), dsym(2, 100));
    let mut writer = ZipWriter::new_stream(Vec::new());
    for (name, bytes) in [("one", &one), ("two", &two)] {
        writer.start_file(name, SimpleFileOptions::DEFAULT.compression_method(Deflated)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    // Sizes are zero in the local header, a data descriptor follows.
    let local = nth(&bytes, LOCAL, 0);
    assert_eq!((bytes[local + 6] & 8, &bytes[local + 18..local + 22]), (8, &[0; 4][..]));
    let index = scan_bytes(bytes);
    assert_eq!(problems(&index), [""; 0]);
    assert_eq!(*index.open(index.find(&uuid(1), None)[0]).unwrap(), one);
    assert_eq!(*index.open(index.find(&uuid(2), None)[0]).unwrap(), two);
}

#[test]
fn zip64_is_read() {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::DEFAULT.compression_method(Deflated).large_file(true);
    writer.start_file("a", options).unwrap();
    writer.write_all(&dsym(1, 1000)).unwrap();
    let large_file = writer.finish().unwrap().into_inner();
    let bytes = as_zip64(&zip(&[("a", &dsym(1, 1000), Deflated)]));
    for bytes in [large_file, [b"PK\x03\x04 something before".to_vec(), bytes.clone()].concat(), bytes] {
        let index = scan_bytes(bytes);
        assert_eq!(problems(&index), [""; 0]);
        assert_eq!(*index.open(&index.entries()[0]).unwrap(), dsym(1, 1000));
    }
}

/// The same zip with everything that can be moved into zip64 records moved there.
fn as_zip64(zip: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(zip[at..at + 4].try_into().unwrap());
    let (file, end) = (nth(zip, FILE, 0), nth(zip, END, 0));
    let (name_len, extra_len) = (usize::from(zip[file + 28]), usize::from(zip[file + 30]));
    let mut header = zip[file..file + 46 + name_len].to_vec();
    let mut extra = [1u16.to_le_bytes(), 24u16.to_le_bytes()].concat();
    assert_eq!(extra_len, 0, "the writer adds none in the directory");
    for at in [24, 20, 42] {
        extra.extend(u64::from(word(file + at)).to_le_bytes());
        header[at..at + 4].fill(0xff);
    }
    header[30] = extra.len() as u8;
    let mut out = zip[..file].to_vec();
    out.extend([header, extra].concat());
    let (size, record_at) = (out.len() - file, out.len());
    out.extend(b"PK\x06\x06");
    out.extend(44u64.to_le_bytes());
    out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for value in [1, 1, size as u64, file as u64] {
        out.extend(value.to_le_bytes());
    }
    out.extend(b"PK\x06\x07\0\0\0\0");
    out.extend((record_at as u64).to_le_bytes());
    out.extend([1, 0, 0, 0]);
    let mut last = zip[end..].to_vec();
    last[8..20].fill(0xff);
    out.extend(last);
    out
}

#[test]
fn comments_and_more_members_than_16_bits_count_are_no_obstacle() {
    let mut bytes = zip(&[("a", &dsym(1, 50), Stored)]);
    let end = nth(&bytes, END, 0);
    bytes[end + 20..end + 22].copy_from_slice(&26u16.to_le_bytes());
    bytes.extend(b"with PK\x05\x06 in the comment..");
    assert_eq!(scan_bytes(bytes).entries().len(), 1);

    // As Archive Utility writes it: 65,537 members, of which the end record counts one.
    let one = zip(&[("a", &dsym(1, 50), Stored)]);
    let (file, end) = (nth(&one, FILE, 0), nth(&one, END, 0));
    let mut bytes = one[..file].to_vec();
    for _ in 0..65_537 {
        bytes.extend(&one[file..end]);
    }
    let size = (bytes.len() - file) as u32;
    let mut last = one[end..].to_vec();
    last[12..16].copy_from_slice(&size.to_le_bytes());
    bytes.extend(last);
    let index = scan_bytes(bytes.clone());
    assert_eq!((index.entries().len(), problems(&index).len()), (1, 0));
    let mut options = ScanOptions::default();
    options.limits.zip_members = 1000;
    let index = Index::of_bytes(Path::new("in.zip"), bytes, &options);
    assert!(problems(&index)[0].contains("more than 1000 members; those beyond are left unread"));
    assert_eq!(index.entries().len(), 1);
}

#[test]
fn split_zips_are_recognised() {
    let mut bytes = zip(&[("a", &dsym(1, 50), Stored)]);
    let end = nth(&bytes, END, 0);
    bytes[end + 4] = 2;
    assert_eq!(kinds(&scan_bytes(bytes)), [ErrorKind::NotRead]);
}
