//! `server-load events`: native Sentry events, made from Apple's reports, to a server of its own and to another of Sentry's protocol in
//! turn, from the same machine.
#![allow(
    clippy::indexing_slicing,
    reason = "values of JSON, whose index gives null, and lists that are not empty"
)]

use crate::client::Connection;
use crate::{Data, Result, Server, by_clients, drained, rate, spread};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the other server may stand still before its count of events is taken as its last.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Options {
    program: PathBuf,
    directory: PathBuf,
    reports: PathBuf,
    peer: Dsn,
    peer_count: String,
    events: usize,
    rounds: usize,
    clients: usize,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let usage = || {
            "expected events BACKTRAIL DIR REPORTS --peer DSN --peer-count COMMAND [--events COUNT] [--rounds COUNT] [--clients COUNT]"
                .to_owned()
        };
        let [program, directory, reports, rest @ ..] = arguments else { return Err(usage()) };
        let (mut peer, mut peer_count) = (None, None);
        let (mut events, mut rounds, mut clients) = (1000, 3, 4);
        for option in rest.chunks(2) {
            let [name, value] = option else { return Err(usage()) };
            let number = || value.parse::<usize>().map(|count| count.max(1)).map_err(|_| usage());
            match name.as_str() {
                "--peer" => peer = Dsn::parse(value),
                "--peer-count" => peer_count = Some(value.clone()),
                "--events" => events = number()?,
                "--rounds" => rounds = number()?,
                "--clients" => clients = number()?,
                _ => return Err(usage()),
            }
        }
        Ok(Self {
            program: program.into(),
            directory: directory.into(),
            reports: reports.into(),
            peer: peer.ok_or_else(usage)?,
            peer_count: peer_count.ok_or_else(usage)?,
            events,
            rounds,
            clients,
        })
    }

    /// Events that the other server has stored, as the command says.
    fn stored(&self) -> Result<usize> {
        let output = Command::new("sh").args(["-c", &self.peer_count]).output();
        let output = output.map_err(|error| format!("{}: {error}", self.peer_count))?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| format!("{}: expected a number, found {text:?}", self.peer_count))
    }
}

/// Where a client of Sentry's sends: `http://KEY@HOST:PORT/PROJECT`.
struct Dsn {
    key: String,
    address: String,
    project: String,
}

impl Dsn {
    fn parse(text: &str) -> Option<Self> {
        let (key, rest) = text.strip_prefix("http://")?.split_once('@')?;
        let (address, project) = rest.trim_end_matches('/').split_once('/')?;
        Some(Self { key: key.to_owned(), address: address.to_owned(), project: project.to_owned() })
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let events = events(options)?;
    let bytes: usize = events.iter().map(|event| event.to_string().len()).sum();
    println!("{} events of {} bytes on average", events.len(), bytes / events.len());
    let mut rates = [const { Vec::new() }; 2];
    for round in 0..options.rounds {
        // Neither is always the one that comes after the other.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for which in order {
            let measured =
                if which == 0 { own(options, &events, round)? } else { peer(options, &events, round)? };
            println!("round {}: {}: {}", round + 1, ["backtrail", "peer"][which], measured.words);
            rates[which].push(measured.worked);
        }
    }
    let [own, peer] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!(
        "medians: backtrail {own:.0} a second accepted and worked, peer {peer:.0}: {:.1} times",
        own / peer
    );
    Ok(())
}

struct Measured {
    /// Events a second that were accepted and worked.
    worked: f64,
    words: String,
}

fn own(options: &Options, events: &[Value], round: usize) -> Result<Measured> {
    let data = Data { directory: options.directory.join(format!("round-{round}")), objects: None };
    let server = Server::start(&options.program, &data)?;
    let dsn = Dsn { key: server.key.clone(), address: server.address.clone(), project: "1".to_owned() };
    // As with the other server, nothing is opened for the first time while the clock runs.
    send(&dsn, options, events, events.len(), round)?;
    drained(&server)?;
    let began = Instant::now();
    let mut times = send(&dsn, options, events, options.events, round)?;
    let accepted = began.elapsed();
    drained(&server)?;
    let mut measured = Measured::of(options, accepted, began.elapsed(), &mut times);
    measured.words += &format!(", RssAnon {}", server.status("RssAnon"));
    Ok(measured)
}

fn peer(options: &Options, events: &[Value], round: usize) -> Result<Measured> {
    let settle = |wanted: usize| -> Result<usize> {
        let (mut seen, mut since) = (options.stored()?, Instant::now());
        while seen < wanted && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            let now = options.stored()?;
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        Ok(seen)
    };
    let before = options.stored()?;
    send(&options.peer, options, events, events.len(), round)?;
    let before = settle(before + events.len())?;
    let began = Instant::now();
    let mut times = send(&options.peer, options, events, options.events, round)?;
    let accepted = began.elapsed();
    let stored = settle(before + options.events)?;
    let mut measured = Measured::of(options, accepted, began.elapsed(), &mut times);
    let lost = (before + options.events).saturating_sub(stored);
    if lost > 0 {
        measured.words += &format!(", {lost} accepted and not there {} s later", PATIENCE.as_secs());
    }
    Ok(measured)
}

