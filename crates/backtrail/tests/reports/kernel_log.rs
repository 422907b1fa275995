//! Faults that Linux's kernel logs: the one place gets what the binary knows of it, whichever form the line has.

use backtrail::{Analysis, Limits, NoProgress, SymbolStatus, Symbols};
use backtrail_testkit::fixtures;

/// Where the fixture's code begins, cut to pages, and what its mapping takes: `readelf -lW`.
const CODE: u64 = 0x20_1000;
const SIZE: u64 = 0x1000;

/// Where the kernel put that mapping.
const MAPPED: u64 = 0x7f12_a4c3_0000;

fn analysis(place: &str, ip: u64) -> Analysis {
    let directory = fixtures().join("symbolize/bin/clang-dwarf5.elf");
    let symbols = Symbols::scan(&[directory], &NoProgress);
    let text = format!(
        "Nov  3 12:00:00 depot kernel: [  812.345678] shopd[4321]: segfault at 18 ip {ip:016x} sp 00007ffe3c1a2b40 error 4 in clang-dwarf5.elf[{place}] likely on CPU 3 (core 1, socket 0)\n"
    );
    Analysis::new(text.as_bytes(), &symbols, &Limits::default()).unwrap()
}

/// An address, and the functions there with their lines, innermost first.
type Expected = (u64, Vec<(String, Option<u32>)>);

/// Each address of the fixture's expectations, with what is there.
fn expected() -> Vec<Expected> {
    let path = fixtures().join("symbolize/bin/clang-dwarf5.elf.expected");
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let (range, functions) = line.split_once(' ')?;
        let start = u64::from_str_radix(range.split_once("..")?.0.trim_start_matches("0x"), 16).ok()?;
        let function = |function: &str| {
            let (name, place) = function.split_once(' ')?;
            let line = place.rsplit(':').nth(1)?.parse().ok().filter(|line| *line != 0);
            (name != "??").then(|| (name.to_owned(), line))
        };
        Some((start, functions.split(" | ").map(function).collect::<Option<Vec<_>>>()?))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn the_place_has_its_functions() {
    let all = expected();
    assert!(all.len() > 10);
    for (address, functions) in all {
        let into = address - CODE;
        let ip = MAPPED + into;
        for place in [format!("{MAPPED:x}+{SIZE:x}"), format!("{into:x},{MAPPED:x}+{SIZE:x}")] {
            let analysis = analysis(&place, ip);
            let frame = &analysis.report.process.threads[0].frames[0];
            let found: Vec<_> =
                frame.functions.iter().map(|function| (function.name.clone(), function.line)).collect();
            assert_eq!(found, functions, "{address:#x} {place}");
            assert!(analysis.explanation.title.starts_with("Null pointer: read at 0x18"));
        }
    }
}

/// The kernel states no identity: what its code takes tells another build.
#[test]
fn another_build_names_nothing() {
    let analysis = analysis(&format!("{MAPPED:x}+{:x}", SIZE * 3), MAPPED + 0x200);
    let image = &analysis.report.process.images[0];
    assert!(analysis.report.process.threads[0].frames[0].is_unnamed());
    assert_eq!(image.symbols.status, SymbolStatus::Missing);
    assert!(image.symbols.tried.iter().any(|line| line.contains("another build?")), "{:?}", image.symbols);
}
