//! What a server is told: where its data is, where it listens, what it bears.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How a server runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The directory with everything that it keeps.
    pub data: PathBuf,
    /// PostgreSQL's address, `postgresql://USER@HOST/NAME`, in the place of a file in `data`: several servers may share it, each with a
    /// directory of its own. Needs the feature `postgres`.
    pub database: Option<String>,
    /// The directory of files, where it is not in `data`. Servers that share a database share it.
    pub objects: Option<PathBuf>,
    /// Where it takes requests.
    pub listen: SocketAddr,
    /// The address that clients and people use, where that is another one: `https://crashes.example.org`.
    pub url: Option<String>,
    /// Threads that work reports; 0 for one a processor.
    pub workers: usize,
    /// How long reports keep their bytes; `None` for ever. The first and the last three of an issue keep them anyway.
    pub keep: Option<Duration>,
    /// How many bytes of reports are kept, as they came; `None` for all. The oldest go first, with the same exception.
    pub keep_bytes: Option<u64>,
    /// The program that makes tables of symbols, called as `PROGRAM serve make-tables …`: see [`make_tables`](crate::make_tables).
    /// Without one, files of symbols are read as they are, by the server itself.
    pub tables: Option<PathBuf>,
    /// What it bears.
    pub limits: ServerLimits,
}

impl Config {
    /// With everything in `data`, on this machine only, port 4747.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            database: None,
            objects: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4747),
            url: None,
            workers: 0,
            keep: None,
            keep_bytes: None,
            tables: None,
            limits: ServerLimits::default(),
        }
    }

    /// The directory of files.
    pub(crate) fn objects_directory(&self) -> PathBuf {
        self.objects.clone().unwrap_or_else(|| self.data.join("objects"))
    }
}

/// What a server bears of its clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a body that was packed.
    pub decoded: usize,
    /// Memory that making the tables of a file of symbols may take, in bytes, beyond four times the file's size; 4 GiB in all, unless this
    /// is more.
    pub table_memory: u64,
    /// Processor time that it may take; of other time twice as much.
    pub table_time: Duration,
    /// Bytes that each packed byte may stand for, beyond the first megabytes.
    pub ratio: usize,
    /// Bytes of a file of symbols.
    pub symbol_file: u64,
    /// Bodies of more than [`SMALL_BODY`] bytes that are in memory at the same time; further ones wait.
    pub large_bodies: usize,
    /// Connections at the same time; further ones wait.
    pub connections: usize,
    /// The time that a request's head may take.
    pub head_time: Duration,
    /// The time that a request's body may take.
    pub body_time: Duration,
    /// How long a client may read nothing of an answer before it is disconnected.
    pub answer_time: Duration,
    /// Reports of one request.
    pub reports: usize,
    /// Items of an envelope, and fields of a form.
    pub items: usize,
    /// Reports that wait to be worked; beyond these clients that know how to wait are asked to.
    pub waiting: u64,
    /// The time until an equal report is another one.
    pub window: Duration,
}

/// Bodies of so many bytes are never many enough to fill the memory.
pub const SMALL_BODY: usize = 256 << 10;

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 128 << 20,
            decoded: 256 << 20,
            ratio: 250,
            symbol_file: 4 << 30,
            table_memory: 512 << 20,
            table_time: Duration::from_secs(600),
            large_bodies: 4,
            connections: 512,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(120),
            answer_time: Duration::from_secs(60),
            reports: 1000,
            items: 256,
            waiting: 200_000,
            window: Duration::from_secs(600),
        }
    }
}
