//! What clients send is kept, once, or refused.

use crate::client::{Running, request};
use backtrail_testkit::fixtures;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};

const ID: &str = "9ec79c33ec9942ab8353589fcb2e04dc";

fn report(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join("sample/reports").join(name)).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// What no reader takes for more than its magic.
const MINIDUMP: &[u8] = b"MDMP\x93\xa7\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn any_report_by_curl() {
    let server = Running::start();
    let bytes = report("null-member.crash");
    let first = server.send("/api/1/reports/", &bytes);
    assert_eq!(first.status, 200, "{}", first.text());
    let id = first.json()["ids"][0].as_str().unwrap().to_owned();
    assert_eq!(server.send("/api/default/reports", &bytes).json()["ids"][0], id.as_str(), "sent again");
    let two = [bytes.as_slice(), b"\n", &report("watchdog.crash")].concat();
    assert_eq!(server.send("/api/1/reports/", &gzip(&two)).json()["ids"].as_array().unwrap().len(), 2);
    assert_eq!(server.number("SELECT count(*) FROM report"), 3);
    assert_eq!(server.send("/api/1/reports/", b" \n").status, 400);
}

#[test]
fn reports_in_an_archive_are_taken_apart() {
    let server = Running::start();
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0".to_vec();
    core.resize(64, 0);
    for (name, bytes) in [
        ("a/null.crash", report("null-member.crash")),
        ("__MACOSX/a/._null.crash", b"no report".to_vec()),
        ("a/core", core),
        ("two.crash", [report("null-member.crash"), report("watchdog.crash")].concat()),
    ] {
        writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut writer, &bytes).unwrap();
    }
    let mut archive = writer.finish().unwrap().into_inner();
    let answer = server.send("/api/1/reports/", &archive);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["ids"].as_array().unwrap().len(), 3, "{}", answer.text());
    let problems = answer.json()["problems"].as_array().unwrap().clone();
    assert!(
        matches!(&problems[..], [one] if one.as_str().unwrap().starts_with("a/core: ELF cores")),
        "{problems:?}"
    );
    // The bytes of a report are what says whether it was here before.
    assert_eq!(server.number("SELECT count(*) FROM report"), 2);
    archive.truncate(archive.len() / 2);
    assert_eq!(server.send("/api/1/reports/", &archive).status, 400);
}

#[test]
fn keys_are_asked_for() {
    let server = Running::start();
    let bytes = report("null-member.crash");
    let with = |name: &str, value: &str| server.post("/api/1/reports/", &[(name, value)], &bytes).status;
    assert_eq!(server.post("/api/1/reports/", &[], &bytes).status, 401);
    assert_eq!(with("Authorization", "Bearer 0123"), 401);
    assert_eq!(server.send("/api/2/reports/", &bytes).status, 401, "no such project, or not this key's");
    assert_eq!(with("Authorization", &format!("Bearer {}", server.token)), 200);
    let sentry = format!("Sentry sentry_version=7, sentry_key={}, sentry_client=x/1", server.key);
    assert_eq!(with("X-Sentry-Auth", &sentry), 200);
}

#[test]
fn envelopes() {
    let server = Running::start();
    let event = format!("{{\"event_id\":\"{ID}\",\"release\":\"demo@1.0\",\"platform\":\"native\"}}");
    let mut envelope = format!(
        "{{\"event_id\":\"{ID}\"}}\n{{\"type\":\"event\"}}\n{event}\n\
         {{\"type\":\"attachment\",\"attachment_type\":\"event.minidump\",\"length\":{}}}\n",
        MINIDUMP.len()
    )
    .into_bytes();
    envelope.extend_from_slice(MINIDUMP);
    let path = format!("/api/1/envelope/?sentry_key={}", server.key);
    for _ in 0..2 {
        let answer = server.post(&path, &[("Content-Encoding", "gzip")], &gzip(&envelope));
        assert_eq!((answer.status, answer.json()["id"].as_str()), (200, Some(ID)), "{}", answer.text());
    }
    let kept = "SELECT count(*) FROM report WHERE kind = 'minidump' AND stated_release = 'demo@1.0'";
    assert_eq!(server.number(kept), 1);
    assert_eq!(server.number("SELECT count(*) FROM attachment WHERE kind = 'event'"), 1);
    // The key in the envelope itself.
    let dsn = format!("{{\"dsn\":\"http://{}@localhost/1\"}}\n{{\"type\":\"session\"}}\n{{}}\n", server.key);
    assert_eq!(server.post("/api/1/envelope/", &[], dsn.as_bytes()).status, 200);
    assert_eq!(server.post("/api/1/envelope/", &[], b"{}\n{\"type\":\"session\"}\n{}\n").status, 401);
    assert_eq!(server.send("/api/1/envelope/", b"nonsense").status, 400);
    assert_eq!(server.number("SELECT count(*) FROM report"), 1);
}

