//! Files that are cut, bent, or something else: an answer or an error, never a panic.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

use backtrail_sdk::{ErrorKind, Fingerprint, LearnOptions, LinkMap, MapOptions, learn, map_file, stamp};

const MAP: &str = "# Path: app\n# Arch: arm64\n# Object files:\n[  0] linker synthesized\n[  1] /x/libv.a(a b.o)\n\
# Sections:\n# Address\tSize\tSegment\tSection\n0x100004000\t0x00000040\t__TEXT\t__text\n# Symbols:\n\
# Address\tSize\tFile  Name\n0x100004000\t0x00000020\t[  1] _f\n0x100004000\t0x00000000\t[  0] _folded [x]\n\
0x100004020\t0x00000020\t[  0] _main\n# Dead Stripped Symbols:\n#        \tSize    \tFile  Name\n<<dead>> \t0x00000018\t[  1] _gone\n";

#[test]
fn a_link_map_of_apple_s_form() {
    let map = LinkMap::parse(MAP.as_bytes()).unwrap();
    let pieces: Vec<_> =
        map.pieces().map(|piece| (piece.range.start().get(), piece.range.size(), piece.file)).collect();
    assert_eq!(
        pieces,
        [
            (0x1_0000_4000, 0, "linker synthesized"),
            (0x1_0000_4000, 0x20, "/x/libv.a(a b.o)"),
            (0x1_0000_4020, 0x20, "linker synthesized")
        ]
    );
}

#[test]
fn link_maps_of_llvm_and_gnu_for_elf() {
    let lld = "             VMA              LMA     Size Align Out     In      Symbol\n\
    \x20            1000             1000       30     4 .text\n\
    \x20            1000             1000       10     4         libv.a(a.o):(.text.f)\n\
    \x20            1000             1000       10     1                 f\n\
    \x20            1010             1010       20     4         main.o:(.text)\n";
    let map = LinkMap::parse(lld.as_bytes()).unwrap();
    let pieces: Vec<_> =
        map.pieces().map(|piece| (piece.range.start().get(), piece.range.size(), piece.file)).collect();
    assert_eq!(pieces, [(0x1000, 0x10, "libv.a(a.o)"), (0x1010, 0x20, "main.o")]);
    let gnu = "Discarded input sections\n\n .group 0x0000000000000000 0x8 main.o\n\nLinker script and memory map\n\n\
    .text           0x0000000000001000       0x30\n .text.f_with_a_long_name\n                0x0000000000001000       0x10 libv.a(a.o)\n\
    \x20               0x0000000000001000                f\n .text          0x0000000000001010       0x20 main.o\n";
    let map = LinkMap::parse(gnu.as_bytes()).unwrap();
    let pieces: Vec<_> =
        map.pieces().map(|piece| (piece.range.start().get(), piece.range.size(), piece.file)).collect();
    assert_eq!(pieces, [(0x1000, 0x10, "libv.a(a.o)"), (0x1010, 0x20, "main.o")]);
}

#[test]
fn what_is_none_is_refused_with_what_was_expected() {
    let error = LinkMap::parse(b"hello").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongInput);
    assert!(error.to_string().contains("link map"), "{error}");
    for bytes in [&b""[..], b"BTSDK", b"BTSDK\0", b"BTSDK\0\x02", b"BTSDK\0\x01garbage and more"] {
        assert!(Fingerprint::from_bytes(bytes).is_err());
    }
    let options = LearnOptions::new("x", "1");
    assert!(learn(&[("x", b"not a library")], &options).is_err());
    assert!(learn(&[("x", b"!<arch>\n")], &options).is_err());
    assert!(map_file(b"no app", None, &[], &MapOptions::default()).is_err());
}

#[test]
fn stamps_have_short_names_and_no_bitcode() {
    for name in ["", "ten_letter", "a b", "ä"] {
        assert!(
            stamp(b"!<arch>\n", name, None).unwrap_err().to_string().contains("1 to 9 letters"),
            "{name}"
        );
    }
    assert!(stamp(b"BC\xc0\xde....", "vendor", None).unwrap_err().to_string().contains("bitcode"));
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend_from_slice(
        format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "a.o/", 0, 0, 0, 644, 8).as_bytes(),
    );
    archive.extend_from_slice(b"BC\xc0\xde1234");
    let error = stamp(&archive, "vendor", None).unwrap_err();
    assert!(error.to_string().contains("a.o") && error.to_string().contains("bitcode"), "{error}");
}

#[test]
fn cuts_of_a_link_map_are_read_or_refused() {
    for end in 0..MAP.len() {
        let _ = LinkMap::parse(&MAP.as_bytes()[..end]);
    }
}
