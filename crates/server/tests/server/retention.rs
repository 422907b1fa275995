//! Old reports lose their bytes, and nothing else.

use crate::client::{Running, noise, request};
use backtrail_testkit::fixtures;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Another report of the same bug for each number.
fn report(number: usize) -> Vec<u8> {
    let report = std::fs::read_to_string(fixtures().join("sample/reports/null-member.crash")).unwrap();
    format!("{report}\n{number}\n").into_bytes()
}

impl Running {
    /// Those in the directory, and packed ones.
    fn files(&self) -> (usize, i64) {
        let objects = std::fs::read_dir(self.directory.join("data/objects")).unwrap();
        let count = objects.map(|it| std::fs::read_dir(it.unwrap().path()).unwrap().count()).sum();
        (count, self.number("SELECT count(*) FROM packed"))
    }
}

/// A report as a client attaches it, and a further file.
fn envelope(id: &str, report: &[u8], other: Option<&[u8]>) -> Vec<u8> {
    let mut envelope = format!("{{\"event_id\":\"{id}\"}}\n").into_bytes();
    for (bytes, kind) in [(Some(report), "event.applecrashreport"), (other, "event.attachment")] {
        let Some(bytes) = bytes else { continue };
        let count = bytes.len();
        let item = format!("{{\"type\":\"attachment\",\"length\":{count},\"attachment_type\":\"{kind}\"}}\n");
        envelope.extend([item.as_bytes(), bytes, b"\n"].concat());
    }
    envelope
}

/// The oldest go while there is too much; who keeps more than there is loses nothing.
#[test]
fn the_oldest_go_where_there_is_too_much() {
    let mut server = Running::start();
    for number in 0..8 {
        server.send("/api/1/reports/", &report(number));
    }
    server.settle();
    let all = server.number("SELECT sum(size) FROM blob WHERE refs > 0");
    assert!(all > 8 * 1000, "{all}");
    let dropped = "SELECT count(*) FROM report WHERE dropped IS NOT NULL";
    for (bytes, expected) in [(all, 0), (all - 1, 2)] {
        server.restart_with(|config| config.keep_bytes = Some(u64::try_from(bytes).unwrap()));
        let end = Instant::now() + Duration::from_secs(60);
        while server.number(dropped) < expected {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(20));
        }
        // The server looks as soon as it starts; what it does not remove at once it does not remove.
        server.send("/api/1/reports/", &report(7));
        server.settle();
        assert_eq!(server.number(dropped), expected, "{bytes}");
    }
    // The first three and the last three.
    assert_eq!(server.number("SELECT count(*) FROM report WHERE dropped IS NULL"), 6);
}

#[test]
fn old_reports_lose_their_bytes_and_counts_stay() {
    let mut server = Running::start();
    let mut ids = Vec::new();
    for number in 0..8 {
        let id = if number == 5 {
            let id = "5".repeat(32);
            let envelope = envelope(&id, &report(number), Some(&noise(100_000)));
            assert_eq!(server.send("/api/1/envelope/", &envelope).json()["id"], id);
            id
        } else {
            let answer = server.send("/api/1/reports/", &report(number)).json();
            answer["ids"][0].as_str().unwrap().to_owned()
        };
        ids.push(id);
        server.settle();
    }
    server.send("/api/1/reports/", b"nothing that anybody reads");
    // The same bytes are twice here: they stay as long as one of them does.
    let id = format!("{:032x}", 1);
    assert_eq!(server.send("/api/1/envelope/", &envelope(&id, &report(4), None)).status, 200);
    server.settle();
    assert_eq!(server.files(), (1, 9));
    server.restart_with(|config| {
        config.keep = Some(Duration::ZERO);
        config.limits.window = Duration::ZERO;
    });
    let end = Instant::now() + Duration::from_secs(60);
    // Of nine reports of the bug three and three stay; that which nobody can read goes.
    while server.number("SELECT count(*) FROM report WHERE dropped IS NOT NULL") < 4
        || server.files() != (0, 6)
    {
        assert!(Instant::now() < end, "{:?}", server.files());
        std::thread::sleep(Duration::from_millis(20));
    }
    let issues = server.get("/api/v1/projects/1/issues").json();
    assert_eq!(issues["issues"][0]["count"], 9);
    let whole = server.get(&format!("/api/v1/projects/1/issues/{}", issues["issues"][0]["id"])).json();
    let removed = |report: &Value| report["removed"] == json!(true);
    assert_eq!(whole["reports"].as_array().unwrap().iter().filter(|report| removed(report)).count(), 3);
    let gone = server.get(&format!("/api/v1/projects/1/reports/{}", ids[4]));
    assert_eq!((gone.status, gone.json()["removed"].clone()), (200, json!(true)));
    assert_eq!(gone.json()["title"], issues["issues"][0]["title"]);
    assert_eq!(gone.json().get("report"), None);
    assert_eq!(server.get(&format!("/api/v1/projects/1/reports/{}/raw", ids[4])).status, 410);
    for stays in [&ids[0], &ids[2], &ids[7], &id] {
        assert_eq!(server.get(&format!("/api/v1/projects/1/reports/{stays}/raw")).status, 200);
    }
    // What was removed may come again.
    let bearer = format!("Bearer {}", server.token);
    let again = server.send("/api/1/reports/", &report(3));
    assert_eq!(again.status, 200);
    server.settle();
    let again = again.json()["ids"][0].as_str().unwrap().to_owned();
    let path = format!("/api/v1/projects/1/reports/{again}/raw");
    assert_eq!(request(server.address, "GET", &path, &[("Authorization", &bearer)], b"").body, report(3));
    assert_eq!(server.check(), Vec::<String>::new());
    // A start after a kill sweeps, and finds nothing that it may not.
    server.restart_with(|config| std::fs::write(config.data.join("running"), b"").unwrap());
    assert_eq!(server.get(&path).status, 200);
}

