use super::*;

fn read(lines: &[&str]) -> (Report, Blamed) {
    let (mut report, mut blamed) = (Report::default(), Blamed::default());
    for line in lines {
        set(&mut report, &mut blamed, KeyValue::read(line).unwrap_or_else(|| panic!("no key: {line}")));
    }
    (report, blamed)
}

fn fields(report: &Report) -> Vec<(&str, &str)> {
    report.fields.iter().map(|field| (field.key.as_str(), field.value.as_str())).collect()
}

#[test]
fn what_the_model_holds_only_in_part_is_also_a_field() {
    let (report, _) =
        read(&["Process: My App [12]", "Parent Process: launchd [1]", "Code Type: ARM-64 (Native)"]);
    assert_eq!((report.process.name.as_deref(), report.process.pid), (Some("My App"), Some(12)));
    assert_eq!(report.process.arch, Some(Arch::Arm64));
    assert_eq!(fields(&report), [("Parent Process", "launchd [1]"), ("Code Type", "ARM-64 (Native)")]);
}

#[test]
fn a_key_that_comes_again_is_not_lost() {
    let (report, _) = read(&["Process: A [1]", "Process: B [2]", "Version: 1", "Version: 2"]);
    assert_eq!(report.process.name.as_deref(), Some("A"));
    assert_eq!(fields(&report), [("Process", "B [2]"), ("Version", "2")]);
}

#[test]
fn exception_types() {
    let cases = [
        ("EXC_BAD_ACCESS (SIGSEGV)", Some("EXC_BAD_ACCESS"), Some("SIGSEGV"), 0),
        ("SIGABRT", None, Some("SIGABRT"), 0),
        ("00000020", Some("00000020"), None, 0),
        ("EXC_BAD_ACCESS (Code Signature Invalid)", Some("EXC_BAD_ACCESS"), None, 1),
        (
            "EXC_CRASH (SIGKILL (Code Signature Invalid))",
            Some("EXC_CRASH"),
            Some("SIGKILL (Code Signature Invalid)"),
            0,
        ),
    ];
    for (value, kind, signal, left) in cases {
        let (report, _) = read(&[&format!("Exception Type: {value}")]);
        let exception = report.exception.unwrap();
        assert_eq!((exception.kind.as_deref(), exception.signal.as_deref()), (kind, signal), "{value}");
        assert_eq!(report.fields.len(), left, "{value}");
    }
}

#[test]
fn exception_codes_in_numbers_and_words() {
    let (report, _) = read(&[
        "Exception Type: EXC_BAD_ACCESS (SIGSEGV)",
        "Exception Codes: KERN_INVALID_ADDRESS at 0x00000000000000e0",
        "Exception Codes: 0x0000000000000001, 0x00000000000000e0",
    ]);
    let exception = report.exception.unwrap();
    assert_eq!(exception.subtype.as_deref(), Some("KERN_INVALID_ADDRESS at 0x00000000000000e0"));
    assert_eq!(exception.raw_codes, [1, 0xe0]);
    assert_eq!(fault_address(&exception), Some(Avma::new(0xe0)));
    assert!(report.fields.is_empty());
}

#[test]
fn fault_addresses_only_of_failed_accesses() {
    let address = |lines: &[&str]| fault_address(&read(lines).0.exception.unwrap()).map(Avma::get);
    let bad = "Exception Type: EXC_BAD_ACCESS (SIGBUS)";
    assert_eq!(address(&[bad, "Exception Codes: 0x0000000000000002, 0x0000000000000008"]), Some(8));
    assert_eq!(address(&[bad, "Exception Codes: 0x0000000000000010, 0x0000000000000008"]), None);
    assert_eq!(address(&[bad, "Exception Codes: 0x000000000000000d, 0x0000000000000000"]), None);
    assert_eq!(address(&["Exception Type: SIGSEGV", "Exception Codes: SEGV_MAPERR at 0x88"]), Some(0x88));
    assert_eq!(address(&["Exception Type: SIGABRT", "Exception Codes: #0 at 0x9c54572"]), None);
    assert_eq!(
        address(&["Exception Type: EXC_BREAKPOINT (SIGTRAP)", "Exception Codes: 0x1, 0x100125780"]),
        None
    );
    let pac = "Exception Subtype: KERN_INVALID_ADDRESS at 0x00006f12 -> 0x00000012 (possible pointer authentication failure)";
    assert_eq!(address(&[bad, pac]), Some(0x6f12));
}

#[test]
fn termination_reasons_of_all_systems() {
    let cases = [
        ("Namespace SIGNAL, Code 0x5", Some("SIGNAL"), Some(5), None),
        (
            "Namespace SIGNAL, Code 11 Segmentation fault: 11",
            Some("SIGNAL"),
            Some(11),
            Some("Segmentation fault: 11"),
        ),
        ("SIGNAL 6 Abort trap: 6", Some("SIGNAL"), Some(6), Some("Abort trap: 6")),
        ("TCC 0", Some("TCC"), Some(0), None),
        ("DYLD, [0x1] Library missing", Some("DYLD"), Some(1), Some("Library missing")),
        ("Namespace SPRINGBOARD, Code 0x8badf00d", Some("SPRINGBOARD"), Some(0x8bad_f00d), None),
        (
            "CODESIGNING 1 Taskgated Invalid Signature",
            Some("CODESIGNING"),
            Some(1),
            Some("Taskgated Invalid Signature"),
        ),
        ("something else", None, None, Some("something else")),
    ];
    for (value, namespace, code, reason) in cases {
        let (report, _) = read(&[&format!("Termination Reason: {value}")]);
        let termination = report.termination.unwrap();
        assert_eq!(termination.namespace.as_deref(), namespace, "{value}");
        assert_eq!(termination.code, code, "{value}");
        assert_eq!(termination.reason.as_deref(), reason, "{value}");
    }
    let (report, _) =
        read(&["Termination Signal: Trace/BPT trap: 5", "Terminating Process: exc handler [842]"]);
    let termination = report.termination.as_ref().unwrap();
    assert_eq!((termination.by_process.as_deref(), termination.by_pid), (Some("exc handler"), Some(842)));
    assert_eq!(fields(&report), [("Termination Signal", "Trace/BPT trap: 5")]);
}

#[test]
fn blamed_threads() {
    for (line, number, left) in [
        ("Crashed Thread: 5", Some(5), 0),
        ("Triggered by Thread:  0", Some(0), 0),
        ("Triggered by Thread: 46  tokio-rt-worker", Some(46), 1),
        ("Triggered by Thread: 0, Dispatch Queue: com.apple.main-thread", Some(0), 1),
        ("Crashed Thread: Unknown", None, 1),
    ] {
        let (report, blamed) = read(&[line]);
        assert_eq!((blamed.number, report.fields.len()), (number, left), "{line}");
    }
}

#[test]
fn what_is_no_key() {
    for text in
        ["", "no colon", ": value", "https://x", "std::vector: x", "*** App: x", "(null): x", "a=b: c"]
    {
        assert_eq!(KeyValue::read(text), None, "{text}");
    }
    assert!(KeyValue::read("Sleep/Wake UUID: x").is_some_and(|line| line.is_known()));
    assert!(KeyValue::read("Per-App Interval Since Last Report: 0").is_some_and(|line| line.is_known()));
}
