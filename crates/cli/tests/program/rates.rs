//! `group --sessions`: how often whose code crashes.

use crate::run::backtrail;
use backtrail_testkit::TempDir;
use serde_json::Value;

const REPORTS: &str = "fixtures/vendor/reports";

#[test]
fn libraries_have_rates_with_their_versions() {
    let directory = TempDir::new("rates");
    let fingerprint = directory.path().join("Ledger.btsdk");
    let fingerprint = fingerprint.to_str().unwrap();
    let library = "fixtures/vendor/libLedger.a";
    let learn = ["sdk", "learn", library, "-n", "Ledger", "--lib-version", "1.2", "-o", fingerprint];
    assert_eq!(backtrail(&learn).code, 0);
    let text = "version,os,sessions\n0.9,*,100000\n1.0,iPhone OS 17,2000\n1.0,iPhone OS 16,500\n";
    let sessions = directory.write("sessions.csv", text);
    let sessions = sessions.to_str().unwrap();
    let app = ["-s", "fixtures/vendor/app", "--sdk", fingerprint];
    let run =
        backtrail(&[&["group", REPORTS, "--sessions", sessions, "--format", "json"][..], &app].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&document["schema"], &document["crashes"]), (&"backtrail-rates/1".into(), &4.into()));
    let rates = document["rates"].as_array().unwrap();
    let row = |owner: &str, os: &str| {
        rates
            .iter()
            .find(|row| row["owner"] == owner && row["os"] == os)
            .unwrap_or_else(|| panic!("{document}"))
    };
    let all = row("all", "iPhone OS 17");
    assert_eq!(
        (&all["crashes"], &all["sessions"], &all["rate"]["value"]),
        (&4.into(), &2000.into(), &0.002.into())
    );
    let ledger = row("sdk Ledger", "iPhone OS 17");
    assert_eq!(ledger["owner_version"], "1.2");
    assert!(ledger["rate"]["low"].as_f64() < ledger["rate"]["value"].as_f64());
    assert_eq!((&row("all", "iPhone OS 16")["crashes"], &row("all", "*")["crashes"]), (&0.into(), &0.into()));
    // Nobody had them in 100,000 sessions of the version before.
    let new = document["new"].as_array().unwrap();
    assert!(!new.is_empty() && new.iter().all(|group| group["version"] == "1.0"), "{document}");
    assert!(new.iter().all(|group| group["p_value"].as_f64().unwrap() < 0.05));

    let run = backtrail(&[&["group", REPORTS, "--sessions", sessions][..], &app].concat());
    assert!(run.stdout.contains("version 1.0, on iPhone OS 17: 2000 sessions"), "{}", run.stdout);
    assert!(
        run.stdout.contains("sdk Ledger 1.2") && run.stdout.contains("New in a version"),
        "{}",
        run.stdout
    );
    let run = backtrail(&["group", REPORTS, "--sessions", "2000", "--format", "csv"]);
    assert!(run.stdout.contains("\n*,*,all,,4,2000,0.002,"), "{}", run.stdout);
}

#[test]
fn sessions_that_are_none_are_refused() {
    let directory = TempDir::new("rates");
    let sessions = directory.write("sessions.csv", "1.0,iOS\n");
    let run = backtrail(&["group", REPORTS, "--sessions", sessions.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("line 1: expected version,os,sessions"), "{}", run.stderr);
    let run = backtrail(&["group", REPORTS, "--sessions", "3"]);
    assert!(run.stdout.contains("fewer sessions than crashes"), "{}", run.stdout);
}

#[test]
fn what_is_no_crash_has_no_rate() {
    let run = backtrail(&["group", "fixtures/kinds", "--sessions", "2000", "--format", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let all = backtrail(&["group", "fixtures/kinds", "--format", "json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    let count = |name: &str| document[name].as_u64().unwrap();
    assert!(count("others") > 0, "{document}");
    assert_eq!(count("crashes") + count("others"), all["reports"].as_u64().unwrap());
    let run = backtrail(&["group", "fixtures/kinds", "--sessions", "2000"]);
    assert!(run.stdout.contains(" reports of something else"), "{}", run.stdout);
}
