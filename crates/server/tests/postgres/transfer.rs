//! Backups of one sort of database, restored into the other.

use crate::client::{Running, noise, request};
use crate::first::rows;
use backtrail_server::{Config, Server, check, copy, renew_token, restore};
use backtrail_testkit::{TempDir, fixtures, postgres, psql};
use rusqlite::Connection;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A configuration of its own; with PostgreSQL where `database` has its address.
fn config(data: PathBuf, database: Option<&str>) -> Config {
    let mut config = Config::new(data);
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.database = database.map(str::to_owned);
    config
}

/// A server on what was restored, with the keys of the first one.
fn started(first: &Running, config: Config) -> Running {
    let server = Server::start(config.clone()).unwrap();
    assert_eq!(server.first_start(), None, "there is a project already");
    Running {
        address: server.address(),
        server: Some(server),
        key: first.key.clone(),
        token: first.token.clone(),
        directory: TempDir::new("server-restored"),
        config,
    }
}

fn sample(name: &str) -> Vec<u8> {
    fs::read(fixtures().join("sample").join(name)).unwrap()
}

/// A server over SQLite with rows in every table, of whatever may be in them.
fn full() -> Running {
    let mut server = Running::with(|config| config.database = None);
    server.config.database = None;
    let (bearer, rules) =
        (format!("Bearer {}", server.token), b"[[owner]]\nname = \"Ours\"\nmodule = \"Ours*\"\n");
    let headers = [("Authorization", bearer.as_str())];
    let told = request(server.address, "PUT", "/api/v1/projects/1/rules", &headers, rules);
    assert_eq!(told.status, 200, "{}", told.text());
    for name in ["null-member.ips", "watchdog.crash", "sdk-exception.ips"] {
        assert_eq!(server.send("/api/1/reports/", &sample(&format!("reports/{name}"))).status, 200);
        // One after the other: issues have the numbers that the statements below go by.
        server.settle();
    }
    let large = [&sample("reports/worker-assertion.crash")[..], &hexadecimal(100_000)].concat();
    assert_eq!(server.send("/api/1/reports/", &large).status, 200);
    let envelope = concat!(
        r#"{"event_id":"9ec79c33ec9942ab8353589fcb2e04dc"}"#,
        "\n{\"type\":\"attachment\",\"length\":3,\"filename\":\"log\",\"attachment_type\":\"event.attachment\"}\nabc\n",
        "{\"type\":\"event\"}\n{\"level\":\"error\"}\n"
    );
    assert_eq!(server.send("/api/1/envelope/", envelope.as_bytes()).status, 200);
    let sessions = r#"{"id": "post", "release": "w@1", "os": "iOS 17", "sessions": [{"id": "a", "outcome": "crashed"}],
        "counts": {"well": 7}}"#;
    assert_eq!(server.send("/api/1/sessions/", sessions.as_bytes()).status, 200);
    let bearer = format!("Bearer {}", server.token);
    let ask = |method: &str, path: &str, body: &[u8]| {
        let answer = request(server.address, method, path, &[("Authorization", &bearer)], body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    };
    let symbols = sample("symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    ask("PUT", "/api/v1/projects/1/symbols/Weather", &symbols);
    ask("POST", "/api/v1/projects", br#"{"slug": "second", "name": "Zw\u00f6lf \ud83d\udd25"}"#);
    ask("POST", "/api/v1/projects/1/webhooks", br#"{"url": "http://127.0.0.1:9/none"}"#);
    ask("POST", "/api/v1/projects/1/quota", br#"{"reports_a_day": 1000}"#);
    let anna = br#"{"name": "anna", "password": "correct horse", "scope": "read", "project": "default"}"#;
    ask("POST", "/api/v1/people", anna);
    let form_type = [("Content-Type", "application/x-www-form-urlencoded")];
    let form = format!("token={}&next=/", server.token);
    assert_eq!(server.post("/login", &form_type, form.as_bytes()).status, 303);
    assert_eq!(server.send("/api/1/reports/", &sample("reports/watchdog.ips")).status, 200);
    server.settle();
    server.server.take().unwrap().stop();
    // What this server has no reason to write, and what texts and numbers may be.
    let database = Connection::open(server.config.data.join("backtrail.sqlite")).unwrap();
    database
        .execute_batch(
            "INSERT INTO symbol_conversion (blob, state) SELECT DISTINCT blob, 'made' FROM symbol_file WHERE true \
             ON CONFLICT DO UPDATE SET state = 'made'; \
             INSERT INTO symbol_table (source, image_id, arch, blob) SELECT blob, image_id, 'arm64', blob FROM symbol_file; \
             UPDATE blob SET refs = refs + (SELECT count(*) FROM symbol_table WHERE blob = digest); \
             INSERT INTO notice (webhook, issue, event, release, happened, due) \
             SELECT 1, min(id), 'issue.new', '', 1, 9000000000000000000 FROM issue; \
             UPDATE issue SET assignee = '', spiked = -9223372036854775808, why = char(1, 9, 10, 92, 39, 128293) WHERE id = 1; \
             UPDATE issue SET merged_into = 1 WHERE id = 3; \
             INSERT INTO owner_problem (project, image_id, why, happened) VALUES (1, 'AB', 'it was killed', 7); \
             INSERT INTO bucket (id) VALUES ('a bucket');",
        )
        .unwrap();
    server
}

fn hexadecimal(count: usize) -> Vec<u8> {
    noise(count).iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

fn database_of(directory: &Path) -> PathBuf {
    directory.join("backtrail.sqlite")
}

/// Without the words that are looked for, which PostgreSQL has in another form.
fn same_rows(one: &Path, other: &Path) {
    let (one, other) = (rows(one, one), rows(other, one));
    assert!(one.len() > 20, "{:?}", one.keys());
    for (table, rows) in &one {
        assert!(!rows.is_empty(), "{table} has no row that could be lost");
        assert!(*rows == other[table], "{table}: {rows:#?} are now {:#?}", other[table]);
    }
}

#[test]
fn every_row_comes_through_and_back() {
    let Some(url) = postgres() else { return };
    let first = full();
    let (backup, again, last) =
        (first.directory.join("backup"), first.directory.join("again"), first.directory.join("last"));
    copy(&first.config, &backup).unwrap();
    let moved = config(first.directory.join("moved"), Some(&url));
    let restored = restore(&backup, &moved).unwrap();
    assert_eq!(restored.missing, Vec::<String>::new());
    assert!(restored.files >= 2, "{restored:?}");
    assert_eq!(check(&moved).unwrap().problems, Vec::<String>::new());
    copy(&moved, &again).unwrap();
    same_rows(&database_of(&backup), &database_of(&again));
    let back = config(last, None);
    restore(&again, &back).unwrap();
    same_rows(&database_of(&backup), &database_of(&back.data));
    // Both go on: with new rows whose numbers nobody has, with counts by triggers, and with what is looked for.
    for config in [moved, back] {
        let mut server = started(&first, config);
        let found = |text: &str| server.get(&format!("/api/v1/projects/1/issues?text={text}")).json();
        assert_eq!(found("watchdog")["issues"].as_array().unwrap().len(), 1);
        let before = server.number("SELECT count(*) FROM report");
        let waited = server.number("SELECT sum(reports) FROM missing_image");
        for number in 0..20 {
            let report =
                [&sample("reports/sdk-exception.ips")[..], format!("\n{number}").as_bytes()].concat();
            assert_eq!(server.send("/api/1/reports/", &report).status, 200);
        }
        server.settle();
        assert_eq!(server.number("SELECT count(*) FROM report"), before + 20);
        assert!(server.number("SELECT sum(reports) FROM missing_image") > waited);
        server.server.take().unwrap().stop();
        assert_eq!(server.check(), Vec::<String>::new());
    }
}

/// Leases of a replica that is elsewhere hold nothing up, and files have their plain names.
#[test]
fn what_replicas_had_waits_again() {
    let Some(url) = postgres() else { return };
    let server = Running::start();
    server.send("/api/1/reports/", &sample("reports/watchdog.ips"));
    server.settle();
    server.write(
        "UPDATE report SET state = 'leased', attempts = 1, worker = 1, lease_until = 9000000000000000; \
         UPDATE blob SET place = 'elsewhere'",
    );
    let backup = server.directory.join("backup");
    copy(&server.config, &backup).unwrap();
    for database in [Some(&*url), None] {
        let config = config(server.directory.join(format!("to-{}", database.is_some())), database);
        restore(&backup, &config).unwrap();
        let restored = started(&server, config);
        restored.settle();
        assert_eq!(restored.number("SELECT count(*) FROM report WHERE state = 'done'"), 1);
        assert_eq!(restored.number("SELECT count(*) FROM blob WHERE place IS NOT NULL"), 0);
    }
}

/// A copy is of one moment, whatever comes meanwhile, and has everything that was acknowledged before.
#[test]
fn a_copy_of_a_busy_server_is_whole() {
    let server = Running::start();
    let (is_over, acknowledged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let report = sample("reports/null-member.crash");
    std::thread::scope(|scope| {
        for client in 0..3 {
            let (server, is_over, acknowledged, report) = (&server, &is_over, &acknowledged, &report);
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let large = if number % 5 == 0 { hexadecimal(70_000) } else { Vec::new() };
                    let body = [report, format!("\n{client} {number}\n").as_bytes(), &large].concat();
                    let answer = server.send("/api/1/reports/", &body);
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    acknowledged.lock().unwrap().push(answer.json()["ids"][0].as_str().unwrap().to_owned());
                }
            });
        }
        for round in 0..4 {
            let before = loop {
                let before = acknowledged.lock().unwrap().clone();
                if before.len() > round * 10 {
                    break before;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            };
            let backup = server.directory.join(format!("backup-{round}"));
            assert_eq!(copy(&server.config, &backup).unwrap().missing, Vec::<String>::new());
            assert_eq!(check(&Config::new(&backup)).unwrap().problems, Vec::<String>::new());
            let database = Connection::open(database_of(&backup)).unwrap();
            let mut ids = database.prepare("SELECT event_id FROM report").unwrap();
            let ids: HashSet<String> =
                ids.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            assert!(before.iter().all(|id| ids.contains(id)), "{before:?} in {ids:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// What cannot be restored leaves the database as it was, and is said.
#[test]
fn what_is_no_backup_is_refused() {
    let Some(url) = postgres() else { return };
    let first = full();
    let directory = &first.directory;
    let backup = directory.join("backup");
    copy(&first.config, &backup).unwrap();
    let tables = || psql(&url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").unwrap();
    let mut tried = 0;
    let mut refused = |from: &Path| {
        tried += 1;
        let to = config(directory.join(format!("to-{tried}")), Some(&url));
        restore(from, &to).unwrap_err().to_string()
    };
    let mut changed = |name: &str, change: &dyn Fn(&Path)| {
        let other = directory.join(name);
        restore(&backup, &config(other.clone(), None)).unwrap();
        change(&database_of(&other));
        let why = refused(&other);
        assert_eq!(tables(), "0", "{why}");
        why
    };
    let sql =
        |sql: &'static str| move |file: &Path| Connection::open(file).unwrap().execute_batch(sql).unwrap();
    let why = changed("newer", &sql("PRAGMA user_version = 99"));
    assert!(why.contains("version 99") && why.contains("later program"), "{why}");
    let why = changed("none", &|file| fs::remove_file(file).unwrap());
    assert!(why.contains("backtrail.sqlite"), "{why}");
    let why = changed("broken-off", &|file| {
        fs::rename(file, file.with_file_name("backtrail.sqlite.unfinished")).unwrap();
    });
    assert!(why.contains("broken off"), "{why}");
    let why = changed("other", &|file| fs::write(file, b"whatever").unwrap());
    assert!(why.contains("no backup that can be used") && why.contains("not a database"), "{why}");
    let why = changed("cut", &|file| {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    });
    assert!(why.contains("no backup that can be used"), "{why}");
    let why = changed("mixed", &sql("UPDATE report SET received = 'soon' WHERE id = 2"));
    assert!(why.contains("report") && why.contains("received"), "{why}");
    let why =
        changed("dangling", &sql("PRAGMA foreign_keys = OFF; UPDATE report SET issue = 77 WHERE id = 2"));
    assert!(why.contains("report") && why.contains("foreign key"), "{why}");
    let double = "PRAGMA foreign_keys = OFF; CREATE TABLE other AS SELECT * FROM project; DROP TABLE project; \
        ALTER TABLE other RENAME TO project; INSERT INTO project SELECT * FROM project;";
    let why = changed("twice", &sql(double));
    assert!(why.contains("project") && why.contains("duplicate"), "{why}");
    let why =
        copy(&config(directory.join("no"), Some(&url)), &directory.join("nothing")).unwrap_err().to_string();
    assert!(why.contains("without tables") && !directory.join("nothing").exists(), "{why}");
    let why = renew_token(&config(directory.join("no"), Some(&url))).unwrap_err().to_string();
    assert!(why.contains("without tables"), "{why}");
    assert_eq!(tables(), "0");
    // One that has something is left as it is.
    let to = config(directory.join("to"), Some(&url));
    restore(&backup, &to).unwrap();
    let why = refused(&backup);
    assert!(why.contains("expected an empty database"), "{why}");
    let why = restore(&backup, &to).unwrap_err().to_string();
    assert!(why.contains("empty"), "{why}");
    assert_eq!(check(&to).unwrap().problems, Vec::<String>::new());
}
