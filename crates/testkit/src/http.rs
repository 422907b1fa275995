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
    /// Status 429: asks for so many seconds of peace.
    Busy(u64),
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
        let server = Self {
            url: String::new(),
            asked: Arc::default(),
            bodies: Arc::default(),
            answers: Arc::default(),
        };
        let (asked, bodies, answers) =
            (Arc::clone(&server.asked), Arc::clone(&server.bodies), Arc::clone(&server.answers));
        let url = listen(move |stream| serve(stream, &asked, &bodies, &answers));
        Self { url, ..server }
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

/// Has each request on a port of its own served, until the test program ends; `None` ends a connection. Gives the address.
pub(crate) fn listen(serve: impl Fn(&TcpStream) -> Option<()> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || while serve(&stream).is_some() {});
        }
    });
    url
}

/// What a client asks.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// By their names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads one; `None` when the connection is at its end.
    pub(crate) fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let mut headers = HashMap::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).map_or(true, |read| read <= 2) {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        let size = headers.get("content-length").and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut body = vec![0; size];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, target, headers, body })
    }
}

/// Answers one request; `None` when the connection is at its end.
fn serve(
    mut stream: &TcpStream,
    asked: &Mutex<Vec<String>>,
    bodies: &Mutex<Vec<Vec<u8>>>,
    answers: &Mutex<HashMap<String, HttpAnswer>>,
) -> Option<()> {
    let Request { target: path, body, .. } = Request::read(stream)?;
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
        HttpAnswer::Busy(seconds) => {
            send(format!("HTTP/1.1 429 X\r\nRetry-After: {seconds}\r\nContent-Length: 0\r\n\r\n").as_bytes())
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
