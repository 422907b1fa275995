//! The reports that this repository ships: both forms of each tell the same, and come back as they were.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails")]

use backtrail_core::FrameAddress;
use backtrail_model::{Frame, Report};
use backtrail_report::{Limits, emit, parse};
use std::path::Path;

fn read(path: &Path) -> Report {
    let input = std::fs::read(path).unwrap();
    let report =
        parse(&input, &Limits::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(emit(&input, &report) == input, "{}", path.display());
    assert_eq!(report.notes, Vec::<String>::new(), "{}", path.display());
    report
}

type Row = (u32, Option<FrameAddress>, Option<String>);

fn rows(report: &Report, frames: &[Frame]) -> Vec<Row> {
    let name = |position: usize| report.process.images.get(position).map(|image| image.name.clone());
    frames.iter().map(|frame| (frame.index, frame.address, frame.image.and_then(name))).collect()
}

#[test]
fn both_forms_of_each_report_agree() {
    let directory = backtrail_testkit::fixtures().join("sample/reports");
    let mut pairs = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "crash") {
            continue;
        }
        let (text, json) = (read(&path), read(&path.with_extension("ips")));
        let place = path.display();
        for (a, b) in text.process.threads.iter().zip(&json.process.threads) {
            assert_eq!(rows(&text, &a.frames), rows(&json, &b.frames), "{place}");
            assert_eq!((&a.name, &a.queue, a.crashed), (&b.name, &b.queue, b.crashed), "{place}");
            let values = |thread: &backtrail_model::Thread| -> Vec<(String, u64)> {
                let mut values: Vec<_> = thread.registers.iter().map(|r| (r.name.clone(), r.value)).collect();
                values.sort();
                values
            };
            let (a, b) = (values(a), values(b));
            assert!(a.iter().all(|value| b.contains(value) || value.0 == "rfl"), "{place}: {a:?} {b:?}");
        }
        assert_eq!(text.process.threads.len(), json.process.threads.len(), "{place}");
        assert_eq!(text.process.backtraces.len(), json.process.backtraces.len(), "{place}");
        for (a, b) in text.process.backtraces.iter().zip(&json.process.backtraces) {
            assert_eq!(rows(&text, &a.frames), rows(&json, &b.frames), "{place}");
            assert_eq!(a.is_exception, b.is_exception, "{place}");
        }
        let verdict = |report: &Report| {
            let exception = report.exception.clone().unwrap();
            let termination = report.termination.clone().unwrap();
            let raised = (exception.kind, exception.signal, exception.address, exception.raw_codes);
            let ended = (termination.namespace, termination.code, termination.by_process, termination.by_pid);
            (raised, ended, report.process.crashed_thread)
        };
        assert_eq!(verdict(&text), verdict(&json), "{place}");
        pairs += 1;
    }
    assert!(pairs >= 5);
}
