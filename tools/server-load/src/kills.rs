//! `server-load kills`: kills a server as often as asked, at random and right before each sort of call that makes something durable, also
//! while its disk is full, and looks each time for what it had acknowledged. With `--replicas COUNT` so many servers share PostgreSQL and their
//! files, and one of them is killed each time while the others go on; with `--objects s3://BUCKET` files are in a bucket.

mod sources;

use crate::client::Connection;
use crate::{Data, Result, Server};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Calls that what is kept depends on. A server that is killed before the first, the second, … of each has come through every point
/// where a commit may be cut off.
const CALLS: [&str; 8] = [
    "fdatasync",
    "fsync",
    "pwrite64",
    "ftruncate",
    "linkat,link",
    "rename,renameat,renameat2",
    "unlink,unlinkat",
    "mkdir",
];

/// The same where files are in a bucket: right before something is asked, too, and before its answer is read.
const CALLS_BY_NETWORK: [&str; 3] = ["connect", "sendto", "recvfrom"];

/// Calls of one sort that a round may count; in the first thread that comes to so many.
const DEEPEST: u64 = 9;

/// How long a round sends.
const LONGEST: Duration = Duration::from_millis(1500);

/// How long a server has to work what it has.
const PATIENCE: Duration = Duration::from_secs(300);

/// Bytes of the disk that is made full.
const DISK: &str = "768m";

pub(crate) struct Options {
    pub(crate) program: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) report: PathBuf,
    pub(crate) symbols: PathBuf,
    pub(crate) rounds: u64,
    pub(crate) replicas: usize,
    /// Where files are: `s3://BUCKET`, say.
    pub(crate) objects: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let usage = || {
            "expected kills BACKTRAIL DIR [--rounds COUNT] [--replicas COUNT] [--objects DIR|URL], in the repository's directory"
                .to_owned()
        };
        let [program, directory, rest @ ..] = arguments else { return Err(usage()) };
        let (mut rounds, mut replicas, mut objects) = (200, 1, None);
        for option in rest.chunks(2) {
            match option {
                [name, count] if name == "--rounds" => rounds = count.parse().map_err(|_| usage())?,
                [name, count] if name == "--replicas" => replicas = count.parse().map_err(|_| usage())?,
                [name, place] if name == "--objects" => objects = Some(place.into()),
                _ => return Err(usage()),
            }
        }
        if replicas > 1 && std::env::var_os("BACKTRAIL_DATABASE").is_none() {
            return Err("expected BACKTRAIL_DATABASE, which replicas share".to_owned());
        }
        let sample = Path::new("fixtures/sample");
        Ok(Self {
            program: program.into(),
            directory: directory.into(),
            report: sample.join("reports/null-member.crash"),
            symbols: sample.join("symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather"),
            rounds,
            replicas,
            objects,
        })
    }
}

/// Everything that was sent, by its number, until it is acknowledged, and since then by the id that it got.
#[derive(Default)]
struct Ledger {
    pending: Mutex<BTreeMap<u64, Sent>>,
    acknowledged: Mutex<Acknowledged>,
    next: AtomicU64,
}

#[derive(Clone)]
enum Sent {
    Report(Vec<u8>),
    Sessions(String),
    Symbols(Vec<u8>),
    /// A report of the project whose code's owners change.
    Owned(Vec<u8>),
    Change(sources::Change),
}

