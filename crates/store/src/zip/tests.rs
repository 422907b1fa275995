//! The reader against the `zip` crate's, and reading here and there against reading all.

use std::io::{Cursor, Read, Write};

use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, ZipArchive};

use super::*;
use crate::Limits;
use crate::data::FileData;
use crate::limits::Budget;
use crate::source::Source;

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 29) as u8
    };
    (0..len).map(next).collect()
}

fn make(sizes: &[usize]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (n, size) in sizes.iter().enumerate() {
        let method = if n % 3 == 2 { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let options = SimpleFileOptions::DEFAULT.compression_method(method);
        writer.start_file(format!("directory/{n}"), options).unwrap();
        writer.write_all(&noise(*size, n as u32)).unwrap();
    }
    writer.add_directory("directory/below", SimpleFileOptions::DEFAULT).unwrap();
    writer.finish().unwrap().into_inner()
}

fn source(bytes: Vec<u8>) -> Source {
    Source::Bytes(FileData::from(bytes))
}

#[test]
fn members_are_what_the_zip_crate_reads() {
    let limits = Limits::default();
    let bytes = make(&[0, 1, 5000, 100_000, 700_000, 3]);
    let mut theirs = ZipArchive::new(Cursor::new(bytes.clone())).unwrap();
    let source = source(bytes);
    let directory = Directory::read(&source, &limits).unwrap();
    assert_eq!(directory.faults, []);
    assert_eq!(directory.members.len() + 1, theirs.len(), "directories are left out");
    for (n, member) in directory.members.iter().enumerate() {
        let mut their = theirs.by_index(n).unwrap();
        assert_eq!(member.name(), their.name().unwrap());
        assert_eq!((member.size(), member.compressed_size()), (their.size(), their.compressed_size()));
        assert_eq!(member.data(&source).unwrap().start, their.data_start().unwrap());
        let mut bytes = Vec::new();
        their.read_to_end(&mut bytes).unwrap();
        match member.method() {
            Method::Deflated => assert_eq!(inflate_all(&source, member, &limits).unwrap(), bytes),
            Method::Stored => {
                let data = member.data(&source).unwrap();
                assert_eq!(source.read_vec(data.start, bytes.len() + 1).unwrap()[..bytes.len()], bytes);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn reading_here_and_there_gives_what_reading_all_does() {
    let all = noise(3_000_000, 0);
    let source = source(make(&[all.len()]));
    let member = Directory::read(&source, &Limits::default()).unwrap().members.remove(0);
    let budget = Budget::new(u64::MAX);
    let inflater = Inflater::new(&source, &member, &budget).unwrap();
    // In the head, on, far on, a little back, to the very end, back to the head.
    let places = [
        (0, 8),
        (4, 5000),
        (60_000, 10_000),
        (1_500_000, 100_000),
        (1_499_000, 50),
        (2_999_990, 10),
        (32, 64),
    ];
    for (at, len) in places {
        let mut buf = vec![0; len];
        inflater.fill(at as u64, &mut buf).unwrap();
        assert!(buf == all[at..at + len], "{len} bytes at {at}");
    }
    assert!(inflater.fill(2_999_991, &mut [0; 10]).is_err());
    assert!(inflater.fill(u64::MAX, &mut [0; 10]).is_err());
    // Back beyond what is kept starts anew, but not for ever.
    let mut restarts = 0;
    loop {
        let back = inflater.fill(100_000, &mut [0; 8]);
        let forth = inflater.fill(2_900_000, &mut [0; 8]);
        match back.and(forth) {
            Ok(()) => restarts += 1,
            Err(fault) => break assert!(fault.what.contains("too far apart"), "{fault:?}"),
        }
    }
    assert_eq!(restarts, 4);
}

#[test]
fn a_read_of_many_bytes_keeps_as_many() {
    let all = noise(4_000_000, 0);
    let source = source(make(&[all.len()]));
    let member = Directory::read(&source, &Limits::default()).unwrap().members.remove(0);
    let budget = Budget::new(u64::MAX);
    let inflater = Inflater::new(&source, &member, &budget).unwrap();
    let mut buf = vec![0; 2_500_000];
    inflater.fill(1_000_000, &mut buf).unwrap();
    assert!(buf == all[1_000_000..3_500_000]);
    assert!(inflater.fill(0, &mut vec![0; 17 << 20]).is_err());
}

#[test]
fn what_cannot_be_told_apart_by_its_first_bytes_costs_little() {
    let source = source(make(&[5_000_000]));
    let member = Directory::read(&source, &Limits::default()).unwrap().members.remove(0);
    let budget = Budget::new(2048);
    let inflater = Inflater::new(&source, &member, &budget).unwrap();
    inflater.fill(0, &mut [0; 8]).unwrap();
    let fault = inflater.fill(5000, &mut [0; 8]).unwrap_err();
    assert!(fault.what.contains("inflated all it may"), "{fault:?}");
}
