//! Tables that a server makes of its symbols, by this program.

use crate::serve::{ask, get};
use backtrail_server::{Config, Server, check};
use backtrail_testkit::{TempDir, fixtures};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Running {
    server: Option<Server>,
    address: String,
    token: String,
    data: PathBuf,
    makes_tables: bool,
    /// Removed at the end.
    _directory: TempDir,
}

impl Running {
    fn start(change: impl FnOnce(&mut Config)) -> Self {
        let directory = TempDir::new("serve-tables");
        let data = directory.join("data");
        let mut config = Config::new(&data);
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.tables = Some(env!("CARGO_BIN_EXE_backtrail").into());
        // Why reports are one issue is told of the one that was worked last.
        config.workers = 1;
        change(&mut config);
        let makes_tables = config.tables.is_some();
        let server = Server::start(config).unwrap();
        let token = server.first_start().unwrap().token.clone();
        let address = server.address().to_string();
        Self { server: Some(server), address, token, data, makes_tables, _directory: directory }
    }

    fn request(&self, what: &str, body: &[u8]) -> (u16, Value) {
        let request = format!("{what} HTTP/1.1\r\nAuthorization: Bearer {}", self.token);
        let (status, body) = ask(&self.address, &request, body).unwrap();
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn get(&self, path: &str) -> Value {
        get(&self.address, &self.token, path)
    }

    fn upload(&self, path: &str) -> Value {
        let bytes = std::fs::read(fixtures().join(path)).unwrap();
        let name = path.rsplit('/').next().unwrap();
        let (status, answer) = self.request(&format!("PUT /api/v1/projects/1/symbols/{name}"), &bytes);
        assert_eq!(status, 200, "{path}: {answer}");
        answer["files"].clone()
    }

    /// Waits until no file waits for its table and no report for being worked.
    fn settle(&self) -> Vec<Value> {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let files = self.get("/api/v1/projects/1/symbols")["symbols"].as_array().unwrap().clone();
            let request = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {}", self.token);
            let metrics = ask(&self.address, &request, b"").unwrap().1;
            let is_idle = metrics.contains("\nbacktrail_reports_waiting 0\n");
            if is_idle && !(self.makes_tables && files.iter().any(|file| file["table"] == "waiting")) {
                return files;
            }
            assert!(Instant::now() < end, "{files:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn stop(&mut self) {
        self.server.take().unwrap().stop();
        let checked = check(&Config::new(&self.data)).unwrap();
        assert_eq!(checked.problems, [""; 0]);
    }

    fn files(&self, below: &str) -> usize {
        let mut count = 0;
        let mut directories = vec![self.data.join(below)];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { directories.push(path) } else { count += 1 }
            }
        }
        count
    }
}

const SYMBOLS: [&str; 3] = [
    "sample/symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather",
    "sample/symbols/Telemetry.framework.dSYM/Contents/Resources/DWARF/Telemetry",
    "stacks/orders",
];

/// Whatever is read from reports, but for where files are and when it was.
fn all(server: &Running) -> Vec<Value> {
    for kind in ["ips", "crash"] {
        for name in ["null-member", "null-member-simulator", "sdk-exception", "watchdog", "worker-assertion"]
        {
            let report = std::fs::read(fixtures().join(format!("sample/reports/{name}.{kind}"))).unwrap();
            assert_eq!(server.request("POST /api/1/reports/", &report).0, 200);
        }
    }
    let dump = std::fs::read(fixtures().join("stacks/orders.dmp")).unwrap();
    assert_eq!(server.request("POST /api/1/reports/", &dump).0, 200);
    server.settle();
    let issues = server.get("/api/v1/projects/1/issues");
    let mut all = Vec::new();
    for issue in issues["issues"].as_array().unwrap() {
        let whole = server.get(&format!("/api/v1/projects/1/issues/{}", issue["id"]));
        all.push(["title", "kind", "owner", "why", "count"].iter().map(|name| issue[name].clone()).collect());
        for report in whole["reports"].as_array().unwrap() {
            let path = format!("/api/v1/projects/1/reports/{}", report["id"].as_str().unwrap());
            let mut report = server.get(&path)["report"].clone();
            without_files(&mut report);
            all.push(report);
        }
    }
    all.sort_by_key(Value::to_string);
    all
}

/// A table has another name than the file that it was made of.
fn without_files(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // Of an image: where its files are, and were looked for.
            members.remove("files");
            members.remove("tried");
            members.values_mut().for_each(without_files);
        }
        Value::Array(values) => values.iter_mut().for_each(without_files),
        _ => {}
    }
}

