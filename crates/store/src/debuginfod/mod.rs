//! Files from [debuginfod] servers, by build id.
//!
//! Of what a report or capture holds, nothing but build ids goes into a request, and only servers that the caller names are
//! asked.
//!
//! [debuginfod]: https://sourceware.org/elfutils/Debuginfod.html

mod cache;
mod options;
mod server;

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use backtrail_core::ImageId;

use crate::http::Client;
use crate::remote::{RemoteError, RemoteErrorKind, RemoteFile, RemoteFiles, RemoteKind};
use cache::{Cache, CacheEntry, Draft};
use server::{Reply, Server};

pub use options::DebuginfodOptions;

/// A client of debuginfod servers.
///
/// A server that fails once is not asked again for as long as this lives.
pub struct Debuginfod {
    options: DebuginfodOptions,
    servers: Vec<Server>,
    client: Client,
    cache: Cache,
    cleaned: OnceLock<()>,
    known: Mutex<HashMap<RemoteFile, Arc<OnceLock<Fetched>>>>,
    problems: Mutex<Vec<String>>,
    counts: Counted,
    listener: Option<Box<Listener>>,
}

type Fetched = Result<PathBuf, RemoteError>;

type Listener = dyn Fn(&FetchCounts) + Send + Sync;

/// How far fetching is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct FetchCounts {
    /// Files that were asked for.
    pub wanted: usize,
    /// Files of which it is known whether there is one.
    pub done: usize,
    /// Bytes that came from servers.
    pub bytes: u64,
}

#[derive(Default)]
struct Counted {
    wanted: AtomicUsize,
    done: AtomicUsize,
    bytes: AtomicU64,
}

/// Why no server can be asked at all.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DebuginfodError {
    /// The settings name none.
    NoServer,
    /// This text in the settings is no server that can be asked, for this reason.
    BadServer(String, &'static str),
}

impl fmt::Display for DebuginfodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer => f.write_str("no debuginfod server is set; DEBUGINFOD_URLS names them"),
            Self::BadServer(text, why) => {
                write!(f, "debuginfod server {}: {why}", server::without_password(text))
            }
        }
    }
}

impl std::error::Error for DebuginfodError {}

/// Bytes in which a server has to send something within the time that is allowed, and bytes that are read at a time.
const STRIDE: u64 = 100 << 10;
const BUFFER: usize = 64 << 10;

impl Debuginfod {
    /// A client; nothing is asked yet. Servers among the settings that cannot be asked are said by
    /// [`problems`](RemoteFiles::problems).
    ///
    /// # Errors
    /// Where no server is left.
    pub fn new(options: DebuginfodOptions) -> Result<Self, DebuginfodError> {
        let (mut servers, mut bad) = server::own(&options.symbol_servers);
        let (others, bad_others) = server::all(&options.urls);
        servers.extend(others);
        bad.extend(bad_others);
        if servers.is_empty() {
            return Err(bad.into_iter().next().unwrap_or(DebuginfodError::NoServer));
        }
        Ok(Self {
            client: Client::new(options.timeout),
            cache: Cache::new(&options.cache_directory, options.max_cache_bytes),
            servers,
            cleaned: OnceLock::new(),
            known: Mutex::default(),
            problems: Mutex::new(bad.iter().map(ToString::to_string).collect()),
            counts: Counted::default(),
            listener: None,
            options,
        })
    }

