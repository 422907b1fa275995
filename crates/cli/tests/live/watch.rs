//! `backtrail watch`, as its users run it.

use crate::target::{CRASH, traceable};
use backtrail_testkit::TempDir;
use std::path::Path;
use std::process::{Command, ExitStatus};

fn symbolicate(report: &Path, options: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
    command.arg("symbolicate").arg(report).args(options).output().unwrap()
}

struct Watched {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    reports: Vec<std::path::PathBuf>,
}

fn watch(program: &Path, how: &str, options: &[&str]) -> Watched {
    let out = TempDir::new("watch-out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
    command.args(["watch", "--out"]).arg(out.path()).args(options).arg("--").arg(program).arg(how);
    // Some of the programs allow themselves a core, which goes to where they run.
    command.current_dir(program.parent().unwrap());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let files = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path());
    let watched = Watched {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        reports: files.collect(),
    };
    for report in &watched.reports {
        // What is printed is what anybody reads in the file.
        let printed = symbolicate(report, &[]);
        let again = text(&printed.stdout);
        if !options.contains(&"--quiet") {
            assert!(watched.stderr.contains(&again), "{}\n---\n{again}", watched.stderr);
        }
        same_as_minidump(report, &again, printed.status);
        same_as_ips(report);
    }
    watched
}

/// Other tools get what they need: a minidump of the file has the same stacks.
fn same_as_minidump(report: &Path, told: &str, status: ExitStatus) {
    let dump = report.with_extension("dmp");
    let written = symbolicate(report, &["--format", "minidump", "-o", dump.to_str().unwrap()]);
    assert_eq!(written.status, status, "{written:?}");
    let by_minidump = symbolicate(&dump, &[]);
    let by_minidump = String::from_utf8_lossy(&by_minidump.stdout);
    let stacks = |text: &str| {
        let is_frame = |line: &&str| {
            let rest = line.trim_start_matches(' ');
            (2..6).contains(&(line.len() - rest.len())) && rest.starts_with(|c: char| c.is_ascii_digit())
        };
        text.lines().filter(is_frame).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!stacks(told).is_empty(), "{told}");
    assert_eq!(stacks(told), stacks(&by_minidump), "{told}\n---\n{by_minidump}");
}

/// And so does Apple's JSON, whose rows of inlined functions stand for no frames of their own.
fn same_as_ips(report: &Path) {
    let path = report.with_extension("ips");
    let status = symbolicate(report, &["--format", "ips", "-o", path.to_str().unwrap()]).status;
    assert!(status.code().is_some_and(|code| code < 2), "{status}");
    let stacks = |file: &Path| {
        let json = symbolicate(file, &["--format", "json"]).stdout;
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let frame = |frame: &serde_json::Value| [frame["address"].clone(), frame["image"].clone()];
        let frames = |thread: &serde_json::Value| {
            let mut frames: Vec<_> = thread["frames"].as_array().unwrap().iter().map(frame).collect();
            frames.dedup();
            frames
        };
        let threads = json["threads"].as_array().unwrap();
        threads.iter().map(|thread| (thread["crashed"].clone(), frames(thread))).collect::<Vec<_>>()
    };
    let found = stacks(report);
    assert!(found.iter().any(|(_, frames)| frames.len() > 2), "{found:?}");
    assert_eq!(found, stacks(&path), "{}", path.display());
}

#[test]
fn a_crash_is_explained_and_the_programs_output_is_its_own() {
    let directory = TempDir::new("watch-crash");
    let Some(program) = traceable(&directory, CRASH, "cc", &["-O0"]) else { return };
    let segv = watch(&program, "segv", &[]);
    assert_eq!((segv.code, segv.stdout.as_str(), segv.reports.len()), (Some(128 + 11), "begun\n", 1));
    for part in
        ["crashed by signal 11", "Null pointer access at 0x18", "inner  at ", "outer  at ", "main  at "]
    {
        assert!(segv.stderr.contains(part), "{part} in\n{}", segv.stderr);
    }
    let assertion = watch(&program, "assert", &[]);
    assert_eq!((assertion.code, assertion.reports.len()), (Some(128 + 6), 1));
    if cfg!(target_env = "gnu") {
        assert!(assertion.stderr.contains("Assertion failed: how == 0"), "{}", assertion.stderr);
    }
    let fine = watch(&program, "fine", &["--on-exit", "--hang", "30000"]);
    assert_eq!((fine.code, fine.stderr.as_str(), fine.reports.len()), (Some(0), "", 0));
}

#[test]
fn an_uncaught_exception_is_told_with_its_type_and_words() {
    let directory = TempDir::new("watch-exception");
    let source = include_str!("../../../../fixtures/cores/exceptions.cc");
    let Some(program) = traceable(&directory, source, "c++", &["-O1"]) else { return };
    let own = watch(&program, "thread-own", &[]);
    assert_eq!((own.code, own.reports.len()), (Some(128 + 6), 1));
    let title = "Uncaught C++ exception: shop::OrderLost: order 4711 is lost";
    assert!(own.stderr.contains(title), "{}", own.stderr);
}

/// Text that is no pointer to text, and a throw of what is not there.
const NO_WORDS: &str = r#"
#include <exception>
#include <string>
struct NoWords : std::exception {
    const char *what() const noexcept override { return reinterpret_cast<const char *>(8); }
};
int main(int, char **arguments)
{
    if (arguments[1] == std::string("nothing"))
        throw;
    throw NoWords();
}
"#;

#[test]
fn what_ends_a_program_that_cannot_tell_its_exception_is_told() {
    let directory = TempDir::new("watch-words");
    let Some(program) = traceable(&directory, NO_WORDS, "c++", &["-O1"]) else { return };
    let nothing = watch(&program, "nothing", &[]);
    assert_eq!((nothing.code, nothing.reports.len()), (Some(128 + 6), 1));
    assert!(nothing.stderr.contains("std::terminate was called by `throw;`"), "{}", nothing.stderr);
    // The library prints what it says.
    let no_words = watch(&program, "no-words", &[]);
    assert_eq!((no_words.code, no_words.reports.len()), (Some(128 + 11), 1));
    assert!(no_words.stderr.contains("Uncaught C++ exception: NoWords"), "{}", no_words.stderr);
}

#[test]
fn a_hang_and_a_failing_exit_are_told() {
    let directory = TempDir::new("watch-hang");
    let Some(program) = traceable(&directory, CRASH, "cc", &["-O0"]) else { return };
    let hang = watch(&program, "hang", &["--hang", "500"]);
    assert_eq!((hang.code, hang.reports.len()), (Some(0), 1), "{}", hang.stderr);
    for part in ["Hang: the first thread did not run for ", "hold"] {
        assert!(hang.stderr.contains(part), "{part} in\n{}", hang.stderr);
    }
    let exit = watch(&program, "exit", &["--on-exit", "--quiet"]);
    assert_eq!((exit.code, exit.reports.len()), (Some(3), 1));
    assert_eq!(exit.stderr.lines().count(), 1, "{}", exit.stderr);
    assert!(exit.stderr.contains("ends with exit code 3"), "{}", exit.stderr);
}
