//! Sends the files of earlier crashes: to backtrail's server, to one that speaks Sentry's protocol, or to any that takes a body.
//!
//! ```no_run
//! use backtrail_crash::upload::{Upload, send_pending};
//!
//! # fn user_agreed() -> bool { true }
//! if user_agreed() {
//!     let upload = Upload::to("https://KEY@crashes.example.org/api/1/reports/");
//!     let outcome = send_pending("/var/lib/orders/crashes".as_ref(), &upload)?;
//!     for (file, why) in outcome.left {
//!         eprintln!("{}: {why}", file.display());
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Nothing is sent unless the program calls this: whether the user agreed is the program's to know. It blocks, so that a program calls
//! it on a thread of its own.

mod sentry;

use crate::pending::{pending, sent};
use crate::sessions::pending_sessions;
use backtrail_store::{JsonClient, Method};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the server takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// The file as the body of a POST: backtrail's server, or a program of one's own. Any answer of 200 to 299 means that it is kept.
    #[default]
    Body,
    /// Sentry's envelope, with an event of the threads' stacks and images, and the file as an attachment. The address is a DSN:
    /// `https://KEY@HOST/PROJECT`.
    Sentry,
}

/// Where crash files are sent, and how patiently.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Upload {
    /// The address, or the DSN.
    pub url: String,
    /// The address that runs of the program are told to ([`Options::release`](crate::Options::release)); `None`: they are kept. With
    /// a DSN they go into envelopes, to the same address as crashes.
    pub sessions: Option<String>,
    /// What the server takes.
    pub protocol: Protocol,
    /// How often a file is sent until it is left for the next start.
    pub attempts: u32,
    /// How long to wait before the second attempt; twice as long before each further one, five minutes at most.
    pub first_wait: Duration,
    /// How long to wait for an answer.
    pub timeout: Duration,
}

impl Upload {
    /// Sends files as they are to an address. Where that is of a project of backtrail's server, `…/api/PROJECT/reports/`, runs of the
    /// program are told to `…/api/PROJECT/sessions/`.
    pub fn to(url: impl Into<String>) -> Self {
        let url = url.into();
        let project = url.strip_suffix("/reports/").filter(|project| project.contains("/api/"));
        Self {
            sessions: project.map(|project| format!("{project}/sessions/")),
            url,
            protocol: Protocol::Body,
            attempts: 5,
            first_wait: Duration::from_secs(2),
            timeout: Duration::from_secs(30),
        }
    }

    /// Sends envelopes to a server that speaks Sentry's protocol.
    pub fn to_sentry(dsn: impl Into<String>) -> Self {
        Self { protocol: Protocol::Sentry, ..Self::to(dsn) }
    }
}

/// What became of the files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// How many were taken, and removed.
    pub sent: usize,
    /// How many runs of the program were told.
    pub sessions: usize,
    /// Those that are still there, and why.
    pub left: Vec<(PathBuf, String)>,
}

/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Why a file was not taken.
enum Refusal {
    /// It may be taken later, and not before the server says.
    Later(String, Option<Duration>),
    /// It never will.
    Never(String),
}

/// Sends every finished file of a directory, oldest first, and removes each that was taken. Where the server cannot be reached, or is
/// overloaded, it is asked again after a while, and not before it says (`Retry-After`); after the last attempt, or where that would be later than five minutes from now, the other files are left, too. A file that is refused for what it
/// is stays, and the next is sent: whether it is kept is the program's to decide. Before that the server is told how earlier runs ended.
///
/// # Errors
/// Where the directory cannot be read.
pub fn send_pending(directory: &Path, upload: &Upload) -> io::Result<Outcome> {
    let mut outcome = Outcome::default();
    let sessions = pending_sessions(directory)?;
    let mut files = pending(directory)?.into_iter();
    let target = match target(upload) {
        Ok(target) => target,
        Err(why) => {
            outcome.left.extend(files.map(|file| (file, why.clone())));
            return Ok(outcome);
        }
    };
    send_sessions(&sessions, upload, &target, &mut outcome);
    while let Some(file) = files.next() {
        match send(&file, upload, &target) {
            Ok(()) => {
                outcome.sent += 1;
                if let Err(error) = sent(&file) {
                    outcome.left.push((file, format!("taken, but cannot be removed: {error}")));
                }
            }
            Err(Refusal::Never(why)) => outcome.left.push((file, why)),
            Err(Refusal::Later(why, _)) => {
                outcome.left.push((file, why.clone()));
                outcome.left.extend(files.by_ref().map(|file| (file, why.clone())));
            }
        }
    }
    Ok(outcome)
}