impl Measured {
    fn of(options: &Options, accepted: Duration, worked: Duration, times: &mut [Duration]) -> Self {
        let worked = rate(options.events, worked);
        let words = format!(
            "accepted {:.0} a second ({}), accepted and worked {worked:.0}",
            rate(options.events, accepted),
            spread(times)
        );
        Self { worked, words }
    }
}

/// Sends so many envelopes of one event, each with an id of its own.
fn send(dsn: &Dsn, options: &Options, events: &[Value], count: usize, round: usize) -> Result<Vec<Duration>> {
    let one = |client: usize| -> Result<Vec<Duration>> {
        let mut connection = None;
        let mut times = Vec::new();
        for number in (client..count).step_by(options.clients) {
            let mut event = events[number % events.len()].clone();
            let id = format!("{:08x}{round:04x}{count:08x}{number:012x}", std::process::id());
            event["event_id"] = json!(id);
            let item = event.to_string();
            let body = format!(
                "{}\n{}\n{item}\n",
                json!({"event_id": id}),
                json!({"type": "event", "length": item.len()})
            );
            let head = format!(
                "POST /api/{}/envelope/?sentry_key={}&sentry_version=7 HTTP/1.1\r\nHost: {}\r\nContent-Type: \
                 application/x-sentry-envelope\r\nContent-Length: {}\r\n\r\n",
                dsn.project,
                dsn.key,
                dsn.address,
                body.len()
            );
            let began = Instant::now();
            let open = match connection.as_mut() {
                Some(open) => open,
                None => connection.insert(Connection::open(&dsn.address)?),
            };
            let (head, answer) = open.answer(&head, &[body.as_bytes()])?;
            times.push(began.elapsed());
            if !head.starts_with("HTTP/1.1 200 ") {
                return Err(format!("{head}: {}", String::from_utf8_lossy(&answer)));
            }
            if head.to_ascii_lowercase().contains("connection: close") {
                connection = None;
            }
        }
        Ok(times)
    };
    by_clients(options.clients, one)
}

/// Events as Sentry's client for Apple's systems sends them: the crash, the crashed thread's stack, the images; made from reports.
fn events(options: &Options) -> Result<Vec<Value>> {
    let mut command = Command::new(&options.program);
    command.arg("symbolicate").arg(&options.reports).args(["--format", "json"]);
    let output = command.output().map_err(|error| format!("{}: {error}", options.program.display()))?;
    let reports = String::from_utf8_lossy(&output.stdout);
    let reports = reports.lines().filter_map(|line| serde_json::from_str(line).ok());
    let events: Vec<Value> = reports.filter_map(|report| event(&report)).collect();
    if events.is_empty() {
        return Err(format!("{}: expected crash reports", options.reports.display()));
    }
    Ok(events)
}

fn event(report: &Value) -> Option<Value> {
    let crashed = report["crashed_thread"].as_u64()?;
    let thread = report["threads"].as_array()?.iter().find(|thread| thread["index"] == json!(crashed))?;
    let mut frames: Vec<Value> = thread["frames"].as_array()?.iter().map(frame).collect();
    // The outermost comes first.
    frames.reverse();
    let images: Vec<Value> = report["images"].as_array()?.iter().filter_map(image).collect();
    let kind = report["exception"]["type"].as_str()?;
    Some(json!({
        "platform": "cocoa",
        "level": "fatal",
        "release": "com.example.load@1.0+1",
        "environment": "production",
        "user": {"id": "1234"},
        "tags": {"screen": "start"},
        "contexts": {
            "os": {"name": "iOS", "version": "17.1"},
            "device": {"model": report["device"], "arch": report["process"]["arch"]},
            "app": {"app_name": report["process"]["name"]},
        },
        "exception": {"values": [{
            "type": kind,
            "value": report["exception"]["codes"].as_str().unwrap_or(kind),
            "mechanism": {"type": "mach", "handled": false},
            "thread_id": crashed,
            "stacktrace": {"frames": frames, "registers": thread["registers"]},
        }]},
        "debug_meta": {"images": images},
    }))
}

fn frame(frame: &Value) -> Value {
    let mut event = json!({"instruction_addr": frame["address"], "package": frame["image"]});
    if let Some(name) = frame["symbol"]["name"].as_str() {
        event["function"] = json!(name);
    }
    event
}

fn image(image: &Value) -> Option<Value> {
    let address = |name: &str| u64::from_str_radix(image[name].as_str()?.strip_prefix("0x")?, 16).ok();
    let (start, end) = (address("load_address")?, address("end_address")?);
    Some(json!({
        "type": "macho",
        "code_file": image["path"].as_str().or(image["name"].as_str())?,
        "debug_id": image["id"].as_str()?,
        "image_addr": format!("{start:#x}"),
        "image_size": end.saturating_sub(start),
    }))
}
