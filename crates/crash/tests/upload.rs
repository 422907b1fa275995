//! Files of earlier crashes are sent, and stay where they were not taken.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may")]

use backtrail_crash::pending;
use backtrail_crash::upload::{Upload, send_pending};
use backtrail_testkit::{HttpAnswer, HttpServer, TempDir};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn crash(kind: &str, directory: &Path) {
    let own = std::env::current_exe().unwrap();
    let host = own.parent().unwrap().parent().unwrap().join("examples/crash_on_demand");
    let mut command = Command::new(host);
    command.arg(kind).arg(directory).stderr(Stdio::null()).stdout(Stdio::null());
    assert!(!command.status().unwrap().success());
}

fn directory() -> (TempDir, Vec<PathBuf>) {
    let directory = TempDir::new("upload");
    for kind in ["segv", "panic"] {
        crash(kind, directory.path());
    }
    let files = pending(directory.path()).unwrap();
    assert_eq!(files.len(), 2);
    (directory, files)
}

fn quick(mut upload: Upload) -> Upload {
    upload.first_wait = Duration::from_millis(5);
    upload.timeout = Duration::from_secs(60);
    upload
}

#[test]
fn files_are_sent_as_they_are_and_removed() {
    let (directory, files) = directory();
    let contents: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let server = HttpServer::new();
    server.answer("/api/1/reports/", HttpAnswer::File(b"{}".to_vec()));
    let upload = quick(Upload::to(format!("{}/api/1/reports/", server.url)));
    let outcome = send_pending(directory.path(), &upload).unwrap();
    assert_eq!((outcome.sent, outcome.left), (2, Vec::new()));
    assert_eq!(server.bodies(), contents);
    assert!(pending(directory.path()).unwrap().is_empty());
}

#[test]
fn runs_are_told_with_how_they_ended() {
    let directory = TempDir::new("upload");
    let own = std::env::current_exe().unwrap();
    let host = own.parent().unwrap().parent().unwrap().join("examples/crash_on_demand");
    for kind in ["run-segv", "run-exit", "run-killed"] {
        let mut command = Command::new(&host);
        command.arg(kind).arg(directory.path()).stderr(Stdio::null()).status().unwrap();
    }
    let server = HttpServer::new();
    server.answer("/api/1/reports/", HttpAnswer::File(b"{}".to_vec()));
    let upload = quick(Upload::to(format!("{}/api/1/reports/", server.url)));
    // The crash file goes, whether or not the server knows of sessions; how the runs ended is known by then.
    let outcome = send_pending(directory.path(), &upload).unwrap();
    assert_eq!((outcome.sent, outcome.sessions, outcome.left.len()), (1, 0, 3));
    server.answer("/api/1/sessions/", HttpAnswer::File(b"{}".to_vec()));
    let outcome = send_pending(directory.path(), &upload).unwrap();
    assert_eq!((outcome.sent, outcome.sessions, outcome.left), (0, 3, Vec::new()));
    let told: Value = serde_json::from_slice(server.bodies().last().unwrap()).unwrap();
    let told = told.as_array().unwrap();
    let outcomes: Vec<_> = told.iter().map(|run| run["sessions"][0]["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["crashed", "well", "abnormal"]);
    assert!(
        told.iter()
            .all(|run| run["release"] == "orders@1" && run["os"].as_str().unwrap().starts_with("Linux "))
    );
    let left = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["btcrash.reserve"]);
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let (directory, _) = directory();
    let server = HttpServer::new();
    server.answer("/", HttpAnswer::Status(503));
    let mut upload = quick(Upload::to(&server.url));
    upload.attempts = 1000;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send_pending(directory.path(), &upload).unwrap());
        while server.asked().len() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.answer("/", HttpAnswer::Status(200));
        assert_eq!(sending.join().unwrap().sent, 2);
    });
}

/// Seen: it was asked again after 2, 4, 8 and 16 seconds, whatever it said.
#[test]
fn a_server_is_asked_again_when_it_says() {
    let (directory, _) = directory();
    let server = HttpServer::new();
    server.answer("/", HttpAnswer::Busy(3));
    let upload = quick(Upload::to(&server.url));
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send_pending(directory.path(), &upload).unwrap());
        while server.asked().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // What it answers is looked up after it has noted who asks.
        std::thread::sleep(Duration::from_secs(1));
        server.answer("/", HttpAnswer::Status(200));
        assert_eq!(sending.join().unwrap().sent, 2);
    });
    assert!(begun.elapsed() >= Duration::from_secs(3) && server.asked().len() == 3, "{:?}", begun.elapsed());
}

