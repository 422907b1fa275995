//! The server as a program: its first start, its end, and what is left when it is killed.

use crate::run::{backtrail, with_environment};
use backtrail_testkit::{TempDir, fixtures};
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Served {
    child: Child,
    address: String,
    lines: Vec<String>,
}

impl Served {
    fn start(data: &str) -> Self {
        Self::with(&["--data", data], |_| {})
    }

    fn with(options: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backtrail"));
        command.arg("serve").args(options).args(["--listen", "127.0.0.1:0", "--workers", "2"]);
        change(&mut command);
        Self::of(&mut command)
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = vec![String::new()];
        out.read_line(&mut lines[0]).unwrap();
        let address = lines[0].trim().strip_prefix("listening at http://").unwrap().to_owned();
        // What the first start says is written at once.
        let rest = out.buffer();
        lines.extend(String::from_utf8_lossy(rest).lines().map(str::to_owned));
        Self { child, address, lines }
    }

    /// The word behind the one that a line begins with.
    fn said(&self, what: &str) -> String {
        let line = self.lines.iter().find_map(|line| line.strip_prefix(what)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of the answer, if there is a whole one.
pub(crate) fn ask(address: &str, request: &str, body: &[u8]) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let length = body.len();
    let head = format!("{request}\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.to_ascii_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length: ").and_then(|length| length.parse::<usize>().ok())
    })?;
    (body.len() == length).then(|| (status, body.to_owned()))
}

pub(crate) fn get(address: &str, token: &str, path: &str) -> serde_json::Value {
    let request = format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}");
    let (status, body) = ask(address, &request, b"").unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// How often the server is killed; more where somebody wants to know.
