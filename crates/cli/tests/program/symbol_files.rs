//! Tables, GSYM and Breakpad files that are found by identity, and tables that are kept.

use crate::run::{backtrail, with_input};
use backtrail_testkit::{TempDir, fixtures, workspace_root};
use serde_json::Value;
use std::path::Path;

const FORMATS: [&str; 3] = ["btsym", "gsym", "breakpad"];
const CORE: &str = "fixtures/stacks/orders.core";

/// A copy of a file without what makes its sections debug info.
fn without_debug_info(name: &str, to: &Path) {
    let mut bytes = std::fs::read(fixtures().join(name)).unwrap();
    for at in 0..bytes.len().saturating_sub(7) {
        if &bytes[at..at + 7] == b".debug_" {
            bytes[at + 1] = b'x';
        }
    }
    std::fs::write(to, bytes).unwrap();
}

/// Converts into a directory, in the layout that Breakpad's tools keep symbols in.
fn converted(input: &str, format: &str) -> TempDir {
    let directory = TempDir::new("by-id");
    let out = format!("{}/", directory.create_dir("some.so/0123456789ABCDEF0").display());
    let run = backtrail(&["convert", input, "-o", &out, "--format", format]);
    assert_eq!(run.code, 0, "{}", run.whole());
    directory
}

/// Functions, files and lines of all frames: what every format keeps. Breakpad's and GSYM's names are of one kind alone.
fn lines(text: &str) -> Vec<Vec<(Value, Value, Value)>> {
    let value: Value = serde_json::from_str(text).unwrap();
    let threads = value["threads"].as_array().unwrap().iter();
    let frames = threads.flat_map(|thread| thread["frames"].as_array().unwrap());
    let of =
        |function: &Value| (function["file"].clone(), function["line"].clone(), function["inlined"].clone());
    frames
        .map(|frame| frame["functions"].as_array().map_or(Vec::new(), |all| all.iter().map(of).collect()))
        .collect()
}

#[test]
fn reports_are_symbolicated_from_symbol_files() {
    let report = "fixtures/sample/reports/sdk-exception.ips";
    let ask = |symbols: &str| backtrail(&["symbolicate", report, "-s", symbols, "--format", "json"]);
    let direct = ask("fixtures/sample/symbols");
    assert!(lines(&direct.stdout).iter().flatten().count() >= 2);
    for format in FORMATS {
        let directory = converted("fixtures/sample/symbols", format);
        let run = ask(directory.path().to_str().unwrap());
        assert_eq!((run.code, run.stderr.as_str()), (direct.code, ""), "{format}");
        assert_eq!(lines(&run.stdout), lines(&direct.stdout), "{format}");
    }
}

#[test]
fn stacks_are_named_from_symbol_files() {
    let stripped = TempDir::new("by-id-stripped");
    without_debug_info("stacks/orders", &stripped.join("orders"));
    let program = stripped.join("orders").display().to_string();
    let ask = |arguments: &[&str]| {
        let all = [&["stacks", "--core", CORE, "--format", "json"], arguments].concat();
        backtrail(&all).stdout
    };
    let direct = ask(&["-e", "fixtures/stacks/orders"]);
    assert!(lines(&direct).iter().flatten().count() > 3);
    assert_eq!(lines(&ask(&["-e", &program])).iter().flatten().count(), 0, "it is stripped");
    for format in FORMATS {
        let directory = converted("fixtures/stacks/orders", format);
        let symbols = directory.path().to_str().unwrap();
        assert_eq!(lines(&ask(&["-e", &program, "-s", symbols])), lines(&direct), "{format}");
        // Without the program, the frame that the registers tell has its name all the same.
        let first = |text: &str| lines(text).first().cloned();
        assert_eq!(first(&ask(&["-s", symbols])), first(&direct), "{format}");
    }
}

