//! Text that others chose, in every place that is shown: no character of it that a terminal obeys, that turns the order of
//! text or that cannot be seen reaches an output for people, and no line of it passes for one of ours.

use backtrail_cli::{Console, Environment, Streams};
use backtrail_testkit::{Elf, ElfSection, ElfSymbol, TempDir, workspace_root};
use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A window's title, a clear screen, C1's CSI, a reversed text, something hidden, a separator, and a line of its own.
const HOSTILE: &str = "x\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{7f}\u{2028}\r\nFORGED 0x1000";

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both outputs of a command line that is run here, on a terminal or not.
fn run(arguments: &[&str], input: &[u8], is_terminal: bool) -> (u8, String) {
    let out = Shared::default();
    let streams = Streams {
        stdin: Box::new(Cursor::new(input.to_vec())),
        stdout: Box::new(out.clone()),
        stderr: Box::new(out.clone()),
    };
    let environment =
        Environment { stdout_is_terminal: is_terminal, terminal_is_dumb: true, ..Environment::default() };
    let argv = ["backtrail"].iter().chain(arguments).map(OsString::from).collect();
    let code = backtrail_cli::run(argv, &Console::new(streams, environment));
    let bytes = out.0.lock().unwrap().clone();
    (code, String::from_utf8(bytes).unwrap_or_else(|error| panic!("{arguments:?}: {error}")))
}

/// Said apart from the program's own list, so that it cannot be wrong in the same way.
fn is_unsafe(character: char) -> bool {
    let code = u32::from(character);
    (code < 0x20 && character != '\n')
        || (0x7f..0xa0).contains(&code)
        || [0xad, 0x61c, 0xfeff].contains(&code)
        || (0x200b..=0x200f).contains(&code)
        || (0x2028..=0x202e).contains(&code)
        || (0x2060..=0x206f).contains(&code)
        || (0xe0000..=0xe007f).contains(&code)
}

fn assert_safe(arguments: &[&str], shown: &str) {
    if let Some(at) = shown.find(is_unsafe) {
        let from = shown.char_indices().map(|(at, _)| at).rfind(|start| *start + 200 < at).unwrap_or(0);
        panic!("{arguments:?}: {:?}", &shown[from..at + 1]);
    }
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("FORGED")), "{arguments:?}: {shown}");
}

/// A report with the hostile text behind each of its texts.
fn hostile_json(text: &str) -> String {
    fn spoil(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => text.push_str(HOSTILE),
            serde_json::Value::Array(values) => values.iter_mut().for_each(spoil),
            serde_json::Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| {
                // What decides how the report is read stays.
                if !["bug_type", "uuid", "arch", "cpuType", "type", "signal", "flavor", "selector"]
                    .contains(&key.as_str())
                {
                    spoil(value);
                }
            }),
            _ => {}
        }
    }
    let (head, body) = text.split_once('\n').unwrap();
    let spoiled = [head, body].map(|part| {
        let mut value = serde_json::from_str(part).unwrap();
        spoil(&mut value);
        value.to_string()
    });
    spoiled.join("\n")
}

/// A text report with the hostile text in every line, without line ends of its own.
fn hostile_lines(text: &str) -> String {
    let hostile = HOSTILE.replace(['\r', '\n'], "");
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{line}{hostile}\n") })
        .collect()
}

#[test]
fn reports() {
    let directory = TempDir::new("hostile-reports");
    let mut shown = 0;
    for name in ["null-member", "sdk-exception", "watchdog", "worker-assertion"] {
        for extension in ["ips", "crash"] {
            let path = workspace_root().join(format!("fixtures/sample/reports/{name}.{extension}"));
            let text = std::fs::read_to_string(path).unwrap();
            let text = if extension == "ips" { hostile_json(&text) } else { hostile_lines(&text) };
            let file = directory.write(format!("{name}.{extension}"), text);
            let file = file.to_str().unwrap();
            let symbols = workspace_root().join("fixtures/sample/symbols");
            for format in ["text", "html", "json", "crash"] {
                let arguments = ["symbolicate", file, "-s", symbols.to_str().unwrap(), "--format", format];
                let (code, text) = run(&arguments, b"", true);
                assert!(code < 2, "{arguments:?}: {text}");
                if format == "html" {
                    // Line ends and tabs are white space in a page.
                    assert_safe(&arguments[..1], &text.replace('\t', " ").replace("FORGED", ""));
                } else {
                    assert_safe(&arguments, &text);
                }
                shown += text.matches("title").count();
            }
            for format in ["text", "json"] {
                let arguments = ["explain", file, "--format", format];
                assert_safe(&arguments, &run(&arguments, b"", true).1);
            }
        }
    }
    assert!(shown > 100, "{shown}");
}

