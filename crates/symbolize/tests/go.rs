//! Go's own table of functions: small ones of every version, and those of real programs with the debug info left out,
//! against the debug info and Go's own tool. The latter need `go`; what is not installed is said.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "common/go.rs"]
mod small;

use backtrail_core::{Reason, Svma};
use backtrail_object::Object;
use backtrail_symbolize::convert::{ConvertOptions, convert, verify};
use backtrail_symbolize::{Answer, FunctionRef, Step, Symbolizer, table_lookup};
use backtrail_table::Table;
use backtrail_testkit::TempDir;
use small::{MAGICS, Program, TEXT};
use std::io::{Cursor, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn symbolizer(data: &[u8]) -> Symbolizer<'_> {
    Symbolizer::new(vec![Object::parse(data).unwrap()]).unwrap()
}

fn answer<'s>(symbolizer: &'s Symbolizer<'_>, address: u64) -> Answer<'s> {
    match symbolizer.lookup(Svma::new(address)) {
        Step::Answer(answer) => answer,
        Step::NeedFile(request) => panic!("{request}"),
    }
}

/// Functions with their places, innermost first.
fn chain(answer: &Answer<'_>) -> Vec<(String, String)> {
    let one = |function: &FunctionRef<'_>| {
        // With `-trimpath` the debug info's paths are relative to a directory that is none.
        let file = function.file().map(|file| file.to_string().trim_start_matches("./").to_owned());
        let place = format!("{}:{}", file.unwrap_or_default(), function.line().unwrap_or_default());
        (without_types(&function.name()), place)
    };
    answer.functions.iter().map(one).collect()
}

/// Go's table abbreviates what stands in brackets, debug info does not.
fn without_types(name: &str) -> String {
    let (mut depth, mut kept) = (0, String::new());
    for letter in name.chars() {
        depth -= i32::from(letter == ']');
        if depth == 0 {
            kept.push(letter);
        }
        depth += i32::from(letter == '[');
    }
    kept
}

fn told(symbolizer: &Symbolizer<'_>, offset: u64) -> String {
    let answer = answer(symbolizer, TEXT + offset);
    let frames: Vec<_> = chain(&answer).iter().map(|(name, place)| format!("{name} {place}")).collect();
    frames.join(" < ")
}

#[test]
fn functions_files_lines_and_inlined_calls_of_every_version() {
    for magic in MAGICS {
        let of_1_27 = (true, false, magic == MAGICS[3]);
        for (is_64, is_big, has_sizes) in
            [(true, false, false), (false, false, false), (true, true, false), of_1_27]
        {
            let program = Program { is_64, is_big, has_sizes, ..Program::new(magic) };
            let data = program.build();
            let symbolizer = symbolizer(&data);
            assert_eq!(
                told(&symbolizer, 0),
                "main.main main.go:10",
                "{program:?} {:?}",
                symbolizer.problems()
            );
            assert_eq!(told(&symbolizer, 0xf), "main.main main.go:10");
            // Where the tree is not to be found, nor is the name of what was inlined, and where.
            let inlined = if program.has_offsets() {
                "main.add add.go:20 < main.main main.go:12"
            } else {
                " add.go:20 < main.main :0"
            };
            assert_eq!(told(&symbolizer, 0x10), inlined, "{program:?}");
            assert!(answer(&symbolizer, TEXT + 0x10).functions[0].is_inlined());
            assert_eq!(told(&symbolizer, 0x3f), "main.main main.go:12");
            assert_eq!(told(&symbolizer, 0x40), "main.other other.go:20");
            assert_eq!(answer(&symbolizer, TEXT + 0x50).function_start, Some(Svma::new(TEXT + 0x40)));
            assert_eq!(answer(&symbolizer, TEXT + 0x80).reason, Some(Reason::NoSymbol));
            assert_eq!(answer(&symbolizer, TEXT - 1).reason, Some(Reason::NoSymbol));
            assert!(symbolizer.problems().is_empty());
        }
    }
}

#[test]
fn the_text_starts_where_the_module_or_the_header_says_and_nowhere_else() {
    let stated = Program { has_module: false, ..Program::new(MAGICS[2]) };
    assert_eq!(told(&symbolizer(&stated.build()), 0x41), "main.other other.go:20");
    // By the section's start all names would be wrong, and no entry point confirms it.
    let unstated = Program { states_text: false, ..stated }.build();
    let unstated = symbolizer(&unstated);
    assert_eq!(told(&unstated, 0x41), "");
    assert!(unstated.problems()[0].to_string().contains("expected functions in the image's code"));
    let module = Program { has_module: true, states_text: false, ..stated }.build();
    assert_eq!(told(&symbolizer(&module), 0x41), "main.other other.go:20");
}

#[test]
fn tables_that_lie_are_told_and_not_believed() {
    let program = Program::new(MAGICS[3]);
    for (entries, expected) in [
        ([0, 0x90, 0x80], "sorted by address"),
        ([0, 0x40, 0x1000], "in the image's code"),
        ([0x1000, 0x1040, 0x1080], "in the image's code"),
    ] {
        let data = Program { entries, ..program }.build();
        let symbolizer = symbolizer(&data);
        assert_eq!(told(&symbolizer, 0x10), "");
        assert!(symbolizer.problems()[0].to_string().contains(expected), "{:?}", symbolizer.problems());
    }
    let unknown = Program::new(0xffff_fff2).build();
    let symbolizer = symbolizer(&unknown);
    assert_eq!(told(&symbolizer, 0x10), "");
    assert!(symbolizer.problems()[0].to_string().contains(": expected the magic"));
}

