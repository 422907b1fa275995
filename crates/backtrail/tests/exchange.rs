//! GSYM and Breakpad files of other tools, read and compared with lookups in the binary that they were made from.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

use backtrail::{Binary, Function, Located, Svma};
use backtrail_table::breakpad::Breakpad;
use backtrail_table::exchange::{PlainAnswer, PlainFrame};
use backtrail_table::gsym::Gsym;
use backtrail_testkit::{TempDir, fixtures};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Addresses of the fixture's code that its expectations name.
fn addresses(binary: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(format!("{}.expected", binary.display())).unwrap();
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let range = |line: &str| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once("..").unwrap();
        hex(start)..hex(end)
    };
    text.lines().flat_map(range).collect()
}

/// Runs a tool; `None`, and a line that says so, where it is not installed.
fn run(tool: &str, arguments: &[&str]) -> Option<()> {
    match Command::new(tool).args(arguments).output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{tool} {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(())
        }
        Err(error) => {
            eprintln!("{tool} is not installed ({error}): nothing to compare with");
            None
        }
    }
}

type Shown = (String, Option<String>, u32);

fn ours(located: &Located, name: impl Fn(&Function) -> String) -> Vec<Shown> {
    let shown = |function: &Function| (name(function), function.file.clone(), function.line.unwrap_or(0));
    located.functions.iter().map(shown).collect()
}

fn theirs(answer: Option<PlainAnswer<'_>>) -> Vec<Shown> {
    let shown = |frame: &PlainFrame<'_>| {
        let file = frame.file.map(|file| file.to_text().replace("/./", "/"));
        (String::from_utf8_lossy(frame.name).into_owned(), file, frame.line)
    };
    answer.map(|answer| answer.frames.iter().map(shown).collect()).unwrap_or_default()
}

fn linkage_name(function: &Function) -> String {
    let name = function.linkage_name.clone().unwrap_or_default();
    // LLVM and dump_syms name parts of functions by the whole.
    name.split(['.']).next().unwrap_or_default().to_owned()
}

fn fixture(name: &str) -> PathBuf {
    fixtures().join("symbolize/bin").join(name)
}

#[test]
fn gsym_of_llvm_says_what_the_binary_says() {
    let folder = TempDir::new("llvm-gsym");
    let mut compared = 0;
    for name in [
        "gcc-dwarf4.elf",
        "gcc-cold.elf",
        "clang-dwarf4.elf",
        "clang-dwarf5.elf",
        "clang-lto.elf",
        "gcc-gc-bfd.elf",
    ] {
        let path = fixture(name);
        let gsym = folder.path().join(name);
        let arguments = ["--quiet", "--convert", path.to_str().unwrap(), "-o", gsym.to_str().unwrap()];
        if run("llvm-gsymutil-22", &arguments).is_none() {
            return;
        }
        let bytes = std::fs::read(&gsym).unwrap();
        let gsym = Gsym::open(&bytes).unwrap();
        let binary = Binary::open(&path, None).unwrap();
        for address in addresses(&path) {
            let located = binary.lookup(Svma::new(address));
            // What has a line but no function is not in a GSYM file.
            if located.functions.last().is_none_or(|function| function.name.is_empty()) {
                continue;
            }
            let ours: Vec<Shown> = ours(&located, linkage_name)
                .into_iter()
                .map(|(name, file, line)| (name, file.map(|file| file.replace("/./", "/")), line))
                .collect();
            let found = theirs(gsym.lookup(Svma::new(address)));
            assert_eq!(found, ours, "{name} at {address:#x}");
            compared += 1;
        }
    }
    assert!(compared > 1500, "{compared}");
}

#[test]
fn symbol_files_of_dump_syms_say_what_the_binary_says() {
    let folder = TempDir::new("dump-syms");
    let mut compared = 0;
    for name in ["gcc-dwarf4.elf", "gcc-cold.elf", "clang-dwarf4.elf", "clang-dwarf5.elf"] {
        let path = fixture(name);
        let file = folder.path().join(name);
        let arguments = ["--inlines", path.to_str().unwrap(), "-o", file.to_str().unwrap()];
        if run("dump_syms", &arguments).is_none() {
            return;
        }
        let bytes = std::fs::read(&file).unwrap();
        let file = Breakpad::open(&bytes).unwrap();
        let binary = Binary::open(&path, None).unwrap();
        let base = binary.facts().image_base;
        for address in addresses(&path) {
            let located = binary.lookup(Svma::new(address));
            if located.functions.last().is_none_or(|function| function.name.is_empty()) {
                continue;
            }
            let ours: Vec<Shown> = ours(&located, linkage_name)
                .into_iter()
                .map(|(name, file, line)| (name, file.map(|file| file.replace("/./", "/")), line))
                .collect();
            let offset = Svma::new(address).offset_from(base).unwrap();
            let found = theirs(file.lookup(Svma::new(offset)));
            assert_eq!(found, ours, "{name} at {address:#x}");
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}
