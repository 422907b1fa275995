use super::*;
use crate::parse;
use backtrail_core::FrameAddress;

const NATIVE: &str = r#"{
  "context": "Main", "unhandled": true, "severityReason": {"type": "signal", "attributes": {"signalType": "SIGSEGV"}},
  "app": {"id": "a.b", "version": "1.0", "versionCode": 3, "binaryArch": "arm64", "releaseStage": "test"},
  "device": {"osName": "android", "osVersion": "16", "model": "Pixel", "time": "2025-09-30T13:31:34Z", "runtimeVersions": {"osBuild": "BE2A"}},
  "exceptions": [{"errorClass": "SIGSEGV", "message": "Segmentation violation", "type": "c", "stacktrace": [
    {"frameAddress": "0x70000cb0", "symbolAddress": "0x70000c9c", "loadAddress": "0x70000000", "lineNumber": 3248, "isPC": true,
      "file": "/data/lib/arm64/libx.so", "method": "crash", "codeIdentifier": "3d33ca9c27cb3a0b28fcab56252e46bc080cea06"},
    {"frameAddress": "0x70000db8", "loadAddress": "0x70000000", "lineNumber": 3512, "file": "/data/lib/arm64/libx.so", "method": "caller"}]}],
  "threads": [{"id": "7", "errorReportingThread": true, "name": "main", "state": "running", "type": "c"}, {"id": 8, "name": "other"}],
  "breadcrumbs": [{"name": "tapped"}]
}"#;

fn read_text(text: &str) -> Report {
    parse(text.as_bytes(), &Limits::default()).unwrap()
}

#[test]
fn a_native_crash_fills_the_model() {
    let report = read_text(NATIVE);
    assert_eq!(report.source, Source::Bugsnag);
    assert_eq!(report.exception.as_ref().unwrap().signal.as_deref(), Some("SIGSEGV"));
    assert_eq!(report.os.as_deref(), Some("android 16 (BE2A)"));
    assert_eq!(report.process.version.as_deref(), Some("1.0 (3)"));
    let crashed = report.crashed().unwrap();
    assert_eq!((crashed.number, crashed.name.as_deref()), (7, Some("main")));
    let [first, second] = crashed.frames.as_slice() else { panic!("{:?}", crashed.frames) };
    assert_eq!(first.address, Some(FrameAddress::Exact(Avma::new(0x7000_0cb0))));
    assert_eq!(second.address, Some(FrameAddress::Return(Avma::new(0x7000_0db8))));
    assert_eq!((first.image, first.image_offset), (Some(0), Some(0xcb0)));
    let symbol = first.reported.as_ref().unwrap();
    assert_eq!((symbol.name.as_str(), symbol.offset, symbol.line), ("crash", Some(0x14), None));
    let image = &report.process.images[0];
    assert_eq!((image.name.as_str(), image.load_address), ("libx.so", Avma::new(0x7000_0000)));
    assert!(image.id.is_some());
    let kept = report.fields.iter().map(|field| &field.value).chain(report.sections.iter().map(|s| &s.text));
    assert!(kept.into_iter().any(|text| text.contains("tapped")));
}

#[test]
fn errors_that_were_handled_crash_no_thread() {
    let event = r#"{"exceptions": [{"errorClass": "java.lang.Error", "message": "beyond", "type": "android", "stacktrace": [
        {"method": "a.b.C.d", "file": "C.java", "lineNumber": 12, "inProject": true}]}],
        "unhandled": false, "threads": [{"id": 1, "errorReportingThread": true, "type": "android", "stacktrace": []}]}"#;
    let direct = read_text(event);
    // As it is sent, and as React Native leaves it on the disk.
    let sent = read_text(&format!(r#"{{"apiKey": "k", "payloadVersion": "5", "events": [{event}]}}"#));
    let kept = read_text(&format!(r#"{{"report": {{"version": "3"}}, "user": {{"event": {event}}}}}"#));
    for report in [direct, sent, kept] {
        assert!(report.crashed().is_none() && report.exception.is_none());
        assert_eq!(report.app_info[0].lines, ["java.lang.Error: beyond"]);
        let backtrace = &report.process.backtraces[0];
        assert!(backtrace.is_exception);
        let frame = &backtrace.frames[0];
        assert_eq!((frame.language, frame.address), (Some(Language::Java), None));
        let symbol = frame.reported.as_ref().unwrap();
        assert_eq!(
            (symbol.name.as_str(), symbol.file.as_deref(), symbol.line),
            ("a.b.C.d", Some("C.java"), Some(12))
        );
    }
}

#[test]
fn uncaught_exceptions_are_the_runtimes() {
    let report = read_text(
        r#"{"exceptions": [{"errorClass": "NSRangeException", "message": "beyond", "stacktrace": [
        {"frameAddress": "0x1000104", "machoLoadAddress": "0x1000000", "machoFile": "/a/App", "machoVMAddress": "0x4000",
         "machoUUID": "3F2504E0-4F89-11D3-9A0C-0305E82C3301"}]}], "unhandled": true}"#,
    );
    let thrown = report.thrown.as_ref().unwrap();
    assert_eq!((thrown.runtime, thrown.name.as_str()), (ThrowingRuntime::ObjectiveC, "NSRangeException"));
    assert_eq!((thrown.reason.as_deref(), thrown.is_handled), (Some("beyond"), false));
    let frame = &report.process.backtraces[0].frames[0];
    assert_eq!((frame.address, frame.image), (Some(FrameAddress::Return(Avma::new(0x100_0104))), Some(0)));
    assert!(report.fields.iter().any(|field| field.key == "App.machoVMAddress"));
}

#[test]
fn every_cut_is_read_without_harm() {
    for end in 0..NATIVE.len() {
        let _ = parse(&NATIVE.as_bytes()[..end], &Limits::default());
    }
}