#[test]
fn lookups_find_the_symbol_files_of_a_stripped_binary() {
    let stripped = TempDir::new("by-id-lookup");
    without_debug_info("stacks/orders", &stripped.join("orders"));
    let elf: Vec<String> =
        (0x112e0..0x1137a).step_by(3).map(|address: u64| format!("{address:#x}\n")).collect();
    let macho: Vec<String> =
        (0x2e0..0x378).step_by(4).map(|address: u64| format!("{address:#x}\n")).collect();
    let bin = "fixtures/symbolize/bin";
    let cases = [
        (stripped.join("orders").display().to_string(), "fixtures/stacks/orders".to_owned(), elf),
        (format!("{bin}/macho-arm64.dylib"), format!("{bin}/macho-arm64.dwarf"), macho),
    ];
    for (binary, debug, addresses) in cases {
        let addresses = addresses.concat();
        let ask = |arguments: &[&str]| {
            let all = [&["lookup", "--format", "json", "-e"], arguments].concat();
            let run = with_input(&all, addresses.as_bytes());
            let line = |line: &str| {
                let value: Value = serde_json::from_str(line).unwrap();
                let all = value["functions"].as_array().cloned().unwrap_or_default();
                // Lines of what is no function, padding as a rule, have no place in the other formats.
                let named = all.iter().filter(|one| one["name"] != "");
                named.map(|one| (one["file"].clone(), one["line"].clone())).collect::<Vec<_>>()
            };
            run.stdout.lines().map(line).collect::<Vec<_>>()
        };
        let direct = ask(&[&debug]);
        assert!(direct.iter().flatten().count() > 20, "{debug}");
        for format in FORMATS {
            let directory = converted(&debug, format);
            assert_eq!(
                ask(&[&binary, "-s", directory.path().to_str().unwrap()]),
                direct,
                "{binary} {format}"
            );
            // Debug info itself is believed first.
            assert_eq!(ask(&[&debug, "-s", directory.path().to_str().unwrap()]), direct, "{debug} {format}");
        }
    }
}

#[test]
fn symbol_files_of_other_builds_are_told_as_such() {
    let directory = converted("fixtures/stacks/orders", "breakpad");
    let file = directory.join("some.so/0123456789ABCDEF0/orders.sym");
    let text = std::fs::read_to_string(&file).unwrap();
    // Its ids: A8DD…, both of them.
    let text = text.replacen("ABFEDDA8", "ABFEDDA9", 1).replacen("A8DDFEAB", "A9DDFEAB", 1);
    assert_ne!(text, std::fs::read_to_string(&file).unwrap());
    std::fs::write(&file, text).unwrap();
    directory.write("code.f90", "MODULE weather\n  INTEGER :: days\nEND MODULE\n");
    let symbols = directory.path().to_str().unwrap();
    let run = backtrail(&["stacks", "--core", CORE, "-s", symbols, "--format", "json"]);
    assert_eq!(lines(&run.stdout).iter().flatten().count(), 0);
    assert!(!run.stderr.contains("f90"), "{}", run.stderr);
    // Not whole, or not what it says: named with its path, and nothing is taken from it.
    directory.write("cut.gsym", b"MYSG\x01\0\x04\x14");
    directory.write("newer.gsym", [b"MYSG\x02\0\x04\x14".as_slice(), &[0; 60]].concat());
    let run = backtrail(&["stacks", "--core", CORE, "-s", symbols]);
    for name in ["cut.gsym", "newer.gsym"] {
        assert!(run.stderr.contains(name), "{}", run.stderr);
    }
}

/// The tables below a directory.
fn tables(directory: &Path) -> Vec<std::path::PathBuf> {
    let inner =
        |path: &Path| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    let all = inner(directory).flat_map(|path| inner(&path).collect::<Vec<_>>());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "btsym")).collect()
}

