//! Conversions that do not come to their end: what has the final name is whole, whatever happened.
#![cfg(target_os = "linux")]

use crate::run::backtrail;
use backtrail_testkit::{Elf, ElfSection, ElfSymbol, TempDir, workspace_root};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_backtrail");
const FORMATS: [&str; 3] = ["btsym", "gsym", "breakpad"];
const BINARY: &str = "fixtures/symbolize/bin/gcc-cold.elf";

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a line of shell with `$0` as the program and the rest as `$1`…
fn shell(line: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line, PROGRAM]).args(arguments).current_dir(workspace_root());
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn out_of_space_leaves_what_was_there() {
    // A file may not grow past so many blocks of 512 bytes: like a full disk, at every point of the writing.
    let limited = "ulimit -f $1 && trap '' XFSZ && exec \"$0\" convert \"$2\" -o \"$3\" --format $4";
    let killed = "ulimit -c 0; ulimit -f $1 && exec \"$0\" convert \"$2\" -o \"$3\" --format $4";
    for format in FORMATS {
        let directory = TempDir::new("out-of-space");
        let out = directory.write("out", "what was there");
        let out = out.to_str().unwrap();
        let mut failures = 0;
        for blocks in 0.. {
            for line in [limited, killed] {
                let output = shell(line, &[&blocks.to_string(), BINARY, out, format]);
                let told = String::from_utf8_lossy(&output.stderr).into_owned();
                if output.status.success() {
                    break;
                }
                failures += 1;
                if line == limited {
                    assert_eq!(output.status.code(), Some(2), "{told}");
                    assert!(told.contains(out) && told.contains("cannot write"), "{told}");
                }
                assert_eq!(names(directory.path()), ["out"], "{format}, {blocks} blocks");
                assert_eq!(std::fs::read(out).unwrap(), b"what was there");
            }
            if std::fs::read(out).unwrap() != b"what was there" {
                break;
            }
        }
        assert!(failures > 2, "{format}: {failures}");
        assert_eq!(names(directory.path()), ["out"]);
        assert_eq!(
            backtrail(&["lookup", "-e", out, "0x1005"]).code,
            backtrail(&["lookup", "-e", BINARY, "0x1005"]).code
        );
    }
}

/// A small file system of its own, where namespaces of mounts are allowed.
#[test]
fn a_full_or_read_only_disk_leaves_nothing() {
    let directory = TempDir::new("full-disk");
    let place = directory.create_dir("disk");
    let place = place.to_str().unwrap();
    let input = many_symbols(&directory, 4_000);
    let input = input.to_str().unwrap();
    let mount = |options: &str, line: &str| {
        let script =
            format!("mount -t tmpfs -o {options} none \"$2\" && {line}; code=$?; ls -A \"$2\"; exit $code");
        shell(&format!("exec unshare -rm sh -c '{script}' \"$0\" \"$@\""), &[input, place])
    };
    let allowed = mount("size=64k", "true");
    if !allowed.status.success() {
        eprintln!(
            "no mounts here ({}): not tested on a full disk",
            String::from_utf8_lossy(&allowed.stderr).trim()
        );
        return;
    }
    // The table itself, and what is made from it, do not fit in; nor does a name in a directory that is read-only.
    for (options, format) in [
        ("size=8k", "btsym"),
        ("size=64k", "gsym"),
        ("size=64k", "breakpad"),
        ("ro", "btsym"),
        ("ro", "breakpad"),
    ] {
        let output = mount(options, &format!("\"$0\" convert \"$1\" -o \"$2/out\" --format {format}"));
        let (told, left) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(2), "{options} {format}: {told}");
        assert!(told.contains("cannot write"), "{options} {format}: {told}");
        assert_eq!(left, "", "{options} {format}");
    }
}

