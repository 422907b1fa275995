//! Reports in archives, packed, pasted, and several in a file.

use crate::run::{backtrail, with_input};
use backtrail_testkit::{TempDir, assert_snapshot, workspace_root};
use serde_json::Value;
use std::io::{Cursor, Write as _};
use std::process::{Command, Stdio};
use zip::write::{SimpleFileOptions, ZipWriter};

const REPORT: &str = "fixtures/sample/reports/null-member.crash";
const TITLE: &str = "Null pointer access: read at 0x10";

fn report() -> Vec<u8> {
    std::fs::read(workspace_root().join(REPORT)).unwrap()
}

fn ips() -> Vec<u8> {
    std::fs::read(workspace_root().join("fixtures/sample/reports/null-member.ips")).unwrap()
}

/// Packed by a program; `None`, with a line that says so, where it is not installed.
fn packed(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new(program).arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("{program} not checked: it is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(*name, SimpleFileOptions::DEFAULT).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// What each line of JSON says of its file and its part, and the title.
fn origins(json: &str) -> Vec<(String, Option<u64>, String)> {
    let origin = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let file = value["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        (file, value["part"].as_u64(), value["explanation"]["title"].as_str().unwrap().to_owned())
    };
    json.lines().map(origin).collect()
}

#[test]
fn packed_reports_are_unpacked() {
    let directory = TempDir::new("packed");
    for (program, name) in [("gzip", "a.gz"), ("zstd", "a.zst"), ("xz", "a.xz")] {
        let Some(bytes) = packed(program, &report()) else { continue };
        let file = directory.write(name, &bytes);
        let file = file.to_str().unwrap();
        for run in [backtrail(&["explain", file]), with_input(&["explain", "-"], &bytes)] {
            assert_eq!(run.code, 0, "{name}: {}", run.stderr);
            assert!(run.stdout.starts_with(TITLE), "{name}: {}", run.stdout);
        }
        // The report itself comes out as it went in.
        let run = backtrail(&["symbolicate", "--format", "crash", file]);
        assert!(run.stdout.as_bytes() == report(), "{name}");
        let cut = directory.write("cut.gz", &bytes[..bytes.len() / 3]);
        let run = backtrail(&["explain", cut.to_str().unwrap()]);
        assert!(run.code > 0, "{name}: a report that is cut is not done");
    }
}

#[test]
fn members_of_an_archive_are_reports_of_their_own() {
    let directory = TempDir::new("archive");
    let (text, json) = (report(), ips());
    let members: [(&str, &[u8]); 5] = [
        ("one.crash", &text),
        ("below/two.ips", &json),
        ("broken.ips", b"{\"bug_type\":\"309\"}"),
        ("App.dSYM/Contents/Info.plist", b"<plist>"),
        ("notes.txt", b"What these reports are."),
    ];
    let bytes = zipped(&members);
    let file = directory.write("reports.zip", &bytes);
    let run = backtrail(&["explain", "--format", "json", file.to_str().unwrap()]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let expected = [("reports.zip!one.crash", None), ("two.ips", None)];
    let expected = expected.map(|(name, part)| (name.to_owned(), part, TITLE.to_owned()));
    assert_eq!(origins(&run.stdout), expected);
    assert!(run.stderr.contains("1 of 4 reports could not be read: "), "{}", run.stderr);
    assert!(run.stderr.contains("reports.zip!broken.ips"), "{}", run.stderr);
    assert!(run.stderr.contains("1 of 4 reports passed over, being something else: "), "{}", run.stderr);
    let run = with_input(&["explain", "--format", "json", "-"], &bytes);
    assert_eq!(origins(&run.stdout)[0].0, "standard input!one.crash");
    let out = format!("{}/out/", directory.path().display());
    let run = backtrail(&["symbolicate", file.to_str().unwrap(), "-o", &out]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let mut names: Vec<_> =
        std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["one.txt", "two.txt"]);
    // Cut off, an archive has no directory.
    let cut = directory.write("cut.zip", &bytes[..bytes.len() / 2]);
    let run = backtrail(&["explain", cut.to_str().unwrap()]);
    assert_eq!(run.code, 2, "{}", run.stdout);
    assert!(run.stderr.contains("cut.zip: "), "{}", run.stderr);
}

#[test]
fn several_reports_in_a_file_are_several() {
    let directory = TempDir::new("several");
    let (text, json) = (report(), ips());
    let both = [&text[..], &text].concat();
    let two = [&json[..], b"\n", &json].concat();
    for (bytes, name) in [(&both, "two.crash"), (&two, "two.ips")] {
        let file = directory.write(name, bytes);
        let run = backtrail(&["symbolicate", "--format", "json", file.to_str().unwrap()]);
        let expected = [1, 2].map(|part| (name.to_owned(), Some(part), TITLE.to_owned()));
        assert_eq!(origins(&run.stdout), expected, "{}", run.stderr);
        let run = backtrail(&["symbolicate", "--format", "crash", file.to_str().unwrap()]);
        assert!(run.stdout.as_bytes() == bytes.as_slice(), "{name}");
        let run = backtrail(&["symbolicate", file.to_str().unwrap()]);
        assert!(run.stdout.contains(&format!("{name}, report 2 <==")), "{}", run.stdout);
        let out = format!("{}/out-{name}/", directory.path().display());
        backtrail(&["symbolicate", "--format", "html", file.to_str().unwrap(), "-o", &out]);
        let mut names: Vec<_> =
            std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["index.html", "two-2.html", "two.html"]);
        let run = backtrail(&["symbolicate", "--format", "html", file.to_str().unwrap()]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("need a directory"), "{}", run.stderr);
    }
}

#[test]
fn pasted_reports_read_as_they_were() {
    let plain = with_input(&["explain", "-"], &report()).stdout;
    let text = String::from_utf8(report()).unwrap();
    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
    let escaped = text.replace('<', "&lt;").replace('>', "&gt;");
    for pasted in
        [quoted, format!("```\n{text}```\n"), format!("<pre>{escaped}</pre>\n"), text.replace('\n', "\r\n")]
    {
        let run = with_input(&["explain", "-"], pasted.as_bytes());
        assert_eq!(run.stdout, plain, "{pasted}");
    }
}

#[test]
fn a_summary_is_a_line_for_each_report() {
    let symbols = "fixtures/sample/symbols";
    let run = backtrail(&["symbolicate", "fixtures/sample/reports", "-s", symbols, "--format", "summary"]);
    assert_eq!(run.stdout.lines().count(), 10, "{}", run.stdout);
    assert!(run.stdout.lines().all(|line| line.split('\t').count() == 4), "{}", run.stdout);
    assert_snapshot(workspace_root().join("crates/cli/tests/program/snapshots/summary.txt"), &run.whole());
}

#[test]
fn cores_are_reports_too() {
    let core = "fixtures/stacks/orders.core";
    let run = backtrail(&["symbolicate", core, "-s", "fixtures/stacks", "--format", "json"]);
    let value: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(value["kind"], "elf-core");
    assert!(!value["explanation"]["title"].as_str().unwrap().is_empty());
    assert!(!value["threads"].as_array().unwrap().is_empty());
    let bytes = std::fs::read(workspace_root().join(core)).unwrap();
    let piped = with_input(&["explain", "-"], &bytes);
    assert_eq!(piped.stdout, backtrail(&["explain", core]).stdout, "{}", piped.stderr);
    let run = backtrail(&["symbolicate", core, "--format", "crash"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("has no rows to fill in"), "{}", run.stderr);
}

/// As an app bundle (`.aab`) has it.
#[test]
fn a_mapping_file_in_a_zip_names_javas_frames() {
    const MAPPING: &[u8] = b"# compiler: R8\n# pg_map_id: 1a2b3c4\ncom.example.Cart -> a.b:\n    1:1:int total(int):10:10 -> c\n";
    let directory = TempDir::new("bundle");
    let member = "BUNDLE-METADATA/com.android.tools.build.obfuscation/proguard.map";
    let members: [(&str, &[u8]); 2] = [("base/dex/classes.dex", b"dex\n035"), (member, MAPPING)];
    let bundle = directory.write("app.aab", zipped(&members));
    let trace = b"java.lang.Error: empty\n\tat a.b.c(r8-map-id-1a2b3c4:1)\n";
    let run = with_input(&["symbolicate", "-", "-s", bundle.to_str().unwrap()], trace);
    assert!(run.stdout.contains("com.example.Cart.total"), "{}", run.stdout);
    let other = b"java.lang.Error: empty\n\tat a.b.c(r8-map-id-9999999:1)\n";
    let run = with_input(&["symbolicate", "-", "-s", bundle.to_str().unwrap()], other);
    assert!(run.stdout.contains("proguard.map: refused: the report states map id 9999999"), "{}", run.stdout);
}
