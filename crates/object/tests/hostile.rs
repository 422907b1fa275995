//! Files that are cut, bent, or not object files at all: an answer or an error, never a panic, never long.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use backtrail_object::{ErrorKind, Limits, Object, identify, slices};
use backtrail_testkit::{
    ArchiveStyle, Assembler, Elf, ElfProgram, ElfSection, ElfSymbol, MachO, MachSection, MachSegment, Nlist,
    archive, fat,
};
use common::everything::everything;

/// Small limits, so that bent counts do not make the tests slow.
fn limits() -> Limits {
    Limits { decompressed_bytes: 1 << 20, ..Limits::default() }
}

fn mach_o(is_64: bool, is_big: bool) -> Vec<u8> {
    let text =
        MachSection { name: "__text", address: 0x5000, flags: 0x8000_0400, data: vec![0x90; 32], size: 0 };
    let zipped = b"ZLIB\0\0\0\0\0\0\0\x05\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\0\x06\x2c\x02\x15".to_vec();
    let info = MachSection { name: "__zdebug_info", address: 0x9000, flags: 0, data: zipped, size: 0 };
    let segment =
        |name, address, sections| MachSegment { name, address, size: 0x1000, protection: 5, sections };
    let nlist = |name, kind, value| Nlist { name, kind, section: 1, desc: 8, value };
    let build_version =
        [[0x32u32, 0, 2, 0, 0, 1, 3, 5]; 1].iter().flatten().skip(2).flat_map(|w| w.to_le_bytes());
    MachO {
        is_64,
        is_big,
        cpu: if is_64 { 0x0100_000c } else { 12 },
        uuid: Some([7; 16]),
        segments: vec![segment("__TEXT", 0x4000, vec![text]), segment("__DWARF", 0x9000, vec![info])],
        symbols: vec![
            nlist("a.c", 0x64, 0),
            nlist("lib.a(a.o)", 0x66, 5),
            nlist("_f", 0x24, 0x5000),
            nlist("", 0x24, 8),
            nlist("_g", 0x20, 0),
            nlist("_f", 0xf, 0x5000),
            nlist("_g", 0xe, 0x5008),
        ],
        exports: [&[0, 1, b'_', b'f', 0, 6][..], &[3, 0, 0x80, 0x20, 0]].concat(),
        function_starts: vec![0x80, 0x20, 8, 0],
        commands: vec![(0x32, build_version.collect())],
        ..MachO::default()
    }
    .build()
}

fn elf(is_64: bool, is_big: bool) -> Vec<u8> {
    let elf = Elf { is_64, is_big, machine: if is_64 { 62 } else { 40 }, ..Elf::default() };
    let symbol = |name, kind, section, value| ElfSymbol { name, value, size: 4, kind, binding: 1, section };
    let (entries, names) = elf.symbol_table(&[symbol("f", 2, 2, 0x5001), symbol("v", 1, 2, 0x5004)]);
    let mut header = Assembler::with(is_64, is_big);
    header.bytes(&[1, 0x1b, 3, 0x3b]).u32(0).u32(1).u32(8).u32(0);
    let mut zlib = Assembler::with(is_64, is_big);
    zlib.u32(1);
    if is_64 {
        zlib.u32(0);
    }
    zlib.word(5).word(1).bytes(b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\0\x06\x2c\x02\x15");
    let section = |name, kind, flags, address, data| ElfSection {
        name,
        kind,
        flags,
        address,
        data,
        ..Default::default()
    };
    let mut dynamic = Assembler::with(is_64, is_big);
    dynamic.word(6).word(0x5000).word(5).word(0x5000).word(10).word(8).word(0).word(0);
    let note = elf.build_id_note(&[3; 8]);
    let sections = vec![
        section(".note.gnu.build-id", 7, 2, 0x4200, note),
        section(".text", 1, 6, 0x5000, vec![0x90; 32]),
        ElfSection { link: 4, ..section(".symtab", 2, 0, 0, entries) },
        section(".strtab", 3, 0, 0, names),
        section(".eh_frame_hdr", 1, 2, 0x6000, header.finish()),
        section(".debug_info", 1, 0x800, 0, zlib.finish()),
        section(".gnu_debuglink", 1, 0, 0, b"x.debug\0abcd".to_vec()),
        section(".gnu_debugaltlink", 1, 0, 0, b"x\0abcd".to_vec()),
        section(".gnu_debugdata", 1, 0, 0, b"\xfd7zXZ\0".to_vec()),
        section(".dynamic", 6, 2, 0x7000, dynamic.finish()),
        section(".ARM.exidx", 0x7000_0001, 2, 0x6100, vec![0; 16]),
    ];
    let program = |kind, first, last| ElfProgram {
        kind,
        flags: 5,
        address: 0x4200,
        size: None,
        sections: Some((first, last)),
    };
    Elf { sections, programs: vec![program(1, 1, 2), program(4, 1, 1), program(3, 7, 7)], ..elf }.build()
}

fn cache() -> Vec<u8> {
    let mut file = Assembler::new();
    file.bytes(b"dyld_v1   arm64\0").u32(0x200).u32(1).u32(0x240).u32(1).zeros(40);
    file.u64(0x400).u64(0x80).bytes(&[9; 16]).u64(0).zeros(24).u64(0x280).u64(1).pad_to(0x200);
    file.u64(0x1_0000).u64(0x1000).u64(0).u32(5).u32(5).pad_to(0x240);
    file.u64(0x1_0600).zeros(16).u32(0x2c0).u32(0).pad_to(0x280);
    file.bytes(&[8; 16]).u64(0x1_0600).u32(0x100).u32(0x2c0).pad_to(0x2c0).bytes(b"/usr/lib/x.dylib\0");
    file.pad_to(0x400)
        .u32(0x20)
        .u32(1)
        .u32(0x30)
        .u32(8)
        .u32(0x38)
        .u32(1)
        .pad_to(0x438)
        .u32(0x600)
        .u32(0)
        .u32(1);
    file.pad_to(0x600).bytes(&mach_o(true, false));
    file.finish()
}

/// One small file of every kind.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let member = |data: Vec<u8>| ("a member with a long name.o", 5, data);
    vec![
        ("64-bit Mach-O", mach_o(true, false)),
        ("32-bit big-endian Mach-O", mach_o(false, true)),
        ("64-bit ELF", elf(true, false)),
        ("32-bit ELF", elf(false, false)),
        ("32-bit big-endian ELF", elf(false, true)),
        ("fat", fat(false, &[(12, 9, mach_o(false, false)), (0x0100_000c, 0, mach_o(true, false))])),
        ("fat64", fat(true, &[(0x0100_000c, 0, mach_o(true, false))])),
        ("BSD archive", archive(ArchiveStyle::Bsd, &[member(mach_o(true, false)), member(elf(true, false))])),
        ("GNU archive", archive(ArchiveStyle::Gnu, &[member(elf(false, false)), member(elf(true, true))])),
        ("shared cache", cache()),
    ]
}