/// A program with so many symbols that converting it takes a while.
fn many_symbols(directory: &TempDir, count: u32) -> PathBuf {
    let mut elf = Elf::default();
    let symbols: Vec<_> = (0..count)
        .map(|number| ElfSymbol {
            name: ["alpha", "beta", "gamma", "delta"][number as usize % 4],
            value: 0x1000 + u64::from(number) * 37,
            size: 29,
            kind: 2,
            binding: 1,
            section: 1,
        })
        .collect();
    let (table, names) = elf.symbol_table(&symbols);
    let text = ElfSection {
        name: ".text",
        kind: 1,
        flags: 6,
        address: 0x1000,
        data: vec![0x90; count as usize * 37],
        ..ElfSection::default()
    };
    let symtab =
        ElfSection { name: ".symtab", kind: 2, data: table, link: 3, info: 1, ..ElfSection::default() };
    let strtab = ElfSection { name: ".strtab", kind: 3, data: names, ..ElfSection::default() };
    elf.sections = vec![text, symtab, strtab];
    directory.write("input/many", elf.build())
}

fn start(input: &Path, out: &Path, format: &str) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["convert", "--verify", "--format", format]).arg(input).arg("-o").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until a process has begun to write: a file without a name, or with a passing one.
fn wait_for_file(child: &mut Child, directory: &Path) -> bool {
    let descriptors = format!("/proc/{}/fd", child.id());
    let directory_text = directory.to_str().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end && child.try_wait().unwrap().is_none() {
        let open = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let is_in_directory =
            |path: PathBuf| path.parent().is_some_and(|parent| parent.to_str() == Some(directory_text));
        if targets.any(is_in_directory) {
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    false
}

#[test]
fn interrupted_runs_leave_nothing_and_do_not_disturb_the_next() {
    let directory = TempDir::new("interrupted");
    let input = many_symbols(&directory, 60_000);
    for format in FORMATS {
        let place = directory.create_dir(format);
        let out = place.join("out");
        let mut caught = 0;
        for signal in ["INT", "KILL", "TERM"] {
            for pause in [0, 5, 30] {
                let mut child = start(&input, &out, format);
                let is_writing = wait_for_file(&mut child, &place);
                std::thread::sleep(Duration::from_millis(pause));
                let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).output();
                assert!(sent.is_ok());
                let status = child.wait().unwrap();
                if status.success() {
                    // It was quicker than the signal.
                    std::fs::remove_file(&out).unwrap();
                } else if is_writing {
                    caught += 1;
                    assert!(!out.exists(), "{format} {signal}: {status}");
                }
                let left = names(&place);
                assert!(left.iter().all(|name| name.ends_with(".part")), "{left:?}");
            }
        }
        assert!(caught >= 3, "{format}: {caught} of 9 were caught in the middle");
        assert!(start(&input, &out, format).wait().unwrap().success());
        let address = format!("{:#x}", 0x1000 + 37 * 59_999);
        let run = backtrail(&["lookup", "-e", out.to_str().unwrap(), &address]);
        assert_eq!(run.code, 0, "{}", run.whole());
    }
}

#[test]
fn several_at_once_leave_one_whole_file() {
    let directory = TempDir::new("at-once");
    let input = many_symbols(&directory, 2_000);
    for format in FORMATS {
        let place = directory.create_dir(format);
        let (alone, out) = (place.join("alone"), place.join("out"));
        assert!(start(&input, &alone, format).wait().unwrap().success());
        let children: Vec<_> = (0..6).map(|_| start(&input, &out, format)).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert!(std::fs::read(&out).unwrap() == std::fs::read(&alone).unwrap(), "{format}");
        assert_eq!(names(&place), ["alone", "out"]);
    }
}

#[test]
fn devices_are_not_replaced() {
    let run = backtrail(&["convert", BINARY, "-o", "/dev/full"]);
    assert_eq!(run.code, 2, "{}", run.whole());
    assert!(run.stderr.contains("cannot write"), "{}", run.stderr);
    let run = backtrail(&["convert", BINARY, "-o", "/dev/null"]);
    assert_eq!(run.code, 0, "{}", run.whole());
    use std::os::unix::fs::FileTypeExt as _;
    for device in ["/dev/full", "/dev/null"] {
        assert!(std::fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
    }
}
