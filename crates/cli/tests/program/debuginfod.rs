//! `--debuginfod`: what is asked for, what comes of it, and what is said where nothing does.

use crate::run::{Run, backtrail, with_environment};
use backtrail_testkit::{HttpAnswer, HttpServer, TempDir, fixtures};
use serde_json::Value;

const CORE: &str = "fixtures/stacks/orders.core";
const ID: &str = "a8ddfeab095c481d72d5f54e0417876ac6dc1500";

/// Runs with a server, and a directory of its own for what comes.
fn ask(server: &str, arguments: &[&str]) -> Run {
    let cache = TempDir::new("debuginfod-program");
    let cache = cache.path().to_str().unwrap();
    let variables =
        [("DEBUGINFOD_URLS", server), ("DEBUGINFOD_CACHE_PATH", cache), ("DEBUGINFOD_TIMEOUT", "20")];
    with_environment(&variables, &[arguments, &["--debuginfod"]].concat())
}

/// A server that has the program, with its debug info in it, as its binary.
fn server() -> HttpServer {
    let server = HttpServer::new();
    let program = std::fs::read(fixtures().join("stacks/orders")).unwrap();
    server.answer(&format!("/buildid/{ID}/executable"), HttpAnswer::File(program));
    server
}

#[test]
fn a_core_is_walked_and_named_with_what_a_server_has() {
    let here = backtrail(&["stacks", "--core", CORE, "-e", "fixtures/stacks/orders"]);
    for (option, file) in [("--core", CORE), ("--minidump", "fixtures/stacks/orders.dmp")] {
        let server = server();
        let run = ask(&server.url, &["stacks", option, file]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
        assert!(run.stdout.contains("orders.c:"), "{}", run.stdout);
        if option == "--core" {
            assert_eq!(run.stdout, here.stdout);
        }
        let asked = server.asked();
        let expected = ["executable", "debuginfo"].map(|kind| format!("/buildid/{ID}/{kind}"));
        assert!(expected.iter().all(|path| asked.contains(path)), "{asked:?}");
        assert_eq!(asked.len(), 2, "each once, and nothing else: {asked:?}");
    }
}

#[test]
fn what_no_server_has_is_listed_with_what_was_tried() {
    let server = HttpServer::new();
    let run = ask(&server.url, &["stacks", "--core", CORE, "--format", "json"]);
    assert_eq!(run.code, 1, "{}", run.whole());
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    let images = json["images"].as_array().unwrap();
    let image = images.iter().find(|image| image["id"] == ID).unwrap();
    assert_eq!(image["symbols"], "missing");
    let tried = image["tried"].to_string();
    assert!(tried.contains(&format!("buildid/{ID}/debuginfo: not on {}", server.url)), "{tried}");
    let how = image["how_to_get"].as_str().unwrap();
    assert!(how.contains("-s") && !how.contains("--debuginfod"), "{how}");
}

#[test]
fn a_server_that_fails_is_said_once() {
    let server = HttpServer::new();
    for kind in ["executable", "debuginfo"] {
        server.answer(&format!("/buildid/{ID}/{kind}"), HttpAnswer::Status(500));
    }
    let run = ask(&server.url, &["stacks", "--core", CORE]);
    assert_eq!(run.code, 1, "{}", run.whole());
    assert_eq!(run.stderr.matches("answered 500").count(), 1, "{}", run.stderr);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn without_the_flag_nobody_is_asked_and_without_servers_that_is_said() {
    let server = server();
    let urls = [("DEBUGINFOD_URLS", server.url.as_str())];
    let run = with_environment(&urls, &["stacks", "--core", CORE]);
    assert_eq!((run.code, server.asked().len()), (1, 0));
    assert!(run.stdout.contains("--debuginfod"), "{}", run.stdout);
    let run = ask("", &["stacks", "--core", CORE]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("no debuginfod server is set; DEBUGINFOD_URLS names them"), "{}", run.stderr);
    let run = ask("file:///etc", &["stacks", "--core", CORE]);
    assert!(run.stderr.contains("expected http:// or https://"), "{}", run.stderr);
}

#[test]
fn single_files_get_their_debug_file_too() {
    let directory = TempDir::new("debuginfod-stripped");
    let stripped = directory.join("orders");
    let strip = std::process::Command::new("strip")
        .args(["-o", stripped.to_str().unwrap()])
        .arg(fixtures().join("stacks/orders"))
        .status();
    if !strip.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no strip here");
    }
    let server = HttpServer::new();
    let program = std::fs::read(fixtures().join("stacks/orders")).unwrap();
    server.answer(&format!("/buildid/{ID}/debuginfo"), HttpAnswer::File(program));
    let nm = backtrail(&["stacks", "--core", CORE, "-e", "fixtures/stacks/orders", "--format", "json"]);
    let json: Value = serde_json::from_str(&nm.stdout).unwrap();
    let address = json["threads"][0]["frames"][0]["relative_pc"].as_str().unwrap();
    let stripped = stripped.to_str().unwrap();
    let run = ask(&server.url, &["lookup", "-e", stripped, address]);
    assert!(run.code == 0 && run.stdout.contains("orders.c"), "{}", run.whole());
    let table = directory.join("orders.btsym");
    let run = ask(&server.url, &["convert", stripped, "-o", table.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.whole());
    let run = backtrail(&["lookup", "-e", table.to_str().unwrap(), address]);
    assert!(run.stdout.contains("orders.c"), "{}", run.whole());
}

#[test]
fn captures_among_reports_are_walked_with_what_a_server_has() {
    for file in [CORE, "fixtures/stacks/orders.dmp"] {
        let server = server();
        let run = ask(&server.url, &["symbolicate", file]);
        assert!(run.stdout.contains("orders.c:"), "{}", run.whole());
        let asked = server.asked();
        assert!(asked.contains(&format!("/buildid/{ID}/executable")), "{asked:?}");
    }
}