    /// Tells how far fetching is. Called from several threads, each time that bytes come: it should return at once.
    #[must_use]
    pub fn with_listener(self, listener: impl Fn(&FetchCounts) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Box::new(listener)), ..self }
    }

    fn tell(&self) {
        if let Some(listener) = &self.listener {
            listener(&FetchCounts {
                wanted: self.counts.wanted.load(Ordering::Relaxed),
                done: self.counts.done.load(Ordering::Relaxed),
                bytes: self.counts.bytes.load(Ordering::Relaxed),
            });
        }
    }

    fn add_problem(&self, problem: String) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// A file, by the first who asks for it; others wait.
    fn once(&self, file: &RemoteFile) -> Fetched {
        let slot = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(*file).or_default())
        };
        let fetch = || {
            self.counts.wanted.fetch_add(1, Ordering::Relaxed);
            self.tell();
            let fetched = self.fetch_one(file);
            self.counts.done.fetch_add(1, Ordering::Relaxed);
            self.tell();
            fetched
        };
        slot.get_or_init(fetch).clone()
    }

    fn fetch_one(&self, file: &RemoteFile) -> Fetched {
        let what = Wanted(file);
        if !self.may_have(&file.id) {
            return Err(RemoteError::new(RemoteErrorKind::NotThere, format!("{what}: expected a build id")));
        }
        // What one's own server lacks may be uploaded at any moment, and other programs do not ask it.
        let has_own = self.servers.iter().any(|server| server.has_uuids);
        match self.cache.find(file) {
            CacheEntry::File(path) => return Ok(path),
            CacheEntry::NotThere if !has_own => {
                let why = format!("{what}: no server had it a short while ago");
                return Err(RemoteError::new(RemoteErrorKind::NotThere, why));
            }
            CacheEntry::NotThere | CacheEntry::Nothing => {}
        }
        let is_build_id = matches!(file.id, ImageId::BuildId(_));
        let asked = self.servers.iter().filter(|server| is_build_id || server.has_uuids);
        let (mut absent, mut worst) = (0, None);
        for server in asked.clone() {
            match server.ask(&self.client, &what.to_string()) {
                Reply::File(length, body) => match self.receive(file, server, length, body) {
                    Ok(path) => return Ok(path),
                    Err(error) => worst = Some(error),
                },
                Reply::NotThere => absent += 1,
                Reply::Refused(why) => worst = Some(self.refused(server, &what, &why)),
                Reply::Failed(why) => {
                    self.add_problem(format!("{server}: {why}; it is not asked again"));
                    worst = Some(self.refused(server, &what, &why));
                }
                Reply::FailedBefore(why) => worst = Some(self.refused(server, &what, &why)),
            }
        }
        if absent == self.servers.len() && !has_own {
            self.cache.note_absence(file);
        }
        let servers: Vec<_> = asked.map(ToString::to_string).collect();
        let absent =
            || RemoteError::new(RemoteErrorKind::NotThere, format!("{what}: not on {}", servers.join(", ")));
        Err(worst.unwrap_or_else(absent))
    }

    fn refused(&self, server: &Server, what: &Wanted<'_>, why: &str) -> RemoteError {
        RemoteError::new(RemoteErrorKind::Server, format!("{what}: {server}: {why}"))
    }

    /// Takes a file in: whole, and the one that was asked for.
    fn receive(
        &self,
        file: &RemoteFile,
        server: &Server,
        length: Option<u64>,
        body: Box<dyn Read>,
    ) -> Fetched {
        let what = Wanted(file);
        let error = |kind, why: String| RemoteError::new(kind, format!("{what}: {server}: {why}"));
        let local = |why: io::Error| {
            let root = self.options.cache_directory.display();
            let why = format!("cannot be kept below {root}: {why}");
            self.add_problem(format!("debuginfod: files {why}"));
            RemoteError::new(RemoteErrorKind::Io, format!("{what}: {why}"))
        };
        let most = self.options.max_bytes;
        if let Some(length) = length.filter(|length| *length > most) {
            let why = format!("is {length} bytes long, more than the {most} that are taken");
            return Err(error(RemoteErrorKind::Limit, why));
        }
        let mut draft = self.cache.draft(file).map_err(local)?;
        match self.copy(body, &mut draft) {
            Ok(received) if length.is_some_and(|length| length != received) => {
                let why = format!("sent {received} bytes, expected {}", length.unwrap_or_default());
                return Err(error(RemoteErrorKind::WrongFile, why));
            }
            Ok(_) => {}
            Err(Broken::Local(why)) => return Err(local(why)),
            Err(Broken::Limit(why)) => return Err(error(RemoteErrorKind::Limit, why)),
            Err(Broken::Cut(why)) => return Err(error(RemoteErrorKind::WrongFile, why)),
            Err(Broken::Slow(why)) => {
                server.fail(&why);
                self.add_problem(format!("{server}: {why}; it is not asked again"));
                return Err(error(RemoteErrorKind::Server, why));
            }
        }
        if let Err(why) = draft.check(&file.id) {
            let why = format!("sent another file than was asked for, which is not used: {why}");
            self.add_problem(format!("{what}: {server}: {why}"));
            return Err(error(RemoteErrorKind::WrongFile, why));
        }
        draft.keep().map_err(local)
    }

    /// Copies the body, within the bounds of size and time.
    fn copy(&self, mut body: Box<dyn Read>, draft: &mut Draft) -> Result<u64, Broken> {
        let (most, most_of_all) = (self.options.max_bytes, self.options.max_total_bytes);
        let mut buffer = vec![0; BUFFER];
        let mut received = 0_u64;
        let started = Instant::now();
        let (mut stride, mut since) = (0, started);
        loop {
            let read = match body.read(&mut buffer) {
                Ok(0) => return Ok(received),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if crate::http::is_timeout(&error) => {
                    return Err(Broken::Slow(format!("sent nothing for {:?}", self.options.timeout)));
                }
                Err(error) => return Err(Broken::Cut(format!("the file broke off: {error}"))),
            };
            received = received.saturating_add(read as u64);
            let total =
                self.counts.bytes.fetch_add(read as u64, Ordering::Relaxed).saturating_add(read as u64);
            if received > most {
                return Err(Broken::Limit(format!("sends more than the {most} bytes that are taken")));
            }
            if total > most_of_all {
                let why = format!("all files together are more than the {most_of_all} bytes that are taken");
                return Err(Broken::Limit(why));
            }
            draft.write(buffer.get(..read).unwrap_or_default()).map_err(Broken::Local)?;
            self.tell();
            stride += read as u64;
            if stride >= STRIDE {
                (stride, since) = (0, Instant::now());
            } else if since.elapsed() > self.options.timeout {
                return Err(Broken::Slow(format!("sent less than 100 KiB in {:?}", self.options.timeout)));
            }
            if started.elapsed() > self.options.max_time {
                return Err(Broken::Slow(format!("one file took longer than {:?}", self.options.max_time)));
            }
        }
    }
}