fn rounds() -> u32 {
    std::env::var("BACKTRAIL_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(4)
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let directory = TempDir::new("serve-kill");
    let data = directory.join("data");
    let data = data.to_str().unwrap();
    let report = std::fs::read_to_string(fixtures().join("sample/reports/null-member.crash")).unwrap();
    let acknowledged = Mutex::new(Vec::new());
    let (sent, mut token, mut key) = (AtomicUsize::new(0), String::new(), String::new());
    for round in 0..rounds() {
        let mut served = Served::start(data);
        if round == 0 {
            token = served.said("token:");
            let dsn = served.said("DSN:");
            key = dsn.strip_prefix("http://").unwrap().split('@').next().unwrap().to_owned();
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let number = sent.fetch_add(1, Ordering::Relaxed);
                        // Each is another report of the same bug.
                        let body = format!("{report}\n{number}\n");
                        let request = format!("POST /api/1/reports/?sentry_key={key} HTTP/1.1");
                        let Some((200, body)) = ask(&served.address, &request, body.as_bytes()) else {
                            continue;
                        };
                        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
                        acknowledged.lock().unwrap().push(answer["ids"][0].as_str().unwrap().to_owned());
                    }
                });
            }
            // At another moment each time.
            std::thread::sleep(Duration::from_millis(200 + u64::from(round) * 37));
            served.child.kill().unwrap();
            served.child.wait().unwrap();
            stop.store(true, Ordering::Relaxed);
        });
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(!acknowledged.is_empty(), "nothing was sent");
    let different: HashSet<_> = acknowledged.iter().collect();
    assert_eq!(different.len(), acknowledged.len(), "each report has an id of its own");
    let served = Served::start(data);
    let end = Instant::now() + Duration::from_secs(120);
    for id in &acknowledged {
        let path = format!("/api/v1/projects/1/reports/{id}");
        loop {
            let state = get(&served.address, &token, &path)["state"].clone();
            if state == "done" {
                break;
            }
            assert!(state != "quarantined" && state != "unreadable", "{id}: {state}");
            assert!(Instant::now() < end, "{id}: {state}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let issues = get(&served.address, &token, "/api/v1/projects/1/issues");
    let issues = issues["issues"].as_array().unwrap();
    assert_eq!(issues.len(), 1, "{issues:?}");
    // What was not acknowledged may be there, and no more than was sent.
    let count = usize::try_from(issues[0]["count"].as_u64().unwrap()).unwrap();
    assert!((acknowledged.len()..=sent.load(Ordering::Relaxed)).contains(&count), "{count}");
    drop(served);
    let checked = backtrail(&["serve", "--data", data, "--check"]);
    assert_eq!((checked.code, checked.stdout.lines().last()), (0, Some("whole")), "{}", checked.whole());
}

#[test]
fn it_ends_when_it_is_asked_to() {
    let directory = TempDir::new("serve-end");
    let data = directory.join("data");
    let mut served = Served::start(data.to_str().unwrap());
    let id = i32::try_from(served.child.id()).unwrap();
    let status = Command::new("kill").args(["-TERM", &id.to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    assert!(!data.join("running").exists());
    // What it leaves can be copied, and put back from there.
    let paths = ["data", "backup", "restored"].map(|name| directory.join(name).display().to_string());
    let [data, backup, restored] = paths.each_ref().map(String::as_str);
    let copied = backtrail(&["serve", "--data", data, "backup", backup]);
    assert_eq!((copied.code, copied.stdout), (0, format!("{backup}: the database and 0 files\n")));
    let again = backtrail(&["serve", "--data", data, "backup", backup]);
    assert_eq!(again.code, 2, "{}", again.whole());
    assert!(again.stderr.contains("expected an empty directory"), "{}", again.whole());
    assert_eq!(backtrail(&["serve", "--data", restored, "restore", backup]).code, 0);
    assert_eq!(backtrail(&["serve", "--data", restored, "--check"]).code, 0);
    let token = backtrail(&["serve", "--data", restored, "--renew-token"]);
    assert_eq!((token.code, token.stdout.starts_with("token:    ")), (0, true), "{}", token.whole());
}

/// What the first program left goes on, with tables made of its symbols; crates/server/tests/server/first.rs has its rows.
#[test]
fn data_of_the_first_program_is_whole() {
    let directory = TempDir::new("serve-first");
    let data = directory.copy_tree(&fixtures().join("server/first"), "data");
    let data = data.to_str().unwrap();
    let said = std::fs::read(fixtures().join("server/first.json")).unwrap();
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    let token = said["token"].as_str().unwrap();
    let mut served = Served::start(data);
    let end = Instant::now() + Duration::from_secs(300);
    let tables = || get(&served.address, token, "/api/v1/projects/1/symbols")["symbols"][0]["table"].clone();
    while tables() != "made" {
        assert!(Instant::now() < end, "{}", tables());
        std::thread::sleep(Duration::from_millis(50));
    }
    let issues = get(&served.address, token, "/api/v1/projects/1/issues");
    let counts = |of: &serde_json::Value| {
        let issues = of["issues"].as_array().unwrap().iter();
        issues.map(|issue| (issue["id"].to_string(), issue["count"].to_string())).collect::<HashSet<_>>()
    };
    assert_eq!(counts(&issues), counts(&said));
    let id = i32::try_from(served.child.id()).unwrap();
    assert!(Command::new("kill").args(["-TERM", &id.to_string()]).status().unwrap().success());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    let checked = backtrail(&["serve", "--data", data, "--check"]);
    assert_eq!((checked.code, checked.stdout.lines().last()), (0, Some("whole")), "{}", checked.whole());
}

#[test]
fn what_is_no_servers_directory_is_said() {
    let directory = TempDir::new("serve-none");
    let checked = backtrail(&["serve", "--data", directory.join("none").to_str().unwrap(), "--check"]);
    assert_eq!(checked.code, 2, "{}", checked.whole());
}

#[test]
fn symbols_are_sent_once_and_name_what_waited() {
    let directory = TempDir::new("serve-upload");
    let served = Served::start(directory.join("data").to_str().unwrap());
    let (token, key) = (served.said("token:"), served.said("DSN:"));
    let key = key.strip_prefix("http://").unwrap().split('@').next().unwrap();
    let report = std::fs::read(fixtures().join("sample/reports/null-member.ips")).unwrap();
    let request = format!("POST /api/1/reports/?sentry_key={key} HTTP/1.1");
    assert_eq!(ask(&served.address, &request, &report).unwrap().0, 200);
    let end = Instant::now() + Duration::from_secs(120);
    let titles = || {
        let issues = get(&served.address, &token, "/api/v1/projects/1/issues");
        let titles = issues["issues"].as_array().unwrap().iter().map(|issue| issue["title"].to_string());
        titles.collect::<Vec<_>>()
    };
    while titles().is_empty() {
        assert!(Instant::now() < end, "the report is not worked");
        std::thread::sleep(Duration::from_millis(50));
    }
    let url = format!("http://{}/", served.address);
    let upload = |token: &str, path: &str| {
        with_environment(&[("BACKTRAIL_TOKEN", token)], &["upload", path, "--to", &url])
    };
    let symbols = "fixtures/sample/symbols/Weather.app.dSYM";
    let refused = upload("nobody", symbols);
    assert_eq!(refused.code, 2, "{}", refused.whole());
    assert!(refused.stderr.contains("the server answered 401"), "{}", refused.whole());
    let sent = upload(&token, symbols);
    assert_eq!((sent.code, sent.stderr.as_str()), (0, ""), "{}", sent.whole());
    assert!(sent.stdout.contains(": sent, arm64 "), "{}", sent.whole());
    assert!(sent.stdout.contains(", 1 report waited for it\n"), "{}", sent.whole());
    while !titles()[0].ends_with(" in celsius\"") {
        assert!(Instant::now() < end, "{:?}", titles());
        std::thread::sleep(Duration::from_millis(50));
    }
    let again = upload(&token, symbols);
    assert_eq!(again.code, 0, "{}", again.whole());
    let lines: Vec<_> = again.stdout.lines().collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.ends_with(": there already")), "{lines:?}");
    let nothing = upload(&token, "fixtures/sample/reports");
    assert_eq!(nothing.code, 2, "{}", nothing.whole());
    assert!(nothing.stderr.contains("no binary or debug file"), "{}", nothing.whole());
    // A refusal comes before a large file goes, and is not lost with it.
    let map = directory.join("large.map");
    std::fs::write(&map, vec![b'#'; 30 << 20]).unwrap();
    let arguments = ["upload", symbols, "--link-map", map.to_str().unwrap(), "--to", &url];
    let refused = with_environment(&[("BACKTRAIL_TOKEN", "nobody")], &arguments);
    assert!(refused.stderr.contains("large.map: the server answered 401"), "{}", refused.whole());
    let without = with_environment(&[("BACKTRAIL_TOKEN", "")], &["upload", symbols, "--to", &url]);
    assert_eq!(without.code, 2, "{}", without.whole());
    assert!(without.stderr.contains("the variable BACKTRAIL_TOKEN, or --token"), "{}", without.whole());
    let address = url.clone();
    drop(served);
    let gone = with_environment(&[("BACKTRAIL_TOKEN", &token)], &["upload", symbols, "--to", &address]);
    assert_eq!(gone.code, 2, "{}", gone.whole());
    assert!(gone.stderr.contains("the server cannot be asked"), "{}", gone.whole());
}

#[test]
#[cfg(feature = "debuginfod")]
fn readers_name_frames_with_what_a_server_has() {
    let directory = TempDir::new("serve-symbols");
    let served = Served::start(directory.join("data").to_str().unwrap());
    let token = served.said("token:");
    for symbols in ["fixtures/sample/symbols/Weather.app.dSYM", "fixtures/stacks/orders"] {
        let to = format!("http://{}", served.address);
        let sent = with_environment(&[("BACKTRAIL_TOKEN", &token)], &["upload", symbols, "--to", &to]);
        assert_eq!(sent.code, 0, "{}", sent.whole());
    }
    let cache = directory.join("cache");
    let read = |token: &str, arguments: &[&str]| {
        let url = format!("http://{}/symbols/default", served.address);
        let cache = ("DEBUGINFOD_CACHE_PATH", cache.to_str().unwrap());
        with_environment(&[("BACKTRAIL_TOKEN", token), cache], &[arguments, &["-s", &url]].concat())
    };
    let report = ["symbolicate", "fixtures/sample/reports/null-member.ips"];
    let refused = read("nobody", &report);
    assert_eq!(refused.code, 1, "{}", refused.whole());
    assert!(!refused.stdout.contains("celsius"), "{}", refused.whole());
    // Apple's files by their UUIDs, those of ELF by their build ids.
    let named = read(&token, &report);
    assert!(named.stdout.contains("celsius"), "{}", named.whole());
    let binary = "fixtures/sample/app/Weather.app/Weather";
    let looked = read(
        &token,
        &["lookup", "-e", binary, "--arch", "arm64", "--load-address", "0x104430000", "0x1044341cc"],
    );
    assert!(looked.stdout.contains("celsius"), "{}", looked.whole());
    let core = read(&token, &["stacks", "--core", "fixtures/stacks/orders.core"]);
    assert!(core.stdout.contains("orders.c:"), "{}", core.whole());
    assert!(!format!("{}{}", core.whole(), named.whole()).contains(&token), "a token is nobody's to see");
}

#[test]
#[cfg(unix)]
fn a_demonstration_has_named_issues_and_leaves_nothing() {
    let directory = TempDir::new("serve-demo");
    let mut served = Served::with(&["--demo"], |command| {
        command.env("TMPDIR", directory.path());
    });
    let files = || std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(files(), 1);
    let token = served.said("token:");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let issues = get(&served.address, &token, "/api/v1/projects/1/issues");
        let issues = issues["issues"].as_array().unwrap();
        let count: i64 = issues.iter().map(|issue| issue["count"].as_i64().unwrap()).sum();
        let is_named = issues.iter().all(|issue| !issue["title"].as_str().unwrap().contains(" + 0x"));
        if count == 10 && is_named {
            break;
        }
        assert!(Instant::now() < end, "{issues:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let asked = Command::new("kill").arg(served.child.id().to_string()).status().unwrap();
    assert!(asked.success());
    assert!(served.child.wait().unwrap().success());
    assert_eq!(files(), 0);
}

/// Files of at most so many blocks are as good as a full disk.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let directory = TempDir::new("serve-full");
    let data = directory.join("data");
    let data = data.to_str().unwrap();
    // The database is made first: what is full is not the first start.
    drop(Served::start(data));
    let mut full = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 6000; exec \"$0\" serve --data \"$1\" --listen 127.0.0.1:0";
    full.args(["-c", script, env!("CARGO_BIN_EXE_backtrail"), data]);
    let token = backtrail(&["serve", "--data", data, "--renew-token"]).stdout;
    let token = token.split_whitespace().nth(1).unwrap().to_owned();
    let served = Served::of(&mut full);
    let key = get(&served.address, &token, "/api/v1/projects/1/tokens")["tokens"][0]["key"].clone();
    let request = format!("POST /api/1/reports/?sentry_key={} HTTP/1.1", key.as_str().unwrap());
    let report = std::fs::read_to_string(fixtures().join("sample/reports/null-member.crash")).unwrap();
    let mut acknowledged = HashSet::new();
    let mut refused = 0;
    for number in 0..2000 {
        // Bytes that do not pack, so that it is soon full.
        let noise: String = (0_u32..4000)
            .map(|at| char::from(b'a' + (at.wrapping_mul(2_654_435_761 + number * 2) >> 27) as u8 % 26))
            .collect();
        let (status, body) =
            ask(&served.address, &request, format!("{report}\n{number}\n{noise}").as_bytes()).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        match status {
            200 => assert!(acknowledged.insert(body["ids"][0].as_str().unwrap().to_owned())),
            503 => refused += 1,
            status => panic!("{status}: {body}"),
        }
        if refused == 5 {
            break;
        }
    }
    assert!(refused == 5 && acknowledged.len() > 5, "{} acknowledged", acknowledged.len());
    // It still answers, and what it has is there.
    get(&served.address, &token, "/api/v1/projects/1/issues");
    drop(served);
    let served = Served::start(data);
    for id in &acknowledged {
        let report = get(&served.address, &token, &format!("/api/v1/projects/1/reports/{id}"));
        assert_eq!(report["id"], id.as_str());
    }
    let checked = backtrail(&["serve", "--data", data, "--check"]);
    assert_eq!(checked.code, 0, "{}", checked.whole());
    drop(served);
}

/// What a watched process leaves goes to the server.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn a_crash_that_is_watched_becomes_an_issue() {
    let data = TempDir::new("serve-watch");
    let out = TempDir::new("serve-watch-out");
    let served = Served::start(data.path().to_str().unwrap());
    let token = served.said("token:");
    let address =
        served.lines.iter().find_map(|line| line.split("http://").nth(1).filter(|rest| rest.contains('@')));
    let address = address.unwrap().split_whitespace().next().unwrap();
    let (key, _) = address.split_once('@').unwrap();
    let url = format!("http://{key}@{}/api/1/reports/", served.address);
    // A program of the user's, by its path: those of the system alone make no issue without their symbols.
    let program = out.join("orders");
    std::fs::copy("/bin/sh", &program).unwrap();
    let program = program.to_str().unwrap();
    let out = out.path().to_str().unwrap();
    let options = ["watch", "--quiet", "--out", out, "--upload", &url, "--", program, "-c", "kill -SEGV $$"];
    let watched = backtrail(&options);
    if watched.stderr.contains("not permitted") {
        return eprintln!("skipped: processes may not be followed here");
    }
    assert_eq!(watched.code, 128 + 11, "{}", watched.whole());
    assert!(!watched.stderr.contains("not sent"), "{}", watched.whole());
    let end = Instant::now() + Duration::from_secs(120);
    while get(&served.address, &token, "/api/v1/projects/1/issues")["issues"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < end, "the report is not worked");
        std::thread::sleep(Duration::from_millis(50));
    }
    let wrong = url.replace(key, "nobody");
    let options =
        ["watch", "--quiet", "--out", out, "--upload", &wrong, "--", program, "-c", "kill -SEGV $$"];
    let refused = backtrail(&options);
    assert_eq!(refused.code, 128 + 11);
    assert!(refused.stderr.contains("not sent: the server answered 40"), "{}", refused.whole());
    assert!(!refused.stderr.contains("nobody"), "the key is not shown: {}", refused.whole());
}
