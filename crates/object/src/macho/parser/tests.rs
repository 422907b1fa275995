use backtrail_core::{Arch, ImageId, Svma};
use backtrail_testkit::{MachO, MachSection, MachSegment, Nlist, fat};

use super::unwrapped;
use crate::{Endian, ErrorKind, Format, Kind, Limits, Object, Section, identify, slices};

const CODE: u32 = 0x8000_0400;

fn section(name: &'static str, address: u64, flags: u32, data: &[u8]) -> MachSection {
    MachSection { name, address, flags, data: data.to_vec(), size: 0 }
}

/// A program whose file offsets, addresses and distances from the base all differ.
fn program() -> MachO {
    let text =
        vec![section("__text", 0x1_0000_1000, CODE, &[1; 48]), section("__const", 0x1_0000_1030, 0, &[2; 8])];
    let bss = MachSection { name: "__bss", address: 0x1_0000_9000, flags: 1, data: vec![], size: 0x100 };
    let data = vec![section("__data", 0x1_0000_8000, 0, &[3; 16]), bss];
    let segment = |name, address, protection, sections| MachSegment {
        name,
        address,
        size: 0x4000,
        protection,
        sections,
    };
    MachO {
        uuid: Some(*b"0123456789abcdef"),
        segments: vec![
            MachSegment { name: "__PAGEZERO", size: 0x1_0000_0000, ..MachSegment::default() },
            segment("__TEXT", 0x1_0000_0000, 5, text),
            segment("__DATA", 0x1_0000_8000, 3, data),
        ],
        ..MachO::default()
    }
}

#[test]
fn headers_are_read_in_every_width_and_order() {
    for (is_64, is_big, cpu, arch) in [
        (true, false, 0x0100_000c, Arch::Arm64),
        (false, false, 12, Arch::Arm),
        (false, true, 18, Arch::Ppc),
        (true, true, 0x0100_0012, Arch::Ppc64),
    ] {
        let mut file = MachO { is_64, is_big, cpu, ..program() };
        if !is_64 {
            file.segments.iter_mut().for_each(|segment| segment.address &= 0xffff_ffff);
        }
        let data = file.build();
        let object = Object::parse(&data).unwrap();
        assert_eq!((object.format(), object.kind(), object.arch()), (Format::MachO, Kind::Executable, arch));
        assert_eq!((object.is_64(), object.endian() == Endian::Big), (is_64, is_big));
        assert_eq!(object.id(), Some(ImageId::Uuid(*b"0123456789abcdef")));
        assert_eq!(object.problems(), []);
        assert_eq!(object.segments().len(), 3);
        let names: Vec<_> = object.sections().iter().map(|section| &*section.name).collect();
        assert_eq!(names, ["__text", "__const", "__data", "__bss"]);
        let data = object.section(".data").unwrap();
        assert_eq!(object.section_data(data).unwrap(), vec![3; 16]);
        assert_eq!((&*data.segment, data.is_code, data.is_loaded), ("__DATA", false, true));
        assert!(object.section("__text").unwrap().is_code);
    }
}

#[test]
fn zero_filled_sections_have_no_bytes() {
    let data = program().build();
    let object = Object::parse(&data).unwrap();
    let bss = object.section("__bss").unwrap();
    assert!(bss.is_no_bits());
    assert_eq!((bss.address.start().get(), bss.address.size()), (0x1_0000_9000, 0x100));
    assert_eq!(object.section_data(bss).unwrap(), Vec::<u8>::new());
}

#[test]
fn the_base_is_where_text_is() {
    let data = program().build();
    let object = Object::parse(&data).unwrap();
    assert_eq!(object.image_base(), Svma::new(0x1_0000_0000));
    let text = object.segments().iter().find(|segment| segment.name == "__TEXT").unwrap();
    assert!(text.readable && text.executable && !text.writable);
    assert_eq!(
        object.bytes_at(Svma::new(0x1_0000_0000 + 44), 100),
        Some(&[&[1; 4][..], &[2; 8]].concat()[..])
    );
    assert_eq!(object.bytes_at(Svma::new(0x1_0000_3000), 1), None);
    let mut relocatable = program();
    relocatable.file_type = 1;
    let data = relocatable.build();
    assert_eq!(Object::parse(&data).unwrap().image_base(), Svma::new(0));
}

