//! What goes into a table comes out of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod model;

use backtrail_core::{AddrRange, Arch, Svma};
use backtrail_table::{Builder, Function, FunctionHead, Header, Language, Lookup, SourceKind, Table};
use model::{Answer, BASE, Model, Place, Random, answer_of, ask, svma};
use std::io::Cursor;

#[test]
fn every_address_has_the_answer_that_the_input_gives() {
    let mut random = Random(11);
    for round in 0..400 {
        let space = 40 + random.below(400);
        let units = random.below(5);
        let model = Model::random(&mut random, units, space);
        let (bytes, _) = model.build(|number| number);
        let table = Table::open(&bytes).unwrap();
        table.check().unwrap();
        for at in 0..space + 80 {
            assert_eq!(ask(&table, at), model.answer(at), "round {round}, address {at:#x}\n{model:#?}");
        }
    }
}

#[test]
fn many_addresses_have_the_answers_of_each() {
    let mut random = Random(29);
    for count in [0, 1, 31, 32, 33, 64, 300, 5000] {
        // Names with more inlined calls than are read ahead, none at all, and addresses before, between and behind them.
        let units = random.below(5) * count.min(10);
        let model = Model::random(&mut random, units, 400);
        let (bytes, _) = model.build(|number| number);
        let table = Table::open(&bytes).unwrap();
        let mut addresses: Vec<_> = (0..count).map(|_| svma(random.below(500))).collect();
        addresses.extend([Svma::new(0), Svma::new(u64::MAX)]);
        let mut many = table.lookup_many(addresses.iter().copied());
        for (given, address) in addresses.iter().enumerate() {
            assert_eq!(many.size_hint(), (addresses.len() - given, Some(addresses.len() - given)));
            let (asked, answer) = many.next().unwrap();
            assert_eq!(asked, *address);
            assert_eq!(answer_of(&answer), answer_of(&table.lookup(*address)), "{address:?} of {count}");
        }
        assert!(many.next().is_none() && many.next().is_none());
    }
}

#[test]
fn functions_tell_the_same_as_lookups() {
    let mut random = Random(5);
    for _ in 0..200 {
        let space = 40 + random.below(300);
        let model = Model::random(&mut random, 4, space);
        let (bytes, summary) = model.build(|number| number);
        let table = Table::open(&bytes).unwrap();
        let functions: Vec<Function<'_>> = table.functions().map(Result::unwrap).collect();
        assert_eq!(functions.iter().filter(|one| one.is_function).count() as u64, summary.stats.functions);
        assert_eq!(summary.stats, table.stats());
        for at in 0..space + 80 {
            let around =
                |function: &&Function<'_>| function.ranges.iter().any(|range| range.contains(svma(at)));
            let listed = functions.iter().find(around).map(|function| from_list(&table, function, svma(at)));
            match ask(&table, at) {
                Answer::Frames(frames) => {
                    let looked_up =
                        frames.into_iter().map(|(head, place, _)| (head.linkage, place)).collect();
                    assert_eq!(listed, Some(looked_up), "at {at:#x}");
                }
                Answer::Symbol(start, name) => {
                    assert_eq!(listed, None);
                    let symbol = table.symbols().map(Result::unwrap).find(|one| one.range.contains(svma(at)));
                    let symbol = symbol.unwrap();
                    assert_eq!(
                        (symbol.start.get() - BASE, symbol.name.map(|name| name.to_text())),
                        (start, name)
                    );
                }
                Answer::None(_) => assert_eq!(listed, None),
            }
        }
    }
}

/// In Linux' `ftrace_64.S` the label `ftrace_caller_end` stands in front of the last instructions of the function that
/// debug info has there. What lies behind the function's end is called by the label, and counted from it.
#[test]
fn code_that_a_symbol_names_is_counted_from_the_symbol() {
    let builder = Builder::new(Header::new(Arch::X86_64, SourceKind::ElfDwarf));
    let name = |name: &str| {
        let linkage_name = Some(builder.string(name.as_bytes()));
        builder.name(FunctionHead { name: None, linkage_name, language: Language(0) })
    };
    let file = builder.file(b"ftrace_64.S");
    let mut batch = builder.batch();
    batch.begin_function(name("ftrace_caller"), &[AddrRange::new(svma(0x10), svma(0x40))]);
    batch.row(svma(0x10), Some(file), 7, 0);
    batch.end_function();
    batch.begin_symbol(name("ftrace_caller_end"), svma(0x3b), &[AddrRange::new(svma(0x40), svma(0x100))]);
    // More than one chunk has room for.
    (0x40..0x90).for_each(|at| batch.row(svma(at), Some(file), at as u32, 0));
    batch.end_function();
    builder.add(0, batch);
    let mut out = Cursor::new(Vec::new());
    builder.finish(&mut out).unwrap();
    let bytes = out.into_inner();
    let table = Table::open(&bytes).unwrap();
    table.check().unwrap();
    let start = |at: u64| match table.lookup(svma(at)) {
        Lookup::Found(found) => found.function_start(),
        _ => None,
    };
    for (at, expected) in [(0x3b, 0x10), (0x3f, 0x10), (0x40, 0x3b), (0x8f, 0x3b), (0xff, 0x3b)] {
        assert_eq!(start(at), Some(svma(expected)), "{at:#x}");
    }
    let functions: Vec<Function<'_>> = table.functions().map(Result::unwrap).collect();
    let ranges: Vec<_> = functions.iter().map(|function| function.ranges.clone()).collect();
    assert_eq!(ranges, [[AddrRange::new(svma(0x10), svma(0x40))], [AddrRange::new(svma(0x40), svma(0x100))]]);
    assert_eq!(functions[1].rows.len(), 0x50);
}

