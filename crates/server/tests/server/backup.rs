//! Copies of a server that runs.

use crate::client::{Running, noise};
use backtrail_server::{Config, Server, check, copy, export};
use backtrail_testkit::fixtures;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A report with more behind it than packs well.
fn large() -> Vec<u8> {
    let mut report = std::fs::read(fixtures().join("sample/reports/watchdog.crash")).unwrap();
    for byte in noise(100_000) {
        report.extend(format!("{byte:02x}").bytes());
    }
    report
}

#[test]
fn a_copy_of_a_server_that_runs_is_a_server() {
    let mut server = Running::start();
    let sample = fixtures().join("sample");
    for name in ["null-member.ips", "watchdog.ips"] {
        let report = std::fs::read(sample.join("reports").join(name)).unwrap();
        assert_eq!(server.send("/api/1/reports/", &report).status, 200);
    }
    // One that is too large for the database.
    assert_eq!(server.send("/api/1/reports/", &large()).status, 200);
    server.settle();
    // By hand, and by upload.
    let data = server.directory.join("data");
    let by_hand = data.join("symbols/1/Telemetry.dSYM");
    std::fs::create_dir_all(&by_hand).unwrap();
    std::fs::write(by_hand.join("Telemetry"), b"whatever").unwrap();
    let issues = server.get("/api/v1/projects/1/issues").text();
    let backup = server.directory.join("backup");
    let copied = copy(&server.config, &backup).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (2, 0));
    let again = copy(&server.config, &backup).unwrap_err().to_string();
    assert!(again.contains("expected an empty directory"), "{again}");
    assert!(copy(&Config::new(server.directory.join("none")), &server.directory.join("other")).is_err());
    assert!(!backup.join("backtrail.sqlite.unfinished").exists());
    assert_eq!(check(&Config::new(&backup)).unwrap().problems, Vec::<String>::new());
    // What comes later is not in it, and what goes on there does not come back.
    let late = std::fs::read(sample.join("reports/sdk-exception.ips")).unwrap();
    server.send("/api/1/reports/", &late);
    server.settle();
    assert_eq!(std::fs::read(backup.join("symbols/1/Telemetry.dSYM/Telemetry")).unwrap(), b"whatever");
    server.server.take().unwrap().stop();
    let mut config = Config::new(&backup);
    config.listen = "127.0.0.1:0".parse().unwrap();
    let original = std::mem::replace(&mut server.config, config.clone());
    let started = Server::start(config).unwrap();
    server.address = started.address();
    server.server = Some(started);
    assert_eq!(server.get("/api/v1/projects/1/issues").text(), issues);
    assert_eq!(server.send("/api/1/reports/", &late).status, 200);
    server.settle();
    assert_eq!(server.check(), Vec::<String>::new());
    assert_eq!(check(&original).unwrap().problems, Vec::<String>::new());
}

#[test]
fn what_is_missing_is_said() {
    let server = Running::start();
    server.send("/api/1/reports/", &large());
    server.settle();
    let data = server.directory.join("data");
    let directories = std::fs::read_dir(data.join("objects")).unwrap();
    let mut files = directories.flat_map(|it| std::fs::read_dir(it.unwrap().path()).unwrap());
    std::fs::remove_file(files.next().unwrap().unwrap().path()).unwrap();
    let copied = copy(&server.config, &server.directory.join("backup")).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (0, 1));
}

fn exported(server: &Running, bytes: bool) -> (Vec<Value>, usize) {
    let mut out = Vec::new();
    let exported = export(&server.config, bytes, &mut out).unwrap();
    let lines: Vec<Value> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let of_type = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!(exported.reports, of_type("report") as u64);
    (lines, exported.missing.len())
}

#[test]
fn everything_is_exported() {
    let server = Running::start();
    let small = std::fs::read(fixtures().join("sample/reports/null-member.ips")).unwrap();
    for report in [&small, &large()] {
        assert_eq!(server.send("/api/1/reports/", report).status, 200);
    }
    assert_eq!(server.send("/api/1/reports/", b"nothing that anybody reads").status, 200);
    server.settle();
    let (lines, missing) = exported(&server, true);
    assert_eq!(missing, 0);
    assert_eq!(
        (lines[0]["type"].as_str(), lines[0]["format"].as_str()),
        (Some("export"), Some("backtrail-export/1"))
    );
    let of_type = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
    assert_eq!((of_type("project").count(), of_type("issue").count(), of_type("report").count()), (1, 2, 3));
    let bytes = |report: &Value| STANDARD.decode(report["file"]["base64"].as_str().unwrap()).unwrap();
    let reports: Vec<_> = of_type("report").map(bytes).collect();
    assert_eq!(reports, [small, large(), b"nothing that anybody reads".to_vec()]);
    // What is counted adds up, and each report's issue is there.
    for issue in of_type("issue") {
        let days = issue["days"].as_array().unwrap().iter().map(|day| day["reports"].as_i64().unwrap());
        assert_eq!(issue["count"], days.sum::<i64>());
        assert_eq!(of_type("report").filter(|report| report["issue"] == issue["id"]).count(), 1);
        assert!(issue["keys"].as_array().unwrap().iter().any(|key| key["key"] == issue["key"]), "{issue}");
    }
    let text: String = lines.iter().map(Value::to_string).collect();
    assert!(!text.contains(&server.token), "no secret leaves");
    // Without bytes, and with a file that is gone.
    let directories = std::fs::read_dir(server.directory.join("data/objects")).unwrap();
    let mut files = directories.flat_map(|it| std::fs::read_dir(it.unwrap().path()).unwrap());
    std::fs::remove_file(files.next().unwrap().unwrap().path()).unwrap();
    let (without, missing) = exported(&server, false);
    assert_eq!((without.len(), missing), (lines.len(), 0));
    assert!(without.iter().all(|line| line["file"].get("base64").is_none()));
    assert_eq!(exported(&server, true).1, 1);
    assert!(export(&Config::new(server.directory.join("none")), true, &mut Vec::new()).is_err());
}
