//! What a server of the first program left goes on: fixtures/server.

use crate::client::{Running, request};
use backtrail_server::{Config, Server, check, copy, restore};
use backtrail_testkit::{TempDir, fixtures};
use rusqlite::types::Value as Cell;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All rows of a file of SQLite's, by table, in an order that they themselves give; of the tables and columns that another one has.
pub(crate) fn rows(file: &Path, known: &Path) -> BTreeMap<String, Vec<Vec<String>>> {
    let [file, known] = [file, known].map(|path| rusqlite::Connection::open(path).unwrap());
    let texts = |sql: &str, of: &[&str]| -> Vec<String> {
        let mut statement = known.prepare(sql).unwrap();
        let rows = statement.query_map(rusqlite::params_from_iter(of), |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = texts("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'", &[]);
    let of_table = |table: &String| {
        let columns = texts("SELECT '\"' || name || '\"' FROM pragma_table_info(?1)", &[table]);
        let mut statement = file.prepare(&format!("SELECT {} FROM {table}", columns.join(", "))).unwrap();
        let row = |row: &rusqlite::Row<'_>| {
            Ok((0..columns.len()).map(|at| format!("{:?}", row.get::<_, Cell>(at).unwrap())).collect())
        };
        let mut all: Vec<Vec<String>> = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
        all.sort();
        all
    };
    let all = tables.iter().filter(|table| !table.starts_with("sqlite_"));
    all.map(|table| (table.clone(), of_table(table))).collect()
}

/// A server on the data of the first one; where there is another database, on what was restored there.
#[test]
fn data_of_the_first_program_goes_on() {
    let first = fixtures().join("server/first");
    let said: Value =
        serde_json::from_slice(&fs::read(fixtures().join("server/first.json")).unwrap()).unwrap();
    let text = |name: &str| said[name].as_str().unwrap().to_owned();
    let directory = TempDir::new("server-first");
    // Never opened where it lies: SQLite would write beside it.
    directory.copy_tree(&first, "first");
    let known = directory.join("first/backtrail.sqlite");
    let before = rows(&known, &known);
    assert!(before["report"].len() == 8 && before["session"].len() == 1, "{before:#?}");
    assert!(before.values().all(|rows| !rows.is_empty()), "{before:#?}");
    let mut config = Config::new(directory.join("data"));
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.database = crate::database();
    config.objects = crate::objects();
    let is_restored = config.database.is_some() || config.objects.is_some();
    if is_restored {
        let restored = restore(&directory.join("first"), &config).unwrap();
        assert_eq!((restored.files, restored.missing.len()), (before["blob"].len() + 1, 0));
    } else {
        directory.copy_tree(&first, "data");
        // As it is, it can be copied.
        let copied = copy(&config, &directory.join("unchanged")).unwrap();
        assert_eq!((copied.files, copied.missing.len()), (before["blob"].len() + 1, 0));
        let problems = check(&config).unwrap().problems;
        assert!(problems.len() == 1 && problems[0].contains("earlier program"), "{problems:?}");
    }
    let start = || Server::start(config.clone()).unwrap();
    let server = start();
    assert_eq!(server.first_start(), None);
    server.stop();
    assert_eq!(check(&config).unwrap().problems, Vec::<String>::new());
    copy(&config, &directory.join("copy")).unwrap();
    assert_eq!(rows(&directory.join("copy/backtrail.sqlite"), &known), before);
    // What it said then it says now.
    let server = start();
    let (key, token, address) = (text("key"), text("token"), server.address());
    let mut server = Running { server: Some(server), address, key, token, directory, config: config.clone() };
    for (path, name) in [("issues", "issues"), ("missing", "missing")] {
        let now = server.get(&format!("/api/v1/projects/1/{path}")).json()[name].take();
        let then = said[name].as_array().unwrap();
        assert_eq!(now.as_array().unwrap().len(), then.len());
        for then in then {
            let now = now.as_array().unwrap().iter().find(|now| now["id"] == then["id"]).unwrap();
            for (name, value) in then.as_object().unwrap() {
                assert_eq!(now[name], *value, "{name} of {then:#}");
            }
        }
    }
    for (report, id) in before["report"].iter().zip(said["reports"].as_array().unwrap()) {
        let path = format!("/api/v1/projects/1/reports/{}", id.as_str().unwrap());
        let raw = server.get(&format!("{path}/raw"));
        let digest = report.iter().find_map(|cell| cell.strip_prefix("Text(\"")?.get(..64)).unwrap();
        let file = first.join("objects").join(&digest[..2]).join(&digest[2..]);
        assert_eq!((raw.status, raw.body), (200, fs::read(file).unwrap()));
        assert_eq!(server.get(&path).status, 200);
    }
    // Who was logged in is, and whoever has the token can.
    let page = |cookie: &str| {
        let cookie = format!("backtrail={cookie}");
        request(server.address, "GET", "/projects/1", &[("Cookie", &cookie)], b"").status
    };
    assert_eq!((page(&text("cookie")), page("0")), (200, 303));
    let form = format!("token={}&next=/", server.token);
    let form_type = [("Content-Type", "application/x-www-form-urlencoded")];
    let login = server.post("/login", &form_type, form.as_bytes());
    assert!(login.status == 303 && login.head.contains("set-cookie"), "{}", login.head);
    // It has names by the symbols that came then, and a new one of the resolved bug is counted there.
    let report = fs::read(fixtures().join("sample/reports/null-member.ips")).unwrap();
    assert_eq!(server.send("/api/1/reports/", &[&report[..], b"\n"].concat()).status, 200);
    server.settle();
    let issue = server.get("/api/v1/projects/1/issues/1").json();
    assert_eq!((&issue["count"], issue["title"].as_str().unwrap().contains("celsius")), (&3.into(), true));
    server.server.take().unwrap().stop();
    assert_eq!(server.check(), Vec::<String>::new());
}
