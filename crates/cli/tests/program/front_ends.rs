//! The commands that stand in for other tools: their output recorded, and compared with the tools where they are there.

use crate::run::{Run, backtrail, run, with_input};
use backtrail_testkit::{TempDir, assert_snapshot, workspace_root};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BIN: &str = "fixtures/symbolize/bin";
const WEATHER: &str = "fixtures/sample/symbols/Weather.app.dSYM";

/// What GNU addr2line 2.40 reads without losing anything. It takes file 0 of clang's DWARF 5 for file 1, drops inlined
/// functions of some units with overlapping ranges, and does not follow split debug info.
const GNU_READS: [&str; 20] = [
    "clang-dwarf2.elf",
    "clang-dwarf3.elf",
    "clang-dwarf4.elf",
    "clang-dwarf64-v4.elf",
    "clang-gc-lld-v4.elf",
    "clang-gc-zero.elf",
    "clang-i386.elf",
    "clang-names-4-types.elf",
    "clang-names-4.elf",
    "clang-names-5.elf",
    "gcc-cold.elf",
    "gcc-dwarf2.elf",
    "gcc-dwarf3.elf",
    "gcc-dwarf4.elf",
    "gcc-dwarf5.elf",
    "gcc-gc-bfd-v4.elf",
    "gcc-gc-bfd.elf",
    "gcc-i386.elf",
    "gcc-names-4.elf",
    "gcc-names-5.elf",
];

fn snapshot(name: &str, actual: &str) {
    assert_snapshot(workspace_root().join("crates/cli/tests/program/snapshots").join(name), actual);
}

/// A tool that is installed; tells where it is not.
fn tool(name: &str) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&directories).map(|directory| directory.join(name)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("{name} is not installed: nothing to compare with");
    }
    found
}

/// Every code address that the expectations of a fixture name, as input lines.
fn addresses(name: &str) -> String {
    let text = std::fs::read_to_string(workspace_root().join(BIN).join(format!("{name}.expected"))).unwrap();
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut lines = String::new();
    for line in text.lines() {
        let (start, end) = line.split_once(' ').unwrap().0.split_once("..").unwrap();
        for address in hex(start)..hex(end) {
            lines.push_str(&format!("{address:#x}\n"));
        }
    }
    lines
}

/// The answers below each address, for output that begins with `0x…`.
fn blocks(output: &str) -> BTreeMap<String, Vec<String>> {
    let mut blocks = BTreeMap::new();
    let mut at = String::new();
    for line in output.lines() {
        if line.starts_with("0x") {
            let (address, rest) = line.split_once(": ").unwrap_or((line, ""));
            at = address.to_owned();
            blocks.insert(at.clone(), vec![rest.to_owned()]);
        } else {
            blocks.get_mut(&at).unwrap().push(line.to_owned());
        }
    }
    blocks
}

/// Behind the end of a function GNU names that function still; we say that nothing is known.
fn is_nothing(block: &[String]) -> bool {
    block.iter().any(|line| line == "??" || line.starts_with("?? "))
}

#[test]
fn addr2line_says_what_gnu_says() {
    let Some(gnu) = tool("addr2line") else { return };
    for name in GNU_READS {
        let (path, input) = (format!("{BIN}/{name}"), addresses(name));
        for flags in ["-afi", "-afiC", "-afips", "-afipC", "-afCs"] {
            let theirs = blocks(&run(&gnu, &[flags, "-e", &path], input.as_bytes()).stdout);
            let ours = blocks(&with_input(&["addr2line", flags, "-e", &path], input.as_bytes()).stdout);
            assert!(!theirs.is_empty() && theirs.keys().eq(ours.keys()), "{name}");
            let differ = theirs.iter().filter(|(address, block)| ours[*address] != **block);
            let differ: Vec<_> = differ.filter(|(address, _)| !is_nothing(&ours[*address])).collect();
            assert!(differ.is_empty(), "{name} {flags}: GNU says {differ:?}");
        }
    }
}

