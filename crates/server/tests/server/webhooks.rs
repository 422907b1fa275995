//! Somebody is told of new issues.

use crate::client::{Running, request};
use backtrail_testkit::fixtures;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What came: the head in lower case, and the body.
type Told = (String, Value);

/// Takes requests, and answers the first with an error.
fn listen() -> (String, Receiver<Told>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?team=a", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut status = "500 Broken";
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            status = "204 Taken";
            if sender.send((head, serde_json::from_slice(&body).unwrap())).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

fn report(version: &str) -> Vec<u8> {
    let report = std::fs::read_to_string(fixtures().join("sample/reports/null-member.crash")).unwrap();
    let line = report.lines().find(|line| line.starts_with("Version:")).unwrap();
    report.replace(line, &format!("Version:             {version}")).into_bytes()
}

impl Running {
    fn webhooks(&self) -> Value {
        self.get("/api/v1/projects/1/webhooks").json()["webhooks"].clone()
    }
}

#[test]
fn new_issues_and_those_that_return_are_told() {
    let server = Running::start();
    let (address, told) = listen();
    let next = || told.recv_timeout(Duration::from_secs(30)).unwrap();
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str())];
    let path = "/api/v1/projects/1/webhooks";
    let made = server.post(path, &headers, json!({ "url": address }).to_string().as_bytes());
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(made.json()["secret"].as_str().unwrap().len(), 64);
    assert_eq!(server.post(path, &headers, b"{\"url\": \"file:///etc/passwd\"}").status, 400);
    server.send("/api/1/reports/", &report("1.0 (1)"));
    // The first attempt fails, and is told again later.
    let (head, first) = next();
    assert!(head.starts_with("post /hook?team=a http/1.1\r\n"), "{head}");
    assert!(
        head.contains("\ncontent-type: application/json\r")
            && head.contains("\nx-backtrail-signature: sha256=")
    );
    assert_eq!((&first["event"], &first["project"]), (&json!("issue.new"), &json!("default")));
    assert_eq!((&first["release"], &first["issue"]["count"]), (&json!("1.0 (1)"), &json!(1)));
    let url = first["issue"]["url"].as_str().unwrap();
    assert!(
        first["text"].as_str().unwrap().ends_with(url)
            && url.starts_with(&server.server.as_ref().unwrap().url())
    );
    while server.webhooks()[0]["problem"] != json!("answered 500 Internal Server Error")
        && server.webhooks()[0]["problem"] != json!("answered 500")
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.webhooks()[0]["waiting"], 1);
    server.write("UPDATE notice SET due = 0");
    assert_eq!(next().1["issue"], first["issue"]);
    // The same release again is nothing new, and a release that has a resolved one is.
    let issue = &first["issue"]["id"];
    let path_of_issue = format!("/api/v1/projects/1/issues/{issue}");
    assert_eq!(server.post(&path_of_issue, &headers, b"{\"state\": \"resolved\"}").status, 200);
    let mut again = report("1.0 (1)");
    again.extend(b"\n\n");
    server.send("/api/1/reports/", &again);
    server.send("/api/1/reports/", &report("2.0 (2)"));
    let (_, second) = next();
    assert_eq!((&second["event"], &second["release"]), (&json!("issue.returned"), &json!("2.0 (2)")));
    assert_eq!(&second["issue"]["id"], issue);
    // Nobody else sees or makes one.
    let member = json!({ "scope": "member" }).to_string();
    let member = server.post("/api/v1/projects/1/tokens", &headers, member.as_bytes()).json();
    let bearer = format!("Bearer {}", member["token"].as_str().unwrap());
    assert_eq!(request(server.address, "GET", path, &[("Authorization", &bearer)], b"").status, 403);
    let remove = format!("{path}/{}", server.webhooks()[0]["id"]);
    assert_eq!(request(server.address, "DELETE", &remove, &headers, b"").status, 200);
    assert_eq!(server.webhooks(), json!([]));
    assert_eq!(request(server.address, "DELETE", &remove, &headers, b"").status, 404);
}

