//! Reports made by hand, read and explained through the public functions.

use backtrail_diagnose::{Explanation, attribute, explain};
use backtrail_model::OwnerKind;
use backtrail_report::{Limits, parse};
use backtrail_testkit::workspace_root;

#[expect(clippy::unwrap_used, reason = "a test")]
fn explained(name: &str) -> (Explanation, OwnerKind, Option<String>) {
    let path = workspace_root().join("fuzz/corpus/explain").join(name);
    let report = parse(&std::fs::read(&path).unwrap(), &Limits::default()).unwrap();
    let attribution = attribute(&report, &explain(&report));
    (explain(&report), attribution.verdict, attribution.name)
}

#[track_caller]
fn expect(name: &str, title: &str, verdict: OwnerKind, whose: Option<&str>, holds: &[&str]) {
    let (explanation, found, name) = explained(name);
    assert_eq!(explanation.title, title);
    assert_eq!((found, name.as_deref()), (verdict, whose), "{explanation:#?}");
    let text = format!("{explanation:#?}");
    for part in holds {
        assert!(text.contains(part), "{part:?} expected in {text}");
    }
}

#[test]
fn the_loaders_words_of_old_and_new_systems() {
    let old = "A library was not found at launch: @rpath/Kit.framework/Kit";
    expect("dyld.crash", old, OwnerKind::App, Some("Demo"), &["Reason: image not found"]);
    let new = "A library was not found at launch: @rpath/Kit.framework/Versions/A/Kit";
    expect("dyld12.crash", new, OwnerKind::App, Some("Demo"), &["the stack does not matter"]);
}

#[test]
fn the_watchdogs_account() {
    let title = "Killed by the watchdog (scene-update): not done after 10.00 s";
    let waits =
        "The main thread was waiting for a semaphore, called by `-[Sync waitForServer]` (Sync.m:12) in Demo.";
    expect("watchdog.crash", title, OwnerKind::App, Some("Demo"), &[waits, "Kit + 65536: waits for a mutex"]);
    let holds =
        ["while others kept the processors busy", "elapsed application CPU time (seconds): 1.210, 6% CPU"];
    expect("first-systems.crash", "Killed by the watchdog (launch)", OwnerKind::Unknown, None, &holds);
}

#[test]
fn exceptions_pointers_guards_and_limits() {
    let title = "Uncaught NSInvalidArgumentException: -[NSNull length]: unrecognized selector sent to instance 0x206db76c0";
    expect("exception-reason.ips", title, OwnerKind::App, Some("Demo"), &["decoded JSON (NSNull"]);
    let title =
        "Bad pointer 0xf24000186a18c00 (without its upper bits 0x186a18c00): its upper bits are no address";
    expect("pac.ips", title, OwnerKind::App, Some("Demo"), &["data abort, read", "x0 holds the address"]);
    let title = "Message to a released or overwritten object";
    expect(
        "general-protection.crash",
        title,
        OwnerKind::App,
        Some("Tool"),
        &["rdi = 0x600000c04000: the receiver"],
    );
    let title = "Forbidden use of a file descriptor: CLOSE";
    expect(
        "guard.crash",
        title,
        OwnerKind::App,
        Some("Demo"),
        &["The guard is SQLite's", "file descriptor 14"],
    );
    let title = "Too many wake-ups: (Limit 150/sec) Observed 206/sec over 300 secs";
    expect("resource.crash", title, OwnerKind::App, Some("Demo"), &["it is a warning"]);
}

#[test]
fn a_librarys_image_tells_its_version() {
    let path = workspace_root().join("fixtures/sample/reports/sdk-exception.ips");
    let report = parse(&std::fs::read(path).unwrap(), &Limits::default()).unwrap();
    let version = |report: &_| attribute(report, &explain(report)).version;
    assert_eq!(version(&report), Some("2.1".to_owned()), "the build behind it is none");
    let mut other = report;
    for image in &mut other.process.images {
        image.version = None;
    }
    assert_eq!(version(&other), None);
}

#[test]
fn react_natives_exceptions_are_told_by_their_javascript() {
    expect(
        "react-native.crash",
        "Uncaught RCTFatalException: Unhandled JS Exception: TypeError: undefined is not an object (evaluating 'e.items.length')",
        OwnerKind::App,
        Some("Demo"),
        &["It was thrown in `renderCart`", "source map"],
    );
}

#[test]
fn the_samples_verdicts_are_those_that_its_source_tells() {
    let sample = workspace_root().join("fixtures/sample");
    let expected = std::fs::read(sample.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let mut seen = 0;
    for case in expected["cases"].as_array().unwrap() {
        for report in case["reports"].as_array().unwrap() {
            let path = sample.join("reports").join(report.as_str().unwrap());
            let report = parse(&std::fs::read(&path).unwrap(), &Limits::default()).unwrap();
            let found = attribute(&report, &explain(&report));
            let told = (case["attribution"]["verdict"].as_str(), case["attribution"]["name"].as_str());
            assert_eq!((Some(found.verdict.as_str()), found.name.as_deref()), told, "{path:?}: {found:#?}");
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen}");
}