#[test]
fn the_samples_are_whole() {
    for (name, data) in samples() {
        let slices = slices(&data, &limits()).unwrap_or_else(|error| panic!("{name}: {error}"));
        for slice in slices {
            let object = slice.parse(&limits()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(object.problems(), [], "{name}");
            assert!(object.id().is_some(), "{name}");
            // The addresses of the cache's image are not those of its mapping.
            if name != "shared cache" {
                assert!(object.has_debug_info() && object.has_symbols(), "{name}");
                assert!(!object.symbols().unwrap().is_empty(), "{name}");
                assert!(!object.function_starts().unwrap().is_empty(), "{name}");
                let info = object.section(".debug_info").unwrap();
                assert_eq!(object.section_data(info).unwrap(), b"hello".as_slice(), "{name}");
            }
        }
    }
}

#[test]
fn files_cut_at_every_byte() {
    for (_, data) in samples() {
        for cut in 0..data.len() {
            everything(&data[..cut], &limits());
        }
    }
}

#[test]
fn files_with_every_byte_bent() {
    for (_, data) in samples() {
        // What follows in containers is what was bent on its own before.
        for at in 0..data.len().min(1500) {
            for value in [0xff, data[at].wrapping_add(1), data[at] ^ 0x90] {
                let mut bent = data.clone();
                bent[at] = value;
                everything(&bent, &limits());
            }
        }
    }
}

#[test]
fn files_with_words_of_other_files() {
    // Numbers that lie in many places at once, always the same ones.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    const EVIL: [u32; 8] = [0, 1, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_fff0, 0x1000];
    for (_, data) in samples() {
        for _ in 0..500 {
            let mut bent = data.clone();
            for _ in 0..random() % 8 + 1 {
                let at = usize::try_from(random() % (bent.len() as u64 - 4)).unwrap();
                let word = EVIL[usize::try_from(random() % 8).unwrap()].to_ne_bytes();
                bent[at..at + 4].copy_from_slice(&word);
            }
            everything(&bent, &limits());
        }
    }
}

#[test]
fn strangers_are_no_object_files() {
    for (data, what) in [
        (&b""[..], "an empty file"),
        (b"\0\x05\x16\x07\0\x02\0\0Mac OS X        \0\x02", "an AppleDouble file"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "an HTML page"),
        (b"Incident Identifier: 1234\n", "text"),
        (b"PK\x03\x04rest", "a zip file"),
        (&[0; 4096], "zeros"),
    ] {
        for error in [slices(data, &limits()).unwrap_err(), identify(&data, &limits()).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::NotAnObject);
            let text = error.to_string();
            assert!(text.starts_with("not an object file at byte 0x0: ") && text.contains(what), "{text}");
        }
    }
    assert!(Object::parse(b"no object").is_err());
}

