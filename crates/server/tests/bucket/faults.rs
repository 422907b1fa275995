//! What a server makes of a bucket that does not do what it should. With SQLite: the database is not the matter.

use crate::client::{Running, noise};
use crate::part_of;
use backtrail_server::{Config, Server, check, copy, export, restore};
use backtrail_testkit::{BucketFault, BucketServer, fixtures};
use std::fs;

/// With a bucket that nobody else has.
fn start() -> (Running, BucketServer) {
    let bucket = BucketServer::new();
    let (objects, all) = (part_of(&bucket, "crashes"), part_of(&bucket, "crashes"));
    let mut running = Running::with(|config| {
        config.database = None;
        config.objects = Some(objects);
    });
    running.config.database = None;
    running.config.objects = Some(all);
    (running, bucket)
}

fn sample(name: &str) -> Vec<u8> {
    fs::read(fixtures().join("sample").join(name)).unwrap()
}

/// A report that is too large for the database.
fn large(number: u8) -> Vec<u8> {
    let mut report = sample("reports/watchdog.crash");
    for byte in noise(100_000) {
        report.extend(format!("{:02x}", byte ^ number).bytes());
    }
    report
}

/// The files of a bucket, without the one that says whose it is.
fn files(bucket: &BucketServer) -> Vec<String> {
    bucket.names().into_iter().filter(|name| name != "crashes/backtrail").collect()
}

fn id(answer: &crate::client::Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["ids"][0].as_str().unwrap().to_owned()
}

#[test]
fn what_is_acknowledged_is_in_the_bucket_until_it_is_removed() {
    let (server, bucket) = start();
    let report = large(1);
    let first = id(&server.send("/api/1/reports/", &report));
    let all = files(&bucket);
    assert_eq!(all.len(), 1, "{all:?}");
    // The same again is written once.
    assert_eq!(id(&server.send("/api/1/reports/", &report)), first);
    assert_eq!(files(&bucket), all);
    id(&server.send("/api/1/reports/", &sample("reports/null-member.ips")));
    assert_eq!(files(&bucket), all, "small ones are in the database");
    server.settle();
    assert_eq!(server.get(&format!("/api/v1/projects/1/reports/{first}/raw")).body, report);
    assert_eq!(server.check(), Vec::<String>::new());
    let bearer = format!("Bearer {}", server.token);
    let path = format!("/api/v1/projects/1/reports/{first}");
    let removed = crate::client::request(server.address, "DELETE", &path, &[("Authorization", &bearer)], b"");
    assert_eq!(removed.status, 200, "{}", removed.text());
    assert_eq!(files(&bucket), Vec::<String>::new());
    // It is written anew, under another name.
    server.write("UPDATE report SET received = 0");
    id(&server.send("/api/1/reports/", &report));
    assert_ne!(files(&bucket), all);
    server.settle();
    assert_eq!(server.check(), Vec::<String>::new());
    let gone = files(&bucket).remove(0);
    bucket.set(&gone, None);
    assert!(server.check()[0].contains("is missing"), "{:?}", server.check());
}