#[test]
fn events_alone() {
    let server = Running::start();
    let event = format!("{{\"event_id\":\"{ID}\",\"message\":\"x\"}}");
    assert_eq!(server.send("/api/1/store/", event.as_bytes()).json()["id"].as_str(), Some(ID));
    assert_eq!(server.send("/api/1/store/", b"[]").status, 400);
}

#[test]
fn minidumps_of_crashpad_and_breakpad() {
    let server = Running::start();
    let field = |name: &str, file: &str, bytes: &[u8]| {
        let head =
            format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n").into_bytes();
        [head.as_slice(), bytes, b"\r\n"].concat()
    };
    let form = [
        field("prod", "", b"Demo"),
        field("ver", "", b"1.2.3"),
        field("upload_file_minidump", "; filename=\"a.dmp\"", MINIDUMP),
        field("log", "; filename=\"log.txt\"", b"hello"),
        b"--XX--\r\n".to_vec(),
    ]
    .concat();
    let path = format!("/api/1/minidump/?sentry_key={}&product=Demo&guid=1", server.key);
    let headers = [("Content-Type", "multipart/form-data; boundary=XX"), ("Content-Encoding", "gzip")];
    let answer = server.post(&path, &headers, &gzip(&form));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.text();
    assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(server.number("SELECT count(*) FROM report WHERE stated_release = '1.2.3'"), 1);
    assert_eq!(server.number("SELECT count(*) FROM attachment"), 2);
    let raw = [MINIDUMP, b"other"].concat();
    assert_eq!(server.send("/api/1/minidump", &gzip(&raw)).status, 200);
    assert_eq!(server.send("/api/1/minidump/", b"nonsense").status, 400);
    assert_eq!(server.number("SELECT count(*) FROM report"), 2);
}

#[test]
fn clients_that_know_how_to_wait_are_asked_to() {
    let server = Running::with(|config| config.limits.waiting = 0);
    let answer = server.send("/api/1/envelope/", b"{}\n{\"type\":\"event\"}\n{}\n");
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("retry-after: 60"), "{}", answer.head);
    assert_eq!(server.send("/api/1/minidump/", MINIDUMP).status, 200);
}

#[test]
fn what_is_too_large_is_refused() {
    let server = Running::with(|config| {
        config.limits.body = 1 << 20;
        config.limits.reports = 1;
    });
    assert_eq!(server.send("/api/1/reports/", &vec![b'x'; (1 << 20) + 1]).status, 413);
    let bomb = server.post(
        &format!("/api/1/store/?sentry_key={}", server.key),
        &[("Content-Encoding", "gzip")],
        &gzip(&vec![b' '; 64 << 20]),
    );
    assert_eq!(bomb.status, 413);
    let two = [report("null-member.crash"), report("watchdog.crash")].concat();
    assert_eq!(server.send("/api/1/reports/", &two).status, 413);
    assert_eq!(server.number("SELECT count(*) FROM report"), 0);
}

#[test]
fn a_second_server_leaves_the_directory_alone() {
    let server = Running::start();
    let error = backtrail_server::Server::start(server.config.clone()).err().unwrap();
    assert_eq!(error.kind(), backtrail_server::ServerErrorKind::InUse);
    assert_eq!(request(server.address, "GET", "/health", &[], b"").text(), "ok\n");
}

#[test]
fn cores_are_not_taken_whatever_brings_them() {
    let server = Running::start();
    // An ELF header of a core for x86-64, and nothing else.
    let mut core = [&b"\x7fELF\x02\x01\x01"[..], &[0; 57]].concat();
    (core[16], core[18], core[20], core[52], core[54]) = (4, 62, 1, 64, 56);
    assert_eq!(server.send("/api/1/reports/", &core).status, 415);
    let head = format!(
        "{{}}\n{{\"type\":\"attachment\",\"attachment_type\":\"event.applecrashreport\",\"length\":{}}}\n",
        core.len()
    );
    assert_eq!(server.send("/api/1/envelope/", &[head.as_bytes(), &core].concat()).status, 200);
    server.settle();
    let refused = "SELECT count(*) FROM report WHERE state = 'unreadable' AND problem LIKE '%ELF cores%'";
    assert_eq!(server.number(refused), 1);
}

#[test]
fn a_client_that_does_not_read_is_left() {
    let server = Running::with(|config| {
        config.limits.connections = 1;
        config.limits.answer_time = std::time::Duration::from_millis(300);
    });
    // More than the buffers of both ends hold.
    let large = [MINIDUMP, &vec![7; 48 << 20]].concat();
    let answer = server.send("/api/1/minidump/", &large);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.text();
    let mut stream = std::net::TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "GET /api/v1/projects/1/reports/{id}/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token
    )
    .unwrap();
    // It has the one place until it is left.
    assert_eq!(server.get("/api/v1/projects").status, 200);
    let mut received = Vec::new();
    let end = std::io::Read::read_to_end(&mut stream, &mut received);
    assert!(end.is_err() || received.len() < large.len(), "{} bytes came", received.len());
    assert!(received.starts_with(b"HTTP/1.1 200"), "{:?}", received.get(..40));
}