/// A library whose symbol, sections and file have the hostile text as their names.
fn hostile_binary(directory: &TempDir) -> std::path::PathBuf {
    let mut elf = Elf::default();
    let symbol = ElfSymbol { name: HOSTILE, value: 0x1000, size: 0x10, kind: 2, binding: 1, section: 1 };
    let (table, names) = elf.symbol_table(&[symbol]);
    let text = ElfSection {
        name: ".text",
        kind: 1,
        flags: 6,
        address: 0x1000,
        data: vec![0x90; 0x40],
        ..ElfSection::default()
    };
    let symtab =
        ElfSection { name: ".symtab", kind: 2, data: table, link: 3, info: 1, ..ElfSection::default() };
    let strtab = ElfSection { name: ".strtab", kind: 3, data: names, ..ElfSection::default() };
    let hostile = ElfSection {
        name: HOSTILE,
        kind: 1,
        flags: 6,
        address: 0x2000,
        data: vec![0x90; 16],
        ..ElfSection::default()
    };
    elf.sections = vec![text, symtab, strtab, hostile];
    directory.write(HOSTILE.replace('/', ""), elf.build())
}

#[test]
fn binaries_and_paths() {
    let directory = TempDir::new("hostile-binary");
    let binary = hostile_binary(&directory);
    let file = binary.to_str().unwrap();
    let table = directory.join("table");
    let table = table.to_str().unwrap();
    for arguments in [
        &["lookup", "-e", file, "0x1004", HOSTILE][..],
        &["lookup", "-e", file, "0x1004", "--format", "json"],
        &["lookup", "-e", file, "0x1004", "--format", "llvm"],
        &["lookup", "-e", file, "0x1004", "--format", "llvm-json"],
        &["addr2line", "-afpiC", "-e", file, "0x1004"],
        &["addr2line", "-f", "-e", file, "0x1004"],
        &["addr2line", "-e", file, "-j", HOSTILE, "0x0"],
        &["addr2line", "-e", file, "-j", "no\u{1b}section", "0x0"],
        &["atos", "-o", file, "0x1004", HOSTILE],
        &["atos", "-o", HOSTILE, "0x1004"],
        &["images", file],
        &["images", "--format", "json", file],
        &["cfi", file],
        &["cfi", "--format", "json", file],
        &["cfi", "--function", HOSTILE, file],
        &["convert", file, "-o", table, "--stats", "--verify"],
        &["convert", file, "-o", table, "--json"],
        &["demangle", HOSTILE],
        &["demangle", "--quote", HOSTILE],
    ] {
        let (code, text) = run(arguments, b"", true);
        assert!(code <= 2, "{arguments:?}");
        assert!(!text.is_empty(), "{arguments:?}");
        assert_safe(arguments, &text);
    }
    // What is for people is escaped wherever it goes.
    for arguments in [&["lookup", "-e", file, "0x1004"][..], &["images", file], &["cfi", file]] {
        assert_safe(arguments, &run(arguments, b"", false).1);
    }
    // Other tools' programs read other tools' bytes.
    let (_, raw) = run(&["addr2line", "-f", "-e", file, "0x1004"], b"", false);
    assert!(raw.starts_with(HOSTILE.split('\n').next().unwrap()), "{raw:?}");
}

