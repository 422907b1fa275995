//! What is written is read back; what is broken breaks nothing.

use super::*;
use crate::exchange::testing::{Random, addresses, model, program};
use crate::exchange::{PlainFunction, PlainPath, PlainRow, Sink};
use backtrail_core::{AddrRange, ImageId, Svma};

fn range(start: u64, end: u64) -> AddrRange<Svma> {
    AddrRange::new(Svma::new(start), Svma::new(end))
}

fn written(functions: &[PlainFunction<'_>], base: u64) -> Vec<u8> {
    let mut writer = GsymWriter::new(ImageId::parse_build_id("00112233").ok(), Svma::new(base));
    for number in 1..=4 {
        let name = format!("file{number}.c");
        let file = writer.file(PlainPath { directory: b"/src", name: name.as_bytes() }).unwrap();
        assert_eq!(file, number);
    }
    functions.iter().for_each(|function| writer.function(function).unwrap());
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    out
}

#[test]
fn every_address_is_answered_as_it_was_written() {
    let mut random = Random::new(3);
    for round in 0..200 {
        let base = [0, 0x400, 0x1_0000_0000, 0x7fff_0000_0000_0000][round % 4];
        let functions = program(&mut random, base);
        let bytes = written(&functions, base);
        let gsym = Gsym::open(&bytes).unwrap();
        assert_eq!(gsym.id(), ImageId::parse_build_id("00112233").ok());
        for address in addresses(&functions) {
            let wanted = model(&functions, address, &|file| format!("/src/file{file}.c"));
            let found = gsym.lookup(address).map(|answer| {
                let frame = |frame: &crate::exchange::PlainFrame<'_>| {
                    let file = frame.file.map(|file| file.to_text());
                    (String::from_utf8_lossy(frame.name).into_owned(), file, frame.line)
                };
                answer.frames.iter().map(frame).collect::<Vec<_>>()
            });
            assert_eq!(found, wanted, "round {round} at {address}");
        }
    }
}

#[test]
fn the_list_of_functions_has_everything() {
    let mut random = Random::new(5);
    let functions = program(&mut random, 0x1000);
    let bytes = written(&functions, 0x1000);
    let gsym = Gsym::open(&bytes).unwrap();
    let read: Vec<_> = gsym.functions().map(Result::unwrap).collect();
    let pieces: usize = functions.iter().map(|function| function.ranges.len()).sum();
    assert_eq!(read.len(), pieces);
    // Written again, what was read gives the same answers.
    let again = written(&read, 0x1000);
    let second = Gsym::open(&again).unwrap();
    for address in addresses(&functions) {
        assert_eq!(gsym.lookup(address), second.lookup(address));
    }
}

#[test]
fn symbols_without_size_reach_to_the_next() {
    let mut writer = GsymWriter::new(None, Svma::new(0));
    writer.symbol(range(0x10, 0x10), b"open").unwrap();
    writer.symbol(range(0x20, 0x24), b"closed").unwrap();
    let mut bytes = Vec::new();
    writer.finish(&mut bytes).unwrap();
    let gsym = Gsym::open(&bytes).unwrap();
    let name = |address| gsym.lookup(Svma::new(address)).map(|answer| answer.frames[0].name);
    assert_eq!(name(0x1f), Some(&b"open"[..]));
    assert_eq!(name(0x23), Some(&b"closed"[..]));
    assert_eq!((name(0x24), name(0xf)), (None, None));
    assert_eq!(gsym.id(), None);
}

/// A big-endian file with all kinds of pieces, one function `f` at 0x1000 and `g` merged with it.
fn big_endian() -> Vec<u8> {
    let mut info = Vec::new();
    let piece = |info: &mut Vec<u8>, kind: u32, bytes: &[u8]| {
        info.extend(kind.to_be_bytes());
        info.extend((bytes.len() as u32).to_be_bytes());
        info.extend(bytes);
    };
    let head = |name: u32| [0x20u32.to_be_bytes(), name.to_be_bytes()].concat();
    info.extend(head(1));
    // Lines 7 at 0x1000 and 9 at 0x1004, steps of the line from 0 to 3.
    piece(&mut info, 1, &[0, 3, 7, 4, 4 + 4 * 4 + 2, 0]);
    // The function, in it `g` from 0x1004 on, called in line 8 of file 1.
    piece(&mut info, 2, &[1, 0, 0x20, 1, 0, 0, 0, 1, 0, 0, 1, 4, 2, 0, 0, 0, 0, 3, 1, 8, 0]);
    let mut merged = head(3);
    piece(&mut merged, 0, &[]);
    piece(&mut info, 3, &[&1u32.to_be_bytes()[..], &(merged.len() as u32).to_be_bytes(), &merged].concat());
    // No call sites.
    piece(&mut info, 4, &[0; 4]);
    piece(&mut info, 0, &[]);
    let strings = b"\0f\0g\0a.c\0";
    let mut file = b"GSYM\0\x01\x02\0".to_vec();
    file.extend(0x800u64.to_be_bytes());
    file.extend([1u32, 76, strings.len() as u32].map(u32::to_be_bytes).concat());
    file.extend([0; 20]);
    file.extend([0x08, 0x00, 0, 0]);
    file.extend(88u32.to_be_bytes());
    file.extend([2u32, 0, 0, 0, 5].map(u32::to_be_bytes).concat());
    assert_eq!(file.len(), 76);
    file.extend(strings);
    file.extend([0; 3]);
    assert_eq!(file.len(), 88);
    file.extend(info);
    file
}

