//! `backtrail convert`, and tables in the place of what they were made from.

use crate::run::{Run, backtrail, with_input};
use backtrail_testkit::{TempDir, assert_snapshot, workspace_root};

const BINARIES: &str = "fixtures/symbolize/bin";

/// Output without what differs from run to run.
fn steady(run: &Run, directory: &TempDir) -> String {
    let whole = run.whole().replace(directory.path().to_str().unwrap(), "OUT");
    let lines = whole.lines().map(|line| match line.split_once(" s, ") {
        Some(_) if line.starts_with("  ") => "  SECONDS s, SIZE in, SIZE out".to_owned(),
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_a_conversion_says() {
    let directory = TempDir::new("convert-summary");
    let out = format!("{}/", directory.path().display());
    let run = backtrail(&["convert", "fixtures/sample/symbols", "-o", &out, "--verify"]);
    let path = workspace_root().join("crates/cli/tests/program/snapshots/convert.txt");
    assert_snapshot(path, &steady(&run, &directory));
    let expected = ["Telemetry-arm64", "Telemetry-x86_64", "Weather-arm64", "Weather-x86_64"];
    assert_eq!(names(&directory), expected.map(|name| format!("{name}.btsym")));
}

#[test]
fn tables_answer_as_the_binaries_do() {
    let directory = TempDir::new("convert-lookup");
    let mut compared = 0;
    for name in [
        "gcc-dwarf5.elf",
        "gcc-cold.elf",
        "clang-split-5.elf",
        "dwz-one.elf",
        "symbols.elf",
        "macho-arm64.dwarf",
    ] {
        let binary = format!("{BINARIES}/{name}");
        let table = format!("{}/{name}.btsym", directory.path().display());
        let run = backtrail(&["convert", &binary, "-o", &table, "--verify", "--json"]);
        assert_eq!(run.code, 0, "{}", run.whole());
        let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(summary["verified"]["differences"], 0, "{name}");
        assert_eq!(summary["bytes_out"], std::fs::metadata(&table).unwrap().len());
        let expected = std::fs::read_to_string(workspace_root().join(format!("{binary}.expected"))).unwrap();
        let addresses: String =
            expected.lines().map(|line| format!("{}\n", line.split("..").next().unwrap())).collect();
        for form in ["text", "json"] {
            let ask =
                |file: &str| with_input(&["lookup", "-e", file, "--format", form], addresses.as_bytes());
            let (own, direct) = (ask(&table), ask(&binary));
            assert_eq!(own.stdout, direct.stdout, "{name}");
            compared += own.stdout.lines().count();
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn reports_are_symbolicated_from_tables() {
    let directory = TempDir::new("convert-report");
    let out = format!("{}/", directory.path().display());
    assert_eq!(backtrail(&["convert", "fixtures/sample/symbols", "-o", &out]).code, 0);
    let report = "fixtures/sample/reports/sdk-exception.ips";
    let with = |symbols: &str| backtrail(&["symbolicate", report, "-s", symbols, "--format", "crash"]);
    let (own, direct) = (with(&out), with("fixtures/sample/symbols"));
    assert_eq!((own.code, own.stdout), (direct.code, direct.stdout));
}

#[test]
fn a_table_beside_a_binary_is_used_and_one_of_another_build_is_not() {
    let directory = TempDir::new("convert-beside");
    for (name, as_name) in [("gcc-dwarf5.elf", "program"), ("symbols.elf", "stripped")] {
        directory.write(as_name, std::fs::read(workspace_root().join(BINARIES).join(name)).unwrap());
    }
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    assert_eq!(backtrail(&["convert", &path("program"), "-o", &path("program.btsym")]).code, 0);
    std::fs::copy(path("program.btsym"), path("stripped.btsym")).unwrap();
    for name in ["program", "stripped"] {
        let ask = || {
            let run = backtrail(&["lookup", "-e", &path(name), "0x1005", "0x1040", "0x10a0"]);
            (run.code, run.stdout)
        };
        let with = ask();
        std::fs::remove_file(path(&format!("{name}.btsym"))).unwrap();
        assert_eq!(with, ask(), "{name}");
    }
}

#[test]
fn nothing_is_left_behind_where_there_is_no_table() {
    let directory = TempDir::new("convert-nothing");
    let out = directory.path().to_str().unwrap().to_owned();
    let fails = |arguments: &[&str], expected: &str| {
        let run = backtrail(arguments);
        assert_eq!(run.code, 2, "{}", run.whole());
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    };
    fails(&["convert", "README.md", "-o", &out], "README.md");
    fails(&["convert", "no-such-file", "-o", &out], "no-such-file");
    fails(&["convert", "fixtures/symbolize/bin/macho-arm64.a", "-o", &out], "archive");
    fails(
        &["convert", "fixtures/sample/symbols", "-o", &format!("{out}/one.btsym")],
        "4 tables need a directory",
    );
    let binary = "fixtures/symbolize/bin/gcc-dwarf5.elf";
    fails(&["convert", binary, "-o", &format!("{out}/no/such/directory.btsym")], "cannot write");
    fails(&["convert", binary, "--jobs", "0"], "--jobs");
    assert_eq!(names(&directory), [""; 0]);
    assert_eq!(backtrail(&["convert", binary, "-o", &out]).code, 0);
    assert_eq!(names(&directory), ["gcc-dwarf5.elf.btsym"]);
    fails(&["convert", &format!("{out}/gcc-dwarf5.elf.btsym"), "-o", &out], "is a table already");
}

#[test]
fn what_is_cut_off_is_told() {
    let directory = TempDir::new("convert-cut");
    let file = directory.join("cut");
    let out = directory.join("cut.btsym");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    for name in ["gcc-dwarf5.elf", "macho-arm64.dwarf"] {
        let whole = std::fs::read(workspace_root().join(BINARIES).join(name)).unwrap();
        for length in [1000, whole.len() / 2, whole.len() - 10] {
            std::fs::write(file, &whole[..length]).unwrap();
            let run = backtrail(&["convert", file, "-o", out]);
            assert_eq!(run.code, 1, "{name} {length}: {}", run.whole());
            assert!(run.stderr.contains("expected "), "{name} {length}: {}", run.stderr);
            let run = backtrail(&["lookup", "-e", file, "0x400113"]);
            assert!(run.stderr.contains("expected "), "{name} {length}: {}", run.stderr);
        }
    }
}

#[test]
fn split_debug_info_is_part_of_its_binary() {
    let directory = TempDir::new("convert-split");
    for name in ["clang-split-5.elf", "clang-split-5-chain.dwo", "clang-split-5-start.dwo"] {
        let bytes = std::fs::read(workspace_root().join(BINARIES).join(name)).unwrap();
        directory.write(format!("single/{name}"), &bytes);
        if !name.ends_with(".dwo") {
            directory.write(format!("packed/{name}"), &bytes);
            let package = std::fs::read(workspace_root().join(BINARIES).join(format!("{name}.dwp"))).unwrap();
            directory.write(format!("packed/{name}.dwp"), package);
        }
    }
    let inlined = |inputs: &[&str]| {
        let inputs: Vec<String> =
            inputs.iter().map(|input| directory.join(input).to_str().unwrap().to_owned()).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let out = directory.join("out.btsym");
        let run = backtrail(&[&["convert", "--json", "-o", out.to_str().unwrap()], &*inputs].concat());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{inputs:?}");
        assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
        let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        summary["inlined_calls"].as_u64().unwrap()
    };
    let expected = inlined(&["packed/clang-split-5.elf"]);
    assert!(expected > 5, "{expected}");
    assert_eq!(inlined(&["packed/clang-split-5.elf.dwp", "packed/clang-split-5.elf"]), expected);
    assert_eq!(inlined(&["packed"]), expected);
    assert_eq!(inlined(&["single"]), expected);
    assert_eq!(
        inlined(&[
            "single/clang-split-5.elf",
            "single/clang-split-5-chain.dwo",
            "single/clang-split-5-start.dwo"
        ]),
        expected
    );
    let alone = backtrail(&["convert", directory.join("packed/clang-split-5.elf.dwp").to_str().unwrap()]);
    assert_eq!(alone.code, 2, "{}", alone.whole());
    assert!(
        alone.stderr.contains("expected the binary that this split debug info belongs to"),
        "{}",
        alone.stderr
    );
}
