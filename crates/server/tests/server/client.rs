//! A server in this process, and a client of a few lines.

use backtrail_server::{Config, Server, check};
use backtrail_testkit::{TempDir, psql};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// A server with a directory of its own.
pub(crate) struct Running {
    pub(crate) server: Option<Server>,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    pub(crate) token: String,
    pub(crate) directory: TempDir,
    /// Where its data is.
    pub(crate) config: Config,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let directory = TempDir::new("server");
        let mut config = Config::new(directory.join("data"));
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.database = crate::database();
        config.objects = crate::objects();
        let base = config.clone();
        change(&mut config);
        let server = Server::start(config).unwrap();
        let first = server.first_start().unwrap();
        let key = first.dsn.split_once("://").unwrap().1.split_once('@').unwrap().0.to_owned();
        let (token, address) = (first.token.clone(), server.address());
        Self { server: Some(server), address, key, token, directory, config: base }
    }

    /// Ends the server and starts it again on the same data.
    pub(crate) fn restart(&mut self) {
        self.restart_with(|_| {});
    }

    pub(crate) fn restart_with(&mut self, change: impl FnOnce(&mut Config)) {
        self.server.take().unwrap().stop();
        let mut config = self.config.clone();
        change(&mut config);
        let server = Server::start(config).unwrap();
        assert_eq!(server.first_start(), None);
        self.address = server.address();
        self.server = Some(server);
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        request(self.address, "POST", path, headers, body)
    }

    /// As the project's client.
    pub(crate) fn send(&self, path: &str, body: &[u8]) -> Answer {
        self.post(&format!("{path}?sentry_key={}", self.key), &[], body)
    }

    /// As somebody who may do everything.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        request(self.address, "GET", path, &[("Authorization", &bearer)], b"")
    }

    /// What a query of the database says, as one number.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        match &self.config.database {
            Some(url) => psql(url, sql).unwrap().parse().unwrap(),
            None => self.file().query_row(sql, [], |row| row.get(0)).unwrap(),
        }
    }

    /// Changes the database.
    pub(crate) fn write(&self, sql: &str) {
        match &self.config.database {
            Some(url) => drop(psql(url, sql).unwrap()),
            None => drop(self.file().execute(sql, []).unwrap()),
        }
    }

    fn file(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.config.data.join("backtrail.sqlite")).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }

    /// Whether the files of the database have these bytes somewhere; `None` where they are another server's.
    #[allow(dead_code, reason = "not every test program asks")]
    pub(crate) fn stores(&self, bytes: &[u8]) -> Option<bool> {
        if self.config.database.is_some() {
            return None;
        }
        let files = ["backtrail.sqlite", "backtrail.sqlite-wal"];
        let files = files.map(|name| std::fs::read(self.config.data.join(name)).unwrap_or_default());
        Some(files.concat().windows(bytes.len()).any(|window| window == bytes))
    }

    /// What is wrong with the data.
    pub(crate) fn check(&self) -> Vec<String> {
        check(&self.config).unwrap().problems
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// One request on a connection of its own.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses need not read all of it.
    let _ = stream.write_all(body);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or_else(|| {
        panic!("no head: {}", String::from_utf8_lossy(&all));
    });
    let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = all[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    Answer { status, head, body }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        whole.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
        if size == 0 {
            break;
        }
    }
    whole
}

/// Bytes that do not pack, the same each time.
pub(crate) fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}
