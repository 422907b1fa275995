use super::*;
use crate::parse;
use backtrail_core::FrameAddress;
use backtrail_model::ThrowingRuntime;

const REPORT: &str = r#"{
  "report": {"id": "1DFC", "timestamp": "2024-01-02T03:04:05Z", "version": "3.3.0", "type": "standard"},
  "binary_images": [
    {"name": "/var/App.app/App", "image_addr": 4294967296, "image_size": 65536, "cpu_type": 16777228, "cpu_subtype": 0,
     "uuid": "3F2504E0-4F89-11D3-9A0C-0305E82C3301", "image_vmaddr": 4096, "crash_info_message": "last words"},
    {"name": "/usr/lib/libobjc.A.dylib", "image_addr": 6442450944, "image_size": 4096, "cpu_type": 16777228}],
  "system": {"CFBundleIdentifier": "a.b", "CFBundleShortVersionString": "1.2", "CFBundleVersion": "3", "process_id": 7,
    "process_name": "App", "CFBundleExecutablePath": "/var/App.app/App", "system_name": "iOS", "system_version": "17.1",
    "os_version": "21B74", "machine": "iPhone15,2", "cpu_arch": "arm64", "boot_time": "then"},
  "crash": {"diagnosis": "Something.",
    "error": {"type": "mach", "address": 16, "mach": {"exception": 1, "code": 1, "code_name": "KERN_INVALID_ADDRESS",
      "subcode": 16}, "signal": {"signal": 11, "code": 0}},
    "threads": [
      {"index": 0, "crashed": false, "backtrace": {"contents": [{"instruction_addr": 6442451000}], "skipped": 2}},
      {"index": 1, "crashed": true, "dispatch_queue": "q", "registers": {"basic": {"x0": 16, "pc": 4294967400}},
       "backtrace": {"contents": [
        {"instruction_addr": 4294967400, "object_addr": 4294967296, "object_name": "App", "symbol_addr": 4294967380,
         "symbol_name": "crash"},
        {"instruction_addr": 4294967500, "object_addr": 4294967296, "object_name": "App"}], "skipped": 0},
       "notable_addresses": {"x1": {"type": "string", "value": "a text"}}}]},
  "user": {"key": "value"}
}"#;

fn read_text(text: &str) -> Report {
    parse(text.as_bytes(), &Limits::default()).unwrap()
}

#[test]
fn a_report_fills_the_model() {
    let report = read_text(REPORT);
    assert_eq!(report.source, Source::KsCrash);
    let process = &report.process;
    assert_eq!(
        (process.name.as_deref(), process.pid, process.version.as_deref()),
        (Some("App"), Some(7), Some("1.2 (3)"))
    );
    assert_eq!(process.arch, Some(Arch::Arm64));
    assert_eq!(report.os.as_deref(), Some("iOS 17.1 (21B74)"));
    let exception = report.exception.as_ref().unwrap();
    assert_eq!(
        (exception.kind.as_deref(), exception.signal.as_deref()),
        (Some("EXC_BAD_ACCESS"), Some("SIGSEGV"))
    );
    assert_eq!(exception.codes.as_deref(), Some("KERN_INVALID_ADDRESS at 0x10"));
    assert_eq!(exception.address, Some(Avma::new(16)));
    assert_eq!(process.crashed_thread, Some(1));
    let [first, second] = process.threads[1].frames.as_slice() else { panic!() };
    assert_eq!(first.address, Some(FrameAddress::Exact(Avma::new(4_294_967_400))));
    assert_eq!(second.address, Some(FrameAddress::Return(Avma::new(4_294_967_500))));
    assert_eq!(first.reported.as_ref().unwrap().offset, Some(20));
    assert_eq!((first.image, process.threads[0].frames[0].image), (Some(0), Some(1)));
    assert_eq!(report.app_info[0].lines, ["last words"]);
    assert!(report.notes.iter().any(|note| note.contains("left 2 frames out")));
    for key in ["system.boot_time", "report.version", "crash.error.type"] {
        assert!(report.fields.iter().any(|field| field.key == key), "{key}");
    }
    for text in ["a text", "value", "image_vmaddr=4096", "Something."] {
        let kept = report.sections.iter().any(|section| section.text.contains(text));
        assert!(kept || report.fields.iter().any(|field| field.value.contains(text)), "{text}");
    }
}

#[test]
fn exceptions_of_languages_are_stated_apart_and_in_words() {
    let with = |error: &str| {
        let text = format!(
            r#"{{"binary_images": [], "crash": {{"error": {error}, "threads": [
            {{"crashed": true, "backtrace": {{"contents": [{{"instruction_addr": 9}}]}}}}]}}}}"#
        );
        read_text(&text)
    };
    let report = with(r#"{"type": "nsexception", "nsexception": {"name": "E", "reason": "because"}}"#);
    assert_eq!(report.app_info[0].lines, ["E: because"]);
    assert_eq!(report.process.threads[0].frames[0].address, Some(FrameAddress::Return(Avma::new(9))));
    let report = with(r#"{"type": "cpp_exception", "reason": "what", "cpp_exception": {"name": "std::x"}}"#);
    assert_eq!(report.app_info[0].lines, ["std::x: what"]);
    assert_eq!(report.thrown.unwrap().runtime, ThrowingRuntime::Cpp);
    let report = with(r#"{"type": "cpp_exception", "cpp_exception": {"name": "P16kaboom_exception"}}"#);
    assert_eq!(report.app_info[0].lines, ["kaboom_exception*"]);
    let report = with(
        r#"{"type": "memory_termination", "memory_termination": {"memory_limit": 5}, "signal": {"signal": 9}}"#,
    );
    assert_eq!(report.termination.unwrap().reason.as_deref(), Some("memory_termination"));
    assert_eq!(report.exception.unwrap().signal.as_deref(), Some("SIGKILL"));
}

#[test]
fn the_apps_crash_comes_before_the_reporters() {
    let text = format!(
        r#"{{"recrash_report": {REPORT}, "crash": {{"error": {{"type": "signal"}}, "crashed_thread": {{}}}}}}"#
    );
    let report = read_text(&text);
    assert_eq!(report.process.threads.len(), 2);
    assert!(report.notes.iter().any(|note| note.contains("the reporter crashed")), "{:?}", report.notes);
}

#[test]
fn every_cut_is_read_without_harm() {
    for end in 0..REPORT.len() {
        let _ = parse(&REPORT.as_bytes()[..end], &Limits::default());
    }
    let report = read_text(&REPORT[..REPORT.len() - 60]);
    assert!(report.notes[0].starts_with("the report is cut or broken"), "{:?}", report.notes);
    assert_eq!(report.process.threads.len(), 2);
}
