//! Go's table of functions in a program with the runtime's module and trees of inlined calls: every address looked up, and
//! converted, and the two held against each other.
//!
//! Input: one byte (1 for 32 bits, 2 for big endian), the lengths of the data and the read-only data (two bytes each, the
//! lower first), these, the table.
#![no_main]

use backtrail_core::Svma;
use backtrail_object::Object;
use backtrail_symbolize::convert::{ConvertOptions, convert, verify};
use backtrail_symbolize::{Step, Symbolizer};
use backtrail_table::Table;
use backtrail_testkit::{Elf, ElfProgram, ElfSection};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

// As in the tests of `backtrail-symbolize`.
const TEXT: u64 = 0x40_0f00;
const SIZE: u64 = 0x1a0;

fn section(name: &'static str, flags: u64, address: u64, data: &[u8]) -> ElfSection {
    ElfSection { name, kind: 1, flags, address, data: data.to_vec(), ..ElfSection::default() }
}

fuzz_target!(|data: &[u8]| {
    let [flags, a, b, c, d, rest @ ..] = data else { return };
    let (module, rest) = rest.split_at(usize::from(u16::from_le_bytes([*a, *b])).min(rest.len()));
    let (rodata, table) = rest.split_at(usize::from(u16::from_le_bytes([*c, *d])).min(rest.len()));
    let sections = vec![
        section(".text", 6, TEXT, &[0x90; SIZE as usize]),
        section(".rodata", 2, 0x48_0000, rodata),
        section(".gopclntab", 2, 0x49_0000, table),
        section(".data", 3, 0x4d_a000, module),
    ];
    let programs = vec![ElfProgram {
        kind: 1,
        flags: 4,
        address: 0x48_0000,
        sections: Some((2, 2)),
        ..ElfProgram::default()
    }];
    let (is_64, is_big) = (flags & 1 == 0, flags & 2 != 0);
    let machine = if is_64 { 62 } else { 3 };
    let file =
        Elf { is_64, is_big, machine, file_type: 2, entry: TEXT, sections, programs, ..Elf::default() }
            .build();
    let Ok(object) = Object::parse(&file) else { return };
    let Ok(symbolizer) = Symbolizer::new(vec![object]) else { return };
    for address in TEXT..TEXT + SIZE {
        let Step::Answer(answer) = symbolizer.lookup(Svma::new(address)) else { panic!("no file is named") };
        assert!(answer.functions.len() <= 65);
        assert_eq!(answer.reason.is_some(), answer.functions.is_empty() && answer.symbol.is_none());
        if let Some(outermost) = answer.functions.last() {
            assert!(!outermost.is_inlined() && !outermost.name().is_empty());
            assert!(answer.function_start.is_some_and(|start| start <= Svma::new(address)));
        }
    }
    let mut out = Cursor::new(Vec::new());
    let options = ConvertOptions { jobs: Some(1), ..ConvertOptions::default() };
    if convert(&symbolizer, &options, &mut out).is_err() {
        return;
    }
    let out = out.into_inner();
    let Ok(table) = Table::open(&out) else { panic!("a table of our own") };
    let Ok(verified) = verify(&table, &symbolizer, Some(1)) else { return };
    assert_eq!(verified.differences, 0, "{:?}", verified.shown);
});