#[test]
fn big_endian_files_are_read() {
    let bytes = big_endian();
    let gsym = Gsym::open(&bytes).unwrap();
    let answer = gsym.lookup(Svma::new(0x1005)).unwrap();
    let frames: Vec<_> = answer.frames.iter().map(|frame| (frame.name, frame.line, frame.inlined)).collect();
    assert_eq!(frames, [(&b"g"[..], 9, true), (&b"f"[..], 8, false)]);
    assert_eq!(answer.frames[0].file.unwrap().to_text(), "a.c");
    assert_eq!(gsym.lookup(Svma::new(0x1000)).unwrap().frames.len(), 1);
    assert_eq!(gsym.merged(Svma::new(0x1000)), [&b"g"[..]]);
    let function = gsym.functions().next().unwrap().unwrap();
    assert_eq!((function.rows.len(), function.inlines.len()), (2, 1));
}

#[test]
fn other_versions_and_files_are_refused() {
    let mut bytes = big_endian();
    bytes[5] = 2;
    let error = Gsym::open(&bytes).unwrap_err().to_string();
    assert_eq!(
        error,
        "not a version that is read here, at byte 0x4: expected GSYM of version 1, found version 2"
    );
    bytes[5] = 1;
    bytes[6] = 3;
    assert!(Gsym::open(&bytes).unwrap_err().to_string().contains("found 3"));
    assert!(Gsym::open(b"GSYX").is_err());
    assert!(Gsym::open(b"").is_err());
}

#[test]
fn broken_files_break_nothing() {
    let mut random = Random::new(11);
    let functions = program(&mut random, 0x1000);
    for original in [written(&functions, 0x1000), big_endian()] {
        for cut in 0..original.len() {
            walk(&original[..cut]);
        }
        for _ in 0..3000 {
            let mut bytes = original.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            walk(&bytes);
        }
    }
}

fn walk(bytes: &[u8]) {
    let Ok(gsym) = Gsym::open(bytes) else { return };
    for function in gsym.functions().flatten() {
        for row in function.rows.iter().take(8) {
            let _ = (gsym.lookup(row.address), gsym.merged(row.address));
        }
    }
    for address in [0, 0x1000, 0x1005, 0x2000, u64::MAX] {
        let _ = gsym.lookup(Svma::new(address));
    }
}

#[test]
fn shared_information_is_not_read_forever() {
    // 4000 functions that all point at one with a long line program.
    let rows = (0..4000).map(|at| PlainRow {
        address: Svma::new(0x10_0000 + at),
        file: Some(1),
        line: at as u32 * 50,
    });
    let long = PlainFunction {
        name: b"long"[..].into(),
        ranges: vec![range(0x10_0000, 0x20_0000)],
        rows: rows.collect(),
        inlines: Vec::new(),
    };
    let mut functions: Vec<_> = (0..4000)
        .map(|at| PlainFunction {
            ranges: vec![range(at, at + 1)],
            name: b"short"[..].into(),
            ..Default::default()
        })
        .collect();
    functions.push(long);
    let mut bytes = written(&functions, 0);
    let count = functions.len();
    let offsets = (48 + count * 4).next_multiple_of(4);
    let last: [u8; 4] = bytes[offsets + (count - 1) * 4..offsets + count * 4].try_into().unwrap();
    for entry in 0..count {
        bytes[offsets + entry * 4..offsets + entry * 4 + 4].copy_from_slice(&last);
    }
    let gsym = Gsym::open(&bytes).unwrap();
    let read = gsym.functions().filter(Result::is_ok).count();
    assert!(read > 0 && read < 100, "{read}");
}

#[test]
fn what_32_bits_have_no_room_for_is_an_error() {
    let function = |size: u64| PlainFunction {
        name: b"f".into(),
        ranges: vec![range(0x1_0000_0000, 0x1_0000_0000 + size)],
        rows: Vec::new(),
        inlines: Vec::new(),
    };
    let largest = u64::from(u32::MAX);
    let bytes = written(&[function(largest)], 0x1000);
    let gsym = Gsym::open(&bytes).unwrap();
    assert!(gsym.lookup(Svma::new(0x1_0000_0000 + largest - 1)).is_some());
    let error = GsymWriter::new(None, Svma::new(0)).function(&function(largest + 1)).unwrap_err();
    assert!(error.to_string().contains("no room for a function of more than 4 GiB"), "{error}");
}
