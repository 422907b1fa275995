use backtrail_core::{Arch, ImageId, Svma};
use backtrail_testkit::{Elf, ElfProgram, ElfSection};

use crate::{Endian, ErrorKind, Format, Kind, Limits, Object, identify};

const PROGBITS: u32 = 1;
const NOTE: u32 = 7;
const NOBITS: u32 = 8;
const DYNAMIC: u32 = 6;
const ALLOC: u64 = 2;
const EXEC: u64 = 4;

fn section(name: &'static str, kind: u32, flags: u64, address: u64, data: &[u8]) -> ElfSection {
    ElfSection { name, kind, flags, address, data: data.to_vec(), ..ElfSection::default() }
}

fn library() -> Elf {
    let mut elf = Elf::default();
    let note = elf.build_id_note(&[0xab; 20]);
    elf.sections = vec![
        section(".note.gnu.build-id", NOTE, ALLOC, 0x10_0200, &note),
        section(".text", PROGBITS, ALLOC | EXEC, 0x10_1000, &[0x90; 40]),
        section(".debug_info", PROGBITS, 0, 0, &[1; 8]),
        ElfSection { size: Some(0x100), ..section(".bss", NOBITS, ALLOC | 1, 0x10_4000, &[]) },
    ];
    elf.programs = vec![
        ElfProgram { kind: 1, flags: 5, address: 0x10_0200, size: Some(0x2000), sections: Some((1, 2)) },
        ElfProgram { kind: 4, flags: 4, address: 0x10_0200, size: None, sections: Some((1, 1)) },
    ];
    elf
}

#[test]
fn headers_are_read_in_every_width_and_order() {
    for (is_64, is_big, machine, arch) in [
        (true, false, 62, Arch::X86_64),
        (false, false, 40, Arch::Arm),
        (false, true, 20, Arch::Ppc),
        (true, true, 21, Arch::Ppc64),
        (true, false, 183, Arch::Arm64),
        (false, false, 183, Arch::Arm64_32),
        (true, false, 243, Arch::Riscv64),
        (false, false, 3, Arch::X86),
        (true, false, 0xf00d, Arch::Unknown),
    ] {
        let mut elf = Elf { is_64, is_big, machine, entry: 0x10_1004, ..library() };
        elf.sections[0].data = elf.build_id_note(&[0xab; 20]);
        let data = elf.build();
        let object = Object::parse(&data).unwrap();
        assert_eq!((object.format(), object.kind(), object.arch()), (Format::Elf, Kind::Library, arch));
        assert_eq!((object.is_64(), object.endian() == Endian::Big), (is_64, is_big));
        assert_eq!(object.id(), ImageId::from_build_id(&[0xab; 20]));
        assert_eq!(object.problems(), []);
        assert_eq!(object.image_base(), Svma::new(0x10_0000));
        assert_eq!(object.entry(), Some(Svma::new(0x10_1004)));
        assert!(object.has_debug_info() && !object.has_symbols());
        let text = object.section(".text").unwrap();
        assert!(text.is_code && text.is_loaded);
        assert_eq!(text.address.start(), Svma::new(0x10_1000));
        assert_eq!(object.section_data(text).unwrap(), vec![0x90; 40]);
        let bss = object.section(".bss").unwrap();
        assert_eq!((bss.is_no_bits(), bss.address.size()), (true, 0x100));
        assert!(object.section_data(bss).unwrap().is_empty());
        assert!(object.section(".debug_info").unwrap().address.is_empty());
        let segment = &object.segments()[0];
        assert_eq!((object.segments().len(), &*segment.name), (1, "LOAD"));
        assert!(segment.readable && segment.executable && !segment.writable);
        assert_eq!((segment.address.size(), segment.file.size() < 0x2000), (0x2000, true));
        assert_eq!(&identify(&data, &Limits::default()).unwrap()[0].id, &object.id());
    }
}

