//! `-o`: outputs appear whole, never over an input, and not where nothing was done.
#![cfg(unix)]

use crate::run::backtrail;
use backtrail_testkit::{TempDir, workspace_root};
use std::path::Path;

const REPORT: &str = "fixtures/sample/reports/null-member.ips";
const BINARY: &str = "fixtures/symbolize/bin/gcc-cold.elf";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A copy of a file of the repository.
fn copy(directory: &TempDir, from: &str, name: &str) -> std::path::PathBuf {
    directory.write(name, std::fs::read(workspace_root().join(from)).unwrap())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_input_is_never_written_over_by_whatever_name() {
    let directory = TempDir::new("over-input");
    let report = copy(&directory, REPORT, "a.ips");
    let binary = copy(&directory, BINARY, "program");
    let before = (std::fs::read(&report).unwrap(), std::fs::read(&binary).unwrap());
    for (original, kind) in [(&report, "report"), (&binary, "binary")] {
        std::fs::hard_link(original, directory.join(format!("{kind}-hard"))).unwrap();
        std::os::unix::fs::symlink(original, directory.join(format!("{kind}-soft"))).unwrap();
    }
    let all = names(directory.path());
    let place = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    for (input, output) in [
        ("a.ips", "a.ips"),
        ("a.ips", "report-hard"),
        ("report-soft", "a.ips"),
        ("a.ips", "report-soft"),
        ("a.ips", "../"),
    ] {
        let run = match output {
            "../" => backtrail(&["symbolicate", &place("a.ips"), "--format", "text", "-o", text(&report)]),
            _ => backtrail(&["symbolicate", &place(input), "-o", &place(output)]),
        };
        assert_eq!(run.code, 2, "{input} -o {output}: {}", run.whole());
        assert!(run.stderr.contains("one of the inputs"), "{}", run.stderr);
    }
    for output in ["program", "binary-hard", "binary-soft"] {
        for command in [
            &["convert", &place("program"), "-o", &place(output)][..],
            // A file with symbols is as much an input as the report.
            &["symbolicate", &place("a.ips"), "-s", &place("program"), "-o", &place(output)],
        ] {
            let run = backtrail(command);
            assert_eq!(run.code, 2, "{command:?}: {}", run.whole());
            assert!(run.stderr.contains("one of the inputs"), "{}", run.stderr);
        }
    }
    assert_eq!(before, (std::fs::read(&report).unwrap(), std::fs::read(&binary).unwrap()));
    assert_eq!(names(directory.path()), all);
}

#[test]
fn reports_are_not_filled_in_where_they_lie() {
    let directory = TempDir::new("over-inputs");
    let report = copy(&directory, "fixtures/sample/reports/null-member.crash", "a.crash");
    let before = std::fs::read(&report).unwrap();
    let inputs = text(directory.path());
    let run = backtrail(&["symbolicate", inputs, "--format", "crash", "-o", inputs]);
    assert_eq!(run.code, 2, "{}", run.whole());
    assert_eq!(std::fs::read(&report).unwrap(), before);
    assert_eq!(names(directory.path()), ["a.crash"]);
}

/// The debug files that answered were found in a directory, not named.
#[test]
fn what_answered_is_not_written_over() {
    let directory = TempDir::new("over-symbols");
    let inner = "Weather.app.dSYM/Contents/Resources/DWARF/Weather";
    let dwarf = copy(&directory, &format!("fixtures/sample/symbols/{inner}"), inner);
    let before = std::fs::read(&dwarf).unwrap();
    let run = backtrail(&["symbolicate", REPORT, "-s", text(directory.path()), "-o", text(&dwarf)]);
    assert_eq!(run.code, 2, "{}", run.whole());
    assert!(std::fs::read(&dwarf).unwrap() == before);
}

#[test]
fn where_nothing_is_done_nothing_changes() {
    let directory = TempDir::new("not-done");
    let old = directory.write("old", "what was there");
    let (old, new) = (text(&old), directory.join("new"));
    let new = text(&new);
    let below = format!("{new}/");
    for output in [old, new, &below] {
        for command in [
            &["symbolicate", "no/such/report", "-o", output][..],
            &["symbolicate", "README.md", "-o", output],
            &["symbolicate", REPORT, "--format", "pdf", "-o", output],
            &["convert", "no/such/file", "-o", output],
            &["convert", "README.md", "-o", output],
        ] {
            let run = backtrail(command);
            assert_eq!(run.code, 2, "{command:?}: {}", run.whole());
            assert_eq!(names(directory.path()), ["old"], "{command:?}");
            assert_eq!(std::fs::read(old).unwrap(), b"what was there", "{command:?}");
        }
    }
    let html = backtrail(&["symbolicate", "fixtures/sample/reports", "--format", "html", "-o", old]);
    assert_eq!((html.code, std::fs::read(old).unwrap()), (2, b"what was there".to_vec()));
}

#[test]
fn inputs_of_one_name_have_an_output_each() {
    let directory = TempDir::new("one-name");
    let reports = ["x/a.ips", "y/a.ips", "z/a-2.ips", "z/b.ips"].map(|name| copy(&directory, REPORT, name));
    let out = directory.join("out/");
    let mut command = vec!["symbolicate", "--format", "json", "-o", text(&out)];
    command.extend(reports.iter().map(|path| text(path)));
    // The path that `join` makes has no separator at its end.
    let out = format!("{}/", directory.join("out").display());
    command[4] = &out;
    assert!(backtrail(&command).code < 2);
    assert_eq!(names(Path::new(&out)), ["a-2.json", "b.json", "x-a.ips.json", "y-a.ips.json"]);
}

#[test]
fn devices_and_pipes_are_written_to_as_they_are() {
    use std::os::unix::fs::FileTypeExt as _;
    let direct = backtrail(&["symbolicate", REPORT]);
    for device in ["/dev/stdout", "/dev/fd/1"] {
        let run = backtrail(&["symbolicate", REPORT, "-o", device]);
        assert_eq!((run.code, run.stdout), (direct.code, direct.stdout.clone()), "{device}: {}", run.stderr);
    }
    assert!(backtrail(&["symbolicate", REPORT, "-o", "/dev/null"]).code < 2);
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let full = backtrail(&["symbolicate", REPORT, "-o", "/dev/full"]);
    assert_eq!(full.code, 2, "{}", full.whole());
    assert!(full.stderr.contains("cannot write /dev/full"), "{}", full.stderr);

    let directory = TempDir::new("pipe-output");
    let pipe = directory.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    assert!(backtrail(&["symbolicate", REPORT, "-o", text(&pipe)]).code < 2);
    assert_eq!(String::from_utf8_lossy(&reader.join().unwrap()), direct.stdout);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_table_goes_to_a_pipe_whole() {
    let directory = TempDir::new("table-to-pipe");
    let file = directory.join("table");
    assert_eq!(backtrail(&["convert", BINARY, "-o", text(&file)]).code, 0);
    let script = "\"$0\" convert \"$1\" -o /dev/stdout | cmp - \"$2\"";
    let mut command = std::process::Command::new("bash");
    command.args(["-o", "pipefail", "-c", script, env!("CARGO_BIN_EXE_backtrail"), BINARY, text(&file)]);
    let output = command.current_dir(workspace_root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output: x86_64"));
}

/// `>>` opens the file to be added to, and `/dev/stdout` is that file.
#[test]
fn what_a_shell_opened_is_not_replaced() {
    let directory = TempDir::new("append");
    let log = directory.write("log", "before\n");
    let script = "\"$0\" symbolicate \"$1\" -o /dev/stdout >>\"$2\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_backtrail"), REPORT, text(&log)]);
    assert!(command.current_dir(workspace_root()).status().unwrap().code().unwrap() < 2);
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(written.starts_with("before\n") && written.len() > 100, "{written}");
}

#[test]
fn a_report_called_index_leaves_its_place_to_the_index() {
    let directory = TempDir::new("index");
    let report = std::fs::read(workspace_root().join("fixtures/sample/reports/null-member.ips")).unwrap();
    directory.write("in/index.ips", &report);
    directory.write("in/other.ips", &report);
    let input = directory.join("in");
    let output = format!("{}/", directory.join("out").display());
    let run = backtrail(&["symbolicate", input.to_str().unwrap(), "--format", "html", "-o", &output]);
    assert!(run.code < 2, "{}", run.whole());
    let index = std::fs::read_to_string(directory.join("out/index.html")).unwrap();
    assert!(index.contains("index.ips.html") && index.contains("other.html"), "{index}");
}

#[test]
fn a_dash_is_standard_output() {
    let report = "fixtures/sample/reports/null-member.ips";
    let run = backtrail(&["symbolicate", report, "-o", "-"]);
    assert!(!workspace_root().join("-").exists());
    assert_eq!(run.stdout, backtrail(&["symbolicate", report]).stdout);
}
