//! Standard streams that are full, closed or slow, and terminals that know nothing.
#![cfg(target_os = "linux")]

use crate::run::{backtrail, with_input};
use backtrail_testkit::{TempDir, workspace_root};
use std::process::{Command, Output, Stdio};

const REPORT: &str = "fixtures/sample/reports/null-member.ips";
const BINARY: &str = "fixtures/symbolize/bin/gcc-cold.elf";

/// Runs a line of shell with `$0` as the program.
fn shell(line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line, env!("CARGO_BIN_EXE_backtrail")]).current_dir(workspace_root());
    command.stdin(Stdio::null()).output().unwrap()
}

fn every_command() -> Vec<String> {
    let commands = [
        "symbolicate REPORT",
        "symbolicate no/such/report REPORT",
        "symbolicate REPORT --format html",
        "symbolicate REPORT --format crash",
        "explain no/such/report REPORT",
        "lookup -e BINARY 0x1000 zebra",
        "lookup -e BINARY 0x1000 --format json",
        "stacks --core fixtures/stacks/orders.core",
        "images no/such/file BINARY",
        "cfi BINARY",
        "demangle _Z3foov",
        "addr2line --version",
        "addr2line -e BINARY 0x1000",
        "atos -o BINARY 0x1000",
        "--help",
        "stacks --help",
        "--version",
        "nonsense",
        "addr2line --nonsense",
        "",
    ];
    commands.map(|command| command.replace("REPORT", REPORT).replace("BINARY", BINARY)).into()
}

#[test]
fn a_full_or_closed_stderr_costs_no_result() {
    for command in every_command() {
        let expected = shell(&format!("\"$0\" {command}"));
        for stderr in ["2>/dev/full", "2>&-"] {
            let output = shell(&format!("\"$0\" {command} {stderr}"));
            assert_eq!(output.status.code(), expected.status.code(), "{command} {stderr}");
            assert!(output.stdout == expected.stdout, "{command} {stderr}");
        }
    }
}

#[test]
fn a_full_stdout_is_said() {
    for command in every_command() {
        let expected = shell(&format!("\"$0\" {command}"));
        let output = shell(&format!("\"$0\" {command} >/dev/full"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if expected.stdout.is_empty() {
            assert_eq!(output.status.code(), expected.status.code(), "{command}: {said}");
            continue;
        }
        let is_alias = command.starts_with("addr2line") || command.starts_with("atos");
        assert_eq!(output.status.code(), Some(if is_alias { 1 } else { 2 }), "{command}: {said}");
        assert!(said.contains("cannot write the output"), "{command}: {said}");
        let nobody_hears = shell(&format!("\"$0\" {command} >/dev/full 2>/dev/full"));
        assert_eq!(nobody_hears.status.code(), output.status.code(), "{command}");
    }
}

#[test]
fn closed_streams_are_no_panic() {
    for command in every_command() {
        for streams in [">&-", ">&- 2>&-", ">&- 2>&- <&-", "| true", "2>&1 | true"] {
            let output = shell(&format!("\"$0\" {command} {streams}"));
            let code = output.status.code();
            assert!(code.is_some_and(|code| code <= 2), "{command} {streams}: {code:?}");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{command} {streams}");
        }
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_is_refused() {
    let directory = TempDir::new("pipes");
    let pipe = directory.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for command in [
        &["symbolicate", pipe][..],
        &["explain", pipe],
        &["symbolicate", REPORT, "-s", pipe],
        &["lookup", "-e", pipe, "0x1000"],
        &["lookup", "-e", BINARY, "-s", pipe, "0x1000"],
        &["stacks", "--core", pipe],
        &["stacks", "--minidump", pipe],
        &["images", pipe],
        &["cfi", pipe],
        &["convert", pipe],
        &["addr2line", "-e", pipe, "0x1000"],
        &["atos", "-o", pipe, "0x1000"],
        &["atos", "-o", BINARY, "-f", pipe],
    ] {
        let run = backtrail(command);
        assert!(matches!(run.code, 1 | 2), "{command:?}: {}", run.whole());
        assert!(run.stderr.contains("is a named pipe"), "{command:?}: {}", run.stderr);
    }
    let options = format!("@{pipe}");
    assert_eq!(backtrail(&["addr2line", "-e", BINARY, &options]).stdout, "??:0\n");
}

#[test]
fn pipes_of_the_shell_are_inputs() {
    let text = std::fs::read(workspace_root().join(REPORT)).unwrap();
    let direct = with_input(&["explain", "-"], &text);
    for name in ["/dev/stdin", "/dev/fd/0"] {
        let run = with_input(&["explain", name], &text);
        assert_eq!((run.code, run.stdout), (direct.code, direct.stdout.clone()), "{}", run.stderr);
    }
}

#[test]
fn paths_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let directory = TempDir::new("not-utf-8");
    let path = directory.path().join(std::ffi::OsStr::from_bytes(b"pro\xffgram"));
    std::fs::copy(workspace_root().join(BINARY), &path).unwrap();
    let run = |arguments: &[&std::ffi::OsStr]| {
        Command::new(env!("CARGO_BIN_EXE_backtrail")).args(arguments).stdin(Stdio::null()).output().unwrap()
    };
    let os = std::ffi::OsStr::new;
    let mut options = b"-e ".to_vec();
    options.extend_from_slice(path.as_os_str().as_bytes());
    options.extend_from_slice(b" 0x1000");
    let options = directory.write("options", options);
    let at = std::ffi::OsString::from(format!("@{}", options.display()));
    for arguments in [
        &[os("addr2line"), os("-e"), path.as_os_str(), os("0x1000")][..],
        &[os("addr2line"), &at],
        &[os("atos"), os("-o"), path.as_os_str(), os("0x1000")],
        &[os("lookup"), os("-e"), path.as_os_str(), os("0x1000")],
        &[os("images"), path.as_os_str()],
        &[os("cfi"), path.as_os_str()],
    ] {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().unwrap() < 2 && !output.stdout.is_empty(), "{arguments:?}: {said}");
        assert!(said.is_empty(), "{arguments:?}: {said}");
    }
    let demangled = run(&[os("demangle"), os("_Z1fv"), os("x"), std::ffi::OsStr::from_bytes(b"\xff")]);
    assert_eq!(demangled.stdout, b"f()\nx\n\xff\n");
}
