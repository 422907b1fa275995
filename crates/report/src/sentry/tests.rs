use super::*;
use crate::parse;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::Language;

const EVENT: &str = r#"{
  "event_id": "9ec79c33ec9942ab8353589fcb2e04dc", "timestamp": "2024-01-02T03:04:05Z", "platform": "cocoa",
  "release": "a.b@1.2+3",
  "debug_meta": {"images": [{"type": "macho", "code_file": "/var/App.app/App", "image_addr": "0x100000000",
    "image_size": 65536, "debug_id": "3F2504E0-4F89-11D3-9A0C-0305E82C3301", "arch": "arm64", "image_vmaddr": "0x4000"}]},
  "contexts": {"os": {"name": "iOS", "version": "17.1", "build": "21B74", "rooted": false},
    "app": {"app_identifier": "a.b", "app_version": "1.2", "app_build": "3"}, "device": {"model": "iPhone15,2"}},
  "exception": {"values": [{"type": "EXC_BAD_ACCESS", "value": "KERN_INVALID_ADDRESS at 0x10.", "thread_id": 1,
    "mechanism": {"type": "mach", "handled": false, "meta": {"signal": {"number": 11, "code": 0},
      "mach_exception": {"exception": 1, "code": 1, "subcode": 16}}},
    "stacktrace": {"frames": [
      {"instruction_addr": "0x100000900", "package": "/var/App.app/App", "function": "main", "symbol_addr": "0x100000800"},
      {"instruction_addr": "0x100000500", "image_addr": "0x100000000", "function": "crash", "in_app": true}],
      "registers": {"pc": "0x100000500", "x0": "0x10"}}}]},
  "threads": {"values": [{"id": 0, "name": "main", "crashed": false, "stacktrace": {"frames": [{"instruction_addr": "0x100000100"}]}},
    {"id": 1, "crashed": true, "current": true}]},
  "breadcrumbs": [{"message": "tapped"}]
}"#;

fn read_text(text: &str) -> Report {
    parse(text.as_bytes(), &Limits::default()).unwrap()
}

fn check(report: &Report) {
    assert_eq!(report.source, Source::Sentry);
    let exception = report.exception.as_ref().unwrap();
    assert_eq!(
        (exception.kind.as_deref(), exception.signal.as_deref()),
        (Some("EXC_BAD_ACCESS"), Some("SIGSEGV"))
    );
    assert_eq!(exception.address, Some(Avma::new(0x10)));
    assert_eq!(report.os.as_deref(), Some("iOS 17.1 (21B74)"));
    assert_eq!(report.process.version.as_deref(), Some("1.2 (3)"));
    let crashed = report.crashed().unwrap();
    assert_eq!((crashed.number, crashed.registers.len()), (1, 2));
    let names: Vec<_> = crashed.frames.iter().flat_map(backtrail_model::Frame::names).collect();
    assert_eq!(names, ["crash", "main"]);
    assert_eq!(crashed.frames[0].address, Some(FrameAddress::Exact(Avma::new(0x1_0000_0500))));
    assert_eq!(crashed.frames[1].address, Some(FrameAddress::Return(Avma::new(0x1_0000_0900))));
    assert!(crashed.frames.iter().all(|frame| frame.image == Some(0)));
    for key in ["release", "platform", "contexts.os.rooted", "debug_meta.images[0].image_vmaddr", "mechanism"]
    {
        assert!(report.fields.iter().any(|field| field.key == key), "{key}");
    }
    let kept = report.fields.iter().map(|field| &field.value).chain(report.sections.iter().map(|s| &s.text));
    assert!(kept.into_iter().any(|text| text.contains("tapped")));
}

#[test]
fn an_event_fills_the_model() {
    check(&read_text(EVENT));
}