#[test]
fn faults_that_pass_are_nobodys_matter() {
    let (server, bucket) = start();
    let report = large(2);
    bucket.fail("PUT", &[BucketFault::Status(500), BucketFault::LostAnswer, BucketFault::Status(503)]);
    let id = id(&server.send("/api/1/reports/", &report));
    server.settle();
    bucket.fail("GET", &[BucketFault::Cut, BucketFault::Garbled, BucketFault::LostAnswer]);
    assert_eq!(server.get(&format!("/api/v1/projects/1/reports/{id}/raw")).body, report);
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_kept_is_not_acknowledged() {
    let (mut server, bucket) = start();
    bucket.down(Some(BucketFault::Status(503)));
    let refused = server.send("/api/1/reports/", &large(3));
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: "), "{}", refused.head);
    assert!(!refused.text().contains("KEY"), "{}", refused.text());
    assert_eq!(server.number("SELECT count(*) FROM report"), 0);
    // What needs no bucket is done as ever, after a start, too.
    id(&server.send("/api/1/reports/", &sample("reports/null-member.ips")));
    server.restart();
    server.settle();
    let unread = check(&server.config).unwrap_err().to_string();
    assert!(unread.contains("the bucket BUCKET at http://") && !unread.contains("KEY"), "{unread}");
    bucket.down(None);
    std::thread::sleep(std::time::Duration::from_millis(2100));
    id(&server.send("/api/1/reports/", &large(3)));
    server.settle();
    assert_eq!(server.number("SELECT count(*) FROM report WHERE state = 'done'"), 2);
}

#[test]
fn work_that_cannot_be_done_is_put_off() {
    let (server, bucket) = start();
    bucket.fail("GET", &[BucketFault::Status(500); 4]);
    id(&server.send("/api/1/reports/", &large(4)));
    server.settle();
    let done = "SELECT count(*) FROM report WHERE state = 'done' AND attempts <= 1";
    assert_eq!(server.number(done), 1, "no attempt counts");
}

#[test]
fn a_bucket_of_another_server_is_left_alone() {
    let (server, bucket) = start();
    id(&server.send("/api/1/reports/", &large(5)));
    let mut other = Config::new(server.directory.join("other"));
    other.listen = "127.0.0.1:0".parse().unwrap();
    other.objects = server.config.objects.clone();
    let Err(why) = Server::start(other.clone()) else { panic!("it starts") };
    assert!(why.to_string().contains("those of another server"), "{why}");
    // A part of its own is another matter.
    other.objects = Some(part_of(&bucket, "others"));
    Server::start(other).unwrap().stop();
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn symbols_are_fetched_by_a_server_that_has_none_yet() {
    let (mut server, _) = start();
    let symbols = sample("symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    let bearer = format!("Bearer {}", server.token);
    let path = "/api/v1/projects/1/symbols/Weather";
    let kept = crate::client::request(server.address, "PUT", path, &[("Authorization", &bearer)], &symbols);
    assert_eq!(kept.status, 200, "{}", kept.text());
    server.server.take().unwrap().stop();
    for directory in ["symbols", "cache"] {
        fs::remove_dir_all(server.config.data.join(directory)).unwrap();
    }
    let started = Server::start(server.config.clone()).unwrap();
    server.address = started.address();
    server.server = Some(started);
    id(&server.send("/api/1/reports/", &sample("reports/null-member.ips")));
    server.settle();
    let issues = server.get("/api/v1/projects/1/issues").text();
    assert!(issues.contains("celsius"), "{issues}");
    assert_eq!(server.number("SELECT count(*) FROM missing"), 0);
}

#[test]
fn a_backup_has_the_files_of_the_bucket() {
    let (server, bucket) = start();
    let report = large(6);
    let id = id(&server.send("/api/1/reports/", &report));
    server.settle();
    let backup = server.directory.join("backup");
    let copied = copy(&server.config, &backup).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (1, 0));
    assert_eq!(check(&Config::new(&backup)).unwrap().problems, Vec::<String>::new());
    let mut out = Vec::new();
    assert_eq!(export(&Config::new(&backup), true, &mut out).unwrap().missing, Vec::<String>::new());
    assert!(String::from_utf8_lossy(&out).contains(&id));
    // To another bucket.
    let mut to = Config::new(server.directory.join("restored"));
    to.listen = "127.0.0.1:0".parse().unwrap();
    to.objects = Some(part_of(&bucket, "restored"));
    assert_eq!(restore(&backup, &to).unwrap().files, 1);
    let restored = Server::start(to.clone()).unwrap();
    let bearer = format!("Bearer {}", server.token);
    let path = format!("/api/v1/projects/1/reports/{id}/raw");
    let raw = crate::client::request(restored.address(), "GET", &path, &[("Authorization", &bearer)], b"");
    assert_eq!(raw.body, report);
    restored.stop();
    assert_eq!(check(&to).unwrap().problems, Vec::<String>::new());
    // What is gone is said.
    bucket.set(&files(&bucket).into_iter().find(|name| name.starts_with("crashes/")).unwrap(), None);
    let copied = copy(&server.config, &server.directory.join("second")).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (0, 1));
}