#[test]
fn messages() {
    for arguments in [
        &["symbolicate", HOSTILE][..],
        &["explain", HOSTILE, HOSTILE],
        &["symbolicate", "-s", HOSTILE, HOSTILE],
        &["lookup", "-e", HOSTILE, "0x1"],
        &["lookup", "-e", "/", "--arch", HOSTILE, "0x1"],
        &["lookup", "-e", "/", "--slide", HOSTILE],
        &["stacks", "--core", HOSTILE],
        &["stacks", HOSTILE],
        &["images", HOSTILE],
        &["cfi", HOSTILE],
        &["convert", HOSTILE],
        &["convert", HOSTILE, "--format", HOSTILE],
        &["addr2line", "-e", HOSTILE],
        &["addr2line", "--demangle=\u{1b}", "-e", HOSTILE],
        &["atos", "-p", HOSTILE],
        &["atos", HOSTILE],
        &["atos", "-d", "\u{1b}[2J", "-o", "/"],
        &[HOSTILE],
        &[&format!("--{HOSTILE}")],
        &["symbolicate", "--colour\u{1b}=x"],
    ] {
        let (code, text) = run(arguments, b"", true);
        assert!(code == 1 || code == 2, "{arguments:?}: {code} {text}");
        assert_safe(arguments, &text);
    }
}

#[test]
fn programs_get_the_same_json() {
    let directory = TempDir::new("hostile-json");
    let path = workspace_root().join("fixtures/sample/reports/null-member.ips");
    let report = directory.write("a.ips", hostile_json(&std::fs::read_to_string(path).unwrap()));
    let (_, text) = run(&["explain", "--format", "json", report.to_str().unwrap()], b"", false);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let found = value.to_string();
    assert!(found.contains('\u{202e}') && found.contains('\u{9b}'), "{text}");
}

#[test]
fn a_long_name_is_cut_for_people_and_whole_for_programs() {
    let directory = TempDir::new("long-name");
    let name: &'static str = Box::leak("n".repeat(60_000).into_boxed_str());
    let mut elf = Elf::default();
    let symbol = ElfSymbol { name, value: 0x1000, size: 0x10, kind: 2, binding: 1, section: 1 };
    let (table, names) = elf.symbol_table(&[symbol]);
    let text = ElfSection {
        name: ".text",
        kind: 1,
        flags: 6,
        address: 0x1000,
        data: vec![0x90; 0x40],
        ..ElfSection::default()
    };
    let symtab =
        ElfSection { name: ".symtab", kind: 2, data: table, link: 3, info: 1, ..ElfSection::default() };
    let strtab = ElfSection { name: ".strtab", kind: 3, data: names, ..ElfSection::default() };
    elf.sections = vec![text, symtab, strtab];
    let file = directory.write("long", elf.build());
    let file = file.to_str().unwrap();
    let people = run(&["lookup", "-e", file, "0x1004"], b"", false).1;
    assert!(people.len() < 4_000 && people.contains("of 60000 characters left out"), "{people}");
    let programs = run(&["lookup", "-e", file, "0x1004", "--format", "json"], b"", false).1;
    assert!(programs.contains(name));
}

#[test]
fn no_escape_sequence_where_none_is_understood() {
    let report = workspace_root().join("fixtures/sample/reports/null-member.ips");
    let coloured = |environment: Environment| {
        let out = Shared::default();
        let streams = Streams {
            stdin: Box::new(io::empty()),
            stdout: Box::new(out.clone()),
            stderr: Box::new(out.clone()),
        };
        let argv = [
            "backtrail".as_ref(),
            "symbolicate".as_ref(),
            report.as_os_str(),
            "-s".as_ref(),
            Path::new("/nowhere").as_os_str(),
        ];
        backtrail_cli::run(argv.map(OsString::from).into(), &Console::new(streams, environment));
        let bytes = out.0.lock().unwrap().clone();
        bytes.contains(&0x1b)
    };
    let terminal =
        Environment { stdout_is_terminal: true, stderr_is_terminal: true, ..Environment::default() };
    assert!(coloured(terminal));
    assert!(!coloured(Environment { no_color: true, ..terminal }));
    assert!(!coloured(Environment { terminal_is_dumb: true, ..terminal }));
    assert!(coloured(Environment { clicolor_force: true, ..Environment::default() }));
}
