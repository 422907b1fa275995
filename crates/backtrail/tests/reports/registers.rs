//! Reports of the corpus whose registers tell more than their frames: which they are, and that no other one changes.

use backtrail::{Analysis, Limits, NoProgress, Symbols, Trust};
use std::path::{Path, PathBuf};

/// Report, and its added frames: number, trust, address, function where a dSYM of the corpus has it.
const ADDED: [(&str, &str); 9] = [
    ("apple/text/handcrafted.txt", "0 context 0x1090a0132"),
    (
        "crashprobe/reports/arm64/jump-into-an-nx-page.crash",
        "0 context 0x0, 1 link-register 0x2a0790 -[CRLCrashNXPage crash]",
    ),
    ("crashprobe/reports/arm64/smash-the-bottom-of-the-stack.crash", "0 context 0xa5a5a5a5"),
    ("crashprobe/reports/arm64/smash-the-top-of-the-stack.crash", "0 context 0xa5a5a5a5"),
    ("crashprobe/reports/armv7/execute-a-privileged-instruction.crash", "0 context 0xffda6cfa"),
    (
        "crashprobe/reports/armv7/jump-into-an-nx-page.crash",
        "0 context 0x0, 1 link-register 0x1fcef1 -[CRLCrashNXPage crash]",
    ),
    ("crashprobe/reports/armv7/smash-the-bottom-of-the-stack.crash", "0 context 0xa5a5a5a4"),
    ("crashprobe/reports/armv7/smash-the-top-of-the-stack.crash", "0 context 0xa5a5a5a4"),
    ("crashprobe/reports/x86_64/jump-into-an-nx-page.crash", "0 context 0x0"),
];

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

fn added(analysis: &Analysis) -> String {
    let frames = analysis.report.process.threads.iter().flat_map(|thread| &thread.frames);
    let frames = frames.filter(|frame| frame.trust != Trust::Report).map(|frame| {
        assert_eq!(frame.span, None);
        let name = frame.names().next().map(|name| format!(" {name}")).unwrap_or_default();
        format!("{} {} {}{name}", frame.index, frame.trust, frame.address.unwrap().raw())
    });
    frames.collect::<Vec<_>>().join(", ")
}

#[test]
fn frames_are_added_where_the_report_has_none_that_fits() {
    let Some(corpus) = backtrail_testkit::corpus() else { return };
    let symbols = Symbols::scan(&[corpus.join("crashprobe/dSYMs")], &NoProgress);
    let none = Symbols::scan(&[], &NoProgress);
    let mut paths = Vec::new();
    files(&corpus.join("apple"), &mut paths);
    files(&corpus.join("crashprobe/reports"), &mut paths);
    paths.sort();
    let (mut reports, mut seen) = (0, Vec::new());
    for path in paths {
        let input = std::fs::read(&path).unwrap();
        let Ok(analysis) = Analysis::new(&input, &symbols, &Limits::default()) else { continue };
        reports += 1;
        let without = Analysis::new(&input, &none, &Limits::default()).unwrap();
        assert!(without.filled_in(&input) == input, "{} came back changed", path.display());
        let added = added(&analysis);
        if !added.is_empty() {
            seen.push((path.strip_prefix(&corpus).unwrap().display().to_string(), added));
        }
    }
    assert!(reports >= 140, "{reports} reports read");
    let expected: Vec<_> =
        ADDED.iter().map(|(path, added)| ((*path).to_owned(), (*added).to_owned())).collect();
    assert_eq!(seen, expected);
}
