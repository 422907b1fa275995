use backtrail_testkit::{MachO, MachSection, MachSegment, Nlist};

use crate::{Binding, Limits, Object, Symbol, SymbolTable};

const SECT: u8 = 0xe;
const EXT: u8 = 1;

fn nlist(name: &'static str, kind: u8, section: u8, desc: u16, value: u64) -> Nlist {
    Nlist { name, kind, section, desc, value }
}

fn file(symbols: Vec<Nlist>) -> MachO {
    let text =
        MachSection { name: "__text", address: 0x5000, flags: 0x8000_0400, data: vec![0; 0x100], size: 0 };
    let data = MachSection { name: "__data", address: 0x5100, flags: 0, data: vec![0; 0x10], size: 0 };
    let segment = MachSegment {
        name: "__TEXT",
        address: 0x4000,
        size: 0x2000,
        protection: 5,
        sections: vec![text, data],
    };
    MachO { is_64: false, cpu: 12, cpu_subtype: 9, segments: vec![segment], symbols, ..MachO::default() }
}

fn find<'a>(symbols: &'a [Symbol<'_>], name: &str) -> &'a Symbol<'a> {
    symbols.iter().find(|symbol| symbol.name == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn only_definitions_with_an_address_count() {
    let data = file(vec![
        nlist("_undefined", EXT, 0, 0, 0),
        nlist("_common", EXT, 0, 0, 16),
        nlist("_absolute", 2 | EXT, 0, 0, 0x1234),
        nlist("_indirect", 0xa | EXT, 0, 0, 1),
        nlist("_prebound", 0xc | EXT, 0, 0, 0),
        nlist("_stab", 0x24, 1, 0, 0x5000),
        nlist("", SECT, 1, 0, 0x5000),
        nlist("radr://5614542", SECT, 1, 0, 0x5000),
        nlist("_main", SECT | EXT, 1, 0, 0x5010),
    ])
    .build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    assert_eq!(symbols.iter().map(|symbol| &*symbol.name).collect::<Vec<_>>(), ["_main"]);
}

#[test]
fn sections_bindings_and_thumb_are_understood() {
    let data = file(vec![
        nlist("_global", SECT | EXT, 1, 0, 0x5010),
        nlist("_weak", SECT | EXT, 1, 0x80, 0x5010),
        nlist("_local", SECT, 1, 0, 0x5020),
        nlist("_hidden", SECT | EXT | 0x10, 1, 0, 0x5024),
        nlist("_thumb", SECT, 1, 8, 0x5031),
        nlist("_variable", SECT, 2, 0, 0x5101),
        nlist("_end", SECT, 1, 0, 0x5100),
        nlist("__mh_execute_header", SECT | EXT, 1, 0x10, 0x4000),
        nlist("_nowhere", SECT, 9, 0, 0x5000),
    ])
    .build();
    let object = Object::parse(&data).unwrap();
    let symbols = object.symbols().unwrap();
    assert!(symbols.iter().all(|symbol| symbol.table == SymbolTable::Nlist));
    assert_eq!(find(&symbols, "_global").binding, Binding::Global);
    assert_eq!(find(&symbols, "_weak").binding, Binding::Weak);
    assert_eq!(find(&symbols, "_local").binding, Binding::Local);
    let thumb = find(&symbols, "_thumb");
    assert_eq!((thumb.address.get(), thumb.is_code, thumb.section), (0x5030, true, Some(0)));
    let variable = find(&symbols, "_variable");
    assert_eq!((variable.address.get(), variable.is_code, variable.section), (0x5101, false, Some(1)));
    assert_eq!((find(&symbols, "_end").is_code, find(&symbols, "_end").section), (false, Some(0)));
    for outside in ["__mh_execute_header", "_nowhere"] {
        assert_eq!((find(&symbols, outside).is_code, find(&symbols, outside).section), (false, None));
    }
}

#[test]
fn exports_that_the_table_has_are_not_repeated() {
    // One child `_main` at 0x5010, one `_other` at 0x5020.
    let exports =
        [&[0, 2][..], b"_main\0\x13_other\0\x18\0", &[0, 0], &[3, 0, 0x90, 0x20, 0], &[3, 0, 0xa0, 0x20, 0]];
    let mut file = file(vec![nlist("_main", SECT | EXT, 1, 0, 0x5010)]);
    file.exports = exports.concat();
    file.exports[8] = 0x15;
    file.exports[16] = 0x1a;
    file.exports.resize(0x1f, 0);
    file.exports[0x15..0x1a].copy_from_slice(&[3, 0, 0x90, 0x20, 0]);
    file.exports[0x1a..0x1f].copy_from_slice(&[3, 0, 0xa1, 0x20, 0]);
    let data = file.build();
    let symbols = Object::parse(&data).unwrap().symbols().unwrap();
    let rows: Vec<_> =
        symbols.iter().map(|symbol| (&*symbol.name, symbol.address.get(), symbol.table)).collect();
    assert_eq!(rows, [("_main", 0x5010, SymbolTable::Nlist), ("_other", 0x5020, SymbolTable::Exports)]);
}

#[test]
fn one_broken_table_leaves_the_other() {
    let mut broken = file(vec![nlist("_main", SECT | EXT, 1, 0, 0x5010)]);
    broken.exports = vec![0, 1, b'x'];
    let data = broken.build();
    let object = Object::parse(&data).unwrap();
    assert_eq!(object.symbols().unwrap().len(), 1);
    let (symbols, problems) = object.symbols_and_problems();
    assert_eq!((symbols.len(), problems.len()), (1, 1));
}

#[test]
fn names_that_the_file_does_not_have_are_left_out() {
    let data = file(vec![nlist("_first", SECT, 1, 0, 0x5000), nlist("_second", SECT, 1, 0, 0x5010)]).build();
    let cut = &data[..data.len() - 4];
    let symbols = Object::parse(cut).unwrap().symbols().unwrap();
    let names: Vec<_> = symbols.iter().map(|symbol| &*symbol.name).collect();
    assert_eq!(names[0], "_first");
    let none = Object::parse(&data[..data.len() - 40]).unwrap();
    assert!(none.symbols().is_err());
    let limits = Limits { symbols: 1, ..Limits::default() };
    assert!(Object::parse_with(&data, &limits).unwrap().symbols().is_err());
}
