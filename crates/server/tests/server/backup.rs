//! Copies of a server that runs.

use crate::client::{Running, noise};
use backtrail_server::{Config, Server, check, copy};
use backtrail_testkit::fixtures;

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
    let copied = copy(&data, &backup).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (2, 0));
    assert!(copy(&data, &backup).unwrap_err().to_string().contains("expected an empty directory"));
    assert!(copy(&server.directory.join("none"), &server.directory.join("other")).is_err());
    assert_eq!(check(&backup).unwrap().problems, Vec::<String>::new());
    // What comes later is not in it, and what goes on there does not come back.
    let late = std::fs::read(sample.join("reports/sdk-exception.ips")).unwrap();
    server.send("/api/1/reports/", &late);
    server.settle();
    assert_eq!(std::fs::read(backup.join("symbols/1/Telemetry.dSYM/Telemetry")).unwrap(), b"whatever");
    server.server.take().unwrap().stop();
    let mut config = Config::new(&backup);
    config.listen = "127.0.0.1:0".parse().unwrap();
    let started = Server::start(config).unwrap();
    server.address = started.address();
    server.server = Some(started);
    assert_eq!(server.get("/api/v1/projects/1/issues").text(), issues);
    assert_eq!(server.send("/api/1/reports/", &late).status, 200);
    server.settle();
    assert_eq!(check(&data).unwrap().problems, Vec::<String>::new());
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
    let copied = copy(&data, &server.directory.join("backup")).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (0, 1));
}
