//! GSYM and Breakpad files of other tools, read and compared with lookups in the binary that they were made from.

use backtrail::{
    Binary, ConvertProgress, ConvertSettings, ConvertSources, Function, Svma, SymbolInfo, TableFormat,
};
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

type SymbolInfoRef = (String, Option<String>, u32);

fn ours(located: &SymbolInfo, name: impl Fn(&Function) -> String) -> Vec<SymbolInfoRef> {
    let shown = |function: &Function| (name(function), function.file.clone(), function.line.unwrap_or(0));
    located.functions.iter().map(shown).collect()
}

fn theirs(answer: Option<PlainAnswer<'_>>) -> Vec<SymbolInfoRef> {
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
    let directory = TempDir::new("llvm-gsym");
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
        let gsym = directory.path().join(name);
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
            let ours: Vec<SymbolInfoRef> = ours(&located, linkage_name)
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
    let directory = TempDir::new("dump-syms");
    let mut compared = 0;
    for name in ["gcc-dwarf4.elf", "gcc-cold.elf", "clang-dwarf4.elf", "clang-dwarf5.elf"] {
        let path = fixture(name);
        let file = directory.path().join(name);
        let arguments = ["--inlines", path.to_str().unwrap(), "-o", file.to_str().unwrap()];
        if run("dump_syms", &arguments).is_none() {
            return;
        }
        let bytes = std::fs::read(&file).unwrap();
        let file = Breakpad::open(&bytes).unwrap();
        let binary = Binary::open(&path, None).unwrap();
        let base = binary.info().image_base;
        for address in addresses(&path) {
            let located = binary.lookup(Svma::new(address));
            if located.functions.last().is_none_or(|function| function.name.is_empty()) {
                continue;
            }
            let ours: Vec<SymbolInfoRef> = ours(&located, linkage_name)
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

struct Quiet;

impl ConvertProgress for Quiet {
    fn advanced(&self, _: u64, _: u64) {}
}

/// Converts a fixture, with everything looked up again.
fn converted(directory: &TempDir, name: &str, format: TableFormat) -> PathBuf {
    let sources = ConvertSources::find(&[fixture(name)]);
    let place = directory.path().join(format!("{name}.{}", format.ending()));
    let settings = ConvertSettings { format, verify: true, ..ConvertSettings::default() };
    let done = sources.convert(&sources.sources[0], &place, &settings, &Quiet).unwrap();
    assert_eq!(done.verified.unwrap().differences, 0);
    assert_eq!(done.stats.bytes, std::fs::metadata(&place).unwrap().len());
    let left = std::fs::read_dir(directory.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(left.count(), 0, "no half file stays");
    place
}

const CONVERTED: [&str; 9] = [
    "gcc-cold.elf",
    "gcc-lto.elf",
    "gcc-names-5.elf",
    "gcc-split-4.elf",
    "gcc-i386.elf",
    "clang-dwarf5.elf",
    "clang-aarch64.elf",
    "clang-mips.elf",
    "macho-arm64.dwarf",
];

#[test]
fn what_is_converted_answers_as_the_binary_does() {
    let directory = TempDir::new("exchange");
    let mut compared = 0;
    for (name, format) in
        CONVERTED.iter().flat_map(|name| [(name, TableFormat::Gsym), (name, TableFormat::Breakpad)])
    {
        let file = Binary::open(converted(&directory, name, format), None).unwrap();
        let binary = Binary::open(fixture(name), None).unwrap();
        let base = if format == TableFormat::Breakpad { binary.info().image_base.get() } else { 0 };
        for address in addresses(&fixture(name)) {
            let wanted = binary.lookup(Svma::new(address));
            if wanted.functions.last().is_none_or(|function| function.name.is_empty()) {
                continue;
            }
            let found = file.lookup(Svma::new(address - base));
            let readable = |function: &Function| match format {
                TableFormat::Gsym => linkage_name(function),
                _ => function.name.split("(.").next().unwrap().trim_end().to_owned(),
            };
            assert_eq!(ours(&found, readable), ours(&wanted, readable), "{name} {format:?} at {address:#x}");
            assert_eq!(found.function_offset, wanted.function_offset, "{name} {format:?} at {address:#x}");
            compared += 1;
        }
    }
    assert!(compared > 4000, "{compared}");
}

/// What llvm-gsymutil prints of one address, in the words of the table's own answer.
fn printed(name: &str, function_offset: u64, answer: &[SymbolInfoRef]) -> String {
    let mut text = String::new();
    for (position, (function, file, line)) in answer.iter().enumerate() {
        let is_outermost = position + 1 == answer.len();
        let offset = match (is_outermost, function_offset) {
            (true, 1..) => format!(" + {function_offset}"),
            _ => String::new(),
        };
        let place = file.as_ref().map(|file| format!(" @ {file}:{line}")).unwrap_or_default();
        let inlined = if is_outermost { "" } else { " [inlined]" };
        let head = if position == 0 { format!("{name}: ") } else { " ".repeat(20) };
        text.push_str(&format!("{head}{function}{offset}{place}{inlined}\n"));
    }
    text
}

/// LLVM tells how far into an inlined call an address is, too; backtrail's answers do not.
fn without_inner_offset(line: &str) -> String {
    let inlined = line.strip_suffix(" [inlined]").and_then(|line| line.split_once(" @ "));
    let Some((name, place)) = inlined else { return format!("{line}\n") };
    let name = name.rsplit_once(" + ").map_or(name, |(name, _)| name);
    format!("{name} @ {place} [inlined]\n")
}

#[test]
fn llvm_reads_our_gsym() {
    let directory = TempDir::new("our-gsym");
    for name in CONVERTED.iter().filter(|name| !name.contains("names")) {
        let path = converted(&directory, name, TableFormat::Gsym);
        let binary = Binary::open(fixture(name), None).unwrap();
        let mut wanted = String::new();
        let mut arguments = Vec::new();
        for address in addresses(&fixture(name)) {
            let located = binary.lookup(Svma::new(address));
            // Lines of 0 LLVM leaves out, together with their file.
            if located.functions.last().is_none_or(|function| function.name.is_empty())
                || located.functions.iter().any(|function| function.line.is_none())
            {
                continue;
            }
            let shown = ours(&located, linkage_name);
            wanted.push_str(&printed(&format!("{address:#018x}"), located.function_offset.unwrap(), &shown));
            arguments.extend(["--address".to_owned(), format!("{address:#x}")]);
        }
        let output = Command::new("llvm-gsymutil-22").args(&arguments).arg(&path).output();
        let Ok(output) = output else {
            eprintln!("llvm-gsymutil-22 is not installed: nothing to compare with");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let text: String =
            text.lines().skip(1).filter(|line| !line.is_empty()).map(without_inner_offset).collect();
        assert_eq!(text, wanted, "{name}");
        // The whole file, as LLVM dumps it.
        let dump = Command::new("llvm-gsymutil-22").arg(&path).output().unwrap();
        assert!(dump.status.success() && !String::from_utf8_lossy(&dump.stdout).contains("error"), "{name}");
    }
}