/// Why a body did not come to its end.
enum Broken {
    Local(io::Error),
    Limit(String),
    Cut(String),
    Slow(String),
}

impl RemoteFiles for Debuginfod {
    fn fetch(&self, wanted: &[RemoteFile]) -> Vec<Result<PathBuf, RemoteError>> {
        self.cleaned.get_or_init(|| {
            let root = self.options.cache_directory.display();
            if let Err(error) = self.cache.clean() {
                self.add_problem(format!("debuginfod: files cannot be kept below {root}: {error}"));
            }
        });
        let before = self.counts.bytes.load(Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(file) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let _ = self.once(file);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.options.parallel.min(wanted.len()) {
                // Where there can be no further thread, this one does all of it.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let fetched = wanted.iter().map(|file| self.once(file)).collect();
        if self.counts.bytes.load(Ordering::Relaxed) > before {
            self.cache.shrink();
        }
        fetched
    }

    fn may_have(&self, id: &ImageId) -> bool {
        matches!(id, ImageId::BuildId(_)) || self.servers.iter().any(|server| server.has_uuids)
    }

    fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Debuginfod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debuginfod").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// A file as it is asked for: `buildid/HEX/debuginfo`.
struct Wanted<'f>(&'f RemoteFile);

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.kind {
            RemoteKind::DebugInfo => "debuginfo",
            RemoteKind::Executable => "executable",
        };
        write!(f, "buildid/{}/{kind}", cache::digits(&self.0.id))
    }
}
