//! A server of S3's protocol, as far as files by their content need it, with faults as a test wants them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a server that cannot work is a fault of the test"
)]

use crate::http::{Request, listen};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What goes wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BucketFault {
    /// It is not done, and answered with this status.
    Status(u16),
    /// It is not done and not answered.
    Hang,
    /// It is done, and the connection ends before the answer.
    LostAnswer,
    /// It is done, and half of the answer's body comes.
    Cut,
    /// It is done, and another body of the same length comes.
    Garbled,
}

/// A bucket `BUCKET` on a port of its own, until the test program ends. Requests without a signature are refused; whether it is the right one is
/// not looked at.
#[derive(Clone, Debug)]
pub struct BucketServer {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default, Debug)]
struct State {
    /// With the time of their writing.
    files: BTreeMap<String, (Vec<u8>, u64)>,
    faults: HashMap<String, VecDeque<BucketFault>>,
    down: Option<BucketFault>,
    asked: Vec<String>,
    /// Seconds that the clock is ahead.
    ahead: u64,
}

/// Files on a page of a list: few, so that tests come to the next one.
const PAGE: usize = 3;

impl Default for BucketServer {
    fn default() -> Self {
        Self::new()
    }
}

impl BucketServer {
    /// Begins to serve.
    ///
    /// # Panics
    /// Where there is no port.
    pub fn new() -> Self {
        let state = Arc::default();
        let shared = Arc::clone(&state);
        Self { url: listen(move |stream| serve(stream, &shared)), state }
    }

    /// The next requests of a method go wrong, one after the other.
    pub fn fail(&self, method: &str, faults: &[BucketFault]) {
        self.state.lock().unwrap().faults.entry(method.to_owned()).or_default().extend(faults);
    }

    /// All requests go wrong, or none any more.
    pub fn down(&self, fault: Option<BucketFault>) {
        self.state.lock().unwrap().down = fault;
    }

    /// So many seconds pass.
    pub fn advance(&self, seconds: u64) {
        self.state.lock().unwrap().ahead += seconds;
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        self.state.lock().unwrap().files.keys().cloned().collect()
    }

    /// Changes or removes a file behind everybody's back.
    pub fn set(&self, name: &str, bytes: Option<&[u8]>) {
        let mut state = self.state.lock().unwrap();
        let now = state.now();
        match bytes {
            Some(bytes) => drop(state.files.insert(name.to_owned(), (bytes.to_vec(), now))),
            None => drop(state.files.remove(name)),
        }
    }

    /// Methods and paths of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

impl State {
    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + self.ahead
    }
}

/// Answers one request; `None` when the connection is at its end.
fn serve(stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let Request { method, target, headers, body } = Request::read(stream)?;
    let (fault, now) = {
        let mut state = state.lock().unwrap();
        state.asked.push(format!("{method} {target}"));
        let fault = state.down.or_else(|| state.faults.get_mut(&method)?.pop_front());
        (fault, state.now())
    };
    match fault {
        Some(BucketFault::Hang) => {
            std::thread::sleep(Duration::from_secs(600));
            return None;
        }
        Some(BucketFault::Status(status)) => {
            let body = format!("<Error><Code>Fault</Code><Key>{}</Key></Error>", headers["authorization"]);
            return answer(stream, status, now, body.as_bytes(), None);
        }
        _ => {}
    }
    let (status, mut body) = act(&mut state.lock().unwrap(), &method, &target, &headers, body);
    match fault {
        Some(BucketFault::LostAnswer) => {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            None
        }
        Some(BucketFault::Cut) => {
            let half = body.len() / 2;
            answer(stream, status, now, &body, Some(half))?;
            let _ = stream.shutdown(std::net::Shutdown::Both);
            None
        }
        fault => {
            if fault == Some(BucketFault::Garbled) {
                body.iter_mut().for_each(|byte| *byte ^= 1);
            }
            answer(stream, status, now, &body, None)
        }
    }
}

fn act(
    state: &mut State,
    method: &str,
    target: &str,
    headers: &HashMap<String, String>,
    body: Vec<u8>,
) -> (u16, Vec<u8>) {
    let error = |status, code: &str| (status, format!("<Error><Code>{code}</Code></Error>").into_bytes());
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    let authorization = header("authorization");
    let is_put = method == "PUT";
    let checksum = if is_put { "x-amz-checksum-sha256;" } else { "" };
    let names = format!("SignedHeaders=host;{checksum}x-amz-content-sha256;x-amz-date");
    let is_signed = authorization.starts_with("AWS4-HMAC-SHA256 Credential=")
        && authorization.contains(&names)
        && authorization.split_once("Signature=").is_some_and(|(_, digits)| digits.len() == 64)
        && header("x-amz-content-sha256").len() == 64
        && (!is_put || header("x-amz-checksum-sha256").len() == 44)
        && header("x-amz-date").len() == 16;
    if !is_signed || !headers.contains_key("host") {
        return error(403, "AccessDenied");
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Some(name) = path.strip_prefix("/BUCKET") else { return error(404, "NoSuchBucket") };
    let name = name.trim_start_matches('/');
    match method {
        "PUT" if headers.contains_key("content-length") => {
            let now = state.now();
            state.files.insert(name.to_owned(), (body, now));
            (200, Vec::new())
        }
        "PUT" => error(411, "MissingContentLength"),
        "GET" if name.is_empty() => (200, list(state, query).into_bytes()),
        "GET" => match state.files.get(name) {
            Some((bytes, _)) => (200, bytes.clone()),
            None => error(404, "NoSuchKey"),
        },
        "DELETE" => {
            state.files.remove(name);
            (204, Vec::new())
        }
        _ => error(405, "MethodNotAllowed"),
    }
}

fn list(state: &State, query: &str) -> String {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(other, _)| *other == name).map(|(_, value)| value.replace("%2F", "/"))
    };
    let (prefix, after) =
        (value("prefix").unwrap_or_default(), value("continuation-token").unwrap_or_default());
    let all = state.files.iter().filter(|(name, _)| name.starts_with(&prefix) && **name > after);
    let mut page: Vec<_> = all.take(PAGE + 1).collect();
    let is_cut = page.len() > PAGE;
    page.truncate(PAGE);
    let mut text = format!("<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>{is_cut}</IsTruncated>");
    for (name, (_, written)) in &page {
        let (year, month, day, time) = date(*written);
        let written = format!("{year:04}-{month:02}-{day:02}T{time}.000Z");
        let _ = write!(text, "<Contents><Key>{name}</Key><LastModified>{written}</LastModified></Contents>");
    }
    if is_cut && let Some((name, _)) = page.last() {
        let _ = write!(text, "<NextContinuationToken>{name}</NextContinuationToken>");
    }
    text + "</ListBucketResult>"
}

fn answer(mut stream: &TcpStream, status: u16, now: u64, body: &[u8], cut: Option<usize>) -> Option<()> {
    let (year, month, day, time) = date(now);
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = names[month as usize - 1];
    // 1 January 1970 was a Thursday.
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(now / 86_400 % 7) as usize];
    let date = format!("{weekday}, {day:02} {month} {year} {time} GMT");
    let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("HTTP/1.1 {status} X\r\nDate: {date}\r\n{length}\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body[..cut.unwrap_or(body.len())]).ok()
}

/// Year, month, day, and the time of the day, of so many seconds since 1970.
fn date(seconds: u64) -> (u64, u64, u64, String) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1, format!("{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60))
}