#[test]
fn one_that_wants_peace_for_long_is_left_alone_until_the_next_start() {
    let (directory, _) = directory();
    let server = HttpServer::new();
    server.answer("/", HttpAnswer::Busy(86_400));
    let outcome = send_pending(directory.path(), &quick(Upload::to(&server.url))).unwrap();
    assert_eq!((outcome.sent, outcome.left.len(), server.asked().len()), (0, 2, 1));
    assert!(outcome.left[1].1.contains("429, and wants nothing for 86400 s"), "{:?}", outcome.left);
    server.answer("/", HttpAnswer::Redirect("https://elsewhere.example/".to_owned()));
    let outcome = send_pending(directory.path(), &quick(Upload::to(&server.url))).unwrap();
    assert!(outcome.left[0].1.contains("moved to https://elsewhere.example/"), "{:?}", outcome.left);
}

/// What stands behind a status that says that the file is kept changes nothing.
#[test]
fn the_body_of_a_good_answer_does_not_matter() {
    for answer in [HttpAnswer::Cut(vec![b'x'; 100], 3), HttpAnswer::Endless, HttpAnswer::File(vec![0xff; 9])]
    {
        let (directory, _) = directory();
        let server = HttpServer::new();
        server.answer("/", answer.clone());
        let outcome = send_pending(directory.path(), &quick(Upload::to(&server.url))).unwrap();
        assert_eq!((outcome.sent, server.asked().len()), (2, 2), "{answer:?}: {:?}", outcome.left);
    }
}

#[test]
fn what_is_not_taken_stays() {
    let (directory, files) = directory();
    let server = HttpServer::new();
    // Refused for what it is: the next one is tried.
    server.answer("/", HttpAnswer::Status(413));
    let outcome = send_pending(directory.path(), &quick(Upload::to(&server.url))).unwrap();
    assert_eq!((outcome.sent, outcome.left.len(), server.asked().len()), (0, 2, 2));
    assert!(outcome.left[0].1.contains("413"), "{:?}", outcome.left);
    // Nobody there: after the last attempt the others are left, too.
    let mut upload = quick(Upload::to("http://127.0.0.1:9/"));
    upload.attempts = 2;
    let outcome = send_pending(directory.path(), &upload).unwrap();
    assert_eq!((outcome.sent, outcome.left.len()), (0, 2));
    assert_eq!(pending(directory.path()).unwrap(), files);
    let outcome = send_pending(directory.path(), &Upload::to_sentry("no DSN")).unwrap();
    assert!(outcome.left.len() == 2 && outcome.left[0].1.contains("expected a DSN"), "{:?}", outcome.left);
}

#[test]
fn an_envelope_has_stacks_images_and_the_file() {
    let (directory, files) = directory();
    let contents: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let server = HttpServer::new();
    server.answer("/api/17/envelope/", HttpAnswer::File(b"{}".to_vec()));
    let dsn = server.url.replace("http://", "http://key@") + "/17";
    let outcome = send_pending(directory.path(), &quick(Upload::to_sentry(dsn))).unwrap();
    assert_eq!((outcome.sent, outcome.left), (2, Vec::new()));
    for ((body, content), (name, value)) in server
        .bodies()
        .iter()
        .zip(&contents)
        .zip([("SIGSEGV", "SEGV_MAPERR at 0x18"), ("SIGABRT", "no order 17")])
    {
        let lines: Vec<_> = body.splitn(5, |byte| *byte == b'\n').collect();
        let json = |index: usize| serde_json::from_slice::<Value>(lines[index]).unwrap();
        let (head, item, event, attachment) = (json(0), json(1), json(2), json(3));
        assert_eq!(head["event_id"], event["event_id"]);
        assert_eq!(item["length"], lines[2].len());
        assert_eq!(
            (attachment["length"].as_u64().unwrap(), &lines[4][..content.len()]),
            (content.len() as u64, &content[..])
        );
        let exception = &event["exception"]["values"][0];
        assert_eq!(exception["type"], name);
        assert!(exception["value"].as_str().unwrap().contains(value), "{exception}");
        assert!(exception["stacktrace"]["frames"].as_array().unwrap().len() >= 4);
        assert!(event["threads"]["values"].as_array().unwrap().len() >= 4);
        let images = event["debug_meta"]["images"].as_array().unwrap();
        assert!(images.iter().any(|image| image["code_file"].as_str().unwrap().ends_with("crash_on_demand")));
        assert_eq!(event["extra"]["version"], "1.2.3");
        assert_eq!(event["breadcrumbs"]["values"][0]["message"], "about to crash");
    }
}
