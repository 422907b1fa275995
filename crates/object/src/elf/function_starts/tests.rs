use backtrail_testkit::{Assembler, Elf, ElfSection};

use crate::Object;
use crate::error::Result;

const ADDRESS: u64 = 0x10_2000;

fn starts(elf: Elf, name: &'static str, data: Vec<u8>) -> Result<Vec<u64>> {
    let section = ElfSection { name, kind: 1, flags: 2, address: ADDRESS, data, ..ElfSection::default() };
    let data = Elf { sections: vec![section], ..elf }.build();
    Ok(Object::parse(&data)?.function_starts()?.into_iter().map(backtrail_core::Svma::get).collect())
}

#[test]
fn search_tables_count_from_where_they_say() {
    let distance = |to: i64| u32::try_from(to.rem_euclid(1 << 32)).unwrap();
    let mut usual = Assembler::new();
    usual.bytes(&[1, 0x1b, 0x03, 0x3b]).u32(0x100).u32(2);
    usual.u32(distance(-0x1000)).u32(0).u32(distance(-0x800)).u32(0);
    assert_eq!(starts(Elf::default(), ".eh_frame_hdr", usual.finish()).unwrap(), [0x10_1000, 0x10_1800]);

    let mut wide = Assembler::with(true, true);
    wide.bytes(&[1, 0x00, 0x02, 0x04]).u64(0).u16(1).u64(0x1234_5678_9abc).u64(0);
    let big = Elf { is_big: true, machine: 21, ..Elf::default() };
    assert_eq!(starts(big, ".eh_frame_hdr", wide.finish()).unwrap(), [0x1234_5678_9abc]);

    // Counted from the entry itself, in a 32-bit file, wrapping at 32 bits.
    let mut relative = Assembler::with(false, false);
    relative.bytes(&[1, 0x03, 0x03, 0x1b]).u32(0).u32(1).u32(distance(-0x10_200c - 0x10)).u32(0);
    let narrow = Elf { is_64: false, machine: 3, ..Elf::default() };
    assert_eq!(starts(narrow, ".eh_frame_hdr", relative.finish()).unwrap(), [0xffff_fff0]);
}

#[test]
fn counts_that_lie_give_what_is_there() {
    let mut table = Assembler::new();
    table.bytes(&[1, 0x1b, 0x03, 0x3b]).u32(0).u32(u32::MAX).u32(8).u32(0).u32(4).u32(0).u32(4);
    assert_eq!(starts(Elf::default(), ".eh_frame_hdr", table.finish()).unwrap(), [ADDRESS + 4, ADDRESS + 8]);
}

#[test]
fn tables_that_are_omitted_or_unknown() {
    let none = vec![1, 0x1b, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(starts(Elf::default(), ".eh_frame_hdr", none).unwrap(), [0; 0]);
    for broken in
        [&[2, 0x1b, 3, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0][..], &[1, 0x1b], &[1, 0x1b, 1, 0x3b, 0, 0, 0, 0, 1]]
    {
        let error = starts(Elf::default(), ".eh_frame_hdr", broken.to_vec()).unwrap_err();
        assert!(error.to_string().contains(".eh_frame_hdr"), "{error}");
    }
}

#[test]
fn exception_indices_count_from_each_entry() {
    let arm = Elf { machine: 40, is_64: false, ..Elf::default() };
    let mut table = Assembler::with(false, false);
    table.u32(0x7fff_f000).u32(1).u32(0x7fff_f101).u32(0x8000_0000).u32(5);
    assert_eq!(starts(arm, ".ARM.exidx", table.finish()).unwrap(), [0x10_1000, 0x10_1108]);
    assert_eq!(starts(Elf::default(), ".ARM.exidx", vec![0; 16]).unwrap(), [0; 0]);
}
