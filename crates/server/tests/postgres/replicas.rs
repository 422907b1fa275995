//! Two servers on one database and one directory of files.

use crate::client::{Running, noise, request};
use backtrail_server::{Config, Server, check, export};
use backtrail_testkit::{fixtures, psql};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A further server on the data of the first one; `None` where PostgreSQL is not installed.
fn beside(first: &Running) -> Option<(Server, Config)> {
    let mut config = first.config.clone();
    config.database.as_ref()?;
    config.data = first.directory.join("other");
    config.objects.get_or_insert_with(|| first.config.data.join("objects").into());
    let server = Server::start(config.clone()).unwrap();
    assert_eq!(server.first_start(), None, "there is a project already");
    Some((server, config))
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join("sample").join(name)).unwrap()
}

/// The same bytes at both at the same moment are one report, and each report is counted once.
#[test]
fn what_both_take_is_there_once() {
    let first = Running::start();
    let Some((other, config)) = beside(&first) else { return };
    let report = sample("reports/null-member.crash");
    let of_number = |number: usize| {
        let large = if number.is_multiple_of(3) { noise(100_000) } else { Vec::new() };
        [&report, format!("\n{number}\n").as_bytes(), &large].concat()
    };
    let path = format!("/api/1/reports/?sentry_key={}", first.key);
    let ids: Vec<String> = std::thread::scope(|scope| {
        let send = |address| {
            let (path, of_number) = (&path, &of_number);
            move || {
                let one = |number| {
                    let answer = request(address, "POST", path, &[], &of_number(number));
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    answer.json()["ids"][0].as_str().unwrap().to_owned()
                };
                (0..20).map(one).collect::<Vec<_>>()
            }
        };
        let both = [first.address, other.address()].map(|address| scope.spawn(send(address)));
        both.into_iter().flat_map(|ids| ids.join().unwrap()).collect()
    });
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 20, "{ids:?}");
    first.settle();
    assert_eq!(first.number("SELECT sum(count) FROM issue"), 20);
    let workers = first.number("SELECT count(DISTINCT worker) FROM report");
    assert!((1..=2).contains(&workers), "{workers}");
    // Each shows what the other one took.
    let bearer = format!("Bearer {}", first.token);
    for id in &ids {
        let path = format!("/api/v1/projects/1/reports/{id}/raw");
        for address in [first.address, other.address()] {
            assert_eq!(request(address, "GET", &path, &[("Authorization", &bearer)], b"").status, 200);
        }
    }
    other.stop();
    assert_eq!(first.check(), Vec::<String>::new());
    assert_eq!(check(&config).unwrap().problems, Vec::<String>::new());
    let mut out = Vec::new();
    assert_eq!(export(&config, true, &mut out).unwrap().reports, 20);
}