/// In object files each section begins at 0.
#[test]
fn addr2line_says_what_gnu_says_of_sections_of_object_files() {
    let Some(gnu) = tool("addr2line") else { return };
    for (name, sections) in [
        ("clang-sections.o", [".text.outer", ".text.unlikely.rare", ".text.hot", ".text.unused"].as_slice()),
        ("gcc-i386.o", &[".text"]),
    ] {
        let path = format!("{BIN}/{name}");
        for section in sections {
            let input: String = (0..0x100).map(|address| format!("{address:#x}\n")).collect();
            let arguments = ["-afi", "-j", section, "-e", &path];
            let answers = |run: &Run| blocks(&run.stdout.replace("/src/./chain.h", "/src/chain.c"));
            let theirs = answers(&run(&gnu, &arguments, input.as_bytes()));
            let ours = answers(&with_input(&[&["addr2line"], &arguments[..]].concat(), input.as_bytes()));
            let known: Vec<_> = ours.iter().filter(|(_, block)| !is_nothing(block)).collect();
            assert!(known.len() > 0x10, "{name} {section}");
            // GNU takes clang's file 0 for file 1, and drops a few inlined functions.
            for (address, block) in &known {
                let outermost = |block: &[String]| block[block.len() - 2..].to_vec();
                assert_eq!(outermost(block), outermost(&theirs[*address]), "{name} {section} {address}");
            }
            let same = known.iter().filter(|(address, block)| theirs[*address] == **block).count();
            assert!(same * 10 > known.len() * 8, "{name} {section}: {same} of {}", known.len());
        }
    }
}

#[test]
fn addr2line_says_what_gnu_says_of_the_odd_cases() {
    let Some(gnu) = tool("addr2line") else { return };
    let cold = &format!("{BIN}/gcc-cold.elf");
    let lists: [&[&str]; 12] = [
        &["-e", cold, "0x400113", "400114"],
        &["-e", cold, "-a", "zz", "", "0x", "-fp", "0xffffffffffffffffffff"],
        &["-e", cold, "-j", ".text", "-afi", "0", "0x23", "0x185", "0x186"],
        &["-e", cold, "--sec=.bss", "-af", "8"],
        &["--exe", cold, "--func", "--inl", "--addr", "--pretty", "--base", "0x400113"],
        &["-C", "-R", "-r", "-fe", cold, "0x400113"],
        &["--demangle=gnu-v3", "-b", "elf64-x86-64", "-fe", cold, "0x400113"],
        &["--demangle", "-fe", cold, "0x400113"],
        &["-e", cold, "-j", ".nowhere", "0"],
        &["-e", "fixtures/nowhere", "0"],
        &["-e", cold, "--demangle=zzz", "0"],
        &["0x1"],
    ];
    for arguments in lists {
        let theirs = run(&gnu, arguments, b"");
        let ours = backtrail(&[&["addr2line"], arguments].concat());
        assert_eq!(ours.stdout, theirs.stdout, "{arguments:?}");
        assert_eq!(ours.code, theirs.code, "{arguments:?}: {}", ours.stderr);
        // The message begins with the name that the tool was called by, GNU's with its path.
        let message = |run: &Run| run.stderr.split_once("addr2line: ").map(|(_, message)| message.to_owned());
        assert_eq!(message(&ours), message(&theirs), "{arguments:?}");
    }
}