/// Three times as many as on any day before, and at least 20.
#[test]
fn an_address_that_fails_is_left_alone_for_a_while() {
    let server = Running::start();
    let (address, told) = listen();
    let bearer = format!("Bearer {}", server.token);
    let made = server.post(
        "/api/v1/projects/1/webhooks",
        &[("Authorization", &bearer)],
        json!({ "url": address }).to_string().as_bytes(),
    );
    assert_eq!(made.status, 200, "{}", made.text());
    // Worked together, so that three wait at the same moment.
    let reports = ["null-member", "watchdog", "worker-assertion"];
    let read = |name| std::fs::read(fixtures().join(format!("sample/reports/{name}.crash"))).unwrap();
    assert_eq!(server.send("/api/1/reports/", &reports.map(read).join(&b'\n')).status, 200);
    server.settle();
    // The first is answered with an error; the second and third wait for the address as well.
    told.recv_timeout(Duration::from_secs(30)).unwrap();
    while server.webhooks()[0]["problem"].is_null() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(told.recv_timeout(Duration::from_secs(2)).is_err(), "no other is tried");
    assert_eq!(server.webhooks()[0]["waiting"], 3);
}

#[test]
fn a_spike_is_told_once_a_day() {
    let server = Running::start();
    let (address, told) = listen();
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str())];
    server.send("/api/1/reports/", &report("1.0 (1)"));
    let issue = || server.get("/api/v1/projects/1/issues").json()["issues"][0].clone();
    let wait_for = |count: u64| {
        while issue()["count"] != count {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for(1);
    // The day before yesterday there were six.
    server.write("UPDATE issue SET first = first - 2 * 86400000, count = 6");
    server.write("UPDATE issue_day SET day = day - 2, n = 6");
    let made = server.post(
        "/api/v1/projects/1/webhooks",
        &headers,
        json!({ "url": address }).to_string().as_bytes(),
    );
    assert_eq!(made.status, 200, "{}", made.text());
    let send = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            let mut again = report("1.0 (1)");
            again.extend(vec![b'\n'; number]);
            server.send("/api/1/reports/", &again);
        }
    };
    send(1..15);
    wait_for(20);
    assert_eq!(issue()["spikes"], false);
    send(15..45);
    wait_for(50);
    let (_, event) = told.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!((&event["event"], &event["issue"]["id"]), (&json!("issue.spike"), &issue()["id"]));
    assert!(event["text"].as_str().unwrap().starts_with("Many more in `1.0 (1)`: "), "{event}");
    assert_eq!(issue()["spikes"], true);
    assert_eq!(
        server.webhooks()[0]["waiting"],
        1,
        "it was told once, and is told again since it was not taken"
    );
    assert!(server.page(&server.log_in(), "/projects/default").text().contains("many more today"));
}

#[test]
fn a_flood_is_not_told() {
    let server = Running::start();
    // Nobody listens there.
    let (address, _) = listen();
    let address = address.replace("http://127.0.0.1", "http://127.0.0.2");
    server.write(&format!(
        "INSERT INTO webhook (project, url, secret, created) VALUES (1, '{address}', 's', 0)"
    ));
    server.send("/api/1/reports/", &report("1.0 (1)"));
    while server.webhooks()[0]["problem"].is_null() {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.write(
        "INSERT INTO notice (webhook, issue, event, release, happened, due) \
         WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 99) \
         SELECT 1, 1, 'issue.new', '1', 0, 9e15 FROM n",
    );
    assert_eq!(server.webhooks()[0]["waiting"], 100);
    server.send("/api/1/reports/", &std::fs::read(fixtures().join("sample/reports/watchdog.crash")).unwrap());
    server.settle();
    assert_eq!(
        (&server.webhooks()[0]["waiting"], &server.webhooks()[0]["dropped"]),
        (&json!(100), &json!(1))
    );
    // Tried often enough, it is given up.
    server.write("UPDATE notice SET due = 0, attempts = 5 WHERE due < 9e15");
    while server.webhooks()[0]["dropped"] != json!(2) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.webhooks()[0]["waiting"], 99);
}