/// Reports that one replica took are worked with the symbols that another one got.
#[test]
fn symbols_of_one_are_those_of_both() {
    let first = Running::start();
    let Some((other, _)) = beside(&first) else { return };
    let path = format!("/api/1/reports/?sentry_key={}", first.key);
    let report = sample("reports/null-member.ips");
    assert_eq!(request(other.address(), "POST", &path, &[], &report).status, 200);
    first.settle();
    let bearer = format!("Bearer {}", first.token);
    let symbols = sample("symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    let upload = |address, name: &str, method: &str, bytes: &[u8]| {
        let path = format!("/api/v1/projects/1/symbols/{name}");
        let answer = request(address, method, &path, &[("Authorization", &bearer)], bytes);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let uploaded = upload(first.address, "Weather", "PUT", &symbols);
    let waited = uploaded["files"].as_array().unwrap().iter().map(|file| file["waited"].as_i64().unwrap());
    assert_eq!(waited.sum::<i64>(), 1, "{uploaded:#}");
    let digest = uploaded["files"][0]["sha256"].as_str().unwrap().to_owned();
    let title = || first.get("/api/v1/projects/1/issues").json()["issues"][0]["title"].to_string();
    let within = |what: &str, holds: &dyn Fn() -> bool| {
        let until = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    within("the report has names", &|| title().contains("celsius"));
    let link = first.directory.join("other/symbols/1").join(&digest);
    within("the other one has the file", &|| link.exists());
    upload(other.address(), &digest, "DELETE", b"");
    let linked = first.config.data.join("symbols/1").join(&digest);
    within("the first one has it no more", &|| !linked.exists());
    other.stop();
    assert_eq!(first.check(), Vec::<String>::new());
}

/// What one replica was told of whose code it is the other one knows before it works the next report.
#[test]
fn rules_of_one_are_those_of_both() {
    let first = Running::start();
    let Some((other, _)) = beside(&first) else { return };
    let bearer = format!("Bearer {}", first.token);
    let send = |name: &str| {
        let path = format!("/api/1/reports/?sentry_key={}", first.key);
        let report = std::fs::read(fixtures().join("owners").join(name)).unwrap();
        assert_eq!(request(other.address(), "POST", &path, &[], &report).status, 200);
        first.settle();
    };
    send("in-library.crash");
    let rules = b"[[owner]]\nname = \"Ours\"\nmodule = \"Demo\"\n";
    let headers = [("Authorization", bearer.as_str())];
    let path = "/api/v1/projects/1/rules";
    assert_eq!(request(first.address, "PUT", path, &headers, rules).status, 200);
    send("called-back.crash");
    let until = Instant::now() + Duration::from_secs(60);
    while first.number("SELECT count(*) FROM report WHERE owner = 'sdk Ours' AND state = 'done'") < 2 {
        assert!(Instant::now() < until, "both are worked by the rules");
        std::thread::sleep(Duration::from_millis(20));
    }
    other.stop();
    assert_eq!(first.check(), Vec::<String>::new());
}

/// What is leased by a replica that is gone is taken by one that is there.
#[test]
fn what_one_leaves_the_other_takes() {
    let first = Running::start();
    let Some((other, _)) = beside(&first) else { return };
    other.stop();
    first.send("/api/1/reports/", &sample("reports/null-member.ips"));
    first.settle();
    // As a replica leaves it that was killed, for a quarter of an hour.
    first.write(
        "UPDATE report SET state = 'leased', attempts = 1, worker = 1000000, wanted = wanted + 1, \
         lease_until = (extract(epoch FROM now()) * 1000)::bigint + 900000",
    );
    first.settle();
    assert_eq!(first.number("SELECT count(*) FROM report WHERE state = 'done' AND worker < 1000000"), 1);
    assert_eq!(first.check(), Vec::<String>::new());
}

/// The database ends connections at any moment, in the middle of transactions, too: what was acknowledged is there once.
#[test]
fn connections_that_break_lose_nothing() {
    let first = Running::start();
    let Some((other, _)) = beside(&first) else { return };
    let report = sample("reports/null-member.crash");
    let path = format!("/api/1/reports/?sentry_key={}", first.key);
    let url = first.config.database.as_deref().unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE application_name = 'backtrail' AND datname = current_database()";
    let is_over = AtomicBool::new(false);
    let (ids, refused) = std::thread::scope(|scope| {
        let send = |client: usize, address| {
            let (path, report, is_over) = (&path, &report, &is_over);
            move || {
                let (mut ids, mut refused) = (Vec::new(), 0);
                while !is_over.load(Ordering::Relaxed) {
                    let body = [report, format!("\n{client} {}\n", ids.len()).as_bytes()].concat();
                    // Sent again until it is taken.
                    let answer = loop {
                        let answer = request(address, "POST", path, &[], &body);
                        match answer.status {
                            200 => break answer,
                            503 => refused += 1,
                            status => panic!("{status}: {}", answer.text()),
                        }
                    };
                    ids.push(answer.json()["ids"][0].as_str().unwrap().to_owned());
                }
                (ids, refused)
            }
        };
        let addresses = [first.address, other.address(), first.address, other.address()];
        let clients: Vec<_> = addresses
            .into_iter()
            .enumerate()
            .map(|(client, address)| scope.spawn(send(client, address)))
            .collect();
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(50));
            psql(url, end).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        let all = clients.into_iter().map(|client| client.join().unwrap());
        all.fold((Vec::new(), 0), |(mut ids, refused), (more, of_client)| {
            ids.extend(more);
            (ids, refused + of_client)
        })
    });
    assert!(!ids.is_empty(), "{refused} were refused");
    first.settle();
    let different = ids.iter().collect::<HashSet<_>>().len();
    assert_eq!((different, first.number("SELECT count(*) FROM report")), (ids.len(), ids.len() as i64));
    assert_eq!(first.number("SELECT sum(count) FROM issue"), ids.len() as i64);
    other.stop();
    assert_eq!(first.check(), Vec::<String>::new());
}
