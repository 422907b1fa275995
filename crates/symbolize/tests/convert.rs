//! Tables against the lookups that they stand in for: every address of the small binaries in `fixtures/symbolize`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use backtrail_core::Svma;
use backtrail_object::Object;
use backtrail_symbolize::convert::{ConvertOptions, convert, verify};
use backtrail_symbolize::{FileRequest, Symbolizer, table_lookup};
use backtrail_table::Table;
use common::{Files, lookup, symbolizer};
use std::io::Cursor;

fn table_of(symbolizer: &Symbolizer<'_>, jobs: usize) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    let options = ConvertOptions { jobs: Some(jobs), ..ConvertOptions::default() };
    convert(symbolizer, &options, &mut out).unwrap();
    out.into_inner()
}

/// Gives what debug info asks for, as far as it is there.
fn provide_all<'f>(files: &'f Files, image: &str, symbolizer: &Symbolizer<'f>, deny: &[FileRequest]) {
    while let Some(request) = symbolizer.missing_file() {
        let data = files.requested(image, &request).filter(|_| !deny.contains(&request));
        symbolizer.provide(&request, data);
    }
}

/// The borders of everything that the image has code in, with some bytes around.
fn addresses(image: &[u8]) -> Vec<u64> {
    let object = Object::parse(image).unwrap();
    let sections = object.sections().iter().filter(|section| section.is_loaded && section.is_code);
    let mut addresses: Vec<u64> = sections
        .flat_map(|section| {
            let (start, end) = (section.address.start().get(), section.address.end().get());
            start.saturating_sub(16)..end.saturating_add(16)
        })
        .collect();
    addresses.extend(
        object
            .sections()
            .iter()
            .filter(|section| section.is_loaded)
            .map(|section| section.address.start().get()),
    );
    addresses.extend([0, 1, u64::MAX]);
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn differences(files: &Files, image: &str, deny: &[FileRequest]) -> String {
    let direct = symbolizer(files, image);
    provide_all(files, image, &direct, deny);
    let bytes = table_of(&direct, 2);
    let table = Table::open(&bytes).unwrap();
    table.check().unwrap();
    let mut told = String::new();
    for address in addresses(files.get(image).unwrap()) {
        let expected = lookup(files, image, &direct, address, deny).to_symbol_info(Svma::new(address));
        let own = table_lookup(&table, Svma::new(address));
        if own != expected {
            told += &format!("{image} {address:#x}:\n  table {own:?}\n  debug {expected:?}\n");
            if told.len() > 4000 {
                break;
            }
        }
    }
    let verified = verify(&table, &direct, Some(2)).unwrap();
    if verified.differences > 0 {
        told += &format!("{image}: {verified:#?}\n");
    }
    told
}

fn images(files: &Files) -> Vec<&str> {
    let mut names: Vec<_> = files.0.keys().filter_map(|name| name.strip_suffix(".expected")).collect();
    names.push("clang-sections.o");
    names.sort_unstable();
    assert!(names.len() > 40);
    names
}

#[test]
fn a_table_answers_every_address_as_its_debug_info_does() {
    let files = Files::read();
    let told: String = images(&files).iter().map(|image| differences(&files, image, &[])).collect();
    assert!(told.is_empty(), "{told}");
}

#[test]
fn split_units_come_from_single_files_too() {
    let files = Files::read();
    for image in ["gcc-split-4.elf", "clang-split-4.elf", "clang-split-5.elf"] {
        let told = differences(&files, image, &[FileRequest::Dwp]);
        assert!(told.is_empty(), "{told}");
    }
}

#[test]
fn images_without_dsym_are_converted_from_their_object_files() {
    let files = Files::read();
    for image in ["macho-arm64.dylib", "macho-x86_64.dylib"] {
        let told = differences(&files, image, &[]);
        assert!(told.is_empty(), "{told}");
        let direct = symbolizer(&files, image);
        provide_all(&files, image, &direct, &[]);
        let bytes = table_of(&direct, 1);
        assert!(Table::open(&bytes).unwrap().stats().rows > 10);
    }
}

#[test]
fn a_dsym_and_its_binary_make_one_table() {
    let files = Files::read();
    let parse = |name| Object::parse(files.get(name).unwrap()).unwrap();
    let both = Symbolizer::new(vec![parse("macho-arm64.dwarf"), parse("macho-arm64.dylib")]).unwrap();
    let bytes = table_of(&both, 1);
    let table = Table::open(&bytes).unwrap();
    assert_eq!(table.header().id, parse("macho-arm64.dylib").id());
    for address in addresses(files.get("macho-arm64.dylib").unwrap()) {
        let expected = lookup(&files, "macho-arm64.dylib", &both, address, &[]);
        let expected = expected.to_symbol_info(Svma::new(address));
        assert_eq!(table_lookup(&table, Svma::new(address)), expected, "{address:#x}");
    }
}

#[test]
fn the_same_bytes_come_out_whatever_the_number_of_threads() {
    let files = Files::read();
    for image in ["gcc-dwarf5.elf", "clang-lto.elf", "clang-split-5.elf", "macho-arm64.dwarf", "symbols.elf"]
    {
        let tables: Vec<_> = [1, 2, 5]
            .map(|jobs| {
                let direct = symbolizer(&files, image);
                provide_all(&files, image, &direct, &[]);
                table_of(&direct, jobs)
            })
            .into();
        assert!(tables.iter().all(|table| *table == tables[0]), "{image}");
    }
}
