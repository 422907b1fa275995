//! What becomes of reports: issues, counts, answers of the API.

use crate::client::{Answer, Running, request};
use backtrail_testkit::fixtures;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The sample's reports with what their issues are called.
fn sample(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join("sample/reports").join(name)).unwrap()
}

impl Running {
    /// Waits until nothing waits to be worked. How long that takes is the machine's business, as long as it gets on.
    pub(crate) fn settle(&self) {
        const LONGEST: Duration = Duration::from_secs(180);
        let (mut before, mut end) = (0, Instant::now() + LONGEST);
        loop {
            let left = self.number("SELECT count(*) FROM report WHERE state IN ('waiting', 'leased')");
            match left {
                0 => return,
                _ if left != before => (before, end) = (left, Instant::now() + LONGEST),
                _ => assert!(Instant::now() < end, "{left} reports are not worked"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn issues(&self, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/v1/projects/1/issues{query}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["issues"].as_array().unwrap().clone()
    }

    fn decide(&self, issue: &Value, decision: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let path = format!("/api/v1/projects/1/issues/{}", issue["id"]);
        self.post(&path, &[("Authorization", &bearer)], decision.to_string().as_bytes())
    }
}

#[test]
fn reports_become_issues() {
    let server = Running::start();
    let null = server.send("/api/1/reports/", &sample("null-member.ips")).json();
    server.send("/api/1/reports/", &sample("null-member.crash"));
    server.send("/api/1/reports/", &sample("watchdog.ips"));
    server.send("/api/1/reports/", b"nothing that anybody reads");
    server.settle();
    let issues = server.issues("?sort=count");
    assert_eq!(issues.len(), 2, "{issues:#?}");
    let first = &issues[0];
    assert_eq!(first["count"], 2, "one bug, two forms of its report");
    assert!(first["title"].as_str().unwrap().starts_with("Null pointer access"), "{first}");
    assert!(!first["why"].as_array().unwrap().is_empty());
    let whole = server.get(&format!("/api/v1/projects/1/issues/{}", first["id"])).json();
    assert_eq!(whole["releases"].as_array().unwrap().len(), 1);
    assert_eq!(whole["days"].as_array().unwrap().last().unwrap(), 2);
    let id = null["ids"][0].as_str().unwrap();
    let report = server.get(&format!("/api/v1/projects/1/reports/{id}")).json();
    assert_eq!((&report["state"], &report["issue"]), (&json!("done"), &first["id"]));
    assert_eq!(report["report"]["explanation"]["title"], "Null pointer access: read at 0x10");
    let advice = &report["report"]["images"][0]["how_to_get"];
    assert!(advice.as_str().unwrap().starts_with("upload the dSYM that has UUID "), "{advice}");
    let raw = server.get(&format!("/api/v1/projects/1/reports/{id}/raw"));
    assert_eq!(raw.body, sample("null-member.ips"));
    assert!(raw.head.contains("content-disposition: attachment"), "{}", raw.head);
    assert!(raw.head.contains("x-content-type-options: nosniff"), "{}", raw.head);
    assert_eq!(server.number("SELECT count(*) FROM report WHERE state = 'unreadable'"), 1);
    assert!(server.number("SELECT count(*) FROM missing") > 0, "there are no symbols yet");
    let missing = server.get("/api/v1/projects/1/missing").json();
    assert_eq!(missing["missing"][0]["reports"], 3, "{missing:#}");
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("backtrail_reports_accepted_total 4"), "{metrics}");
    assert_eq!(server.check(), Vec::<String>::new());
}

/// A report of Android's of a thrown exception, its stack cut or not.
fn thrown(number: usize, is_cut: bool) -> Vec<u8> {
    let rows = [
        "#00 pc 000000000004e000  /apex/com.android.runtime/lib64/bionic/libc.so (abort+164)",
        "#01 pc 0000000000001234  /data/app/com.example.shop/lib/arm64/libshop.so (load_cart(int)+20)",
        "#02 pc 0000000000001300  /data/app/com.example.shop/lib/arm64/libshop.so (main+4)",
    ];
    let rows = rows.get(..if is_cut { 1 } else { 3 }).unwrap().join("\n      ");
    let stars = "*** ".repeat(16);
    format!(
        "{stars}\nBuild fingerprint: 'a/b/c:13/T/1:user/release-keys'\nABI: 'arm64'\n\
         pid: {number}, tid: {number}, name: shop  >>> com.example.shop <<<\n\
         signal 6 (SIGABRT), code -1 (SI_QUEUE), fault addr --------\n\
         Abort message: 'terminating with uncaught exception of type demo::NoCart: cart {number} is not there'\n\n\
         backtrace:\n      {rows}\n"
    )
    .into_bytes()
}

#[test]
fn a_report_that_was_cut_names_the_issue_that_it_is_likely_of() {
    let server = Running::start();
    let cut = server.send("/api/1/reports/", &thrown(1000, true)).json();
    for number in 0..20 {
        assert_eq!(server.send("/api/1/reports/", &thrown(number, false)).status, 200);
    }
    server.settle();
    let issues = server.issues("");
    assert_eq!(issues.len(), 1, "{issues:#?}");
    assert_eq!(issues[0]["count"], 20, "nobody is moved");
    let id = cut["ids"][0].as_str().unwrap();
    let report = server.get(&format!("/api/v1/projects/1/reports/{id}")).json();
    assert_eq!(report["issue"], Value::Null, "the rest of the stack is lost: {report:#}");
    assert_eq!((&report["likely_of"], &report["likely_by"]), (&issues[0]["id"], &json!(20)));
    let page = server.page(&server.log_in(), &format!("/projects/default/reports/{id}")).text();
    assert!(page.contains("Cut short, likely of"), "{page}");
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn people_decide() {
    let server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.send("/api/1/reports/", &sample("watchdog.ips"));
    server.settle();
    let issues = server.issues("");
    let (one, two) = (&issues[0], &issues[1]);
    let answer = server.decide(one, &json!({ "state": "resolved", "assignee": "ann" }));
    assert_eq!((&answer.json()["state"], &answer.json()["assignee"]), (&json!("resolved"), &json!("ann")));
    assert_eq!(server.issues("?state=open").len(), 1);
    assert_eq!(server.decide(one, &json!({ "state": "gone" })).status, 400);
    for into in [json!(99), one["id"].clone()] {
        let refused = server.decide(one, &json!({ "state": "ignored", "merge_into": into }));
        assert!(refused.status == 404 && refused.text().contains("no other to merge"), "{}", refused.text());
    }
    assert!(server.issues("?state=ignored").is_empty(), "all of it is done or nothing");
    let merged = server.decide(one, &json!({ "merge_into": two["id"] })).json();
    assert_eq!(
        (&merged["id"], &merged["count"]),
        (&two["id"], &json!(2)),
        "the answer is what it is a part of"
    );
    assert_eq!(server.issues("").len(), 1);
    assert_eq!(merged["merged"], json!([{ "id": one["id"], "title": one["title"] }]));
    // And change their minds.
    assert_eq!(server.decide(one, &json!({ "split": two["id"] })).status, 404);
    let divided = server.decide(two, &json!({ "split": one["id"] })).json();
    assert_eq!((&divided["count"], &divided["merged"]), (&json!(1), &json!([])));
    let counts: Vec<_> = server.issues("").iter().map(|issue| issue["count"].clone()).collect();
    assert_eq!(counts, [1, 1]);
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn clients_keys_read_nothing() {
    let server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.settle();
    let bearer = format!("Bearer {}", server.key);
    for path in ["/api/v1/projects/1/issues", "/api/v1/projects/1/issues/1", "/api/v1/projects/1/missing"] {
        let with = |headers: &[(&str, &str)]| request(server.address, "GET", path, headers, b"").status;
        assert_eq!(with(&[("Authorization", &bearer)]), 403, "{path}");
        assert_eq!(with(&[]), 401, "{path}");
    }
    // Whether there is such a project only they are told who have all.
    let path = "/api/v1/projects/2/issues";
    assert_eq!(request(server.address, "GET", path, &[("Authorization", &bearer)], b"").status, 401);
    assert_eq!(server.get(path).status, 404);
    // What the router alone sees is said as everything else is.
    let refused = request(server.address, "GET", "/api/1/reports/", &[], b"");
    assert_eq!(refused.status, 405);
    assert!(refused.head.to_ascii_lowercase().contains("allow: post"), "{}", refused.head);
    assert!(refused.json()["detail"].as_str().unwrap().contains("does not take GET"), "{}", refused.text());
    let refused = server.get("/api/v1/projects/1/issues/abc");
    assert_eq!((refused.status, refused.json()), (404, json!({ "detail": "there is nothing here" })));
    let nothing = request(server.address, "GET", "/api/v1/projects", &[("Authorization", &bearer)], b"");
    assert_eq!(nothing.json(), json!({ "projects": [] }));
}

#[test]
fn symbols_that_come_late_heal_old_issues() {
    let server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.settle();
    let before = server.issues("");
    assert!(!before[0]["title"].as_str().unwrap().contains("celsius"), "{before:#?}");
    // As an upload does it.
    let symbols = server.directory.join("data/symbols/1");
    std::fs::create_dir_all(&symbols).unwrap();
    copy_all(&fixtures().join("sample/symbols"), &symbols);
    let mut server = server;
    server.restart();
    server.write("UPDATE report SET state = 'waiting', wanted = wanted + 1");
    server.send("/api/1/reports/", &sample("null-member.crash"));
    server.settle();
    let after = server.issues("");
    assert_eq!(after.len(), 1, "no issue is split: {after:#?}");
    assert_eq!((&after[0]["id"], &after[0]["count"]), (&before[0]["id"], &json!(2)));
    assert!(after[0]["title"].as_str().unwrap().contains("celsius"), "{after:#?}");
    assert_eq!(server.issues("?text=celsius").len(), 1, "it is found by its new name");
    let id = server.get(&format!("/api/v1/projects/1/issues/{}", after[0]["id"])).json();
    let id = id["reports"][0]["id"].as_str().unwrap().to_owned();
    let report = server.get(&format!("/api/v1/projects/1/reports/{id}"));
    assert!(report.text().contains(r#""files":["symbols/1/"#), "{}", report.text());
    let directory = server.directory.path().display().to_string();
    assert!(!report.text().contains(&directory), "a server's directories are its own: {}", report.text());
    let stacks = server.get(&format!("/api/v1/projects/1/issues/{}/stacks", after[0]["id"])).json();
    assert!(stacks["nodes"][0]["name"].as_str().unwrap().contains("celsius"), "{stacks:#}");
    assert_eq!(server.check(), Vec::<String>::new());
}

fn copy_all(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}

#[test]
fn releases_say_how_many_sessions_crashed() {
    let server = Running::start();
    let item = |text: &str| format!("{{}}\n{{\"type\":\"session\"}}\n{text}\n");
    let one = |sid: usize, status: &str| {
        item(&format!(
            r#"{{"sid":"{sid}","init":true,"status":"{status}","attrs":{{"release":"app@1<b>"}}}}"#
        ))
    };
    for sid in 0..9 {
        assert_eq!(server.send("/api/1/envelope/", one(sid, "exited").as_bytes()).status, 200);
    }
    // Sent again, and worse at the end.
    for status in ["ok", "crashed", "crashed"] {
        assert_eq!(server.send("/api/1/envelope/", one(9, status).as_bytes()).status, 200);
    }
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.settle();
    let told = server.get("/api/v1/projects/1/releases").json();
    let releases = told["releases"].as_array().unwrap();
    let app = releases.iter().find(|release| release["release"] == "app@1<b>").unwrap();
    assert_eq!((&app["sessions"], &app["crashed"], &app["reports"]), (&json!(10), &json!(1), &json!(0)));
    assert!((app["crash_free"]["value"].as_f64().unwrap() - 0.9).abs() < 1e-9, "{app}");
    let other = releases.iter().find(|release| release["reports"] == 1).unwrap();
    assert_eq!((&other["sessions"], &other["crash_free"]), (&json!(0), &Value::Null));
}

#[test]
fn programs_post_sessions_of_their_own() {
    let server = Running::start();
    let post = |body: &str| {
        let answer = server.send("/api/1/sessions/", body.as_bytes());
        (answer.status, answer.json())
    };
    let sums = r#"{"release":"app@2","os":"Linux","id":"p1","counts":{"well":7,"errored":1,"crashed":2}}"#;
    assert_eq!(post(sums), (200, json!({ "new": 10, "known": 0 })));
    assert_eq!(post(sums), (200, json!({ "new": 0, "known": 10 })), "sent again");
    let one = |outcome: &str| {
        format!(r#"{{"release":"app@2","os":"Android 14","sessions":[{{"id":"s1","outcome":"{outcome}"}}]}}"#)
    };
    assert_eq!(post(&one("well")).1, json!({ "new": 1, "known": 0 }));
    assert_eq!(post(&one("crashed")).1, json!({ "new": 0, "known": 1 }), "in its worst state");
    assert_eq!(post(&one("well")).1, json!({ "new": 0, "known": 1 }));
    // A client of Sentry that tells of the same session.
    let envelope = "{}\n{\"type\":\"session\"}\n{\"sid\":\"s1\",\"status\":\"exited\",\"attrs\":{\"release\":\"app@2\"}}\n";
    assert_eq!(server.send("/api/1/envelope/", envelope.as_bytes()).status, 200);
    let wrong = post(r#"{"release":"app@2","counts":{"well":1}}"#);
    assert_eq!(wrong.0, 400);
    assert!(wrong.1["detail"].as_str().unwrap().contains("expected sessions as JSON: an id"), "{wrong:?}");
    assert_eq!(server.post("/api/1/sessions", &[], sums.as_bytes()).status, 401);
    let told = server.get("/api/v1/projects/1/releases").json()["releases"][0].clone();
    let of =
        |row: &Value| ["sessions", "errored", "abnormal", "crashed"].map(|name| row[name].as_i64().unwrap());
    assert_eq!((&told["release"], of(&told)), (&json!("app@2"), [11, 1, 0, 3]));
    let systems = server.get("/api/v1/projects/1/releases?release=app@2").json();
    let systems: Vec<_> =
        systems["systems"].as_array().unwrap().iter().map(|row| (row["os"].clone(), of(row))).collect();
    assert_eq!(systems, [(json!("Linux"), [10, 1, 0, 2]), (json!("Android 14"), [1, 0, 0, 1])]);
    assert_eq!(server.get("/api/v1/projects/1/releases?release=other").json()["systems"], json!([]));
}

#[test]
fn the_stacks_of_an_issue_are_merged() {
    let server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.send("/api/1/reports/", &sample("null-member.crash"));
    server.settle();
    let issue = &server.issues("")[0];
    let stacks = server.get(&format!("/api/v1/projects/1/issues/{}/stacks", issue["id"])).json();
    assert_eq!((&stacks["reports"], &stacks["cut"]), (&json!(2), &json!(false)), "{stacks:#}");
    let nodes = stacks["nodes"].as_array().unwrap();
    assert_eq!(
        (&nodes[0]["depth"], &nodes[0]["count"]),
        (&json!(0), &json!(2)),
        "both crashed there: {stacks:#}"
    );
    assert!(nodes.len() > 3 && nodes.iter().all(|node| node["count"] == 2), "{stacks:#}");
    assert_eq!(server.get("/api/v1/projects/1/issues/99/stacks").status, 404);
}

#[test]
fn issues_are_found_by_words() {
    let server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.send("/api/1/reports/", &sample("watchdog.ips"));
    server.settle();
    let found = |words: &str| server.issues(&format!("?text={words}")).len();
    assert_eq!(found(""), 2);
    assert_eq!(found("Null+pointer"), 1);
    assert_eq!(found("pointer+NULL"), 1, "in any order, in letters of any size");
    assert_eq!(found("oint"), 1, "inside of words");
    assert_eq!(found("pointer+nowhere"), 0, "all of them");
    assert_eq!(found("weather"), 2, "the owner has it");
    assert_eq!((found("0x+pointer"), found("zq+pointer")), (1, 0), "what is short is looked for in titles");
    assert_eq!(
        (found("semaphore_wait_slow"), found("libdispatch.dylib")),
        (1, 1),
        "functions and images of stacks"
    );
    assert_eq!((found("libdispatch.so"), found("-%5BUIEventFetcher")), (0, 0), "not of other threads");
    assert_eq!((found("release:2.1*"), found("release:1*")), (2, 0));
    assert_eq!(found("Null+RELEASE:2*+os:%22iPhone+OS+17.4*%22+owner:*weather*"), 1);
    assert_eq!((found("owner:weather"), found("os:iPhone"), found("release:%25")), (0, 0, 0), "whole values");
    assert_eq!(found("assignee:ann*"), 0);
    // Nothing of it is an operator, and nothing of it an error.
    for hostile in [
        "%22",
        "os:",
        "os:%22",
        "owner:%22%22",
        "release:%5C",
        "os:%00",
        "release:*******************",
        "%22%22%22",
        "NEAR(a+b)",
        "a*b+OR+NOT",
        "title:null",
        "%00abc",
        "%5E-%28%29%7B%7D",
        "'--",
    ] {
        let answer = server.get(&format!("/api/v1/projects/1/issues?text={hostile}"));
        assert_eq!(answer.status, 200, "{hostile}: {}", answer.text());
    }
    let long = "abc+".repeat(5_000);
    let answer = server.get(&format!("/api/v1/projects/1/issues?text={long}"));
    assert!(answer.status < 500, "{}", answer.status);
    // What was merged into another is found there.
    let both: Vec<_> =
        server.issues("").iter().map(|issue| (issue["id"].clone(), issue["title"].clone())).collect();
    let [(from, _), (into, _)] = &both[..] else { panic!("{both:?}") };
    let bearer = format!("Bearer {}", server.token);
    let merge = json!({ "merge_into": into }).to_string();
    let path = format!("/api/v1/projects/1/issues/{from}");
    assert_eq!(server.post(&path, &[("Authorization", &bearer)], merge.as_bytes()).status, 200);
    for (_, title) in &both {
        let words = title.as_str().unwrap().split(' ').filter(|word| word.chars().all(char::is_alphabetic));
        let words: Vec<_> = words.filter(|word| word.len() > 3).collect();
        let found = server.issues(&format!("?text={}", words.join("+")));
        assert_eq!(found.iter().map(|issue| &issue["id"]).collect::<Vec<_>>(), [into], "{title}");
    }
}

#[test]
fn owners_have_versions_apps_and_rates() {
    let mut server = Running::start();
    assert_eq!(server.get("/api/v1/projects/1/owners").json()["owners"], json!([]));
    assert_eq!(server.get("/api/v1/projects/1/owners?owner=sdk%20Telemetry").status, 404);
    let exception = String::from_utf8(sample("sdk-exception.ips")).unwrap();
    let older = exception.replacen(
        "telemetry\",\"CFBundleShortVersionString\":\"2.1\"",
        "telemetry\",\"CFBundleShortVersionString\":\"2.0<b>\"",
        1,
    );
    assert_ne!(exception, older);
    let release = "2.1 (340)";
    let sessions = format!(
        "{{}}\n{{\"type\":\"sessions\"}}\n{{\"aggregates\":[{{\"started\":\"2026-01-01T00:00:00Z\",\"exited\":8}}],\
         \"attrs\":{{\"release\":\"{release}\"}}}}\n"
    );
    assert_eq!(server.send("/api/1/envelope/", sessions.as_bytes()).status, 200);
    for report in
        [exception.as_bytes(), older.as_bytes(), &sample("null-member.ips"), &sample("watchdog.ips")]
    {
        assert_eq!(server.send("/api/1/reports/", report).status, 200);
    }
    let caught = json!({ "event_id": "9ec79c33ec9942ab8353589fcb2e04dc", "platform": "python", "exception": { "values": [{
        "type": "ValueError", "value": "v", "mechanism": { "type": "generic", "handled": true },
        "stacktrace": { "frames": [{ "function": "load", "module": "shop.cart", "filename": "cart.py", "lineno": 7, "in_app": true }] }
    }] } });
    assert_eq!(server.send("/api/1/store/", caught.to_string().as_bytes()).status, 200);
    server.settle();
    let all = server.get("/api/v1/projects/1/owners").json();
    let owner = |name: &str| {
        let owners = all["owners"].as_array().unwrap();
        owners.iter().find(|owner| owner["owner"] == name).unwrap_or_else(|| panic!("{all:#}")).clone()
    };
    let (sdk, app) = (owner("sdk Telemetry"), owner("app Weather"));
    assert_eq!((&sdk["crashes"], &sdk["reports"]), (&json!(2), &json!(2)), "{all:#}");
    assert_eq!((&app["crashes"], &app["reports"]), (&json!(2), &json!(2)), "{all:#}");
    let mut caught =
        all["owners"].as_array().unwrap().iter().map(|owner| (&owner["crashes"], &owner["reports"]));
    assert_eq!(caught.next_back(), Some((&json!(0), &json!(1))), "what was caught is no crash: {all:#}");
    assert_eq!((&sdk["sessions"], &sdk["rate"]["value"]), (&json!(8), &json!(0.25)), "{all:#}");
    let path = "/api/v1/projects/1/owners?owner=sdk%20Telemetry";
    let one = server.get(path).json();
    let counts = |list: &str| -> Vec<(String, u64)> {
        let rows = one[list].as_array().unwrap().iter();
        let of = list.strip_suffix('s').unwrap();
        rows.map(|row| (row[of].as_str().unwrap().to_owned(), row["crashes"].as_u64().unwrap())).collect()
    };
    assert_eq!(counts("versions"), [("2.0<b>".to_owned(), 1), ("2.1".to_owned(), 1)]);
    assert_eq!(counts("apps"), [("com.example.weather".to_owned(), 2)]);
    assert_eq!(counts("releases"), [(release.to_owned(), 2)]);
    assert_eq!(one["releases"][0]["rate"]["value"], json!(0.25));
    assert_eq!(one["issues"].as_array().unwrap().len(), 1, "{one:#}");
    let cookie = server.log_in();
    let page = server.page(&cookie, "/projects/default/owners").text();
    assert!(page.contains("owners?owner=sdk%20Telemetry") && page.contains("25.00 %"), "{page}");
    let page = server.page(&cookie, "/projects/default/owners?owner=sdk%20Telemetry").text();
    assert!(page.contains("2.0&lt;b&gt;") && page.contains("com.example.weather"), "{page}");
    // What is worked again is counted as it was found last, and once.
    let dsym = fixtures().join("sample/symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    server.upload("Weather", &std::fs::read(dsym).unwrap());
    server.settle();
    assert_eq!(server.get(path).json()["apps"], one["apps"]);
    server.restart();
    assert_eq!(server.check(), Vec::<String>::new());
}
