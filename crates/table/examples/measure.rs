//! Measures a table: `cargo run --release -p backtrail-table --example measure -- FILE.btsym [COUNT]`.
//!
//! Prints what it holds, what its sections cost, and how long lookups of random addresses take: the search alone, with
//! all frames, with all names and paths spelled out. The file is read into memory first, so the pages are there.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a program for people"
)]

use backtrail_core::Svma;
use backtrail_table::{FunctionAt, Lookup, Stats, Table};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("usage: measure FILE.btsym [COUNT]");
    let count: usize = arguments.next().map_or(1_000_000, |count| count.parse().expect("a number"));
    let data = std::fs::read(&path).expect("a table");
    let start = Instant::now();
    let table = Table::open(&data).expect("a table");
    println!("open: {:?}", start.elapsed());
    print_stats(&table.stats());
    let addresses = addresses(&table, count);
    let frames: usize = addresses.iter().map(|address| depth(&table, *address)).sum();
    println!("{:.2} frames an address", frames as f64 / count.max(1) as f64);
    for _ in 0..2 {
        measure("search", &table, &addresses, |_, _| {});
        measure("frames", &table, &addresses, |found, _| {
            found.frames().for_each(|frame| {
                black_box(frame.line);
            });
        });
        measure("names and paths", &table, &addresses, |found, text| {
            for frame in found.frames() {
                text.clear();
                let name = frame.linkage_name.or(frame.name);
                name.inspect(|name| name.append_to(text));
                frame.file.inspect(|file| file.append_to(text));
                black_box(text.as_slice());
            }
        });
    }
    let start = Instant::now();
    let rows: usize = table.functions().map(|function| function.expect("a function").rows.len()).sum();
    println!("all functions: {:?}, {rows} rows", start.elapsed());
    let start = Instant::now();
    table.check().expect("a whole table");
    println!("check: {:?}", start.elapsed());
}

fn depth(table: &Table<'_>, address: Svma) -> usize {
    if let Lookup::Found(found) = table.lookup(address) { found.frames().count() } else { 0 }
}

fn print_stats(stats: &Stats) {
    println!("{} bytes, of the bodies {} for inlined calls", stats.bytes, stats.call_bytes);
    for (name, bytes) in &stats.sections {
        println!("  {name:<12}{bytes:>12}");
    }
    println!(
        "{} functions, {} ranges, {} inlined calls, {} rows, {} names, {} files, {} symbols",
        stats.functions, stats.ranges, stats.inlines, stats.rows, stats.names, stats.files, stats.symbols
    );
}

/// Addresses of code, evenly spread over all of it.
fn addresses(table: &Table<'_>, count: usize) -> Vec<Svma> {
    let mut ranges: Vec<_> =
        table.functions().flat_map(|function| function.expect("a function").ranges).collect();
    ranges.sort_by_key(|range| range.start());
    let mut ends = Vec::with_capacity(ranges.len());
    let total = ranges.iter().fold(0, |sum, range| {
        ends.push(sum + range.size());
        sum + range.size()
    });
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = ((u128::from(seed) * u128::from(total)) >> 64) as u64;
        let index = ends.partition_point(|end| *end <= at);
        ranges[index].start().checked_add(at + ranges[index].size() - ends[index]).unwrap()
    };
    (0..count).map(|_| next()).collect()
}

fn measure(what: &str, table: &Table<'_>, addresses: &[Svma], act: impl Fn(&FunctionAt<'_>, &mut Vec<u8>)) {
    let mut text = Vec::with_capacity(1 << 16);
    let mut found = 0usize;
    let start = processor_time();
    for address in addresses {
        if let Lookup::Found(answer) = table.lookup(*address) {
            found += 1;
            act(&answer, &mut text);
        }
    }
    let time = processor_time() - start;
    println!(
        "{what}: {} ns each, {found} of {} found",
        time / addresses.len().max(1) as u64,
        addresses.len()
    );
}

/// Nanoseconds that this thread has run, so that other work on the machine counts less; elsewhere than on Linux those
/// that have passed.
fn processor_time() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let time = stat.split(' ').next().and_then(|time| time.parse().ok());
    time.unwrap_or_else(|| START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
}