#[test]
fn every_file_type_has_its_kind() {
    for (file_type, kind) in [
        (1, Kind::Relocatable),
        (2, Kind::Executable),
        (4, Kind::Core),
        (5, Kind::Other),
        (6, Kind::Library),
        (7, Kind::Library),
        (8, Kind::Bundle),
        (10, Kind::DebugCompanion),
        (11, Kind::Bundle),
    ] {
        let data = MachO { file_type, ..program() }.build();
        assert_eq!(identify(&data, &Limits::default()).unwrap()[0].kind, kind, "{file_type}");
    }
}

#[test]
fn sub_architectures_are_told_apart() {
    for (cpu, subtype, arch) in [
        (7, 3, Arch::X86),
        (0x0100_0007, 3, Arch::X86_64),
        (0x0100_0007, 8, Arch::X86_64h),
        (12, 6, Arch::Armv6),
        (12, 9, Arch::Armv7),
        (12, 11, Arch::Armv7s),
        (12, 12, Arch::Armv7k),
        (0x0100_000c, 0x8000_0002, Arch::Arm64e),
        (0x0200_000c, 1, Arch::Arm64_32),
        (99, 0, Arch::Unknown),
    ] {
        let data = MachO { cpu, cpu_subtype: subtype, ..MachO::default() }.build();
        assert_eq!(Object::parse(&data).unwrap().arch(), arch);
    }
}

#[test]
fn no_identity_is_none() {
    for uuid in [None, Some([0; 16])] {
        let data = MachO { uuid, ..program() }.build();
        assert_eq!(Object::parse(&data).unwrap().id(), None);
    }
}

#[test]
fn companions_have_debug_info_and_no_code() {
    let mut file = program();
    file.file_type = 10;
    for segment in &mut file.segments {
        for section in &mut segment.sections {
            section.size = section.size.max(section.data.len() as u64);
            section.data.clear();
        }
    }
    let sections = vec![section("__debug_info", 0x1_0001_0000, 0, &[9; 4])];
    file.segments.push(MachSegment {
        name: "__DWARF",
        address: 0x1_0001_0000,
        size: 4,
        protection: 3,
        sections,
    });
    let data = file.build();
    let identity = &identify(&data, &Limits::default()).unwrap()[0];
    assert!(identity.has_debug_info && !identity.has_symbols);
    let object = Object::parse(&data).unwrap();
    let text = object.section(".text").unwrap();
    assert!(text.is_code && text.is_no_bits() && text.address.size() == 48);
    assert!(object.segments().iter().all(|segment| segment.file.is_empty() || segment.name == "__DWARF"));
    let info = object.section(".debug_info").unwrap();
    assert!(!info.is_loaded);
    assert_eq!(object.section_data(info).unwrap(), vec![9; 4]);
}

#[test]
fn imports_alone_are_no_symbols() {
    let import = Nlist { name: "_exit", kind: 1, ..Nlist::default() };
    let data = MachO { symbols: vec![import.clone()], ..program() }.build();
    assert!(Object::parse(&data).unwrap().has_symbols(), "nothing says that it is an import");
    let mut dysymtab = vec![0; 72];
    dysymtab[20..24].copy_from_slice(&1u32.to_le_bytes());
    let data = MachO { symbols: vec![import], commands: vec![(0xb, dysymtab)], ..program() }.build();
    assert!(!Object::parse(&data).unwrap().has_symbols());
}

#[test]
fn a_broken_command_leaves_the_others() {
    let mut file = program();
    file.commands = vec![(0x1b, vec![1, 2, 3, 4]), (0x2b, vec![0; 8])];
    let data = file.build();
    let object = Object::parse(&data).unwrap();
    assert_eq!((object.problems().len(), object.sections().len()), (1, 4));
    let problem = object.problems()[0].to_string();
    assert!(problem.contains("expected LC_UUID of 24 bytes, the load command has 12"), "{problem}");

    // A size that leaves the commands ends them.
    let mut data = program().build();
    let uuid = data.windows(8).position(|window| window == [0x1b, 0, 0, 0, 24, 0, 0, 0]).unwrap();
    data[uuid + 4] = 255;
    let object = Object::parse(&data).unwrap();
    assert_eq!((object.id(), object.sections().len(), object.problems().len()), (None, 4, 1));
    assert_eq!(object.problems()[0].offset().unwrap().get(), uuid as u64);
    data[uuid + 4] = 0;
    assert_eq!(Object::parse(&data).unwrap().problems().len(), 1);
}

#[test]
fn counts_are_limited() {
    let data = program().build();
    let limits = Limits { segments: 2, ..Limits::default() };
    let object = Object::parse_with(&data, &limits).unwrap();
    assert_eq!((object.segments().len(), object.problems()[0].kind()), (2, ErrorKind::LimitExceeded));
    let limits = Limits { sections: 3, ..Limits::default() };
    let object = Object::parse_with(&data, &limits).unwrap();
    assert_eq!((object.sections().len(), object.problems()[0].kind()), (2, ErrorKind::LimitExceeded));
}

