use super::*;
use backtrail_testkit::TempDir;
use std::process::{Command, Stdio};

/// Zeros, words that repeat, and bytes that do not, over several blocks of every packer.
fn capture() -> Vec<u8> {
    let mut bytes = vec![0; 300_000];
    bytes.extend("a frame, and the next one. ".repeat(20_000).bytes());
    let mut state = 1_u32;
    bytes.extend((0..200_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    }));
    bytes.extend([0; 200_000]);
    bytes
}

/// Through a program that is installed; `None`, with a line that says so, where it is not.
fn packed(command: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(command[0]);
    child.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = child.spawn() else {
        eprintln!("{} not checked: it is not installed", command[0]);
        return None;
    };
    let (mut input, bytes) = (child.stdin.take().unwrap(), bytes.to_vec());
    let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Some(output.stdout)
}

fn opened(bytes: &[u8]) -> Result<Unpacked, String> {
    let directory = TempDir::new("unpack");
    directory.write("capture", bytes);
    unpack_file(&directory.join("capture"))
}

const PACKERS: [&[&str]; 7] = [
    &["gzip", "-c"],
    &["xz", "-c"],
    &["zstd", "-c", "-q"],
    &["zstd", "-c", "-q", "-T2", "-B300000", "--no-check"],
    &["lz4", "-c", "-q"],
    &["lz4", "-c", "-q", "-B4", "-BD"],
    &["lz4", "-c", "-q", "-BX", "--no-frame-crc"],
];

#[test]
fn what_packers_write_is_read() {
    let wanted = capture();
    for command in PACKERS {
        let Some(bytes) = packed(command, &wanted) else { continue };
        let capture = opened(&bytes).unwrap();
        assert!(*capture.data == wanted[..], "{command:?}");
        assert_eq!(capture.note, None, "{command:?}");
        // Several frames or members in one file.
        let twice = opened(&[&bytes[..], &bytes].concat()).unwrap();
        assert_eq!(twice.data.len(), 2 * wanted.len(), "{command:?}");
    }
}

#[test]
fn what_is_cut_off_is_read_as_far_as_it_goes() {
    let wanted = capture();
    for command in PACKERS {
        let Some(bytes) = packed(command, &wanted) else { continue };
        let capture = opened(&bytes[..bytes.len() * 2 / 3]);
        // zstd keeps a window's bytes until it knows that the frame goes on; LZ4's blocks have four megabytes.
        let has_parts = matches!(command[0], "gzip" | "xz") || command.contains(&"-B4");
        if !has_parts {
            let error = capture.unwrap_err();
            assert!(error.contains(&format!("packed by {}", command[0])), "{error}");
            continue;
        }
        let capture = capture.unwrap();
        assert!(!capture.data.is_empty() && wanted.starts_with(&capture.data), "{command:?}");
        assert!(capture.note.unwrap().contains("is broken or cut off"), "{command:?}");
        let error = opened(&bytes[..9]).unwrap_err();
        assert!(error.contains(&format!("packed by {}", command[0])), "{error}");
    }
}

#[test]
fn what_is_not_packed_stays_and_bzip2_is_named() {
    assert_eq!(*opened(b"\x7fELF and more").unwrap().data, b"\x7fELF and more"[..]);
    assert_eq!(*opened(b"").unwrap().data, b""[..]);
    let error = opened(b"BZh91AY&SY").unwrap_err();
    assert!(error.contains("unpack it first (bzip2 -d)"), "{error}");
}

#[test]
fn skipped_frames_of_zstd_are_skipped() {
    let note = [&[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let frame =
        ruzstd::encoding::compress_to_vec(&b"a core"[..], ruzstd::encoding::CompressionLevel::Fastest);
    let capture = opened(&[&note, &frame[..], &note, &frame, &note[..5]].concat()).unwrap();
    assert_eq!(*capture.data, b"a corea core"[..]);
    assert!(capture.note.is_some());
    assert!(!zstd::is_zstd(&note));
}

#[test]
fn reports_are_unpacked_into_memory() {
    let wanted = capture();
    for command in PACKERS {
        let Some(bytes) = packed(command, &wanted) else { continue };
        let unpacked = unpack(bytes.clone(), 1 << 24).unwrap();
        assert!(unpacked.data == wanted && unpacked.note.is_none(), "{command:?}");
        let error = unpack(bytes.clone(), 1000).unwrap_err();
        assert!(error.contains("more than 1000 bytes"), "{error}");
        let Some(twice) = packed(&["gzip", "-c"], &bytes) else { continue };
        assert!(unpack(twice.clone(), 1 << 24).unwrap().data == wanted, "{command:?}");
        let layers = (0..3).try_fold(twice, |bytes, _| packed(&["gzip", "-c"], &bytes)).unwrap();
        assert!(unpack(layers, 1 << 24).unwrap_err().contains("packed more than 3 times"));
        let cut = unpack(bytes[..bytes.len() * 2 / 3].to_vec(), 1 << 24);
        assert!(cut.is_err() || cut.is_ok_and(|cut| cut.note.is_some() && wanted.starts_with(&cut.data)));
    }
    assert_eq!(unpack(b"Process: a".to_vec(), 100).unwrap().data, b"Process: a");
    assert!(unpack(b"BZh91AY&SY".to_vec(), 100).unwrap_err().contains("bzip2 -d"));
}

#[test]
fn the_head_of_a_packed_file_tells_what_it_is() {
    let directory = TempDir::new("unpack");
    let frame = ruzstd::encoding::compress_to_vec(
        &b"\x7fELF and more"[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    directory.write("core.zst", &frame);
    directory.write("core", b"\x7fELF");
    assert_eq!(unpacked_head(&directory.join("core.zst"), 4).unwrap(), b"\x7fELF");
    assert_eq!(unpacked_head(&directory.join("core"), 100).unwrap(), b"\x7fELF");
}

#[test]
fn what_unpacks_to_too_much_is_refused() {
    // One byte, repeated.
    let mut all = Room::new().unwrap();
    let error = all.fill(&mut io::repeat(7), 1 << 20).unwrap_err();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
}

#[test]
fn any_bytes_behind_a_magic_end_without_harm() {
    let mut state = 7_u32;
    for round in 0..2000_usize {
        let mut bytes = match round % 4 {
            0 => vec![0x04, 0x22, 0x4d, 0x18, 0x40 | (round / 4 % 64) as u8, 0x40],
            1 => vec![0x28, 0xb5, 0x2f, 0xfd],
            2 => vec![0x1f, 0x8b, 8, 0],
            _ => vec![0xfd, b'7', b'z', b'X', b'Z', 0],
        };
        bytes.extend((0..round % 97).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0] & if round % 3 == 0 { 0x1f } else { 0xff }
        }));
        let (_, reader) = unpacker(&bytes).unwrap();
        // A megabyte is more than a hundred bytes of any of these can give, but for gzip and zstd.
        let _ = io::copy(&mut reader.unwrap().take(1 << 20), &mut io::sink());
    }
}
