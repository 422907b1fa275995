//! Sends reports to a server of its own as fast as it takes them, from the same machine, and says how many a second were accepted and
//! worked, what that took, and how long pages take afterwards:
//! `cargo run --release --manifest-path tools/Cargo.toml -p server-load -- BACKTRAIL DIR REPORTS [-s SYMBOLS] [--reports COUNT]
//! [--clients COUNT] [--minidumps]`. REPORTS is a directory; its files are sent in turn, each time with other blanks at the end, so that
//! no two are the same. `server-load kills BACKTRAIL DIR` kills a server instead (`kills`); `server-load events` compares with another
//! server of Sentry's protocol (`events`). With BACKTRAIL_DATABASE it is a server with PostgreSQL, in a database that is new.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod client;
mod events;
mod kills;

use client::Connection;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What fails with a sentence.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((mode, rest)) if mode == "kills" => {
            kills::Options::parse(rest).and_then(|options| kills::run(&options))
        }
        Some((mode, rest)) if mode == "events" => {
            events::Options::parse(rest).and_then(|options| events::run(&options))
        }
        _ => Options::parse(&arguments).and_then(|options| run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("server-load: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    program: PathBuf,
    directory: PathBuf,
    reports: PathBuf,
    symbols: Option<PathBuf>,
    count: usize,
    clients: usize,
    minidumps: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let usage =
            "expected BACKTRAIL DIR REPORTS [-s SYMBOLS] [--reports COUNT] [--clients COUNT] [--minidumps]";
        let [program, directory, reports, rest @ ..] = arguments else { return Err(usage.to_owned()) };
        let mut options = Self {
            program: program.into(),
            directory: directory.into(),
            reports: reports.into(),
            symbols: None,
            count: 10_000,
            clients: 24,
            minidumps: false,
        };
        let mut rest = rest.iter();
        while let Some(option) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| usage.to_owned());
            let number =
                |text: &String| text.parse().map_err(|_| format!("expected a number, found {text:?}"));
            match option.as_str() {
                "-s" => options.symbols = Some(value()?.into()),
                "--reports" => options.count = number(value()?)?,
                "--clients" => options.clients = number(value()?)?.max(1),
                "--minidumps" => options.minidumps = true,
                _ => return Err(usage.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Where a server has its data; its database is elsewhere where BACKTRAIL_DATABASE says so.
struct Data {
    directory: PathBuf,
    /// Files that it shares with others.
    objects: Option<PathBuf>,
}

impl Data {
    fn tell(&self, command: &mut Command) {
        command.arg("serve").arg("--data").arg(&self.directory);
        if let Some(objects) = &self.objects {
            command.arg("--objects").arg(objects);
        }
    }
}

/// A server that ends with this.
struct Server {
    child: Child,
    address: String,
    key: String,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// The first start in a directory.
    fn start(program: &Path, data: &Data) -> Result<Self> {
        Self::spawn(Command::new(program), data, None)
    }

    /// A later start, by a command that is the program or leads to it.
    fn again(command: Command, data: &Data, key: &str, token: &str) -> Result<Self> {
        Self::spawn(command, data, Some((key, token)))
    }

    fn spawn(mut command: Command, data: &Data, known: Option<(&str, &str)>) -> Result<Self> {
        data.tell(&mut command);
        command.args(["--listen", "127.0.0.1:0"]);
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let (key, token) = known.map(|(key, token)| (key.to_owned(), token.to_owned())).unwrap_or_default();
        let mut server = Self { child, address: String::new(), key, token };
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| error.to_string())?;
            if let Some((_, address)) = line.split_once("listening at http://") {
                server.address = address.to_owned();
                if known.is_some() {
                    return Ok(server);
                }
            } else if let Some(rest) = line.strip_prefix("DSN:") {
                let key = rest.trim().trim_start_matches("http://").split('@').next();
                server.key = key.unwrap_or_default().to_owned();
            } else if let Some(rest) = line.strip_prefix("token:") {
                server.token = rest.split_whitespace().next().unwrap_or_default().to_owned();
                return Ok(server);
            }
        }
        let expected = if known.is_some() {
            "expected a server that starts"
        } else {
            "expected a directory that no server has used yet"
        };
        Err(expected.to_owned())
    }

    fn get(&self, connection: &mut Connection, path: &str) -> Result<Vec<u8>> {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", self.token);
        connection.ask(&head, &[])
    }

    /// Reports that are not worked yet.
    fn waiting(&self, connection: &mut Connection) -> Result<u64> {
        let metrics = self.get(connection, "/metrics")?;
        let metrics = String::from_utf8_lossy(&metrics);
        let line = metrics.lines().find_map(|line| line.strip_prefix("backtrail_reports_waiting "));
        line.and_then(|count| count.trim().parse().ok()).ok_or_else(|| "no count of what waits".to_owned())
    }

    /// A line of `/proc/PID/status`.
    fn status(&self, name: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|rest| rest.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
    }
}

fn run(options: &Options) -> Result<()> {
    let files = files(&options.reports)?;
    let bytes: usize = files.iter().map(Vec::len).sum();
    println!("{} files of {} bytes on average", files.len(), bytes / files.len());
    let data = Data { directory: options.directory.join("data"), objects: None };
    let server = Server::start(&options.program, &data)?;
    if let Some(symbols) = &options.symbols {
        let mut upload = Command::new(&options.program);
        upload.arg("upload").arg(symbols).arg("--to").arg(format!("http://{}", server.address));
        let done = upload.env("BACKTRAIL_TOKEN", &server.token).stdout(Stdio::null()).status();
        done.map_err(|error| format!("upload: {error}"))?;
    }
    // Files are opened and debug information is read before the clock runs.
    send(&server, options, &files, 0, files.len())?;
    drained(&server)?;
    let began = Instant::now();
    let mut times = send(&server, options, &files, files.len(), options.count)?;
    let accepted = began.elapsed();
    drained(&server)?;
    let worked = began.elapsed();
    println!("accepted {:.0} a second, {}", rate(options.count, accepted), spread(&mut times));
    println!(
        "accepted and worked {:.0} a second: {} in {:.1} s",
        rate(options.count, worked),
        options.count,
        worked.as_secs_f64()
    );
    for name in ["VmHWM", "RssAnon"] {
        println!("{name} {}", server.status(name));
    }
    pages(&server)
}

fn files(directory: &Path) -> Result<Vec<Vec<u8>>> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed(directory))? {
        let path = entry.map_err(failed(directory))?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: expected files", directory.display()));
    }
    paths.iter().map(|path| std::fs::read(path).map_err(failed(path))).collect()
}

