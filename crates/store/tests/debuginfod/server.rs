//! A server of a few lines that answers as a test wants.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a server does with a request for a path.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    File(Vec<u8>),
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

pub(crate) struct Server {
    pub(crate) url: String,
    /// The paths that were asked for, in their order.
    asked: Arc<Mutex<Vec<String>>>,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

impl Server {
    /// Serves on a port of its own, until the test program ends. What it has no answer for is not there.
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, asked: Arc::default(), answers: Arc::default() };
        let (asked, answers) = (Arc::clone(&server.asked), Arc::clone(&server.answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, answers) = (Arc::clone(&asked), Arc::clone(&answers));
                std::thread::spawn(move || while serve(&stream, &asked, &answers).is_some() {});
            }
        });
        server
    }

    pub(crate) fn answer(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Answers one request; `None` when the connection is at its end.
fn serve(
    mut stream: &TcpStream,
    asked: &Mutex<Vec<String>>,
    answers: &Mutex<HashMap<String, Answer>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {}
    asked.lock().unwrap().push(path.clone());
    let answer = answers.lock().unwrap().get(&path).cloned().unwrap_or(Answer::Status(404));
    let head = |length: u64| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let mut send = |bytes: &[u8]| stream.write_all(bytes).ok();
    match answer {
        Answer::File(bytes) => {
            send(head(bytes.len() as u64).as_bytes())?;
            send(&bytes)
        }
        Answer::Status(status) => {
            send(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes())
        }
        Answer::Redirect(to) => {
            send(format!("HTTP/1.1 302 X\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").as_bytes())
        }
        Answer::Hang => wait(),
        Answer::Cut(bytes, at) => {
            send(head(bytes.len() as u64).as_bytes())?;
            send(&bytes[..at])?;
            None
        }
        Answer::CutUnnoticed(bytes, at) => {
            send(close.as_bytes())?;
            send(&bytes[..at])?;
            None
        }
        Answer::Stall(bytes) => {
            send(head(1 << 20).as_bytes())?;
            send(&bytes)?;
            wait()
        }
        Answer::Endless => {
            send(close.as_bytes())?;
            while send(&[0; 4096]).is_some() {}
            None
        }
        Answer::Huge(length) => {
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