#[test]
fn kinds_follow_from_type_and_contents() {
    let with = |file_type, change: &dyn Fn(&mut Elf)| {
        let mut elf = Elf { file_type, ..library() };
        change(&mut elf);
        Object::parse(&elf.build()).unwrap().kind()
    };
    let interpreter = ElfProgram { kind: 3, ..ElfProgram::default() };
    let dynamic = |entries: &[(u64, u64)]| {
        let words = entries.iter().chain(&[(0, 0)]).flat_map(|(tag, value)| [*tag, *value]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        section(".dynamic", DYNAMIC, ALLOC, 0x10_3000, &bytes)
    };
    assert_eq!(Object::parse(&library().build()).unwrap().entry(), None);
    assert_eq!(with(1, &|_| {}), Kind::Relocatable);
    assert_eq!(with(2, &|_| {}), Kind::Executable);
    assert_eq!(with(3, &|_| {}), Kind::Library);
    assert_eq!(with(4, &|_| {}), Kind::Core);
    assert_eq!(with(0xfe00, &|_| {}), Kind::Other);
    assert_eq!(with(3, &|elf| elf.programs.push(interpreter.clone())), Kind::Executable);
    assert_eq!(with(3, &|elf| elf.sections.push(dynamic(&[(0x6fff_fffb, 0x0800_0000)]))), Kind::Executable);
    let named = |elf: &mut Elf| {
        elf.programs.push(interpreter.clone());
        elf.sections.push(dynamic(&[(14, 1)]));
    };
    assert_eq!(with(3, &named), Kind::Library, "glibc can be run and is a library");
    let emptied = |elf: &mut Elf| {
        elf.sections[1] =
            ElfSection { size: Some(40), ..section(".text", NOBITS, ALLOC | EXEC, 0x10_1000, &[]) };
    };
    assert_eq!(with(3, &emptied), Kind::DebugCompanion);
    assert_eq!(with(2, &emptied), Kind::DebugCompanion);
    let shared = |elf: &mut Elf| elf.sections.retain(|section| section.name == ".debug_info");
    assert_eq!(with(1, &shared), Kind::DebugCompanion, "as dwz writes it");
    let split = |elf: &mut Elf| elf.sections = vec![section(".debug_info.dwo", PROGBITS, 0, 0, &[1; 8])];
    assert_eq!(with(1, &split), Kind::Relocatable);
}

#[test]
fn companions_do_not_say_where_code_lies() {
    let mut elf = library();
    elf.sections[1] = ElfSection { size: Some(40), ..section(".text", NOBITS, ALLOC | EXEC, 0x10_1000, &[]) };
    let data = elf.build();
    let object = Object::parse(&data).unwrap();
    assert!(object.segments()[0].file.is_empty() && !object.segments()[0].address.is_empty());
    assert_eq!(object.bytes_at(Svma::new(0x10_0200), 4), None);
    assert_eq!(object.id(), ImageId::from_build_id(&[0xab; 20]));
}

#[test]
fn without_a_build_id_the_code_is_the_identity() {
    let mut elf = library();
    elf.programs.truncate(1);
    elf.sections[0].kind = PROGBITS;
    elf.sections[1].data =
        (0..4096u32).map(|byte| u8::try_from(byte % 251).unwrap()).chain([0xff; 64]).collect();
    let data = elf.build();
    let mut expected = [0u8; 16];
    for (index, byte) in elf.sections[1].data.iter().take(4096).enumerate() {
        expected[index % 16] ^= byte;
    }
    assert_eq!(Object::parse(&data).unwrap().id(), Some(ImageId::CodeHash(expected)));
    // Of the executable segment where there are no sections; never of a `.o`, never all zero.
    let stripped = Elf { is_stripped: true, ..elf.clone() };
    assert!(matches!(Object::parse(&stripped.build()).unwrap().id(), Some(ImageId::CodeHash(_))));
    assert_eq!(Object::parse(&Elf { file_type: 1, ..elf.clone() }.build()).unwrap().id(), None);
    elf.sections[1].data = vec![0x90; 64];
    assert_eq!(Object::parse(&elf.build()).unwrap().id(), None);
}

#[test]
fn build_ids_are_found_by_program_header_too() {
    let elf = Elf { is_stripped: true, ..library() };
    let data = elf.build();
    assert_eq!(Object::parse(&data).unwrap().id(), ImageId::from_build_id(&[0xab; 20]));
}

#[test]
fn the_first_build_id_behind_other_notes_counts() {
    let mut elf = library();
    let other = [&[4, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0][..], b"GNU\0", &[1, 2, 3, 4, 5, 6, 0, 0]].concat();
    let go = [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0][..], b"Go\0\0", &[9; 4]].concat();
    let id = elf.build_id_note(&[0xcd; 8]);
    elf.sections[0].data = [other, go, id, elf.build_id_note(&[0xef; 20])].concat();
    let data = elf.build();
    assert_eq!(Object::parse(&data).unwrap().id(), ImageId::from_build_id(&[0xcd; 8]));
    // Sizes that lie, and an identity of zeros, are none.
    for note in [vec![0xff; 40], elf.build_id_note(&[0; 20]), elf.build_id_note(&[])] {
        elf.sections[0].data = note;
        let data = elf.build();
        assert!(matches!(Object::parse(&data).unwrap().id(), Some(ImageId::CodeHash(_)) | None));
    }
}

