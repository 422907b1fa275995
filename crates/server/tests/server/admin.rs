//! Projects, keys and tokens.

use crate::client::{Answer, Running, request};
use backtrail_server::{Config, Server, renew_token};
use backtrail_testkit::fixtures;
use serde_json::{Value, json};

impl Running {
    fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        request(self.address, method, path, &[("Authorization", &bearer)], &body)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn projects_are_made_and_are_apart() {
    let server = Running::start();
    let (admin, null) = (server.token.as_str(), Value::Null);
    let made =
        server.ask("POST", "/api/v1/projects", admin, &json!({ "slug": "weather", "name": "Weather" }));
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json();
    assert_eq!((&made["id"], &made["slug"]), (&json!(2), &json!("weather")));
    let key = text(&made["key"]);
    let report = std::fs::read(fixtures().join("sample/reports/null-member.crash")).unwrap();
    let send =
        |project: &str| server.post(&format!("/api/{project}/reports/?sentry_key={key}"), &[], &report);
    assert_eq!((send("2").status, send("weather").status, send("1").status), (200, 200, 401));
    server.settle();
    let issues = |project: &str| {
        let answer = server.ask("GET", &format!("/api/v1/projects/{project}/issues"), admin, &null);
        answer.json()["issues"].as_array().unwrap().len()
    };
    assert_eq!((issues("weather"), issues("default")), (1, 0));
    let again = server.ask("POST", "/api/v1/projects", admin, &json!({ "slug": "weather" }));
    assert_eq!(again.status, 409);
    for slug in ["", "3", "../x", "A"] {
        let refused = server.ask("POST", "/api/v1/projects", admin, &json!({ "slug": slug }));
        assert_eq!(refused.status, 400, "{slug}");
    }
    for token in [key, "nobody"] {
        let refused = server.ask("POST", "/api/v1/projects", token, &json!({ "slug": "mine" }));
        assert!(matches!(refused.status, 401 | 403), "{}", refused.text());
    }
}

#[test]
fn tokens_are_good_for_what_they_say_until_they_are_revoked() {
    let server = Running::start();
    let (admin, null) = (server.token.as_str(), Value::Null);
    let report = std::fs::read(fixtures().join("sample/reports/null-member.crash")).unwrap();
    server.send("/api/1/reports/", &report);
    server.settle();
    let tokens = "/api/v1/projects/default/tokens";
    let make = |scope: &str| {
        let made =
            server.ask("POST", tokens, admin, &json!({ "scope": scope, "note": format!("a {scope}") }));
        assert_eq!(made.status, 200, "{}", made.text());
        made.json()
    };
    let (read, member, symbols, key) = (make("read"), make("member"), make("symbols"), make("report"));
    let issue = "/api/v1/projects/1/issues/1";
    let resolve = json!({ "state": "resolved" });
    let status = |method: &str, made: &Value, path: &str, body: &Value| {
        let token = text(if made["token"].is_null() { &made["key"] } else { &made["token"] });
        server.ask(method, path, token, body).status
    };
    assert_eq!((status("GET", &read, issue, &null), status("POST", &read, issue, &resolve)), (200, 403));
    assert_eq!((status("GET", &member, issue, &null), status("POST", &member, issue, &resolve)), (200, 200));
    assert_eq!((status("GET", &symbols, issue, &null), status("GET", &key, issue, &null)), (403, 403));
    for made in [&read, &member, &symbols, &key] {
        assert_eq!(status("GET", made, tokens, &null), 403, "only an administrator sees tokens");
    }
    assert_eq!(server.ask("POST", tokens, admin, &json!({ "scope": "admin" })).status, 400);
    let path = format!("/api/1/reports/?sentry_key={}", text(&key["key"]));
    assert_eq!(server.post(&path, &[], &report).status, 200);
    for made in [&member, &key] {
        let revoked = server.ask("DELETE", &format!("{tokens}/{}", made["id"]), admin, &null);
        assert_eq!(revoked.status, 200, "{}", revoked.text());
    }
    assert_eq!(status("GET", &member, issue, &null), 401);
    assert_eq!(server.post(&path, &[], &report).status, 401);
    assert_eq!(server.ask("DELETE", &format!("{tokens}/99"), admin, &null).status, 404);
    let listed = server.ask("GET", tokens, admin, &null);
    let (shown, listed) = (listed.text(), listed.json());
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 5);
    assert!(!shown.contains(text(&read["token"])) && shown.contains(text(&key["key"])), "{shown}");
}

#[test]
fn a_token_that_is_lost_is_made_again() {
    let mut server = Running::start();
    assert!(renew_token(&server.config).is_err(), "the server uses it");
    server.server.take().unwrap().stop();
    let token = renew_token(&server.config).unwrap();
    let started = Server::start(server.config.clone()).unwrap();
    server.address = started.address();
    server.server = Some(started);
    assert_eq!(server.get("/api/v1/projects").status, 401, "the old one");
    server.token = token;
    assert_eq!(server.get("/api/v1/projects").status, 200);
    assert!(renew_token(&Config::new(server.directory.join("none"))).is_err());
}

#[test]
fn a_quota_holds_for_a_day() {
    let server = Running::start();
    let path = "/api/v1/projects/default/quota";
    let report = |number: usize| format!("SIGSEGV of my own, number {number}");
    let send = |number: usize| server.send("/api/1/reports/", report(number).as_bytes());
    assert_eq!(send(0).status, 200);
    let set = server.ask("POST", path, &server.token, &json!({ "reports_a_day": 2 }));
    assert_eq!(set.status, 200, "{}", set.text());
    assert_eq!(set.json()["today"]["reports"], 0, "what came before there was a quota is not counted");
    assert_eq!((send(1).status, send(2).status), (200, 200));
    let refused = send(3);
    assert_eq!(refused.status, 429, "{}", refused.text());
    let head = refused.head.to_ascii_lowercase();
    let seconds =
        head.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap().parse::<u64>().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    assert!(head.contains(&format!("x-sentry-rate-limits: {seconds}::project:quota")), "{head}");
    let shown = server.get(path).json();
    assert_eq!(
        shown["today"],
        json!({ "reports": 2, "bytes": report(1).len() + report(2).len(), "refused": 1 })
    );
    // By bytes.
    server.ask("POST", path, &server.token, &json!({ "bytes_a_day": 1 }));
    assert_eq!(send(3).status, 429);
    server.ask("POST", path, &server.token, &json!({}));
    assert_eq!(send(3).status, 200);
    assert_eq!(server.ask("POST", path, &server.token, &json!({ "reports_a_day": -1 })).status, 400);
    assert_eq!(server.ask("POST", path, &server.key, &json!({})).status, 403);
    // Other projects have their own.
    server.ask("POST", path, &server.token, &json!({ "reports_a_day": 0 }));
    let other = server.ask("POST", "/api/v1/projects", &server.token, &json!({ "slug": "other" })).json();
    let key = other["key"].as_str().unwrap();
    let sent =
        server.post(&format!("/api/{}/reports/?sentry_key={key}", other["id"]), &[], report(9).as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
}