#[derive(Default)]
struct Acknowledged {
    reports: HashSet<String>,
    sessions: u64,
    symbols: HashSet<String>,
    sources: sources::There,
    changes: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let disk = Disk::mount(&options.directory)?;
    let data: Vec<_> = (0..options.replicas)
        .map(|number| Data {
            directory: options.directory.join(format!("data-{number}")),
            objects: options
                .objects
                .clone()
                .or_else(|| (options.replicas > 1).then(|| options.directory.join("objects"))),
        })
        .collect();
    let report = read(&options.report)?;
    let symbols = read(&options.symbols)?;
    let has_strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    if !has_strace {
        println!("no strace: kills are at random only");
    }
    let first = Server::start(&options.program, data.first().ok_or("expected a replica")?)?;
    let (key, token) = (first.key.clone(), first.token.clone());
    let (sources, app) = sources::start(&options.program, &options.directory, &first)?;
    drop(first);
    let ledger = Ledger::default();
    lock(&ledger.acknowledged).symbols.insert(app);
    let files = Files { report: &report, symbols: &symbols, sources: &sources };
    let mut counts = BTreeMap::new();
    let mut traced = 0;
    for round in 0..options.rounds {
        let by_network = options.objects.is_some() && round % 3 != 0;
        let calls: &[_] = if by_network { &CALLS_BY_NETWORK } else { &CALLS };
        let kill = Kill::of(round, has_strace.then_some(calls), disk.is_some(), &mut traced);
        let disk = disk.as_ref();
        let killed = usize::try_from(round).unwrap_or_default() % data.len();
        let (mut others, mut killed_data) = (Vec::new(), None);
        for (data, number) in data.iter().zip(0..) {
            if number == killed {
                killed_data = Some(data);
            } else {
                let mut command = Command::new(&options.program);
                command.stderr(Stdio::null());
                others.push((Server::again(command, data, &key, &token)?, data));
            }
        }
        let killed_data = killed_data.ok_or("expected a replica")?;
        let died_itself = match kill.start(options, killed_data, &key, &token)? {
            Some(mut server) => {
                if kill.is_full {
                    disk.map_or(Ok(()), Disk::fill)?;
                }
                let died_itself = one(&kill, &mut server, &others, &ledger, &files)?;
                disk.map_or(Ok(()), Disk::empty)?;
                died_itself
            }
            None => true,
        };
        let name = kill.name(died_itself);
        let again = Server::again(Command::new(&options.program), killed_data, &key, &token);
        let look = again.and_then(|again| {
            others.insert(0, (again, killed_data));
            look(options, others, &ledger)
        });
        look.map_err(|why| format!("round {round}, {name}: {why}"))?;
        *counts.entry(name).or_insert(0_u64) += 1;
        if round % 10 == 9 {
            println!(
                "{} kills: {} reports acknowledged",
                round + 1,
                lock(&ledger.acknowledged).reports.len()
            );
        }
    }
    for (name, count) in counts {
        println!("{count:4} times {name}");
    }
    let all = lock(&ledger.acknowledged);
    println!(
        "{} kills; each of {} reports, {} sessions and {} files of symbols that were acknowledged is there once, and nothing else; \
         after {} changes of whose code it is every report has its present owner",
        options.rounds,
        all.reports.len(),
        all.sessions,
        all.symbols.len(),
        all.changes
    );
    Ok(())
}

/// What is sent.
struct Files<'a> {
    report: &'a [u8],
    symbols: &'a [u8],
    sources: &'a sources::Files,
}