#[test]
fn broken_tables_leave_the_other() {
    let whole = library().build();
    let limits = Limits { sections: 4, ..Limits::default() };
    let object = Object::parse_with(&whole, &limits).unwrap();
    assert_eq!((object.sections().len(), object.segments().len()), (0, 1));
    assert_eq!(object.problems()[0].kind(), ErrorKind::LimitExceeded);
    // The table of section headers is at the end.
    let object = Object::parse(&whole[..whole.len() - 1]).unwrap();
    assert_eq!((object.sections().len(), object.segments().len()), (0, 1));
    assert!(
        object.problems()[0].to_string().contains("expected section headers"),
        "{}",
        object.problems()[0]
    );
    assert_eq!(object.id(), ImageId::from_build_id(&[0xab; 20]), "by the program header");
    let mut wrong = whole.clone();
    wrong[62..64].copy_from_slice(&77u16.to_le_bytes());
    let object = Object::parse(&wrong).unwrap();
    assert_eq!((object.sections().len(), object.problems().len()), (6, 1));
    assert!(object.sections().iter().all(|section| section.name.is_empty()));
    let mut wrong = whole;
    wrong[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    let object = Object::parse(&wrong).unwrap();
    assert_eq!((object.sections().len(), object.segments().len(), object.problems().len()), (6, 0, 1));
}

#[test]
fn identifications_that_are_none_are_errors() {
    let whole = library().build();
    for (at, what) in [(4, "class"), (5, "byte order")] {
        let mut wrong = whole.clone();
        wrong[at] = 3;
        let error = Object::parse(&wrong).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(error.offset().unwrap().get(), at as u64);
    }
    assert_eq!(Object::parse(&whole[..63]).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn counts_that_do_not_fit_are_in_section_0() {
    let mut data = library().build();
    let table = usize::try_from(u64::from_le_bytes(data[40..48].try_into().unwrap())).unwrap();
    data[table + 32..table + 40].copy_from_slice(&6u64.to_le_bytes()); // sh_size: e_shnum
    data[table + 40..table + 44].copy_from_slice(&5u32.to_le_bytes()); // sh_link: e_shstrndx
    data[table + 44..table + 48].copy_from_slice(&2u32.to_le_bytes()); // sh_info: e_phnum
    data[56..58].copy_from_slice(&0xffffu16.to_le_bytes());
    data[60..62].copy_from_slice(&0u16.to_le_bytes());
    data[62..64].copy_from_slice(&0xffffu16.to_le_bytes());
    let object = Object::parse(&data).unwrap();
    assert_eq!((object.problems(), object.sections().len(), object.segments().len()), (&[][..], 6, 1));
    assert!(object.section(".text").is_some());
}

#[test]
fn sections_behind_the_end_are_a_problem_and_an_error() {
    let mut elf = library();
    elf.sections[2].size = Some(1 << 40);
    let data = elf.build();
    let object = Object::parse(&data).unwrap();
    let problem = object.problems()[0].to_string();
    assert!(problem.contains("section .debug_info"), "{problem}");
    let error = object.section_data(object.section(".debug_info").unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
}

#[test]
fn stripped_section_headers_are_stood_in_for() {
    let mut elf = Elf { machine: 40, is_64: false, is_stripped: true, ..library() };
    elf.programs.push(ElfProgram { kind: 0x6474_e550, sections: Some((2, 2)), ..ElfProgram::default() });
    elf.programs.push(ElfProgram { kind: 0x7000_0001, sections: Some((2, 2)), ..ElfProgram::default() });
    let names = |elf: &Elf| -> Vec<String> {
        let data = elf.build();
        Object::parse(&data).unwrap().sections().iter().map(|section| section.name.to_string()).collect()
    };
    assert_eq!(names(&elf), [".eh_frame_hdr", ".ARM.exidx"]);
    elf.machine = 8;
    assert_eq!(names(&elf), [".eh_frame_hdr"], "MIPS gives the number another meaning");
}

#[test]
fn links_to_other_files_are_read() {
    let mut elf = library();
    elf.sections.push(section(".gnu_debuglink", PROGBITS, 0, 0, b"lib.so.debug\0\0\0\0\x01\x02\x03\x04"));
    elf.sections.push(section(".gnu_debugaltlink", PROGBITS, 0, 0, b"../.dwz/lib.debug\0\xaa\xbb"));
    let data = elf.build();
    let object = Object::parse(&data).unwrap();
    let link = object.debug_link().unwrap();
    assert_eq!((&*link.name, link.crc32), ("lib.so.debug", 0x0403_0201));
    let alt = object.debug_alt_link().unwrap();
    assert_eq!((&*alt.path, alt.id), ("../.dwz/lib.debug", ImageId::from_build_id(&[0xaa, 0xbb])));
    let without = |elf: &mut Elf, data: &[u8]| {
        elf.sections[4].data = data.to_vec();
        elf.sections[5].data = data.to_vec();
        let data = elf.build();
        let object = Object::parse(&data).unwrap();
        (object.debug_link().is_some(), object.debug_alt_link().and_then(|link| link.id).is_some())
    };
    for data in [&b""[..], b"\0\0\0\0abcd", b"name\0", b"name"] {
        assert_eq!(without(&mut elf, data), (false, false), "{data:?}");
    }
}

#[test]
fn old_and_new_compressed_sections_are_told_apart() {
    let mut elf = library();
    let old = section(".zdebug_info", PROGBITS, 0, 0, b"ZLIB\0\0\0\0\0\0\0\x07");
    let header: Vec<u8> = [1u64, 9, 1].into_iter().flat_map(u64::to_le_bytes).collect();
    let new = ElfSection { flags: 0x800, ..section(".debug_line", PROGBITS, 0, 0, &header) };
    let odd: Vec<u8> = [3u64, 9, 1].into_iter().flat_map(u64::to_le_bytes).collect();
    let odd = ElfSection { flags: 0x800, ..section(".debug_odd", PROGBITS, 0, 0, &odd) };
    elf.sections[2] = old;
    elf.sections.extend([new, odd]);
    let data = elf.build();
    let object = Object::parse(&data).unwrap();
    let size = |name| object.section_size(object.section(name).unwrap());
    assert_eq!((size(".debug_info").unwrap(), size(".debug_line").unwrap()), (7, 9));
    assert_eq!(size(".debug_odd").unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(object.has_debug_info());
}

#[test]
fn program_headers_and_dynamic_entries_are_told_in_words() {
    let mut elf = library();
    let strings = b"\0libc.so.6\0libme.so\0$ORIGIN/lib\0";
    let entries = [(5, 0x10_2000), (10, strings.len() as u64), (1, 1), (14, 11), (29, 20), (6, 0), (0, 0)];
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|(tag, value): &(u64, u64)| [*tag, *value])
        .flat_map(u64::to_le_bytes)
        .collect();
    elf.sections = vec![
        section(".interp", PROGBITS, ALLOC, 0x10_1000, b"/lib/ld.so\0"),
        section(".dynstr", 3, ALLOC, 0x10_2000, strings),
        section(".dynamic", DYNAMIC, ALLOC, 0x10_3000, &bytes),
    ];
    elf.programs = vec![
        ElfProgram { kind: 3, flags: 4, address: 0x10_1000, size: None, sections: Some((1, 1)) },
        ElfProgram { kind: 1, flags: 6, address: 0x10_2000, size: None, sections: Some((2, 2)) },
        ElfProgram { kind: 2, flags: 4, address: 0x10_3000, size: None, sections: Some((3, 3)) },
        ElfProgram { kind: 0x6474_e551, flags: 6, ..ElfProgram::default() },
        ElfProgram { kind: 0x1234, flags: 4, ..ElfProgram::default() },
    ];
    let data = elf.build();
    let lines: Vec<_> =
        Object::parse(&data).unwrap().load_commands().iter().map(ToString::to_string).collect();
    let words: Vec<_> = lines.iter().map(|line| line.split(", file").next().unwrap()).collect();
    let expected = [
        "PT_INTERP /lib/ld.so",
        "PT_LOAD 0x102000..0x102020 rw-",
        "PT_DYNAMIC 0x103000..0x103070 r--",
        "PT_GNU_STACK rw-",
        "PT_0x1234 r--",
        "DT_NEEDED libc.so.6",
        "DT_SONAME libme.so",
        "DT_RUNPATH $ORIGIN/lib",
    ];
    assert_eq!(words, expected);
}
