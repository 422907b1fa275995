use backtrail_testkit::{Assembler, Elf, ElfSection, ElfSymbol};

use crate::{ErrorKind, Object};

/// Sections 1 `.data`, 2 `.text`, 3 `.debug_info`, 4 its relocations, 5 symbols, 6 names: section of `.text`, `f` in
/// `.text` at 4, `v` in `.data` at 8, one undefined, one absolute.
fn file(elf: Elf, is_rela: bool, info: Vec<u8>, relocations: Vec<u8>) -> Vec<u8> {
    let symbol = |name, kind, section, value| ElfSymbol { name, value, size: 0, kind, binding: 0, section };
    let symbols = [
        symbol("", 3, 2, 0),
        symbol("f", 2, 2, 4),
        symbol("v", 1, 1, 8),
        symbol("u", 0, 0, 0),
        symbol("a", 0, 0xfff1, 7),
    ];
    let (entries, names) = elf.symbol_table(&symbols);
    let section = |name, kind, flags, data| ElfSection { name, kind, flags, data, ..ElfSection::default() };
    let sections = vec![
        section(".data", 1, 2, vec![0; 0x20]),
        section(".text", 1, 6, vec![0; 0x30]),
        section(".debug_info", 1, 0, info),
        ElfSection { link: 5, info: 3, ..section(".rel", if is_rela { 4 } else { 9 }, 0, relocations) },
        ElfSection { link: 6, ..section(".symtab", 2, 0, entries) },
        section(".strtab", 3, 0, names),
    ];
    Elf { file_type: 1, sections, ..elf }.build()
}

fn info(data: &[u8]) -> crate::error::Result<Vec<u8>> {
    let object = Object::parse(data)?;
    object.relocated_section_data(object.section(".debug_info").unwrap()).map(std::borrow::Cow::into_owned)
}

#[test]
fn an_address_means_the_first_section_that_has_it() {
    // `.text.second` is longer than `.text`; what it has below the end of that is nobody's.
    let relocations =
        Assembler::new().u64(0).u64(3 << 32 | 1).u64(0).u64(8).u64(3 << 32 | 1).u64(0x2c).finish();
    let mut elf = Elf::default();
    let symbol = |name, section| ElfSymbol { name, value: 4, size: 0, kind: 2, binding: 0, section };
    let (entries, names) = elf.symbol_table(&[symbol("a", 1), symbol("b", 1), symbol("f", 2)]);
    let section = |name, kind, flags, data| ElfSection { name, kind, flags, data, ..ElfSection::default() };
    elf.sections = vec![
        section(".text", 1, 6, vec![0; 0x20]),
        section(".text.second", 1, 6, vec![0; 0x40]),
        section(".debug_info", 1, 0, vec![0; 16]),
        ElfSection { link: 5, info: 3, ..section(".rela", 4, 0, relocations) },
        ElfSection { link: 6, ..section(".symtab", 2, 0, entries) },
        section(".strtab", 3, 0, names),
    ];
    let data = Elf { file_type: 1, ..elf }.build();
    let expected = [u64::MAX - 1, 0x30].into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>();
    assert_eq!(info(&data).unwrap(), expected);
    let ends: Vec<_> = Object::parse(&data).unwrap().shadow_ends().iter().map(|end| end.get()).collect();
    assert_eq!(ends[..4], [0, 0, 0x20, 0]);
    // Unless another section is asked for.
    let mut object = Object::parse(&data).unwrap();
    object.select_section(".text.second");
    let info = object.relocated_section_data(object.section(".debug_info").unwrap()).unwrap();
    assert_eq!(*info, *[4u64, 0x30].into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
    object.select_section(".text");
    let info = object.relocated_section_data(object.section(".debug_info").unwrap()).unwrap();
    assert_eq!(*info, *[u64::MAX - 1; 2].into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
}

#[test]
fn words_are_filled_in_with_the_addend_given() {
    let mut relocations = Assembler::new();
    for (offset, symbol, kind, addend) in [
        (0, 1u64, 1u64, 0x10i64),
        (8, 3, 1, -4),
        (16, 2, 10, 1),
        (20, 4, 10, 0x55),
        (24, 5, 1, 1),
        (32, 2, 17, 9),
    ] {
        relocations.u64(offset).u64(symbol << 32 | kind).u64(addend.cast_unsigned());
    }
    let data = file(Elf::default(), true, vec![0xee; 40], relocations.finish());
    let expected = [0x10u64, 4].into_iter().flat_map(u64::to_le_bytes);
    let expected: Vec<u8> =
        expected.chain([5, 0, 0, 0, 0x55, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]).chain([0xee; 8]).collect();
    assert_eq!(info(&data).unwrap(), expected);
}

#[test]
fn addends_that_stand_at_the_place_count() {
    let relocations = Assembler::with(false, true).u32(4).u32(3 << 8 | 2).finish();
    let elf = Elf { is_64: false, is_big: true, machine: 40, ..Elf::default() };
    let data = file(elf, false, vec![0, 0, 0, 1, 0, 0, 0, 2], relocations);
    assert_eq!(info(&data).unwrap(), [0, 0, 0, 1, 0, 0, 0, 10]);
}

#[test]
fn differences_of_labels_add_up() {
    let mut relocations = Assembler::new();
    for (offset, symbol, kind, addend) in
        [(0, 3u64, 34u64, 0x100), (0, 2, 38, 0), (2, 3, 60, 0x1234), (2, 2, 61, 1)]
    {
        relocations.u64(offset).u64(symbol << 32 | kind).u64(addend);
    }
    let elf = Elf { machine: 243, ..Elf::default() };
    let data = file(elf, true, vec![0, 0, 0x80, 0x80, 0, 0xee], relocations.finish());
    // 8 + 0x100 - 4 in two bytes; 8 + 0x1234 - (4 + 1) in a number of three bytes.
    assert_eq!(info(&data).unwrap(), [4, 1, 0xb7, 0xa4, 0, 0xee]);
}

#[test]
fn what_cannot_be_filled_in_is_an_error() {
    for (offset, symbol, kind, expected) in [
        (0u64, 1u64, 2u64, ErrorKind::Unsupported),
        (1, 1, 1, ErrorKind::Malformed),
        (u64::MAX, 1, 1, ErrorKind::Malformed),
        (0, 99, 1, ErrorKind::Malformed),
    ] {
        let relocations = Assembler::new().u64(offset).u64(symbol << 32 | kind).u64(0).finish();
        let data = file(Elf::default(), true, vec![0; 8], relocations);
        assert_eq!(info(&data).unwrap_err().kind(), expected, "{offset} {symbol} {kind}");
    }
}