/// Sends so many, by all clients at once. Gives how long each took.
fn send(
    server: &Server,
    options: &Options,
    files: &[Vec<u8>],
    first: usize,
    count: usize,
) -> Result<Vec<Duration>> {
    let kind = if options.minidumps { "minidump" } else { "reports" };
    let one = |client: usize| -> Result<Vec<Duration>> {
        let mut connection = Connection::open(&server.address)?;
        let mut times = Vec::new();
        for number in (client..count).step_by(options.clients).map(|number| number + first) {
            let file = files.get(number % files.len()).map(Vec::as_slice).unwrap_or_default();
            let mut end = String::from("\n");
            for bit in 0..usize::BITS {
                end.push(if number >> bit & 1 == 1 { ' ' } else { '\t' });
            }
            let mut head = format!("POST /api/1/{kind}/?sentry_key={} HTTP/1.1\r\n", server.key);
            let length = file.len() + end.len();
            let _ = write!(
                head,
                "Host: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
            );
            let began = Instant::now();
            connection.ask(&head, &[file, end.as_bytes()])?;
            times.push(began.elapsed());
        }
        Ok(times)
    };
    by_clients(options.clients, one)
}

/// Has so many clients send at the same time, each what its number stands for. Gives how long each request took.
fn by_clients(clients: usize, one: impl Fn(usize) -> Result<Vec<Duration>> + Sync) -> Result<Vec<Duration>> {
    let one = &one;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|client| scope.spawn(move || one(client))).collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.join().map_err(|_| "a client panicked".to_owned())??);
        }
        Ok(times)
    })
}

fn drained(server: &Server) -> Result<()> {
    let mut connection = Connection::open(&server.address)?;
    while server.waiting(&mut connection)? > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// How long pages take: each a hundred times, one after the other.
fn pages(server: &Server) -> Result<()> {
    let mut connection = Connection::open(&server.address)?;
    let form = format!("token={}", server.token);
    let length = form.len();
    let head = format!(
        "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let (head, _) = connection.answer(&head, &[form.as_bytes()])?;
    let cookie = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let value = value.split(';').next()?;
        name.eq_ignore_ascii_case("set-cookie").then_some(value)
    });
    let cookie = cookie.ok_or("the token does not log in")?;
    let issues = server.get(&mut connection, "/api/v1/projects/1/issues?sort=count")?;
    let issues = String::from_utf8_lossy(&issues).into_owned();
    let issue = after(&issues, "\"id\":").unwrap_or_default();
    let whole = server.get(&mut connection, &format!("/api/v1/projects/1/issues/{issue}"))?;
    let whole = String::from_utf8_lossy(&whole).into_owned();
    let report = whole.split_once("\"reports\":").and_then(|(_, reports)| after(reports, "\"id\":"));
    let report = report.unwrap_or_default();
    for (name, path) in [
        ("issues", "/projects/default".to_owned()),
        ("issues by count", "/projects/default?sort=count".to_owned()),
        ("issues by text", "/projects/default?text=crash".to_owned()),
        ("largest issue", format!("/projects/default/issues/{issue}")),
        ("a report", format!("/projects/default/reports/{report}")),
        ("releases", "/projects/default/releases".to_owned()),
        ("missing symbols", "/projects/default/missing".to_owned()),
    ] {
        let mut times = Vec::new();
        for _ in 0..100 {
            let began = Instant::now();
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n");
            connection.ask(&head, &[]).map_err(|error| format!("{path}: {error}"))?;
            times.push(began.elapsed());
        }
        println!("{name}: {}", spread(&mut times));
    }
    Ok(())
}

/// The number or text behind the first `name`.
fn after(json: &str, name: &str) -> Option<String> {
    let (_, rest) = json.split_once(name)?;
    let value = rest.trim_start().trim_start_matches('"');
    Some(value.chars().take_while(char::is_ascii_alphanumeric).collect())
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    format!("half of them in {:.1} ms, 95 % in {:.1} ms", ms(at(50)), ms(at(95)))
}