#[test]
fn names_are_the_same_with_tables_and_without() {
    let mut as_they_are = Running::start(|config| config.tables = None);
    let mut with_tables = Running::start(|_| {});
    for path in SYMBOLS {
        as_they_are.upload(path);
        let files = with_tables.upload(path);
        assert_eq!(files[0]["table"], "waiting", "{files}");
    }
    let states: Vec<_> = with_tables.settle().iter().map(|file| file["table"].clone()).collect();
    assert_eq!(states, ["made"; 5], "two of the files are for two architectures");
    assert_eq!(with_tables.files("symbols/1"), 3 + 5, "a table of each beside them");
    let (one, other) = (all(&as_they_are), all(&with_tables));
    assert!(one.len() > 12, "{}", one.len());
    let different = one.iter().zip(&other).position(|(one, other)| one != other);
    assert_eq!(
        (different, one.len()),
        (None, other.len()),
        "{:?}",
        different.map(|at| (&one[at], &other[at]))
    );
    // What is served is what came.
    let uploaded = std::fs::read(fixtures().join(SYMBOLS[0])).unwrap();
    let files = with_tables.upload(SYMBOLS[0]);
    assert_eq!((&files[0]["new"], &files[0]["table"]), (&Value::Bool(false), &Value::from("made")));
    let id = files[0]["id"].as_str().unwrap().replace('-', "");
    let path = format!("GET /symbols/1/buildid/{}/debuginfo HTTP/1.1", id.to_lowercase());
    let served = fetch(&with_tables, &path);
    assert!(served.ends_with(&uploaded), "{} bytes", served.len());
    let sym = fetch(&with_tables, &format!("GET /symbols/1/Weather/{id}0/Weather.sym HTTP/1.1"));
    assert!(String::from_utf8_lossy(&sym).contains("\nFUNC "), "{}", String::from_utf8_lossy(&sym));
    as_they_are.stop();
    with_tables.stop();
}

fn fetch(server: &Running, request: &str) -> Vec<u8> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    let rest = format!("Host: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n", server.token);
    stream.write_all(format!("{request}\r\n{rest}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{request}: {}", String::from_utf8_lossy(&answer));
    answer
}

#[test]
fn a_table_goes_with_its_file() {
    let mut server = Running::start(|_| {});
    let digests: Vec<_> = SYMBOLS.iter().map(|path| server.upload(path)[0]["sha256"].clone()).collect();
    server.settle();
    assert_eq!(server.files("objects"), 3 + 5);
    // Another project has the first, too, and gets its table at once.
    assert_eq!(server.request("POST /api/v1/projects", br#"{"slug":"other","name":"Other"}"#).0, 200);
    let bytes = std::fs::read(fixtures().join(SYMBOLS[0])).unwrap();
    let (_, again) = server.request("PUT /api/v1/projects/other/symbols/x", &bytes);
    assert_eq!(again["files"][0]["table"], "made");
    for digest in &digests {
        let path = format!("DELETE /api/v1/projects/1/symbols/{}", digest.as_str().unwrap());
        assert_eq!(server.request(&path, b"").0, 200);
        assert_eq!(server.request(&path, b"").0, 404);
    }
    assert_eq!(
        (server.files("objects"), server.files("symbols/1"), server.files("symbols/2")),
        (1 + 2, 0, 1 + 2)
    );
    assert_eq!(server.get("/api/v1/projects/1/symbols")["symbols"], Value::Array(Vec::new()));
    server.stop();
}

/// The process has next to no memory: it ends, and nobody reads the file any more.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_takes_too_much_is_set_apart() {
    let mut server = Running::start(|config| config.limits.table_memory = 1 << 10);
    let digest = server.upload(SYMBOLS[1])[0]["sha256"].as_str().unwrap().to_owned();
    let files = server.settle();
    assert_eq!(files[0]["table"], "refused", "{files:#?}");
    assert!(files[0]["problem"].as_str().unwrap().starts_with("making it "), "{files:#?}");
    assert_eq!((server.files("objects"), server.files("symbols")), (1, 0), "it is there, and not looked at");
    // It is tried again when somebody sends it again, and not before.
    assert_eq!(server.upload(SYMBOLS[1])[0]["table"], "waiting");
    assert_eq!(server.settle()[0]["table"], "refused");
    assert_eq!(server.request(&format!("DELETE /api/v1/projects/1/symbols/{digest}"), b"").0, 200);
    assert_eq!(server.files("objects"), 0);
    server.stop();
}

#[test]
fn what_cannot_be_converted_is_used_as_it_is() {
    let mut server = Running::start(|_| {});
    let mut bytes = std::fs::read(fixtures().join(SYMBOLS[2])).unwrap();
    // In `.debug_info`, behind the root of its only unit.
    bytes[0x680..0x720].fill(0xff);
    let (status, answer) = server.request("PUT /api/v1/projects/1/symbols/orders", &bytes);
    assert_eq!(status, 200, "{answer}");
    let files = server.settle();
    assert_eq!(files[0]["table"], "none", "{files:#?}");
    assert!(files[0]["problem"].as_str().unwrap().contains(".debug_info"), "{files:#?}");
    assert_eq!(server.files("symbols/1"), 1);
    server.stop();
}