struct Target {
    client: JsonClient,
    path: String,
    headers: Vec<(&'static str, String)>,
}

fn target(upload: &Upload) -> Result<Target, String> {
    let client = |base: &str| JsonClient::new(base, None, upload.timeout);
    match upload.protocol {
        Protocol::Body => {
            // The client takes the last slash for none of the address's.
            let path = if upload.url.ends_with('/') { "/" } else { "" };
            Ok(Target { client: client(&upload.url), path: path.to_owned(), headers: Vec::new() })
        }
        Protocol::Sentry => {
            let dsn = sentry::Dsn::parse(&upload.url)?;
            let headers = vec![
                ("X-Sentry-Auth", dsn.authorization()),
                ("Content-Type", "application/x-sentry-envelope".to_owned()),
            ];
            Ok(Target { client: client(&dsn.base), path: dsn.path(), headers })
        }
    }
}

/// What a server takes at once.
const MAX_SESSIONS: usize = 100;

/// Tells of runs, and removes the files of those that the server knows.
fn send_sessions(files: &[PathBuf], upload: &Upload, target: &Target, outcome: &mut Outcome) {
    let own = match (upload.protocol, &upload.sessions) {
        (Protocol::Body, None) => return,
        (Protocol::Body, Some(url)) => {
            let upload = Upload { url: url.clone(), ..upload.clone() };
            self::target(&upload).ok()
        }
        (Protocol::Sentry, _) => None,
    };
    for files in files.chunks(MAX_SESSIONS) {
        // One that another program removes is another program's to tell.
        let known = files.iter().filter_map(|file| Some((file, std::fs::read(file).ok()?)));
        let (files, bodies): (Vec<_>, Vec<_>) = known.unzip();
        let body = match upload.protocol {
            Protocol::Body => [b"[".as_slice(), &bodies.join(&b','), b"]"].concat(),
            Protocol::Sentry => sentry::sessions(&bodies),
        };
        let answer =
            if files.is_empty() { Ok(()) } else { send_body(&body, upload, own.as_ref().unwrap_or(target)) };
        for file in files {
            match &answer {
                Ok(()) => {
                    outcome.sessions += 1;
                    let _ = std::fs::remove_file(file);
                }
                Err(Refusal::Later(why, _) | Refusal::Never(why)) => {
                    outcome.left.push((file.clone(), why.clone()));
                }
            }
        }
    }
}

fn send(file: &Path, upload: &Upload, target: &Target) -> Result<(), Refusal> {
    let bytes = std::fs::read(file).map_err(|error| Refusal::Never(error.to_string()))?;
    let body = match upload.protocol {
        Protocol::Body => bytes,
        Protocol::Sentry => sentry::envelope(&bytes).map_err(Refusal::Never)?,
    };
    send_body(&body, upload, target)
}

fn send_body(body: &[u8], upload: &Upload, target: &Target) -> Result<(), Refusal> {
    let headers: Vec<_> = target.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut wait = upload.first_wait;
    let mut attempt = 1;
    loop {
        match answer(target, &headers, body) {
            Err(Refusal::Later(_, after))
                if attempt < upload.attempts && after.is_none_or(|after| after <= LONGEST_WAIT) =>
            {
                std::thread::sleep(wait.max(after.unwrap_or_default()));
                wait = wait.saturating_mul(2).min(LONGEST_WAIT);
                attempt += 1;
            }
            answer => return answer,
        }
    }
}

/// One attempt. The server keeps a body once, however often it is sent: where only the answer was lost, nothing is counted twice.
fn answer(target: &Target, headers: &[(&str, &str)], body: &[u8]) -> Result<(), Refusal> {
    let answer = target.client.ask(Method::Post, &target.path, headers, body);
    let answer = answer.map_err(|why| Refusal::Later(format!("the server {why}"), None))?;
    let (status, after, location) = (answer.status, answer.retry_after, answer.location.clone());
    // What stands behind the status says nothing more where the file is taken.
    let text = answer.bytes(MAX_ANSWER);
    match (status, location) {
        (200..=299, _) => Ok(()),
        (408 | 429 | 500..=599, _) => {
            let peace = after.map(|after| format!(", and wants nothing for {} s", after.as_secs()));
            Err(Refusal::Later(format!("the server answered {status}{}", peace.unwrap_or_default()), after))
        }
        (300..=399, Some(location)) => Err(Refusal::Never(format!(
            "the server answered {status}: it has moved to {location}; that is not followed, since the address may hold a key"
        ))),
        _ => {
            let text = text.unwrap_or_default();
            let text = String::from_utf8_lossy(text.get(..200).unwrap_or(&text)).into_owned();
            Err(Refusal::Never(format!("the server answered {status}: {text}")))
        }
    }
}

/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 << 10;
