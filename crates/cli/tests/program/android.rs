//! Android's and Java's reports through the program, and the front end of ndk-stack.

use crate::run::{backtrail, with_input};
use backtrail_testkit::Schema;
use serde_json::Value;
use std::path::PathBuf;

const LOG: &str = "\
11-22 17:00:00.000  1  1 I other   : before
11-22 17:00:00.001  1  1 F DEBUG   : *** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***
11-22 17:00:00.001  1  1 F DEBUG   : Build fingerprint: 'm/d/d:13/ID/1:user/release-keys'
11-22 17:00:00.001  1  1 F DEBUG   : pid: 1, tid: 1, name: orders  >>> orders <<<
11-22 17:00:00.001  1  1 F DEBUG   : Abort message: 'no orders'
11-22 17:00:00.002  1  1 F DEBUG   :     #00 pc 00000000000112f8  /data/app/x/base.apk!orders (total_of+8) (BuildId: a8ddfeab095c481d72d5f54e0417876ac6dc1500)
11-22 17:00:00.002  1  1 F DEBUG   :     #01 pc 0000000000002000  /apex/lib64/libc.so (__start_thread+64)
11-22 17:00:00.003  1  1 I other   : behind
";

#[test]
fn ndk_stack_names_the_frames_of_a_log() {
    let run = with_input(&["ndk-stack", "-sym", "fixtures/stacks"], LOG.as_bytes());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines[0], "********** Crash dump: **********");
    assert_eq!(lines[1], "Build fingerprint: 'm/d/d:13/ID/1:user/release-keys'");
    assert_eq!(lines[2], "Abort message: 'no orders'");
    let head = "#00 0x00000000000112f8 /data/app/x/base.apk!orders (";
    assert!(lines[3].starts_with(head), "{}", lines[3]);
    assert_eq!(lines[4], format!("{}total_of", " ".repeat(head.len())));
    assert!(lines[5].trim_start().contains("orders.c"), "{}", lines[5]);
    assert_eq!(lines[6], "#01 0x0000000000002000 /apex/lib64/libc.so (__start_thread+64)");
    assert_eq!(lines[7], "Crash dump is completed");
    assert_eq!(lines.len(), 9);
    assert_eq!(lines[8], "");
    let file = backtrail_testkit::TempDir::new("ndk-stack");
    let path = file.path().join("log.txt");
    std::fs::write(&path, LOG).unwrap();
    for flag in ["-dump", "--dump", "-i"] {
        let of_file = backtrail(&["ndk-stack", "--sym", "fixtures/stacks", flag, path.to_str().unwrap()]);
        assert_eq!((of_file.code, &of_file.stdout), (0, &run.stdout), "{flag} {}", of_file.stderr);
    }
    let absent = backtrail(&["ndk-stack", "-sym", "no/such/directory"]);
    assert_eq!(absent.code, 1);
    assert_eq!(absent.stderr, "ndk-stack: no/such/directory does not exist!\n");
}

/// Every report of these kinds in the corpus.
fn reports() -> Vec<PathBuf> {
    let Some(corpus) = backtrail_testkit::corpus() else { return Vec::new() };
    let mut found = Vec::new();
    for directory in [
        "android",
        "kinds/android-tombstone",
        "kinds/android-tombstone-pb",
        "kinds/android-anr",
        "kinds/java",
        "kinds/java-threaddump",
    ] {
        for entry in std::fs::read_dir(corpus.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if !name.ends_with(".gz") && !name.ends_with("-metadata.txt") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 60, "{}", found.len());
    found
}

#[test]
fn every_report_in_every_form() {
    let paths = reports();
    if paths.is_empty() {
        return;
    }
    let names: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let form = |form: &'static str| [&["symbolicate", "--format", form][..], &names].concat();
    let json = backtrail(&form("json"));
    assert!(json.code < 2, "{}", json.stderr);
    assert_eq!(json.stdout.lines().count(), paths.len(), "{}", json.stderr);
    let mut schema = Schema::new();
    for line in json.stdout.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        schema.check("report", &value).unwrap();
        assert!(!value["explanation"]["title"].as_str().unwrap().is_empty());
    }
    for seen in [
        "frame).language",
        "frame).annotations",
        "frame).file_offset",
        "frame).stack_pointer",
        "thread).fields",
    ] {
        assert!(schema.has_seen(seen), "{seen} was never printed");
    }
    let text = backtrail(&form("text"));
    assert!(text.code < 2, "{}", text.stderr);
    assert!(text.stdout.contains("[GWP-ASan]") || text.stdout.contains("GWP-ASan"));
    for path in &paths {
        let original = std::fs::read(path).unwrap();
        let crash = with_input(&["symbolicate", "--format", "crash", "-"], &original);
        assert!(crash.code < 2, "{}: {}", path.display(), crash.stderr);
        if std::str::from_utf8(&original).is_ok() {
            assert!(crash.stdout.as_bytes() == original, "{} changed", path.display());
        }
    }
    let page = backtrail(&[
        "symbolicate",
        "--format",
        "html",
        names.iter().find(|name| name.contains("datadog")).unwrap(),
    ]);
    assert!(page.stdout.contains("BadView.kt:72") && page.stdout.contains("</html>"), "{}", page.stderr);
}
