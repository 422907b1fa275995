//! 0: done. 1: done, but something was not found, or one of many could not be read. 2: nothing could be read.

use crate::run::backtrail;
use backtrail_testkit::{TempDir, workspace_root};

const IPS: &str = "fixtures/sample/reports/null-member.ips";

fn report() -> Vec<u8> {
    std::fs::read(workspace_root().join(IPS)).unwrap()
}

/// The report's header line, and `body` behind it.
fn with_body(body: &[u8]) -> Vec<u8> {
    let mut text = report();
    let header = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    text.truncate(header);
    text.extend_from_slice(body);
    text
}

/// Bytes that are nothing, the same each time.
fn garbage() -> Vec<u8> {
    (0..4000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn code(command: &str, directory: &TempDir) -> (i32, String) {
    let run = backtrail(&[command, directory.path().to_str().unwrap()]);
    (run.code, run.stderr)
}

#[test]
fn a_directory_of_garbage_is_nothing_that_could_be_read() {
    for command in ["symbolicate", "explain", "group"] {
        let directory = TempDir::new("garbage");
        for name in ["a.crash", "b.ips", "c.txt"] {
            directory.write(name, garbage());
        }
        let (code, said) = code(command, &directory);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("2 of 3 reports could not be read: "), "{said}");
        assert!(said.contains("1 of 3 reports passed over, being something else: "), "{said}");
    }
}

#[test]
fn a_directory_of_one_unreadable_report() {
    for command in ["symbolicate", "explain", "group"] {
        let directory = TempDir::new("one-unreadable");
        directory.write("a.ips", garbage());
        let (code, said) = code(command, &directory);
        assert_eq!(code, 2, "{said}");
    }
}

#[test]
fn an_unreadable_report_among_good_ones_is_counted_and_named() {
    let directory = TempDir::new("among-good");
    directory.write("good.ips", report());
    directory.write("README.md", "What these reports are.");
    let (code_without, said) = code("explain", &directory);
    assert_eq!(code_without, 0, "what is no report, and is not called one, is passed over: {said}");
    directory.write("bad.ips", garbage());
    let (code_with, said) = code("explain", &directory);
    assert_eq!(code_with, 1, "{said}");
    let last = said.lines().find(|line| line.contains("could not be read")).unwrap();
    assert!(last.contains("1 of 3 reports") && last.contains("bad.ips"), "{said}");
}

#[test]
fn a_report_that_is_cut_is_not_done() {
    let whole = report();
    for command in ["symbolicate", "explain", "group"] {
        let directory = TempDir::new("cut");
        for (name, text) in [
            ("half.ips", whole[..whole.len() / 2].to_vec()),
            ("tail.ips", whole[..whole.len() - 3].to_vec()),
            ("random.ips", with_body(&garbage())),
            ("open.ips", with_body(b"{")),
            ("empty.ips", with_body(b"")),
        ] {
            let file = directory.write(name, text);
            let run = backtrail(&[command, file.to_str().unwrap()]);
            let expected = if matches!(name, "half.ips" | "tail.ips") { 1 } else { 2 };
            assert_eq!(run.code, expected, "{command} {name}: {}", run.whole());
        }
        let (code, said) = code(command, &directory);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("3 of 5 reports could not be read"), "{said}");
        assert!(said.contains("2 of 5 reports cut or broken"), "{said}");
    }
}

#[test]
fn one_of_many_files_is_not_all_of_them() {
    let good = "fixtures/symbolize/bin/gcc-cold.elf";
    assert_eq!(backtrail(&["images", good, "README.md"]).code, 1);
    assert_eq!(backtrail(&["images", "README.md", "no/such/file"]).code, 2);
    let directory = TempDir::new("one-of-many");
    let out = format!("{}/", directory.path().display());
    let run = backtrail(&["convert", good, "README.md", "-o", &out]);
    assert_eq!(run.code, 1, "{}", run.whole());
    assert_eq!(backtrail(&["convert", "README.md", "-o", &out]).code, 2);
}

#[test]
fn frames_without_names_in_no_listed_image_are_counted() {
    let whole =
        std::fs::read_to_string(workspace_root().join("fixtures/sample/reports/null-member.crash")).unwrap();
    let (before_images, _) = whole.split_once("Binary Images:").unwrap();
    let directory = TempDir::new("no-images");
    directory.write("no-images.crash", before_images);
    let run = backtrail(&["symbolicate", directory.path().to_str().unwrap()]);
    assert_eq!(run.code, 1, "{}", run.whole());
    let missing = run.stdout.split_once("Frames without names").unwrap().1;
    assert!(missing.contains("the report has no list of images"), "{missing}");
}

#[test]
fn a_zero_byte_costs_no_report() {
    let mut bytes =
        std::fs::read(workspace_root().join("fixtures/sample/reports/null-member.crash")).unwrap();
    // In the middle of a line of a stack.
    bytes[3000] = 0;
    let directory = TempDir::new("zero-byte");
    directory.write("zero.crash", &bytes);
    let (code, said) = code("explain", &directory);
    assert_eq!(code, 0, "{said}");
}

#[cfg(unix)]
#[test]
fn links_below_a_directory_are_read_or_said_to_lead_nowhere() {
    let directory = TempDir::new("links");
    directory.write("good.ips", report());
    std::os::unix::fs::symlink(directory.join("good.ips"), directory.join("link.ips")).unwrap();
    assert_eq!(code("explain", &directory).0, 0);
    std::os::unix::fs::symlink(directory.join("absent"), directory.join("nowhere.ips")).unwrap();
    std::os::unix::fs::symlink(directory.join("loop.ips"), directory.join("loop.ips")).unwrap();
    let (code, said) = code("explain", &directory);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("2 of 4 reports could not be read"), "{said}");
}