#[test]
fn ranges_that_would_wrap_are_cut() {
    let mut file = program();
    file.segments[1].address = u64::MAX - 0xff;
    file.segments[1].sections[0].address = u64::MAX - 0xf;
    let data = file.build();
    let object = Object::parse(&data).unwrap();
    assert_eq!(object.segments()[1].address.size(), 0xff);
    assert_eq!(object.sections()[0].address.size(), 0xf);
    assert!(object.symbols().is_ok() && object.function_starts().is_ok());
}

#[test]
fn offsets_beyond_four_gigabytes_are_completed() {
    let segment = crate::FileRange::from_size(backtrail_core::FileOffset::new(0x1000), 3 << 32);
    let mut last = 0x1000;
    let whole: Vec<u64> = [0x2000u64, 0xffff_0000, 0x8000, 0x1_0000, 0x100]
        .into_iter()
        .map(|stated| {
            last = unwrapped(stated, last, segment);
            last
        })
        .collect();
    assert_eq!(whole, [0x2000, 0xffff_0000, 0x1_0000_8000, 0x1_0001_0000, 0x2_0000_0100]);
    assert_eq!(unwrapped(0, last, segment), 0);
}

#[test]
fn old_compressed_sections_are_known_by_name() {
    let sections = vec![section("__zdebug_info", 0, 0, b"ZLIB\0\0\0\0\0\0\0\x01garbage")];
    let segment = MachSegment { name: "__DWARF", address: 0, size: 32, protection: 3, sections };
    let data = MachO { segments: vec![segment], ..MachO::default() }.build();
    let object = Object::parse(&data).unwrap();
    let info: &Section<'_> = object.section(".debug_info").unwrap();
    assert!(info.is_compressed && object.has_debug_info());
    assert_eq!(object.section_size(info).unwrap(), 1);
    assert_eq!(object.section_data(info).unwrap_err().kind(), ErrorKind::Decompression);
}

#[test]
fn fat_slices_are_objects_of_their_own() {
    let arm = MachO { uuid: Some([1; 16]), ..program() }.build();
    let intel = MachO { uuid: Some([2; 16]), cpu: 0x0100_0007, cpu_subtype: 3, ..program() }.build();
    for is_64 in [false, true] {
        let data = fat(is_64, &[(0x0100_000c, 0, arm.clone()), (0x0100_0007, 3, intel.clone())]);
        let slices = slices(&data, &Limits::default()).unwrap();
        assert_eq!(slices.iter().map(|slice| slice.arch).collect::<Vec<_>>(), [Arch::Arm64, Arch::X86_64]);
        assert!(slices[1].data == intel && slices[1].range.start().get() != 0);
        let object = slices[1].parse(&Limits::default()).unwrap();
        assert_eq!(object.section_data(object.section("__data").unwrap()).unwrap(), vec![3; 16]);
        let identities = identify(&data, &Limits::default()).unwrap();
        assert_eq!(identities[1].range, slices[1].range);
        assert_eq!(identities[1].id, object.id());
    }
}

#[test]
fn fat_slices_that_lie_have_a_problem() {
    let arm = MachO { uuid: Some([1; 16]), ..program() }.build();
    let whole = fat(false, &[(0x0100_000c, 0, arm.clone()), (0x0100_0007, 3, arm)]);
    // Cut in the second slice, before it, and in the headers.
    let limits = Limits::default();
    let second = slices(&whole, &limits).unwrap()[1].range.start().get() as usize;
    let cut = slices(&whole[..second + 40], &limits).unwrap();
    assert_eq!(cut[1].data.len(), 40);
    assert!(!cut[1].parse(&limits).unwrap().problems().is_empty());
    let cut = slices(&whole[..second], &limits).unwrap();
    assert_eq!(cut[1].problem().unwrap().kind(), ErrorKind::Truncated);
    assert_eq!(identify(&&whole[..second], &limits).unwrap().len(), 1);
    assert_eq!(slices(&whole[..20], &limits).unwrap_err().kind(), ErrorKind::Truncated);
    let mut inside = whole.clone();
    inside[16..20].copy_from_slice(&8u32.to_be_bytes());
    assert!(
        slices(&inside, &limits).unwrap()[0].problem().unwrap().to_string().contains("inside its headers")
    );
    assert!(slices(&whole[..4], &limits).is_err());
    assert!(slices(&fat(false, &[]), &limits).is_err());
}
