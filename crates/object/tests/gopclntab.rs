//! Go's table: what it says of frames, in small tables of every version, and in a real program against its debug info.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "../../symbolize/tests/common/go.rs"]
mod small;

use backtrail_core::Svma;
use backtrail_object::{GoTable, Object};
use backtrail_testkit::TempDir;
use small::{MAGICS, Program, TEXT};
use std::process::Command;

#[test]
fn depths_of_every_version() {
    for magic in MAGICS {
        for (is_64, is_big) in [(true, false), (false, false), (true, true)] {
            let program = Program { is_64, is_big, ..Program::new(magic) };
            let data = program.build();
            let object = Object::parse(&data).unwrap();
            let table = GoTable::read(&object).unwrap().unwrap();
            let main = table.function_at(Svma::new(TEXT + 0x3f)).unwrap();
            assert_eq!(main.name(), Some(&b"main.main"[..]));
            let depths: Vec<_> = main
                .depths()
                .map(|(range, depth)| (range.start().get() - TEXT, range.size(), depth))
                .collect();
            assert_eq!(depths, [(0, 16, 0), (16, 32, 32), (48, 16, 0)], "{program:?}");
            assert_eq!(main.depth_at(Svma::new(TEXT + 47)).map(|(_, depth)| depth), Some(32));
            let other = table.function_at(Svma::new(TEXT + 0x40)).unwrap();
            assert_eq!(other.depth_at(Svma::new(TEXT + 0x40)), None);
            // The first version has no such flags.
            assert_eq!(other.writes_stack_pointer(), magic != MAGICS[0], "{program:?}");
            assert!(!main.writes_stack_pointer() && !main.is_top_frame());
        }
    }
}

const SOURCE: &str = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"a\") }\n";

/// Where each depth begins to hold, as the linker has written it into `.debug_frame` from the same compiler's facts:
/// `readelf` prints one line a row, with the CFA as `rsp+N`.
#[test]
fn depths_are_those_of_the_debug_info() {
    let dir = TempDir::new("go-depths");
    let source = dir.path().join("main.go");
    std::fs::write(&source, SOURCE).unwrap();
    let program = dir.path().join("main");
    let cache = dir.path().join("cache");
    let built = Command::new("go")
        .args(["build", "-ldflags=-compressdwarf=false", "-o"])
        .args([&program, &source])
        .env("GOCACHE", &cache)
        .env("GOFLAGS", "-mod=mod")
        .env("GOARCH", "amd64")
        .env("CGO_ENABLED", "0")
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no go to build a program with");
        return;
    }
    let rows = Command::new("readelf").arg("--debug-dump=frames-interp").arg(&program).output();
    let Ok(rows) = rows else {
        println!("skipped: no readelf");
        return;
    };
    let data = std::fs::read(&program).unwrap();
    let object = Object::parse(&data).unwrap();
    let table = GoTable::read(&object).unwrap().unwrap();
    let text = String::from_utf8_lossy(&rows.stdout);
    let mut compared = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(cfa)) = (words.next(), words.next()) else { continue };
        let (Ok(address), Some(offset)) = (u64::from_str_radix(address, 16), cfa.strip_prefix("rsp+")) else {
            continue;
        };
        let Some(function) = table.function_at(Svma::new(address)) else { continue };
        let depth = function.depth_at(Svma::new(address)).map(|(_, depth)| depth);
        let name = String::from_utf8_lossy(function.name().unwrap_or_default()).into_owned();
        assert_eq!(depth.map(|depth| depth + 8), Some(offset.parse().unwrap()), "{name} at {address:#x}");
        compared += 1;
    }
    assert!(compared > 5000, "{compared} rows");
}