/// The linkage names and places at an address, innermost first, from a function of the list.
fn from_list(table: &Table<'_>, function: &Function<'_>, at: Svma) -> Vec<(Option<String>, Place)> {
    let path = |file: Option<u32>| {
        file.map(|file| {
            let mut path = Vec::new();
            table.file(file).unwrap().append_to(&mut path);
            String::from_utf8(path).unwrap()
        })
    };
    let range = function.ranges.iter().find(|range| range.contains(at)).unwrap();
    let row = function.rows.iter().rfind(|row| range.start() <= row.address && row.address <= at);
    let mut place = row.map_or((None, 0, 0), |row| (path(row.file), row.line, row.column));
    let mut chain: Vec<_> =
        function.inlines.iter().filter(|call| call.ranges.iter().any(|range| range.contains(at))).collect();
    let depths: Vec<u32> = chain.iter().map(|call| call.depth).collect();
    assert!(depths.iter().copied().eq(1..=depths.len() as u32), "{depths:?}");
    chain.reverse();
    let mut frames = Vec::new();
    for call in chain {
        let site = (path(call.call_file), call.call_line, call.call_column);
        let name = call.linkage_name.map(|name| name.to_text());
        frames.push((name, std::mem::replace(&mut place, site)));
    }
    frames.push((function.linkage_name.map(|name| name.to_text()), place));
    frames
}

#[test]
fn the_bytes_depend_on_neither_order_nor_threads() {
    let mut random = Random(23);
    let model = Model::random(&mut random, 60, 4000);
    let (bytes, _) = model.build(|number| number);
    let (reversed, _) = model.build(|number| 59 - number);
    assert!(bytes == reversed);
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (again, _) = pool.install(|| model.build(|number| (number * 7) % 60));
        assert!(bytes == again, "{threads} threads");
    }
}

#[test]
fn calls_nested_deeper_than_the_kept_window_read_back() {
    let mut model = Model::random(&mut Random(1), 0, 64);
    let mut function = Model::random(&mut Random(4), 9, 64).units.concat().remove(0);
    function.is_function = true;
    function.ranges = vec![(0, 1000)];
    function.rows = (0..90).map(|at| (at * 10, (Some("/src/deep.cc".into()), at as u32, 3))).collect();
    let call = model::Call {
        depth: 1,
        head: function.head.clone(),
        site: (Some("/src/deep.cc".into()), 7, 0),
        ranges: vec![(100, 900)],
    };
    for depth in 1..=100 {
        let site = (Some("/src/deep.cc".into()), 100 + depth, depth);
        function.calls.push(model::Call { depth, site, ..call.clone() });
    }
    model.units = vec![vec![function]];
    let (bytes, _) = model.build(|number| number);
    let table = Table::open(&bytes).unwrap();
    table.check().unwrap();
    for at in [50, 100, 555, 899, 900] {
        assert_eq!(ask(&table, at), model.answer(at));
    }
}

#[test]
fn an_empty_table_answers() {
    let (bytes, _) = Model::default().build(|number| number);
    let table = Table::open(&bytes).unwrap();
    table.check().unwrap();
    assert_eq!(ask(&table, 0), Answer::None(backtrail_core::Reason::NoSymbol));
    assert_eq!(table.header().name, "libmodel.dylib");
    assert_eq!(table.dropped(), [(backtrail_table::DropReason::DeadFunction, 3)]);
}

/// The example of the format's description.
#[test]
fn the_example_has_the_bytes_that_the_description_tells() {
    let head = |name: &str| model::Head { linkage: Some(name.into()), ..model::Head::default() };
    let place = |line: u32, column: u32| (Some("a.c".to_owned()), line, column);
    let call = model::Call { depth: 1, head: head("g"), site: place(12, 5), ranges: vec![(4, 8)] };
    let function = model::Function {
        is_function: true,
        head: head("f"),
        ranges: vec![(0, 12)],
        calls: vec![call],
        rows: vec![(0, place(11, 0)), (4, place(3, 1)), (8, place(13, 0))],
    };
    let model = Model { units: vec![vec![function]], ..Model::default() };
    let (bytes, _) = model.build(|number| number);
    let body = [
        [0, 0, 12, 1].as_slice(),
        &[3, 0, 0],
        &[4, 8],
        &[0, 0, 0],
        &[1, 0, 1],
        &[0, 2, 0],
        &[0x10, 0, 2, 2, 5],
        &[0; 8],
    ]
    .concat();
    // The offset of the second section.
    let offset = bytes[160 + 32 + 8..].first_chunk().unwrap();
    let place = u64::from_le_bytes(*offset) as usize;
    assert_eq!(bytes[place..place + body.len()], body);
}