#[test]
fn counts_that_lie_take_neither_time_nor_memory() {
    // 4 billion sections, symbols and load commands, of which none is there.
    let mut data = elf(true, false);
    let table = usize::try_from(u64::from_le_bytes(data[40..48].try_into().unwrap())).unwrap();
    data[60..62].fill(0);
    data[table + 32..table + 40].copy_from_slice(&u64::from(u32::MAX).to_le_bytes());
    everything(&data, &Limits::default());
    let mut data = mach_o(true, false);
    data[16..24].fill(0xff);
    everything(&data, &Limits::default());
    let object = Object::parse(&data).unwrap();
    assert_eq!(object.problems().len(), 1);
}

/// One compressed section's bytes, and as many section headers as wanted that all name them.
fn bomb(sections: usize, size: u64) -> Vec<u8> {
    // A frame with a window of 128 KiB, in blocks of one byte that stands for 128 KiB (RFC 8878, 3.1.1).
    let mut data = Assembler::with(true, false);
    data.u32(2).u32(0).u64(size).u64(1);
    data.bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x38]).u64(size);
    let blocks = size / (128 << 10);
    for block in 0..blocks {
        let header = u32::from(block + 1 == blocks) | 1 << 1 | (128 << 10) << 3;
        data.bytes(&header.to_le_bytes()[..3]).u8(7);
    }
    let section = |name, data| ElfSection { name, kind: 1, flags: 0x800, data, ..ElfSection::default() };
    let mut bytes = Elf { sections: vec![section(".debug_info", data.finish())], ..Elf::default() }.build();
    // The section headers again at the end, with that one many times.
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let headers = bytes[table..].to_vec();
    bytes.truncate(table);
    bytes.extend(&headers[..64]);
    (0..sections).for_each(|_| bytes.extend(&headers[64..128]));
    bytes.extend(&headers[128..192]);
    let count = u16::try_from(sections + 2).unwrap();
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}

#[test]
fn a_small_file_does_not_fill_the_memory() {
    let data = bomb(9, 512 << 20);
    assert!(data.len() < 22_000, "{}", data.len());
    let object = Object::parse(&data).unwrap();
    let bombs: Vec<_> = object.sections().iter().filter(|section| section.is_compressed).collect();
    assert_eq!(bombs.len(), 9);
    for section in bombs {
        let error = object.section_data(section).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(error.offset().unwrap().get(), 64 + 24);
        let text = error.to_string();
        assert!(
            text.contains("section .debug_info takes 536870912 bytes of memory, expected at most"),
            "{text}"
        );
    }
    // The same in a limit that allows one of them: one sum for all, whichever is asked for first, and how often.
    let data = bomb(9, 16 << 20);
    let limits = Limits { decompressed_freely: 20 << 20, ..Limits::default() };
    let object = Object::parse_with(&data, &limits).unwrap();
    let sections: Vec<_> = object.sections().iter().filter(|section| section.is_compressed).collect();
    for _ in 0..2 {
        assert!(object.section_data(sections[1]).is_err());
        assert_eq!(object.clone().section_data(sections[0]).unwrap().len(), 16 << 20);
    }
}

#[test]
fn hidden_symbols_and_relocated_copies_count_too() {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
    std::io::Write::write_all(&mut writer, &vec![0; 3 << 20]).unwrap();
    let section = |name, kind, info, data| ElfSection { name, kind, info, data, ..ElfSection::default() };
    let hidden = section(".gnu_debugdata", 1, 0, writer.finish().unwrap());
    let data = Elf { sections: vec![hidden], ..Elf::default() }.build();
    let few = Limits { decompressed_freely: 1 << 20, ..Limits::default() };
    let read = |limits: &Limits| Object::parse_with(&data, limits).unwrap().gnu_debugdata().unwrap();
    assert_eq!(read(&Limits::default()).unwrap().len(), 3 << 20);
    assert_eq!(read(&few).unwrap_err().kind(), ErrorKind::LimitExceeded);
    // A copy of a section is made where relocations change it.
    let sections = vec![
        section(".debug_info", 1, 0, vec![0; 100]),
        section(".debug_line", 1, 0, vec![0; 100]),
        section(".rela.debug_info", 4, 1, Vec::new()),
        section(".rela.debug_line", 4, 2, Vec::new()),
    ];
    let data = Elf { file_type: 1, sections, ..Elf::default() }.build();
    let object = Object::parse_with(&data, &Limits { decompressed_bytes: 150, ..Limits::default() }).unwrap();
    let read = |name: &str| object.relocated_section_data(object.section(name).unwrap());
    assert_eq!(read(".debug_info").unwrap().len(), 100);
    assert_eq!(read(".debug_line").unwrap_err().kind(), ErrorKind::LimitExceeded);
}
