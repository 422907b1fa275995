//! An HTTP server of a few lines that answers as a test wants.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a server that cannot work is a fault of the test"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a server does with a request for a path.
#[derive(Clone, Debug)]
pub enum HttpAnswer {
    /// These bytes.
    File(Vec<u8>),
    /// This status, and nothing else.
    Status(u16),
    /// Says nothing, and keeps the connection open.
    Hang,
    /// States a length, and ends before.
    Cut(Vec<u8>, usize),
    /// As `Cut`, without stating a length.
    CutUnnoticed(Vec<u8>, usize),
    /// Begins, and then says nothing.
    Stall(Vec<u8>),
    /// To another path, or the same.
    Redirect(String),
    /// States no length and never ends.
    Endless,
    /// States this length.
    Huge(u64),
}

/// A server on a port of its own.
#[derive(Debug)]
pub struct HttpServer {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
    answers: Arc<Mutex<HashMap<String, HttpAnswer>>>,
}

impl Default for HttpServer {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpServer {
    /// Serves on a port of its own, until the test program ends. What it has no answer for is not there.
    ///
    /// # Panics
    /// Where there is no port.
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, asked: Arc::default(), bodies: Arc::default(), answers: Arc::default() };
        let (asked, bodies, answers) =
            (Arc::clone(&server.asked), Arc::clone(&server.bodies), Arc::clone(&server.answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, bodies, answers) =
                    (Arc::clone(&asked), Arc::clone(&bodies), Arc::clone(&answers));
                std::thread::spawn(move || while serve(&stream, &asked, &bodies, &answers).is_some() {});
            }
        });
        server
    }

    /// From now on a path is answered so.
    pub fn answer(&self, path: &str, answer: HttpAnswer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// What was sent so far, in its order; empty where a request had no body.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().unwrap().clone()
    }

    /// The paths that were asked for so far, in their order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers one request; `None` when the connection is at its end.
fn serve(
    mut stream: &TcpStream,
    asked: &Mutex<Vec<String>>,
    bodies: &Mutex<Vec<Vec<u8>>>,
    answers: &Mutex<HashMap<String, HttpAnswer>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut size = 0;
    loop {
        line.clear();
        if reader.read_line(&mut line).map_or(true, |read| read <= 2) {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            size = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body).ok()?;
    bodies.lock().unwrap().push(body);
    asked.lock().unwrap().push(path.clone());
    let answer = answers.lock().unwrap().get(&path).cloned().unwrap_or(HttpAnswer::Status(404));
    let head = |length: u64| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let mut send = |bytes: &[u8]| stream.write_all(bytes).ok();
    match answer {
        HttpAnswer::File(bytes) => {
            send(head(bytes.len() as u64).as_bytes())?;
            send(&bytes)
        }
        HttpAnswer::Status(status) => {
            send(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes())
        }
        HttpAnswer::Redirect(to) => {
            send(format!("HTTP/1.1 302 X\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").as_bytes())
        }
        HttpAnswer::Hang => wait(),
        HttpAnswer::Cut(bytes, at) => {
            send(head(bytes.len() as u64).as_bytes())?;
            send(&bytes[..at])?;
            None
        }
        HttpAnswer::CutUnnoticed(bytes, at) => {
            send(close.as_bytes())?;
            send(&bytes[..at])?;
            None
        }
        HttpAnswer::Stall(bytes) => {
            send(head(1 << 20).as_bytes())?;
            send(&bytes)?;
            wait()
        }
        HttpAnswer::Endless => {
            send(close.as_bytes())?;
            while send(&[0; 4096]).is_some() {}
            None
        }
        HttpAnswer::Huge(length) => {
            send(head(length).as_bytes())?;
            wait()
        }
    }
}

/// Longer than any client waits.
fn wait() -> Option<()> {
    std::thread::sleep(Duration::from_secs(600));
    None
}
