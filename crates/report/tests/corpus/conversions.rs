//! `AppleConverted.log` is what another tool made of `AppleJson.ips`.

use crate::read;
use backtrail_core::FrameAddress;
use backtrail_model::Report;

type Row = (u32, Option<FrameAddress>, Option<usize>);

fn stacks(report: &Report) -> Vec<Vec<Row>> {
    let rows = |thread: &backtrail_model::Thread| {
        thread.frames.iter().map(|frame| (frame.index, frame.address, frame.image)).collect()
    };
    report.process.threads.iter().map(rows).collect()
}

#[test]
fn the_other_tools_text_says_the_same() {
    let json = backtrail_testkit::corpus_file("apple/ips/AppleJson.ips");
    let text = backtrail_testkit::corpus_file("apple/ips/AppleConverted.log");
    let (Some(json), Some(text)) = (json, text) else { return };
    let ((_, json), (_, text)) = (read(&json), read(&text));
    assert_eq!(stacks(&json), stacks(&text));
    assert_eq!(json.process.crashed_thread, text.process.crashed_thread);
    for (a, b) in json.process.threads.iter().zip(&text.process.threads) {
        assert_eq!((a.number, &a.name, &a.queue, a.crashed), (b.number, &b.name, &b.queue, b.crashed));
    }
    let values = |report: &Report| {
        let registers = &report.crashed().unwrap().registers;
        let mut values: Vec<_> = registers.iter().map(|r| (r.name.clone(), r.value)).collect();
        values.sort();
        values
    };
    assert_eq!(values(&json), values(&text));
    assert_eq!(values(&json).len(), 36);
    for (a, b) in json.process.images.iter().zip(&text.process.images) {
        assert_eq!((&a.name, &a.path, a.id, a.arch), (&b.name, &b.path, b.id, b.arch));
        assert_eq!((a.load_address, a.end_address), (b.load_address, b.end_address));
    }
    let process = |report: &Report| {
        let process = report.process.clone();
        (process.name, process.pid, process.path, process.identifier, process.version, process.arch)
    };
    assert_eq!(process(&json), process(&text));
    let words = |report: &Report| {
        let termination = report.termination.clone().unwrap();
        (termination.namespace, termination.code, termination.reason, termination.details)
    };
    assert_eq!(words(&json), words(&text));
    let exception = |report: &Report| report.exception.clone().unwrap();
    let (a, b) = (exception(&json), exception(&text));
    assert_eq!(
        (a.kind, a.signal, a.codes, a.raw_codes, a.note),
        (b.kind, b.signal, b.codes, b.raw_codes, b.note)
    );
    assert_eq!((&json.os, &json.device, &json.time), (&text.os, &text.device, &text.time));
}