/// An event as Node's `zlib.brotliCompressSync` and Python's `zstandard` pack it.
const MESSAGE: &str =
    r#"{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc","platform":"python","message":"the cart is empty"}"#;
const BROTLI: &str = "1b6000288dd462cd19ee04ffb92d55f742721c4c7e4b4e8e7358d44071a60e4b1f6cc08143604d36804f7aa7b8dc4cc90ffff6ab0385\
    6f72b37029a7a3552b56aa4e6f29d6dc9d102678bf399e9b301acc11cb549f3219";
const ZSTD: &str = "28b52ffd0000cd02001246151a80571d6871a9fdc8ff101113a5dc0cf43e99d9ea189d163447090747cbd6536bd242a9e9cc5af9836c\
    edcb849d87d988597941cfb2496026ac8a017891e882c871c721491606a2fe4e31a0472b2b8d609d176e4300";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn bodies_are_unpacked_as_their_heads_say() {
    let server = Running::start();
    let path = format!("/api/1/store/?sentry_key={}", server.key);
    let send = |encoding: &str, body: &[u8]| server.post(&path, &[("Content-Encoding", encoding)], body);
    for (encoding, packed) in
        [("br", bytes(BROTLI)), ("zstd", bytes(ZSTD)), ("gzip", gzip(MESSAGE.as_bytes()))]
    {
        let answer = send(encoding, &packed);
        assert_eq!((answer.status, answer.json()["id"].as_str().unwrap()), (200, ID), "{encoding}");
        let raw = server.get(&format!("/api/v1/projects/1/reports/{ID}/raw"));
        assert_eq!(raw.text(), MESSAGE, "{encoding}");
        assert_eq!(send(encoding, &packed[..packed.len() / 2]).status, 400, "{encoding}, cut");
        assert_eq!(send(encoding, b"\xffno such thing").status, 400, "{encoding}, something else");
    }
    let unknown = send("compress", MESSAGE.as_bytes());
    assert_eq!(unknown.status, 415);
    assert!(unknown.head.contains("accept-encoding: gzip, deflate, br, zstd"), "{}", unknown.head);
    let blanks = std::io::repeat(b' ').take(64 << 20);
    let bomb = ruzstd::encoding::compress_to_vec(blanks, ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(send("zstd", &bomb).status, 413);
    assert_eq!(server.number("SELECT count(*) FROM report"), 1);
}

#[test]
fn what_is_not_kept_is_said_in_the_protocols_words() {
    let server = Running::start();
    let send = |items: &str| {
        server.send("/api/1/envelope/", format!("{{\"event_id\":\"{ID}\"}}\n{items}").as_bytes())
    };
    let header = |answer: &crate::client::Answer| -> Option<String> {
        let line = answer.head.lines().find_map(|line| line.strip_prefix("x-sentry-rate-limits: "));
        line.map(str::to_owned)
    };
    let both = send(&format!("{{\"type\":\"transaction\"}}\n{{}}\n{{\"type\":\"event\"}}\n{MESSAGE}\n"));
    assert_eq!(both.status, 200);
    assert_eq!(header(&both).as_deref(), Some("86400:transaction:organization:not_kept"));
    let many = send(
        "{\"type\":\"replay_event\"}\n{}\n{\"type\":\"replay_recording\"}\nx\n{\"type\":\"check_in\"}\n{}\n",
    );
    assert_eq!(header(&many).as_deref(), Some("86400:replay;monitor:organization:not_kept"));
    // Clients that heard such words for these would keep back what is wanted.
    for kept in ["event", "session", "attachment", "client_report", "feedback", "user_report", "unheard_of"] {
        let answer = send(&format!("{{\"type\":\"{kept}\"}}\n{{}}\n"));
        assert_eq!((answer.status, header(&answer)), (200, None), "{kept}");
    }
}

#[test]
fn messages_and_what_users_say_are_issues() {
    let server = Running::start();
    let template = json!({ "event_id": "1ec79c33ec9942ab8353589fcb2e04dc", "platform": "python", "timestamp": 1_700_000_000.5,
        "logentry": { "message": "user %s failed", "params": ["bob"], "formatted": "user bob failed" }, "level": "warning" });
    let feedback = json!({ "event_id": "2ec79c33ec9942ab8353589fcb2e04dc", "platform": "javascript",
        "contexts": { "feedback": { "message": "The button does nothing", "associated_event_id": ID } } });
    let older = json!({ "event_id": ID, "name": "Anna", "email": "a@b.c", "comments": "It broke" });
    for (kind, event) in [
        ("event", MESSAGE.to_owned()),
        ("event", template.to_string()),
        ("feedback", feedback.to_string()),
        ("user_report", older.to_string()),
    ] {
        let envelope = format!("{{\"event_id\":\"{ID}\"}}\n{{\"type\":\"{kind}\"}}\n{event}\n");
        let id = serde_json::from_str::<Value>(&event).unwrap()["event_id"].as_str().unwrap().to_owned();
        // An event's id in the head is the event's own.
        let envelope = envelope.replacen(ID, &id, 1);
        assert_eq!(server.send("/api/1/envelope/", envelope.as_bytes()).status, 200);
    }
    server.settle();
    let issues = server.get("/api/v1/projects/1/issues").json();
    let mut titles: Vec<_> =
        issues["issues"].as_array().unwrap().iter().map(|issue| issue["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(
        titles,
        [
            "User feedback: It broke",
            "User feedback: The button does nothing",
            "the cart is empty",
            "user %s failed"
        ]
    );
    let report = server.get("/api/v1/projects/1/reports/1ec79c33ec9942ab8353589fcb2e04dc").json();
    assert_eq!(report["happened"], "2023-11-14T22:13:20.5Z");
    let owners = server.get("/api/v1/projects/1/owners").json();
    assert!(owners["owners"].as_array().unwrap().iter().all(|owner| owner["crashes"] == 0), "{owners:#}");
}

#[test]
fn attachments_are_there_to_be_read() {
    let server = Running::start();
    let envelope = format!(
        "{{\"event_id\":\"{ID}\"}}\n{{\"type\":\"event\"}}\n{MESSAGE}\n\
         {{\"type\":\"attachment\",\"length\":8,\"filename\":\"../<b>log.txt\"}}\nline one\n"
    );
    assert_eq!(server.send("/api/1/envelope/", envelope.as_bytes()).status, 200);
    server.settle();
    let path = format!("/api/v1/projects/1/reports/{ID}");
    let listed = server.get(&path).json()["attachments"].clone();
    assert_eq!(listed, json!([{ "position": 0, "name": "../<b>log.txt", "kind": "attachment", "size": 8 }]));
    let cookie = server.log_in();
    let page = server.page(&cookie, &format!("/projects/default/reports/{ID}")).text();
    assert!(page.contains("../&lt;b&gt;log.txt") && page.contains("/attachments/0"), "{page}");
    for file in [
        server.get(&format!("{path}/attachments/0")),
        server.page(&cookie, &format!("/projects/default/reports/{ID}/attachments/0")),
    ] {
        assert_eq!((file.status, file.text().as_str()), (200, "line one"));
        assert!(file.head.contains("filename=\"__b_log.txt\""), "{}", file.head);
    }
    for wrong in ["1", "-1", "99999999999999999999", "x"] {
        assert!(matches!(server.get(&format!("{path}/attachments/{wrong}")).status, 400 | 404), "{wrong}");
    }
    let other = server.post(
        "/api/v1/projects",
        &[("Authorization", &format!("Bearer {}", server.token))],
        b"{\"slug\":\"other\",\"name\":\"Other\"}",
    );
    assert_eq!(other.status, 200, "{}", other.text());
    assert_eq!(server.get(&format!("/api/v1/projects/other/reports/{ID}/attachments/0")).status, 404);
}

#[test]
fn reports_and_sessions_have_the_clients_release() {
    let server = Running::start();
    let event = json!({ "event_id": ID, "platform": "cocoa", "release": "shop@1.2+34", "contexts": {
        "app": { "app_version": "1.2", "app_build": "34" }, "os": { "name": "Debian 12.11\n" } },
        "exception": { "values": [{ "type": "NSRangeException", "value": "v" }] } });
    let session = json!({ "sid": "5ec79c33-ec99-42ab-8353-589fcb2e04dc", "init": true, "status": "exited",
        "started": "2026-01-01T00:00:00Z", "attrs": { "release": "shop@1.2+34" } });
    let envelope = format!("{{}}\n{{\"type\":\"event\"}}\n{event}\n{{\"type\":\"session\"}}\n{session}\n");
    assert_eq!(server.send("/api/1/envelope/", envelope.as_bytes()).status, 200);
    server.settle();
    let releases = server.get("/api/v1/projects/1/releases").json()["releases"].clone();
    assert_eq!(releases.as_array().unwrap().len(), 1, "{releases:#}");
    assert_eq!((&releases[0]["sessions"], &releases[0]["reports"]), (&json!(1), &json!(1)));
    assert_eq!(server.get(&format!("/api/v1/projects/1/reports/{ID}")).json()["os"], "Debian 12.11");
}
