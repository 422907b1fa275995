use std::io::Write;

use super::{Compressed, Format, gnu, xz};
use crate::ErrorKind;

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

fn of(format: Format, bytes: &[u8], size: u64) -> Compressed<'_> {
    Compressed { format, bytes, size, offset: 0x40 }
}

#[test]
fn what_was_compressed_comes_back() {
    let data: Vec<u8> = (0..100_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    for (format, bytes) in [(Format::Zlib, zlib(&data)), (Format::Zstd, zstd(&data))] {
        let size = data.len() as u64;
        assert!(of(format, &bytes, size).decompress().unwrap() == data);
    }
}

#[test]
fn sizes_that_are_wrong_are_found_out() {
    let data = vec![7; 5000];
    for (format, bytes) in [(Format::Zlib, zlib(&data)), (Format::Zstd, zstd(&data))] {
        for size in [4999, 5001, 0] {
            let error = of(format, &bytes, size).decompress().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Decompression, "{format:?} {size}");
        }
        for cut in 0..bytes.len() {
            assert!(of(format, &bytes[..cut], 5000).decompress().is_err(), "{format:?} cut at {cut}");
        }
    }
}

#[test]
fn no_memory_is_taken_for_what_cannot_be() {
    let small = zlib(&[0; 100]);
    let error = of(Format::Zlib, &small, 1 << 40).decompress().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.to_string().contains("cannot hold"), "{error}");
    let error = of(Format::Zstd, &small, 1 << 40).decompress().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

#[test]
fn as_much_as_deflate_can_is_believed() {
    let data = vec![0; 10 << 20];
    let bytes = zlib(&data);
    assert!(data.len() / bytes.len() > 1000);
    assert_eq!(of(Format::Zlib, &bytes, data.len() as u64).decompress().unwrap().len(), data.len());
}

#[test]
fn the_old_header_is_big_endian() {
    let bytes = [&b"ZLIB\0\0\0\0\0\0\x01\x02"[..], b"rest"].concat();
    let compressed = gnu(&bytes, 0x10).unwrap();
    assert_eq!((compressed.size, compressed.bytes, compressed.offset), (0x102, &b"rest"[..], 0x1c));
    assert!(gnu(b"ZLIB\0\0", 0).is_err());
    assert!(gnu(b"zlib\0\0\0\0\0\0\0\x01", 0).is_err());
}

#[test]
fn xz_is_bounded() {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
    writer.write_all(&vec![1; 1 << 20]).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(xz(&bytes, 1 << 20, 0).unwrap(), vec![1; 1 << 20]);
    assert_eq!(xz(&bytes, (1 << 20) - 1, 0).unwrap_err().kind(), ErrorKind::LimitExceeded);
    for cut in 0..bytes.len() {
        assert!(xz(&bytes[..cut], 1 << 20, 0).is_err(), "cut at {cut}");
    }
}