#[test]
fn tables_that_are_cut_off_or_broken_anywhere_are_read_without_harm() {
    for magic in MAGICS {
        let program = Program::new(magic);
        let whole = program.table();
        for at in 0..whole.len() {
            let cut = program.build_with(whole[..at].to_vec());
            let mut broken = whole.clone();
            broken[at] ^= 0xff;
            let broken = program.build_with(broken);
            for data in [cut, broken] {
                let symbolizer = symbolizer(&data);
                (0..0x90).step_by(8).for_each(|offset| drop(told(&symbolizer, offset)));
                table_of(&symbolizer);
            }
        }
    }
}

fn table_of(symbolizer: &Symbolizer<'_>) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    convert(symbolizer, &ConvertOptions { jobs: Some(1), ..ConvertOptions::default() }, &mut out).unwrap();
    out.into_inner()
}

/// The table of a program answers as the program, at each of its borders and at these addresses.
fn converted(program: &Symbolizer<'_>, addresses: impl Iterator<Item = u64>) {
    let bytes = table_of(program);
    let table = Table::open(&bytes).unwrap();
    table.check().unwrap();
    let verified = verify(&table, program, Some(1)).unwrap();
    assert_eq!(verified.differences, 0, "{:?}", verified.shown);
    assert!(verified.rows > 0);
    for address in addresses {
        let direct = answer(program, address);
        let (packed, direct) =
            (table_lookup(&table, Svma::new(address)), direct.to_symbol_info(Svma::new(address)));
        assert_eq!(packed.functions, direct.functions, "{address:#x}");
        assert_eq!(packed.function_offset, direct.function_offset, "{address:#x}");
    }
}

#[test]
fn converted_tables_say_the_same() {
    for magic in MAGICS {
        let data = Program::new(magic).build();
        converted(&symbolizer(&data), TEXT - 8..TEXT + 0x90);
    }
}

/// Builds a program; `None`, with a line that says so, where there is no Go.
fn build(directory: &TempDir, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let program = directory.join(name);
    let source = backtrail_testkit::fixtures().join("cores/panics.go");
    let mut command = Command::new("go");
    command.arg("build").args(flags).arg("-o").arg(&program).arg(source);
    command.env("GOCACHE", directory.join("cache")).env("GOFLAGS", "-trimpath").env("GO111MODULE", "off");
    match command.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            println!("not checked: go is not installed");
            None
        }
    }
}

fn text(data: &[u8]) -> Range<u64> {
    let object = Object::parse(data).unwrap();
    let address = object.section(".text").unwrap().address;
    address.start().get()..address.end().get()
}

#[test]
fn stripped_programs_are_told_as_by_their_debug_info_and_by_go() {
    let directory = TempDir::new("go");
    for (name, mode) in [("fixed", None), ("pie", Some("-buildmode=pie"))] {
        let flags: Vec<_> = mode.into_iter().collect();
        let Some(whole) = build(&directory, name, &flags) else { return };
        let stripped = [&flags[..], &["-ldflags=-s -w"]].concat();
        let stripped = build(&directory, &format!("{name}-stripped"), &stripped).unwrap();
        let (data, own) = (std::fs::read(&whole).unwrap(), std::fs::read(stripped).unwrap());
        let (with_debug_info, own) = (symbolizer(&data), symbolizer(&own));
        as_debug_info(&with_debug_info, &own, text(&data).step_by(31));
        // Of others it knows nothing, as of Go 1.19.
        if mode.is_none() {
            as_go(&whole, &own, text(&data).step_by(31));
        }
        converted(&own, text(&data).step_by(31));
        assert!(own.problems().is_empty(), "{:?}", own.problems());
    }
}

/// Same functions, inlined calls, files and lines, but for a few lines, and for methods that were inlined into wrappers,
/// which debug info leaves out.
fn as_debug_info(whole: &Symbolizer<'_>, stripped: &Symbolizer<'_>, addresses: impl Iterator<Item = u64>) {
    let (mut all, mut different) = (0, Vec::new());
    for address in addresses {
        let (expected, own) = (chain(&answer(whole, address)), chain(&answer(stripped, address)));
        let Some(outermost) = expected.last() else { continue };
        all += 1;
        assert_eq!(own.last().map(|frame| &frame.0), Some(&outermost.0), "{address:#x}");
        if expected != own {
            different.push(format!("{address:#x}: {expected:?}\n{own:?}"));
        }
    }
    assert!(
        all > 10_000 && different.len() * 200 < all,
        "{} of {all}:\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Go's tool names the function that is no inlined one, and the innermost place.
fn as_go(whole: &Path, stripped: &Symbolizer<'_>, addresses: impl Iterator<Item = u64> + Clone) {
    let mut go = Command::new("go");
    go.args(["tool", "addr2line"]).arg(whole).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut go = go.spawn().unwrap();
    let input: String = addresses.clone().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = go.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = go.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let mut lines = output.lines();
    let mut named = 0;
    for address in addresses {
        let (function, place) = (lines.next().unwrap(), lines.next().unwrap());
        let own = chain(&answer(stripped, address));
        let (first, last) = (own.first(), own.last());
        assert_eq!(last.map_or("?", |frame| frame.0.as_str()), without_types(function), "{address:#x}");
        // Padding has no line.
        let place = place.trim_start_matches("./");
        let place = place.strip_suffix(":-1").map_or(place.to_owned(), |file| format!("{file}:0"));
        assert_eq!(first.map_or("?:0", |frame| frame.1.as_str()), place, "{address:#x}");
        named += usize::from(first.is_some());
    }
    assert!(named > 10_000);
}
