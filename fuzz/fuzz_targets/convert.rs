//! Everything that a conversion reads, with a hostile file in every part; what comes out has to be a whole table that
//! answers.
#![no_main]

use backtrail_core::Svma;
use backtrail_object::Object;
use backtrail_symbolize::convert::{ConvertOptions, convert};
use backtrail_symbolize::{Symbolizer, table_lookup};
use backtrail_table::Table;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    let Ok(object) = Object::parse(data) else { return };
    let sections: Vec<_> = object.sections().iter().take(16).map(|section| section.address).collect();
    let Ok(symbolizer) = Symbolizer::new(vec![object]) else { return };
    // The first file that is asked for is there, and as hostile as the image; the others are missing.
    let mut file = Some(data);
    while let Some(request) = symbolizer.missing_file() {
        symbolizer.provide(&request, file.take());
    }
    let options = ConvertOptions { jobs: Some(1), ..ConvertOptions::default() };
    let mut out = Cursor::new(Vec::new());
    if convert(&symbolizer, &options, &mut out).is_err() {
        return;
    }
    let bytes = out.into_inner();
    let table = Table::open(&bytes).expect("what was written is a table");
    table.check().expect("and a whole one");
    for range in sections {
        for address in [range.start(), Svma::new(range.start().get() + range.size() / 2), range.end()] {
            let answer = table_lookup(&table, address);
            assert_eq!(answer.reason.is_some(), answer.functions.is_empty() && answer.symbol.is_none());
        }
    }
});