#[test]
fn addr2line_agrees_with_elfutils() {
    let Some(elfutils) = tool("eu-addr2line") else { return };
    let mut compared = 0;
    for name in ["gcc-dwarf5.elf", "gcc-dwarf4.elf", "clang-dwarf4.elf", "clang-dwarf5.elf"] {
        let (path, input) = (format!("{BIN}/{name}"), addresses(name));
        let theirs = run(&elfutils, &["-e", &path], input.as_bytes()).stdout;
        let ours = with_input(&["addr2line", "-e", &path], input.as_bytes()).stdout;
        assert_eq!(theirs.lines().count(), ours.lines().count(), "{name}");
        for (theirs, ours) in theirs.lines().zip(ours.lines()) {
            // elfutils states the column, too, and folds `./`.
            let theirs =
                theirs.rsplit_once(':').filter(|(place, _)| place.contains(':')).map_or(theirs, |it| it.0);
            // Units of clang without address ranges of their own are nothing to elfutils.
            let theirs = theirs.strip_suffix(":0").unwrap_or(theirs);
            let ours = ours.split(" (discriminator").next().unwrap().replace("/./", "/");
            let is_line = !ours.ends_with('?');
            compared += 1;
            assert!(!is_line || theirs == "??" || theirs == ours, "{name}: {theirs} {ours}");
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn addr2line_recorded() {
    let mut text = String::new();
    let mut record = |arguments: &[&str]| {
        let run = backtrail(&[&["addr2line"], arguments].concat());
        text.push_str(&format!("$ addr2line {}\n{}", arguments.join(" "), run.whole()));
    };
    let (cold, names) = (format!("{BIN}/gcc-cold.elf"), format!("{BIN}/gcc-names-5.elf"));
    for flags in ["-a", "-f", "-afi", "-afip", "-afips", "-s"] {
        record(&[flags, "-e", &cold, "0x400113", "0x40014b", "0x40015e", "0x1"]);
    }
    record(&["-afiC", "-e", &names, "0x2011a0", "0x2011d6", "0x2011e8"]);
    record(&["-afi", "-j", ".text", "-e", &cold, "0x23"]);
    record(&["-af", "-e", &format!("{BIN}/symbols.elf"), "0x4000f0", "0x400120"]);
    record(&["-af", "-e", &format!("{BIN}/gcc-i386.elf"), "0x8048100"]);
    record(&["-e", &cold, "-j", ".nowhere", "1"]);
    record(&["-e", "fixtures/nowhere", "1"]);
    record(&["-e", "fixtures/symbolize/README.md", "1"]);
    record(&["-v"]);
    snapshot("addr2line.txt", &text);
}

#[test]
fn addr2line_reads_options_from_a_file() {
    let directory = TempDir::new("addr2line-options");
    directory.write("options", format!("-e {BIN}/gcc-cold.elf\n-af '0x400113'").as_bytes());
    let options = format!("@{}", directory.path().join("options").display());
    let run = backtrail(&["addr2line", &options, "0x40014b"]);
    assert_eq!(
        run.stdout,
        "0x0000000000400113\nleaf\n/src/chain.h:5\n0x000000000040014b\nhot\n/src/chain.c:24\n"
    );
}

/// Writes one line, and does not write the next before that one is answered.
fn talk(arguments: &[&str], lines: &[(&str, usize)]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
    command.args(arguments).current_dir(workspace_root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut output = BufReader::new(output).lines();
    let mut answers = Vec::new();
    for (line, answered) in lines {
        writeln!(input, "{line}").unwrap();
        answers.extend(output.by_ref().take(*answered).map(Result::unwrap));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers
}

#[test]
fn the_front_ends_answer_line_by_line() {
    let cold = format!("{BIN}/gcc-cold.elf");
    let answers = talk(&["addr2line", "-fi", "-e", &cold], &[("0x400113", 6), ("1", 2), ("0x40014b", 2)]);
    assert_eq!(answers[5..], ["/src/chain.c:24", "??", "??:0", "hot", "/src/chain.c:24"]);
    let answers = talk(
        &["atos", "-o", WEATHER, "-arch", "arm64"],
        &[("0x1000041cc", 1), ("10", 1), ("0x10000416c", 1)],
    );
    assert_eq!(answers[1], "10");
}

#[cfg(unix)]
#[test]
fn the_front_ends_go_by_their_names() {
    let directory = TempDir::new("links");
    let link = |name: &str| {
        let path = directory.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_backtrail"), &path).unwrap();
        path
    };
    let cold = format!("{BIN}/gcc-cold.elf");
    for name in ["addr2line", "aarch64-linux-gnu-addr2line"] {
        let run = run(&link(name), &["-e", &cold, "0x40014b"], b"");
        assert_eq!((run.stdout.as_str(), run.code), ("/src/chain.c:24\n", 0), "{name}");
    }
    let atos = run(&link("atos"), &["-o", WEATHER, "-arch", "arm64", "-fullPath", "0x1000041cc"], b"");
    assert_eq!(atos.stdout, "weather::Forecast::refresh() (in Weather) (/src/Weather/forecast.cpp:18)\n");
    let other = run(&link("paddr2line"), &["--version"], b"");
    assert!(other.stdout.starts_with("backtrail "), "{}", other.stdout);
}

#[test]
fn atos_recorded() {
    let mut text = String::new();
    let mut record = |arguments: &[&str]| {
        let run = backtrail(&[&["atos"], arguments].concat());
        text.push_str(&format!("$ atos {}\n{}", arguments.join(" "), run.whole()));
    };
    let addresses = ["0x1000041cc", "0x10000416c", "0x100004000"];
    record(&[&["-o", WEATHER, "-arch", "arm64"], addresses.as_slice()].concat());
    record(&[&["-i", "-o", WEATHER], addresses.as_slice()].concat());
    record(&["-o", WEATHER, "-i", "-fullPath", "-l", "104430000", "0x1044341cc"]);
    record(&["-o", WEATHER, "-s", "4430000", "0x1044341cc"]);
    record(&["-o", WEATHER, "-offset", "-inlineFrames", "-d", "; ", "0x41cc"]);
    record(&["-o", "fixtures/sample/app/Weather.app/Weather", "-arch", "x86_64", "0x100004000"]);
    record(&["-o", WEATHER, "-offset", "0x20", "0xfffffff", "zebra", "0"]);
    record(&["-o", &format!("{BIN}/macho-arm64.dylib"), "0x328", "0x338"]);
    record(&["-o", WEATHER, "-arch", "armv7", "0x1"]);
    record(&["-p", "1", "0x1"]);
    record(&["0x1"]);
    snapshot("atos.txt", &text);
}

/// Kernels have their code in a segment of its own, which their reports tell the address of.
#[test]
fn atos_counts_from_the_code_of_kernels() {
    let directory = TempDir::new("atos-kernel");
    let mut bytes = std::fs::read(workspace_root().join(BIN).join("macho-arm64.dylib")).unwrap();
    let name = *b"__LINKEDIT\0\0\0\0\0\0";
    let at = bytes.windows(16).position(|window| *window == name).unwrap();
    bytes[at..at + 16].copy_from_slice(b"__TEXT_EXEC\0\0\0\0\0");
    let stated = u64::from_le_bytes(*bytes[at + 16..].first_chunk().unwrap());
    let kernel = directory.write("kernel", &bytes);
    let slid = format!("{:x}", stated + 0xffff_ff80_0000_0000);
    let ask =
        |arguments: &[&str]| backtrail(&[&["atos", "-o", kernel.to_str().unwrap()], arguments].concat());
    let asked = ask(&["-textExecAddress", &slid, "0xffffff8000000328"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, ask(&["0x328"]).stdout.as_str()), "{}", asked.stderr);
    assert!(asked.stdout.contains(" (in kernel) "), "{}", asked.stdout);
    assert_eq!(ask(&["-textExecAddress", &slid, "-offset", "0x1"]).code, 1);
    let other = backtrail(&["atos", "-o", WEATHER, "-textExecAddress", &slid, "0x1"]);
    assert!(other.stderr.contains("no segment __TEXT_EXEC"), "{}", other.stderr);
}

#[test]
fn atos_reads_addresses_from_a_file() {
    let directory = TempDir::new("atos-addresses");
    directory.write("addresses", b"0x1000041cc\t0x10000416c\n\n 0x10 ");
    let file = directory.path().join("addresses");
    let run = backtrail(&["atos", "-o", WEATHER, "-arch", "arm64", "-f", file.to_str().unwrap()]);
    assert_eq!(run.stdout.lines().count(), 3, "{}", run.stdout);
    assert!(run.stdout.ends_with("\n0x10\n"), "{}", run.stdout);
}

/// One answer of llvm-symbolizer, without what it loses: it reads no file from attributes whose value stands in the
/// abbreviation, as gcc writes them with DWARF 5.
fn without_losses(theirs: &str, ours: &str) -> (serde_json::Value, serde_json::Value) {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (theirs, mut ours) = (parse(theirs), parse(ours));
    let frames = theirs["Symbol"].as_array().unwrap().iter();
    for (theirs, ours) in frames.zip(ours["Symbol"].as_array_mut().unwrap()) {
        if theirs["StartFileName"] == "" {
            ours["StartFileName"] = "".into();
        }
    }
    (theirs, ours)
}

#[test]
fn lookup_says_what_llvm_says() {
    let Some(llvm) = tool("llvm-symbolizer-22") else { return };
    let files = std::fs::read_dir(workspace_root().join(BIN)).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut compared = 0;
    for name in files.filter(|name| name.ends_with(".elf") || name.ends_with(".dwarf")) {
        // LLVM does not read what dwz has put into another file, and looks for a `.dwo` where it runs.
        if name.starts_with("dwz-") || name == "gcc-split-5.elf" {
            continue;
        }
        let (path, input) = (format!("{BIN}/{name}"), addresses(&name));
        let theirs = run(&llvm, &["--output-style=JSON", "-e", &path], input.as_bytes()).stdout;
        let ours = with_input(&["lookup", "--format", "llvm-json", "-e", &path], input.as_bytes()).stdout;
        assert_eq!(theirs.lines().count(), ours.lines().count(), "{name}");
        for (theirs, ours) in theirs.lines().zip(ours.lines()).filter(|(theirs, ours)| theirs != ours) {
            let (theirs, ours) = without_losses(theirs, ours);
            assert_eq!(theirs, ours, "{name}");
        }
        let theirs = run(&llvm, &["-e", &path], input.as_bytes()).stdout;
        let ours = with_input(&["lookup", "--format", "llvm", "-e", &path], input.as_bytes()).stdout;
        assert!(theirs == ours, "{name}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn lookup_in_llvms_forms() {
    let names = format!("{BIN}/gcc-names-5.elf");
    let arguments = ["lookup", "-e", &names, "--format"];
    let addresses = ["0x2011a0", "0x2011d6", "0x1"];
    let json = backtrail(&[&arguments[..], &["llvm-json"], &addresses].concat());
    let text = backtrail(&[&arguments[..], &["llvm"], &addresses].concat());
    snapshot("lookup.llvm", &(json.whole() + &text.whole()));
    let lines = with_input(&[&arguments[..], &["llvm-json"]].concat(), b"0x2011a0\n0x1\n");
    assert_eq!(lines.stdout.lines().count(), 2);
}

/// A program of this machine's own compiler, with the standard library's templates inlined into each other.
const PROGRAM: &str = r#"
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace { struct Inner { int f(int x) { return x * 3; } }; }
int work(std::map<std::string, std::vector<int>>& m, int n) {
  for (int i = 0; i < n; i++) m["k" + std::to_string(i)].push_back(i);
  int s = 0;
  for (auto& [k, v] : m) {
    std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
    for (int x : v) s += x > 3 ? x : -x;
  }
  return s + Inner{}.f(n);
}
int main(int c, char** v) { std::map<std::string, std::vector<int>> m; return work(m, c * 10); }
"#;

#[test]
fn addr2line_says_what_gnu_says_of_a_real_program() {
    let (Some(gnu), Some(compiler)) = (tool("addr2line"), tool("g++")) else { return };
    let directory = TempDir::new("real-program");
    directory.write("program.cpp", PROGRAM.as_bytes());
    let source = directory.path().join("program.cpp");
    let binary = directory.path().join("program");
    let (source, path) = (source.to_str().unwrap(), binary.to_str().unwrap());
    let compiled = run(&compiler, &["-std=c++17", "-O2", "-g", source, "-o", path], b"");
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    let input: String = (0x1000..0x6000).step_by(3).map(|address: u64| format!("{address:#x}\n")).collect();
    let theirs = blocks(&run(&gnu, &["-afiC", "-e", path], input.as_bytes()).stdout);
    let ours = blocks(&with_input(&["addr2line", "-afiC", "-e", path], input.as_bytes()).stdout);
    let named = ours.values().filter(|block| !is_nothing(block)).count();
    let differ =
        theirs.iter().filter(|(address, block)| !is_nothing(&ours[*address]) && ours[*address] != **block);
    let differ: Vec<_> = differ.collect();
    assert!(named > 500, "{named}");
    // GNU mistakes the file of a few rows for the unit's first one.
    assert!(differ.len() * 20 < named, "{} of {named}: {:?}", differ.len(), differ.first());
}

#[test]
fn a_front_end_without_input_is_no_error() {
    let cold = format!("{BIN}/gcc-cold.elf");
    assert_eq!(with_input(&["addr2line", "-e", &cold], b"").code, 0);
    assert_eq!(with_input(&["atos", "-o", WEATHER], b"").code, 0);
    assert!(Path::new(&workspace_root().join(cold)).is_file());
}