#[test]
fn kept_tables_answer_as_the_debug_info_does() {
    let cache = TempDir::new("cache");
    let directory = cache.path().join("made/on/demand");
    let cached = directory.to_str().unwrap();
    let report = "fixtures/sample/reports/sdk-exception.ips";
    let commands: [&[&str]; 5] = [
        &["lookup", "-e", "fixtures/stacks/orders", "0x11317", "0x11349", "0x1137a", "0x1"],
        &["lookup", "--format", "llvm-json", "-e", "fixtures/stacks/orders", "0x11317", "0x11349"],
        &["stacks", "--core", CORE, "-e", "fixtures/stacks/orders", "--format", "json"],
        &["symbolicate", report, "-s", "fixtures/sample/symbols", "--format", "json"],
        &["symbolicate", report, "-s", "fixtures/sample/symbols"],
    ];
    for command in commands {
        let direct = backtrail(command);
        for round in ["made", "kept"] {
            let run = backtrail(&[command, &["--cache", cached]].concat());
            assert_eq!(run.whole(), direct.whole(), "{round}");
        }
    }
    // orders, Weather and Telemetry.
    let kept = tables(&directory);
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept.iter().all(|path| path.extension().is_some_and(|ending| ending == "btsym")));
    // What it answers from is the table indeed, while the file is the same at its ends.
    assert!(backtrail(&["lookup", "-e", kept[0].to_str().unwrap(), "0x1"]).code <= 1);
}

#[test]
fn stale_and_broken_tables_are_made_again() {
    let cache = TempDir::new("cache-broken");
    let directory = cache.path().to_str().unwrap();
    let ask = |file: &str| backtrail(&["lookup", "--cache", directory, "-e", file, "0x11317", "0x11349"]);
    let orders = "fixtures/stacks/orders";
    let direct = backtrail(&["lookup", "-e", orders, "0x11317", "0x11349"]).whole();
    assert_eq!(ask(orders).whole(), direct);
    let [table] = &tables(cache.path())[..] else { panic!("one table") };
    let whole = std::fs::read(table).unwrap();
    let other = cache.join("other.btsym");
    let bin = workspace_root().join("fixtures/symbolize/bin/dwz-one.elf").display().to_string();
    assert_eq!(backtrail(&["convert", &bin, "-o", other.to_str().unwrap()]).code, 0);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let hostile = [
        Vec::new(),
        whole[..whole.len() / 2].to_vec(),
        flipped,
        vec![0xff; 4096],
        std::fs::read(&other).unwrap(),
        std::fs::read(workspace_root().join(orders)).unwrap(),
    ];
    std::fs::remove_file(&other).unwrap();
    for (case, bytes) in hostile.iter().enumerate() {
        std::fs::write(table, bytes).unwrap();
        assert_eq!(ask(orders).whole(), direct, "case {case}");
        assert!(std::fs::read(table).unwrap() == whole, "case {case}: made again");
    }
    // A directory in its place, or no directory to be had at all: answers come from the debug info.
    std::fs::remove_file(table).unwrap();
    std::fs::create_dir(table).unwrap();
    assert_eq!(ask(orders).whole(), direct);
    let nowhere = ["lookup", "--cache", "/dev/null/x", "-e", orders, "0x11317", "0x11349"];
    assert_eq!(backtrail(&nowhere).whole(), direct);
    // Another file of the same identity, here without the debug info, has no use for the table.
    let stripped = cache.join("stripped");
    without_debug_info("stacks/orders", &stripped);
    let stripped = stripped.to_str().unwrap();
    std::fs::remove_dir(table).unwrap();
    assert_eq!(ask(orders).whole(), direct);
    let plain = backtrail(&["lookup", "-e", stripped, "0x11317", "0x11349"]).whole();
    assert_eq!(ask(stripped).whole(), plain);
    assert_ne!(plain, direct);
}

#[test]
fn what_is_incomplete_is_not_kept() {
    let cache = TempDir::new("cache-incomplete");
    // Its names are in a file that is not there.
    let alone = cache.join("dwz-one.elf");
    std::fs::copy(fixtures().join("symbolize/bin/dwz-one.elf"), &alone).unwrap();
    let directory = cache.create_dir("tables");
    let ask = |more: &[&str]| {
        backtrail(&[&["lookup", "-e", alone.to_str().unwrap(), "0x400158"], more].concat()).whole()
    };
    let direct = ask(&[]);
    assert_eq!(ask(&["--cache", directory.to_str().unwrap()]), direct);
    assert_eq!(tables(&directory).len(), 0);
}
