use backtrail_testkit::{Assembler, Elf, ElfProgram, ElfSection, ElfSymbol};

use crate::{Binding, ErrorKind, Limits, Object, Symbol, SymbolTable};

const ALLOC: u64 = 2;
const EXEC: u64 = 4;

fn symbol(name: &'static str, kind: u8, section: u16, value: u64) -> ElfSymbol {
    ElfSymbol { name, value, size: 4, kind, binding: 1, section }
}

/// Sections 1 `.text`, 2 `.data`, 3 the table, 4 its names.
fn file(elf: Elf, table: (&'static str, u32), symbols: &[ElfSymbol]) -> Elf {
    let section = |name, kind, flags, address, data| ElfSection {
        name,
        kind,
        flags,
        address,
        data,
        ..ElfSection::default()
    };
    let (entries, names) = elf.symbol_table(symbols);
    let sections = vec![
        section(".text", 1, ALLOC | EXEC, 0x10_1000, vec![0; 0x100]),
        section(".data", 1, ALLOC, 0x10_1100, vec![0; 0x100]),
        ElfSection { link: 4, ..section(table.0, table.1, 0, 0, entries) },
        section(".strtab", 3, 0, 0, names),
    ];
    Elf { sections, ..elf }
}

fn names(symbols: &[Symbol<'_>]) -> Vec<String> {
    symbols.iter().map(|symbol| symbol.name.to_string()).collect()
}

#[test]
fn only_definitions_with_an_address_count() {
    let symbols = [
        symbol("undefined", 2, 0, 0),
        symbol("absolute", 0, 0xfff1, 0x1234),
        symbol("common", 5, 0xfff2, 8),
        symbol(".text", 3, 1, 0x10_1000),
        symbol("main.c", 4, 0xfff1, 0),
        symbol("thread_local", 6, 2, 0x10),
        symbol("", 2, 1, 0x10_1000),
        symbol("$x", 0, 1, 0x10_1000),
        symbol("$d.4", 0, 1, 0x10_1010),
        symbol("$xrv64i2p1", 0, 1, 0x10_1010),
        symbol("$ok", 2, 1, 0x10_1010),
        symbol("read@@GLIBC_2.2.5", 2, 1, 0x10_1020),
        symbol("@odd", 2, 1, 0x10_1030),
        symbol("resolver", 10, 1, 0x10_1040),
        symbol("variable", 1, 2, 0x10_1101),
        symbol("label", 0, 1, 0x10_1050),
        symbol("_edata", 0, 2, 0x10_1200),
        symbol("constant", 1, 1, 0x10_1060),
    ];
    for (is_64, is_big) in [(true, false), (false, false), (false, true), (true, true)] {
        let data = file(Elf { is_64, is_big, ..Elf::default() }, (".symtab", 2), &symbols).build();
        let object = Object::parse(&data).unwrap();
        let symbols = object.symbols().unwrap();
        let expected =
            ["$ok", "read", "@odd", "resolver", "variable", "label", "_edata", "constant"].map(str::to_owned);
        assert_eq!(names(&symbols), expected);
        let code: Vec<_> =
            symbols.iter().filter(|symbol| symbol.is_code).map(|symbol| &*symbol.name).collect();
        assert_eq!(code, ["$ok", "read", "@odd", "resolver", "label"]);
        assert!(symbols.iter().all(|symbol| symbol.size == Some(4) && symbol.table == SymbolTable::Symtab));
        assert_eq!(symbols[4].address.get(), 0x10_1101);
        assert_eq!(symbols[4].section, Some(2));
    }
}

#[test]
fn the_thumb_bit_of_functions_is_cleared() {
    let symbols = [symbol("thumb", 2, 1, 0x10_1001), symbol("odd_byte", 1, 2, 0x10_1103)];
    let data = file(Elf { machine: 40, is_64: false, ..Elf::default() }, (".symtab", 2), &symbols).build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    assert_eq!(symbols.iter().map(|symbol| symbol.address.get()).collect::<Vec<_>>(), [0x10_1000, 0x10_1103]);
    let data = file(Elf::default(), (".symtab", 2), &[symbol("f", 2, 1, 0x10_1001)]).build();
    assert_eq!(Object::parse(&data).unwrap().symbols().unwrap()[0].address.get(), 0x10_1001);
}

#[test]
fn bindings_are_told_apart() {
    let with = |name, binding| ElfSymbol { binding, ..symbol(name, 2, 1, 0x10_1000) };
    let symbols = [with("local", 0), with("global", 1), with("weak", 2), with("unique", 10)];
    let data = file(Elf::default(), (".symtab", 2), &symbols).build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    let bindings: Vec<_> = symbols.iter().map(|symbol| symbol.binding).collect();
    assert_eq!(bindings, [Binding::Local, Binding::Global, Binding::Weak, Binding::Global]);
}

#[test]
fn functions_of_old_powerpc_are_where_their_descriptors_say() {
    let mut elf = Elf { machine: 21, is_big: true, ..Elf::default() };
    elf = file(elf, (".symtab", 2), &[symbol("f", 2, 2, 0x10_1108)]);
    elf.sections[1].name = ".opd";
    elf.sections[1].data = [[0; 8], 0x10_1040u64.to_be_bytes()].concat();
    let data = elf.build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    assert_eq!(
        (symbols[0].address.get(), symbols[0].section, symbols[0].is_code),
        (0x10_1040, Some(1), true)
    );
}

#[test]
fn section_numbers_beyond_16_bits_are_elsewhere() {
    let mut elf = file(Elf::default(), (".symtab", 2), &[symbol("f", 0, 0xffff, 0x10_1000)]);
    let indices = [0u32, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    elf.sections.push(ElfSection {
        name: ".symtab_shndx",
        kind: 18,
        data: indices,
        link: 3,
        ..ElfSection::default()
    });
    let data = elf.build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    assert_eq!((symbols[0].section, symbols[0].is_code), (Some(1), true));
}

#[test]
fn the_dynamic_table_adds_what_the_other_lacks() {
    let mut elf = file(Elf::default(), (".symtab", 2), &[symbol("f", 2, 1, 0x10_1000)]);
    let (entries, names) = elf.symbol_table(&[symbol("f", 2, 1, 0x10_1000), symbol("g", 2, 1, 0x10_1010)]);
    elf.sections.push(ElfSection {
        name: ".dynsym",
        kind: 11,
        data: entries,
        link: 6,
        ..ElfSection::default()
    });
    elf.sections.push(ElfSection { name: ".dynstr", kind: 3, data: names, ..ElfSection::default() });
    let data = elf.build();
    let object = Object::parse(&data).unwrap();
    let symbols = object.symbols().unwrap();
    let rows: Vec<_> = symbols.iter().map(|symbol| (&*symbol.name, symbol.table)).collect();
    assert_eq!(rows, [("f", SymbolTable::Symtab), ("g", SymbolTable::Dynsym)]);

    // Broken names of the first leave the second.
    elf.sections[2].link = 99;
    let data = elf.build();
    let (symbols, problems) = Object::parse(&data).unwrap().symbols_and_problems();
    assert_eq!((symbols.len(), problems.len()), (2, 1));
}

#[test]
fn counts_are_limited() {
    let data = file(Elf::default(), (".symtab", 2), &[symbol("f", 2, 1, 0x10_1000)]).build();
    let limits = Limits { symbols: 1, ..Limits::default() };
    let error = Object::parse_with(&data, &limits).unwrap().symbols().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

/// A library without section headers: symbols, names, hash table and dynamic section in one segment.
fn without_sections(is_64: bool, hash_tag: u64, hash: &[u8]) -> Vec<u8> {
    let elf = Elf { is_64, ..Elf::default() };
    let (entries, names) = elf.symbol_table(&[
        symbol("import", 2, 0, 0),
        symbol("f", 2, 1, 0x10_1000),
        symbol("g", 2, 1, 0x10_1010),
    ]);
    let base = 0x10_0000u64;
    let names_at = entries.len().next_multiple_of(8);
    let hash_at = names_at + names.len().next_multiple_of(8);
    let mut body = Assembler::with(is_64, false);
    body.bytes(&entries).align(8).bytes(&names).align(8).bytes(hash).align(8);
    let mut dynamic = Assembler::with(is_64, false);
    let mut entry = |tag: u64, value: u64| {
        dynamic.word(tag).word(value);
    };
    entry(6, base);
    entry(5, base + names_at as u64);
    entry(10, names.len() as u64);
    if hash_tag != 0 {
        entry(hash_tag, base + hash_at as u64);
    }
    entry(0, 0);
    let section =
        |address, data| ElfSection { kind: 1, flags: ALLOC, address, data, ..ElfSection::default() };
    let sections = vec![section(base, body.finish()), section(0x10_8000, dynamic.finish())];
    let program = |kind, address, number| ElfProgram {
        kind,
        flags: 5,
        address,
        size: None,
        sections: Some((number, number)),
    };
    let programs = vec![program(1, base, 1), program(2, 0x10_8000, 2)];
    Elf { is_stripped: true, sections, programs, ..elf }.build()
}

#[test]
fn the_dynamic_linker_knows_symbols_without_section_headers() {
    let gnu = |is_64| {
        let mut hash = Assembler::with(is_64, false);
        // Two buckets, symbols from 2 on, one word of bloom filter; one chain of two.
        hash.u32(2).u32(2).u32(1).u32(6).word(0).u32(0).u32(2).u32(0x10).u32(0x11).finish()
    };
    let sysv = Assembler::new().u32(1).u32(4).u32(1).zeros(16).finish();
    for (is_64, tag, hash) in [
        (true, 0x6fff_fef5, gnu(true)),
        (false, 0x6fff_fef5, gnu(false)),
        (true, 4, sysv.clone()),
        (false, 4, sysv),
        (true, 0, vec![]),
    ] {
        let data = without_sections(is_64, tag, &hash);
        let object = Object::parse(&data).unwrap();
        assert!(object.has_symbols());
        let symbols = object.symbols().unwrap();
        assert_eq!(names(&symbols), ["f", "g"], "{is_64} {tag:#x}");
        assert!(symbols.iter().all(|symbol| symbol.table == SymbolTable::Dynsym && symbol.is_code));
    }
}

#[test]
fn hash_tables_that_lie_are_errors() {
    for (tag, hash) in [
        (0x6fff_fef5, Assembler::new().u32(u32::MAX).u32(2).u32(1).u32(6).finish()),
        (0x6fff_fef5, Assembler::new().u32(1).u32(2).u32(u32::MAX).u32(6).finish()),
        (0x6fff_fef5, Assembler::new().u32(1).u32(2).u32(0).u32(6).u32(u32::MAX).finish()),
        (4, Assembler::new().u32(1).u32(u32::MAX).finish()),
    ] {
        let data = without_sections(true, tag, &hash);
        let object = Object::parse(&data).unwrap();
        assert!(object.symbols().is_err(), "{tag:#x}");
    }
}

#[test]
fn local_symbols_know_the_file_before_them() {
    let local = |symbol| ElfSymbol { binding: 0, ..symbol };
    let symbols = [
        local(symbol("early", 2, 1, 0x10_1000)),
        local(symbol("a.c", 4, 0xfff1, 0)),
        local(symbol("helper", 2, 1, 0x10_1010)),
        local(symbol("b.asm", 4, 0xfff1, 0)),
        local(symbol("loop", 0, 1, 0x10_1020)),
        local(symbol("", 4, 0xfff1, 0)),
        local(symbol("of_the_linker", 2, 1, 0x10_1030)),
        local(symbol("c.c", 4, 0xfff1, 0)),
        symbol("global", 2, 1, 0x10_1040),
    ];
    let data = file(Elf { is_64: true, ..Elf::default() }, (".symtab", 2), &symbols).build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    let files: Vec<_> = symbols.iter().map(|symbol| (&*symbol.name, symbol.source)).collect();
    let expected = [
        ("early", None),
        ("helper", Some("a.c")),
        ("loop", Some("b.asm")),
        ("of_the_linker", None),
        ("global", None),
    ];
    assert_eq!(files, expected);
}