/// Sends to all servers until one is killed; whether it came to its call.
fn one(
    kill: &Kill,
    server: &mut Server,
    others: &[(Server, &Data)],
    ledger: &Ledger,
    files: &Files<'_>,
) -> Result<bool> {
    let targets: Vec<_> =
        std::iter::once(&*server).chain(others.iter().map(|(server, _)| server)).map(Target::of).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for target in targets.iter().flat_map(|target| [target; 4]) {
            let stop = &stop;
            scope.spawn(move || send(target, ledger, stop, files));
        }
        let until = Instant::now() + kill.after;
        while Instant::now() < until && !is_dead(server) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let died_itself = is_dead(server);
        let killed = kill.kill(server);
        stop.store(true, Ordering::Relaxed);
        killed.map(|()| died_itself)
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How a round ends.
struct Kill {
    /// Before which calls, and the how manieth; else after some time alone.
    before: Option<(&'static str, u64)>,
    after: Duration,
    is_full: bool,
}

impl Kill {
    /// `traced` counts those that come before a call.
    fn of(round: u64, calls: Option<&[&'static str]>, has_disk: bool, traced: &mut usize) -> Self {
        let is_full = has_disk && round % 4 == 3;
        // Numbers that look random and are the same each time.
        let random =
            round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33;
        let at_random = Self { before: None, after: Duration::from_millis(50 + random % 1200), is_full };
        let Some(calls) = calls.filter(|_| round % 4 != 2 && round % 8 != 7) else { return at_random };
        let Some(call) = calls.get(*traced % calls.len().max(1)).copied() else { return at_random };
        let number = 1 + (*traced / calls.len().max(1)) as u64 % DEEPEST;
        *traced += 1;
        Self { before: Some((call, number)), after: LONGEST, is_full }
    }

    fn name(&self, died_itself: bool) -> String {
        let full = if self.is_full { ", with a full disk" } else { "" };
        match self.before {
            Some((call, _)) if died_itself => format!("before {call}{full}"),
            _ => format!("at random{full}"),
        }
    }

    /// `None` where it came to its call before it came to listen.
    fn start(&self, options: &Options, data: &Data, key: &str, token: &str) -> Result<Option<Server>> {
        let mut command = match self.before {
            Some((call, number)) => {
                let mut strace = Command::new("strace");
                strace.args(["-f", "-qqq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
                strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={number}")]);
                strace.arg(&options.program);
                strace
            }
            None => Command::new(&options.program),
        };
        command.process_group(0).stderr(Stdio::null());
        match Server::again(command, data, key, token) {
            Ok(server) => Ok(Some(server)),
            Err(_) if self.before.is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Kills the server, and strace with it, which would let it go. Of a server alone its own processes have to end by themselves.
    fn kill(&self, server: &mut Server) -> Result<()> {
        if self.before.is_some() {
            let group = format!("-{}", server.child.id());
            // It may have come to its call meanwhile.
            let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        } else {
            server.child.kill().map_err(|error| error.to_string())?;
        }
        server.child.wait().map(drop).map_err(|error| error.to_string())
    }
}

fn is_dead(server: &mut Server) -> bool {
    server.child.try_wait().is_ok_and(|status| status.is_some())
}

/// Sends until it is told to stop, or nobody answers.
fn send(address: &Target, ledger: &Ledger, stop: &AtomicBool, files: &Files<'_>) {
    let Ok(mut connection) = Connection::open(&address.address) else { return };
    while !stop.load(Ordering::Relaxed) {
        let number = ledger.next.fetch_add(1, Ordering::Relaxed);
        let sent = match number % 40 {
            0 => Sent::Symbols([files.symbols, &number.to_le_bytes()].concat()),
            kind if kind % 20 == 11 => {
                Sent::Change(files.sources.change(number / 20, &mut lock(&ledger.acknowledged).sources))
            }
            kind if kind % 10 == 7 => Sent::Owned(of_number(&files.sources.report, number, false)),
            kind if kind % 4 == 1 => Sent::Sessions(format!(
                "{{\"release\":\"app@1\",\"os\":\"Linux\",\"id\":\"post-{number}\",\"counts\":{{\"well\":{},\"crashed\":1}}}}",
                kind % 3
            )),
            kind => Sent::Report(of_number(files.report, number, kind % 4 == 2)),
        };
        lock(&ledger.pending).insert(number, sent.clone());
        if ledger.post(address, &mut connection, number, &sent).is_err() {
            match Connection::open(&address.address) {
                Ok(other) => connection = other,
                Err(_) => return,
            }
        }
        std::thread::sleep(Duration::from_millis(60));
    }
}

/// A report of its own: small ones are packed in the database, large ones are files.
fn of_number(report: &[u8], number: u64, is_large: bool) -> Vec<u8> {
    let mut bytes = [report, format!("\n{number}\n").as_bytes()].concat();
    if is_large {
        let mut state = number;
        bytes.extend((0..200_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + (state >> 40) as u8 % 26
        }));
    }
    bytes
}

/// Where to send to.
struct Target {
    address: String,
    key: String,
    token: String,
}

impl Target {
    fn of(server: &Server) -> Self {
        Self { address: server.address.clone(), key: server.key.clone(), token: server.token.clone() }
    }
}

impl Ledger {
    /// Sends one thing, and writes down that it was acknowledged, if it was.
    fn post(&self, to: &Target, connection: &mut Connection, number: u64, sent: &Sent) -> Result<()> {
        let (what, body): (String, &[u8]) = match sent {
            Sent::Report(bytes) => ("POST /api/1/reports/".to_owned(), bytes),
            Sent::Sessions(text) => ("POST /api/1/sessions/".to_owned(), text.as_bytes()),
            Sent::Symbols(bytes) => ("PUT /api/v1/projects/1/symbols/Weather".to_owned(), bytes),
            Sent::Owned(bytes) => (format!("POST /api/{}/reports/", sources::PROJECT), bytes),
            Sent::Change(change) => change.request(),
        };
        let has_key = matches!(sent, Sent::Report(_) | Sent::Sessions(_));
        let token = if has_key { &to.key } else { &to.token };
        let mut head = format!("{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
        let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
        let answer = match connection.ask(&head, &[body]) {
            // It was removed, and the answer came too late.
            Err(why) if why.starts_with("HTTP/1.1 404") && matches!(sent, Sent::Change(_)) => b"{}".to_vec(),
            answer => answer?,
        };
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let quoted = |name: &str| {
            answer.split_once(name).and_then(|(_, rest)| rest.split('"').next()).map(str::to_owned)
        };
        let mut acknowledged = lock(&self.acknowledged);
        match sent {
            Sent::Report(_) | Sent::Owned(_) => {
                let id = quoted("[\"").ok_or_else(|| format!("no id: {answer}"))?;
                if !acknowledged.reports.insert(id.clone()) {
                    return Err(format!("{id} is the id of two reports"));
                }
            }
            Sent::Sessions(_) => acknowledged.sessions += number % 40 % 3 + 1,
            Sent::Symbols(_) => {
                let digest = quoted("\"sha256\":\"").ok_or_else(|| format!("no digest: {answer}"))?;
                acknowledged.symbols.insert(digest);
            }
            Sent::Change(change) => {
                change.acknowledged(&answer, &mut acknowledged.sources)?;
                acknowledged.changes += 1;
            }
        }
        lock(&self.pending).remove(&number);
        Ok(())
    }
}

/// Sends what was not acknowledged to servers that were started since, waits until all is worked, and compares what there is with what
/// was acknowledged.
fn look(options: &Options, servers: Vec<(Server, &Data)>, ledger: &Ledger) -> Result<()> {
    let pending = lock(&ledger.pending).clone();
    for ((number, sent), (server, _)) in pending.iter().zip(servers.iter().cycle()) {
        until_the_bucket_answers(options, || {
            let mut connection = Connection::open(&server.address)?;
            ledger.post(&Target::of(server), &mut connection, *number, sent)
        })?;
    }
    let (server, data) = servers.first().ok_or("expected a server")?;
    let mut connection = Connection::open(&server.address)?;
    let until = Instant::now() + PATIENCE;
    loop {
        let symbols = server.get(&mut connection, "/api/v1/projects/1/symbols")?;
        let is_waiting = String::from_utf8_lossy(&symbols).contains("\"table\":\"waiting\"");
        if !is_waiting && server.waiting(&mut connection)? == 0 {
            match compare(options, data, server, &lock(&ledger.acknowledged)) {
                // What others work at this moment this one knows some seconds later; what is to be worked again, soon.
                Err(_) if Instant::now() < until => {}
                compared => break compared?,
            }
        }
        if Instant::now() > until {
            return Err("reports are not worked, or tables not made".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(connection);
    let mut all = Vec::new();
    for (mut server, data) in servers {
        let id = server.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().map_err(|error| error.to_string())?;
        let ended = server.child.wait().map_err(|error| error.to_string())?;
        if !asked.success() || !ended.success() {
            return Err(format!("the server ended with {ended}"));
        }
        all.push(data);
    }
    for data in all {
        until_the_bucket_answers(options, || {
            let mut check = Command::new(&options.program);
            data.tell(&mut check);
            let checked = check.arg("--check").output().map_err(|error| error.to_string())?;
            if checked.status.success() {
                return Ok(());
            }
            let said = [checked.stdout, checked.stderr].concat();
            Err(String::from_utf8_lossy(&said).into_owned())
        })?;
    }
    Ok(())
}

/// Does it again while a bucket's server, which somebody may kill meanwhile, does not answer.
fn until_the_bucket_answers(options: &Options, mut act: impl FnMut() -> Result<()>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match act() {
            Err(why)
                if options.objects.is_some()
                    && Instant::now() < until
                    && (why.starts_with("HTTP/1.1 503") || why.contains("the bucket ")) => {}
            done => return done,
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn compare(options: &Options, data: &Data, server: &Server, acknowledged: &Acknowledged) -> Result<()> {
    let mut export = Command::new(&options.program);
    data.tell(&mut export);
    export.args(["export", "--no-bytes"]);
    let exported = export.output().map_err(|error| error.to_string())?;
    if !exported.status.success() {
        return Err(format!("export: {}", String::from_utf8_lossy(&exported.stderr)));
    }
    let (mut reports, mut sessions, mut symbols) = (HashSet::new(), 0, HashSet::new());
    let mut owners = sources::Exported::default();
    for line in String::from_utf8_lossy(&exported.stdout).lines() {
        let line: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text =
            |name: &str| line.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        owners.add(&line);
        match text("type").as_str() {
            "report" => {
                let id = text("id");
                if text("state") != "done" {
                    return Err(format!("the report {id} is {}: {}", text("state"), text("problem")));
                }
                if !reports.insert(id.clone()) {
                    return Err(format!("the report {id} is there twice"));
                }
            }
            "sessions" => {
                sessions += line.get("sessions").and_then(serde_json::Value::as_u64).unwrap_or_default();
            }
            "symbol_file" => {
                symbols.insert(text("sha256"));
            }
            _ => {}
        }
    }
    let lost: Vec<_> = acknowledged.reports.difference(&reports).collect();
    if !lost.is_empty() {
        return Err(format!("{} reports were acknowledged and are not there: {lost:?}", lost.len()));
    }
    let others = reports.difference(&acknowledged.reports).count();
    if others > 0 {
        return Err(format!("{others} reports are there twice"));
    }
    if sessions != acknowledged.sessions {
        return Err(format!("{} sessions were acknowledged, {sessions} are counted", acknowledged.sessions));
    }
    if symbols != acknowledged.symbols {
        return Err(format!(
            "{} files of symbols were acknowledged, {} are there",
            acknowledged.symbols.len(),
            symbols.len()
        ));
    }
    owners.compare(server, &acknowledged.sources)
}

/// A small disk of its own, in memory, for whoever may mount one.
struct Disk {
    directory: PathBuf,
}

impl Disk {
    fn mount(directory: &Path) -> Result<Option<Self>> {
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={DISK}"), "tmpfs"])
            .arg(directory)
            .stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Ok(Some(Self { directory: directory.to_owned() }));
        }
        println!("no disk can be mounted: none is full");
        Ok(None)
    }

    fn ballast(&self) -> PathBuf {
        self.directory.join("ballast")
    }

    /// Leaves room for the first commits alone.
    fn fill(&self) -> Result<()> {
        use std::io::Write as _;
        let failed = |error: std::io::Error| format!("the ballast: {error}");
        let mut file = fs::File::create(self.ballast()).map_err(failed)?;
        let piece = vec![0; 256 << 10];
        let mut size = 0_u64;
        while let Ok(count) = file.write(&piece) {
            size += count as u64;
        }
        file.set_len(size.saturating_sub(piece.len() as u64)).map_err(failed)
    }

    fn empty(&self) -> Result<()> {
        match fs::remove_file(self.ballast()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.directory).status();
    }
}
