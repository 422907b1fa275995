//! What strangers send: every case ends with a message that says what and where, and the right exit code.

use crate::run::{backtrail, with_input};
use backtrail_testkit::{TempDir, workspace_root};

const REPORT: &str = "fixtures/sample/reports/null-member.ips";

#[test]
fn what_is_no_report_is_said_with_its_place() {
    let directory = TempDir::new("no-reports");
    let cases: [(&str, &[u8]); 5] = [
        ("empty.crash", b""),
        ("binary.crash", &[0, 159, 146, 150, 7, 0, 1, 2]),
        ("words.crash", b"these are words, not a report\n"),
        ("object.ips", b"{\"bug_type\":\"309\"}\n{\"threads\":["),
        ("deep.ips", &[b'['; 100_000]),
    ];
    for (name, bytes) in cases {
        let path = directory.write(name, bytes);
        let run = backtrail(&["symbolicate", path.to_str().unwrap()]);
        assert_eq!(run.code, 2, "{name}: {}", run.whole());
        assert_eq!(run.stdout, "", "{name}");
        assert!(run.stderr.starts_with("backtrail: ") && run.stderr.contains(name), "{name}: {}", run.stderr);
    }
}

#[test]
fn one_unreadable_report_does_not_stop_the_rest() {
    let directory = TempDir::new("one-bad");
    let bad = directory.write("bad.crash", "nothing of a report\n");
    let run = backtrail(&[
        "symbolicate",
        bad.to_str().unwrap(),
        REPORT,
        "--format",
        "json",
        "-s",
        "fixtures/sample/symbols",
    ]);
    assert_eq!(run.code, 1);
    assert_eq!(run.stdout.lines().count(), 1);
    assert!(run.stderr.contains("1 of 2 reports could not be read: "), "{}", run.stderr);
    assert_eq!(run.stderr.matches("bad.crash").count(), 2, "{}", run.stderr);
}

#[test]
fn a_report_cut_anywhere_is_read_as_far_as_it_goes() {
    for ending in ["crash", "ips"] {
        let path = workspace_root().join(format!("fixtures/sample/reports/null-member.{ending}"));
        let whole = std::fs::read(path).unwrap();
        for tenth in 0..10 {
            let run = with_input(&["symbolicate", "-"], &whole[..whole.len() * tenth / 10]);
            let told = if run.code == 2 { run.stderr } else { run.stdout };
            assert!(!told.is_empty(), "{ending} cut at {tenth}/10 says nothing");
        }
    }
}

#[test]
fn a_debug_file_cut_in_half_is_named_and_the_rest_goes_on() {
    let directory = TempDir::new("half");
    let inner = "Weather.app.dSYM/Contents/Resources/DWARF/Weather";
    let whole = std::fs::read(workspace_root().join("fixtures/sample/symbols").join(inner)).unwrap();
    directory.write(inner, &whole[..whole.len() / 2]);
    let symbols = directory.path().to_str().unwrap();
    let run = backtrail(&["symbolicate", REPORT, "-s", symbols]);
    assert!(run.code < 2, "{}", run.whole());
    assert!(run.whole().contains("DWARF/Weather: "), "{}", run.whole());
    assert!(run.stdout.contains("UIApplicationMain"), "{}", run.stdout);
}

#[cfg(unix)]
#[test]
fn link_loops_and_pipes_in_the_symbols_directory_end() {
    let directory = TempDir::new("loops");
    directory.create_dir("a/b");
    std::os::unix::fs::symlink(directory.path(), directory.join("a/b/up")).unwrap();
    std::os::unix::fs::symlink(directory.join("a"), directory.join("a/self")).unwrap();
    let symbols = directory.path().to_str().unwrap();
    let run = backtrail(&["symbolicate", REPORT, "-s", symbols]);
    assert_eq!(run.code, 1, "{}", run.whole());
}

#[test]
fn wrong_usage_is_two() {
    for arguments in [
        &["symbolicate"][..],
        &["symbolicate", REPORT, "--format", "pdf"],
        &["lookup", "0x10"],
        &["lookup", "-e", "no/such/file", "0x10"],
        &["lookup", "-e", "fixtures/sample/symbols/Weather.app.dSYM", "--arch", "m68k", "0x10"],
        &["lookup", "-e", "fixtures/sample/symbols/Weather.app.dSYM", "--arch", "armv7", "0x10"],
        &["images", "README.md"],
        &["symbolicate", "fixtures/sample/reports", "--format", "html"],
        &["nonsense"],
    ] {
        let run = backtrail(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.whole());
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error() {
    let program = env!("CARGO_BIN_EXE_backtrail");
    let script = format!(
        "{program} symbolicate fixtures/sample/reports --format json | head -c 100 >/dev/null; exit ${{PIPESTATUS[0]}}"
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(workspace_root())
        .output()
        .unwrap();
    assert!(output.status.code().unwrap() < 2, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

/// What is read whole ends, whatever it is.
#[test]
#[cfg(unix)]
fn devices_that_never_end_are_refused() {
    let (endless, report) = ("/dev/zero", REPORT);
    for arguments in [
        &["group", report, "--diff", endless][..],
        &["group", report, "--state", endless],
        &["group", report, "--sessions", endless],
        &["stacks", "--core", "fixtures/stacks/orders.core", "--diff", endless],
        &["atos", "-o", "fixtures/sample/app/Weather.app/Weather", "-f", endless],
    ] {
        let run = backtrail(arguments);
        assert!(run.code != 0 && run.code < 3, "{arguments:?}: {}", run.whole());
        assert!(run.stderr.contains("larger than"), "{arguments:?}: {}", run.whole());
    }
}