#[test]
fn reports_are_deleted_by_id_and_by_what_they_contain() {
    let mut server = Running::start();
    let user = "mallory@example.com";
    let wide: Vec<u8> = "mallory@example.com".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with_user = [report(1), user.as_bytes().to_vec()].concat();
    let mut ids: Vec<String> = Vec::new();
    for report in [&report(0), &with_user, &report(2)] {
        let answer = server.send("/api/1/reports/", report).json();
        ids.push(answer["ids"][0].as_str().unwrap().to_owned());
    }
    let id = "a".repeat(32);
    let attached = envelope(&id, &report(3), Some(&[noise(100_000), wide].concat()));
    assert_eq!(server.send("/api/1/envelope/", &attached).status, 200);
    ids.push(id);
    server.settle();
    assert_ne!(server.stores(user.as_bytes()), Some(false), "packing does not hide it");
    let issues = server.get("/api/v1/projects/1/issues").json();
    assert_eq!(server.files(), (1, 4));

    let bearer = format!("Bearer {}", server.token);
    let ask = |method: &str, path: &str, body: &str| {
        request(server.address, method, path, &[("Authorization", &bearer)], body.as_bytes())
    };
    let deletions = "/api/v1/projects/1/deletions";
    let body = json!({ "containing": user }).to_string();
    // Nobody else may, and a text that everybody's reports have is refused.
    assert_eq!(request(server.address, "POST", deletions, &[], body.as_bytes()).status, 401);
    assert_eq!(ask("POST", deletions, "{\"containing\":\"a\"}").status, 400);
    assert_eq!(ask("POST", "/api/v1/projects/2/deletions", &body).status, 404);
    let answer = ask("POST", deletions, &body).json();
    let expected = json!({ "looked_at": 4, "removed": 2, "waiting": 0, "unread": [], "next": null });
    assert_eq!(answer, expected);
    assert_eq!(ask("POST", deletions, &body).json()["removed"], 0);
    assert_eq!(ask("DELETE", &format!("/api/v1/projects/1/reports/{}", ids[0]), "").json()["removed"], true);
    assert_eq!(ask("DELETE", &format!("/api/v1/projects/1/reports/{}", ids[0]), "").status, 200);
    assert_eq!(ask("DELETE", &format!("/api/v1/projects/1/reports/{}", "b".repeat(32)), "").status, 404);

    assert_eq!(server.files(), (0, 1));
    for (id, status) in ids.iter().zip([410, 410, 200, 410]) {
        let path = format!("/api/v1/projects/1/reports/{id}");
        assert_eq!(server.get(&format!("{path}/raw")).status, status);
        assert_eq!(server.get(&path).json()["title"].is_null(), status == 410);
    }
    // Counts stay what they were.
    assert_eq!(server.get("/api/v1/projects/1/issues").json(), issues);
    assert_eq!(server.check(), Vec::<String>::new());
    // Nor are the bytes in pages of the database that are free.
    server.server.take().unwrap().stop();
    assert_ne!(server.stores(user.as_bytes()), Some(true));
}

#[test]
fn what_is_not_to_be_kept_is_masked_before_it_is_written() {
    let mut server = Running::start();
    let bearer = format!("Bearer {}", server.token);
    let ask = |server: &Running, method: &str, body: &str| {
        let path = "/api/v1/projects/1/scrubbing";
        request(server.address, method, path, &[("Authorization", &bearer)], body.as_bytes())
    };
    let patterns = json!({ "patterns": ["[A-Za-z0-9.]+@[A-Za-z0-9.]+"] });
    assert_eq!(ask(&server, "POST", &patterns.to_string()).json(), patterns);
    assert_eq!(ask(&server, "POST", "{\"patterns\":[\"(\"]}").status, 400);
    server.restart_with(|_| {});
    assert_eq!(ask(&server, "GET", "").json(), patterns);
    let user = b"mallory@example.com";
    let with_user = [report(1), user.to_vec()].concat();
    let id = "a".repeat(32);
    assert_eq!(server.send("/api/1/envelope/", &envelope(&id, &with_user, Some(user))).status, 200);
    let raw = server.send("/api/1/reports/", &[report(2), user.to_vec()].concat()).json();
    server.settle();
    for id in [id.as_str(), raw["ids"][0].as_str().unwrap()] {
        let bytes = server.get(&format!("/api/v1/projects/1/reports/{id}/raw")).body;
        assert_eq!(bytes.len(), with_user.len());
        assert!(bytes.ends_with(b"xxxxxxx@xxxxxxx.xxx"));
    }
    assert_eq!(server.get("/api/v1/projects/1/issues").json()["issues"][0]["count"], 2);
    server.server.take().unwrap().stop();
    assert_ne!(server.stores(user), Some(true));
}