#[test]
fn an_envelope_has_an_event() {
    let line = EVENT.replace('\n', " ");
    let text = format!(
        "{{\"event_id\":\"9ec\",\"sent_at\":\"now\"}}\n{{\"type\":\"event\",\"length\":{}}}\n{line}\n",
        line.len()
    );
    let report = read_text(&text);
    check(&report);
    assert!(report.fields.iter().any(|field| field.key == "envelope.sent_at" && field.value == "now"));
    assert_eq!(crate::documents(text.as_bytes()).len(), 1);
}

#[test]
fn exceptions_of_runtimes_have_a_stack_of_their_own() {
    let report = read_text(
        r#"{"event_id": "1", "exception": [{"type": "NSRangeException", "value": "beyond", "mechanism": {"type": "nsexception"},
        "stacktrace": {"frames": [{"instruction_addr": "0x2"}, {"instruction_addr": "0x1"}]}}]}"#,
    );
    assert_eq!(report.app_info[0].lines, ["NSRangeException: beyond"]);
    let backtrace = &report.process.backtraces[0];
    assert!(backtrace.is_exception);
    assert_eq!(backtrace.frames[0].address, Some(FrameAddress::Return(Avma::new(1))));
}

#[test]
fn every_cut_is_read_without_harm() {
    for end in 0..EVENT.len() {
        let _ = parse(&EVENT.as_bytes()[..end], &Limits::default());
    }
}

#[test]
fn frames_of_scripts_have_their_language() {
    let report = read_text(
        r#"{"event_id": "9ec79c33ec9942ab8353589fcb2e04dc", "platform": "node", "timestamp": 1700000000.25,
            "exception": {"values": [{"type": "KeyError", "module": "", "value": "v", "stacktrace": {"frames": [
                {"function": "?", "module": "", "filename": "/srv/app.js", "lineno": 3},
                {"function": "load", "module": "cart", "filename": "/srv/cart.py", "platform": "python"},
                {"function": "crash", "platform": "native", "instruction_addr": "0x1000"}]}}]}}"#,
    );
    assert_eq!(report.time.as_deref(), Some("2023-11-14T22:13:20.25Z"));
    assert_eq!(report.thrown.as_ref().unwrap().name, "KeyError");
    let frames = &report.process.backtraces[0].frames;
    let seen: Vec<_> = frames.iter().map(|frame| (frame.names().next().unwrap(), frame.language)).collect();
    assert_eq!(
        seen,
        [("crash", None), ("cart.load", Some(Language::Python)), ("?", Some(Language::JavaScript))]
    );
}

#[test]
fn a_message_alone_is_an_event() {
    for (members, event, line) in [
        (r#""message": "the cart is empty""#, "the cart is empty", "the cart is empty"),
        (
            r#""logentry": {"message": "user %s failed", "params": ["bob"], "formatted": "user bob failed"}"#,
            "user %s failed",
            "user bob failed",
        ),
        (r#""contexts": {"feedback": {"message": "no button"}}"#, "User feedback: no button", "no button"),
        (r#""name": "Anna", "comments": "it broke""#, "User feedback: it broke", "it broke"),
    ] {
        let id = r#""event_id": "9ec79c33ec9942ab8353589fcb2e04dc""#;
        let platform = if members.contains("comments") { "" } else { r#", "platform": "python""# };
        let report = read_text(&format!("{{{id}{platform}, {members}}}"));
        assert_eq!(report.event.as_deref(), Some(event));
        assert!(report.app_info.iter().any(|info| info.lines == [line]), "{:?}", report.app_info);
    }
    // With an exception the message is beside the point.
    let both = read_text(
        r#"{"event_id": "9ec79c33ec9942ab8353589fcb2e04dc", "message": "m", "exception": [{"type": "E", "value": "v"}]}"#,
    );
    assert_eq!(both.event, None);
    // Sentry's other payloads are none.
    let transaction =
        r#"{"event_id": "9ec79c33ec9942ab8353589fcb2e04dc", "platform": "python", "type": "transaction"}"#;
    assert!(parse(transaction.as_bytes(), &Limits::default()).is_err());
}
