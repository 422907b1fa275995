//! Documents of groups and files of `--state`, whole or damaged: what is read can be gone on with, is written as it was read, and is the same
//! as itself.
#![no_main]

use backtrail::groups::{Done, GroupTable};
use backtrail::json::{Origin, write_line};
use backtrail::{Begins, Grouped};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok((mut table, done)) = GroupTable::of_document(data) else { return };
    assert_eq!(table.reports(), sum(&table) + table.apart().count);
    assert!(table.since(&table).changes.len() <= 2 * table.rows().len());
    round_trip(&table, done.unwrap_or_default());
    let grouped = Grouped { report: backtrail::Report::default(), group: None, begins: Begins::default() };
    let before = table.reports();
    table.add(grouped, Origin { file: Some("next"), part: None });
    assert_eq!(table.reports(), before + 1);
    round_trip(&table, Done::default());
});

fn sum(table: &GroupTable) -> u64 {
    table.rows().iter().map(|row| row.count).sum()
}

/// What was written once is written again, byte for byte.
fn round_trip(table: &GroupTable, done: Done) {
    let mut written = Vec::new();
    write_line(&mut written, &table.state(done)).expect("a document is written");
    let (read, done) = GroupTable::of_document(&written).expect("what was written is read");
    let mut again = Vec::new();
    write_line(&mut again, &read.state(done.unwrap_or_default())).expect("a document is written");
    assert!(written == again, "{}\n{}", String::from_utf8_lossy(&written), String::from_utf8_lossy(&again));
    let mut document = Vec::new();
    write_line(&mut document, &table.document()).expect("a document is written");
    assert!(GroupTable::of_document(&document).is_ok());
}
