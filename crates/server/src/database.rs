//! The database: one thread writes, many read.
//!
//! Writes that wait are committed together, each in a savepoint of its own: what fails takes nothing else along. A write
//! returns when its transaction is on disk, not before.

mod connection;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
#[cfg(feature = "postgres")]
mod transfer;
mod values;

pub(crate) use connection::{Connection, Row};
pub(crate) use values::{Give, Given, OptionalExtension, params};

use crate::config::Config;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Writes that are committed together.
const MAX_TOGETHER: usize = 256;

/// Writes that may wait; further ones wait for a place.
const MAX_WAITING: usize = 1024;

/// Connections for reading that are kept.
const MAX_KEPT: usize = 8;

/// Connections of one server for reading, where they are another server's; whoever finds none free waits.
#[cfg(feature = "postgres")]
const MAX_OPEN: usize = 16;

/// The latest version of the schema, that which this program knows.
pub(crate) const LATEST: usize = sqlite::MIGRATIONS.len();

/// Why the database does not answer.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// Its own word.
    Query(Box<dyn Error + Send + Sync>),
    /// There is no row where one was expected.
    NoRow,
    /// The transaction that the write was part of could not be committed.
    Commit(String),
    /// A later program made it.
    Newer { found: usize },
    /// The server is about to end.
    Closed,
    /// There is no file of it.
    NoFile(PathBuf, io::Error),
    /// There is one, and no server has made its tables.
    NoTables,
    /// It is to be new, and has a table.
    #[cfg(feature = "postgres")]
    NotEmpty(String),
    /// It is at an address that this program cannot use.
    Address(String),
    /// The thread that writes could not be started, or what belongs to a write outside of the database failed.
    Thread(io::Error),
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(error) => write!(f, "the database: {error}"),
            Self::NoRow => f.write_str("the database: a row is missing"),
            Self::Commit(why) => write!(f, "the database cannot commit: {why}"),
            Self::Newer { found } => write!(
                f,
                "the database has version {found}, and this program knows {LATEST} at most: use a later program"
            ),
            Self::Closed => f.write_str("the database is closed"),
            Self::NoFile(path, error) => write!(f, "{}: {error}", path.display()),
            #[cfg(feature = "postgres")]
            Self::NotEmpty(table) => {
                write!(
                    f,
                    "expected an empty database, found one with a table {table}: make another one (`createdb`)"
                )
            }
            Self::NoTables => f.write_str("expected a server's database, found one without tables"),
            Self::Address(why) => f.write_str(why),
            Self::Thread(error) => error.fmt(f),
        }
    }
}

impl Error for DatabaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Query(error) => Some(error.as_ref()),
            Self::NoFile(_, error) | Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Query(error.into())
    }
}

pub(crate) type Result<T, E = DatabaseError> = std::result::Result<T, E>;

/// Where a database is. What it says has a password in it, and is for nobody's eyes.
#[derive(Clone)]
pub(crate) enum Source {
    /// SQLite's file.
    File(PathBuf),
    /// PostgreSQL's address.
    #[cfg(feature = "postgres")]
    Postgres(String),
}

impl Source {
    /// What a server is told, else the file in its directory.
    pub(crate) fn of(config: &Config) -> Result<Self> {
        let Some(url) = &config.database else { return Ok(Self::File(config.data.join("backtrail.sqlite"))) };
        if !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
            // It may have a password in it, and is not repeated.
            return Err(DatabaseError::Address(
                "expected a database as postgresql://USER@HOST/NAME".to_owned(),
            ));
        }
        #[cfg(feature = "postgres")]
        return Ok(Self::Postgres(url.clone()));
        #[cfg(not(feature = "postgres"))]
        Err(DatabaseError::Address(
            "this program was built without PostgreSQL: `cargo build --release --features postgres`"
                .to_owned(),
        ))
    }

    /// Connects to write, and brings the schema up to date.
    fn open(&self) -> Result<Connection> {
        match self {
            Self::File(path) => sqlite::open(path).map(Connection::Sqlite),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => postgres::open(url).map(Box::new).map(Connection::Postgres),
        }
    }

    fn open_to_read(&self) -> Result<Connection> {
        match self {
            Self::File(path) => sqlite::open_to_read(path).map(Connection::Sqlite),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => postgres::open_to_read(url).map(Box::new).map(Connection::Postgres),
        }
    }

    /// Whether other servers may use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// Makes sure that nothing is there that a copy would be mixed with, where it is not in a directory that has to be empty anyway.
    pub(crate) fn expect_empty(&self) -> Result<()> {
        match self {
            Self::File(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => postgres::expect_empty(url),
        }
    }

    fn max_open(&self) -> usize {
        match self {
            Self::File(_) => usize::MAX,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => MAX_OPEN,
        }
    }

    /// Makes sure that there is one, where that can be told without making it.
    fn is_there(&self) -> Result<()> {
        match self {
            Self::File(path) => match fs::metadata(path) {
                Err(error) => Err(DatabaseError::NoFile(path.clone(), error)),
                Ok(_) => Ok(()),
            },
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(()),
        }
    }
}

/// Hands a write's result to who waits for it, once it is known whether the transaction was committed.
type Deliver = Box<dyn FnOnce(Option<String>)>;

/// One write, which says whether it succeeded. Where there is no transaction for it, it gets no connection and does nothing.
type Job = Box<dyn FnOnce(Option<&Connection>) -> (bool, Deliver) + Send>;

/// The database of one server.
pub(crate) struct Database {
    source: Source,
    writer: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
}

/// A write that was started.
#[must_use = "whether it succeeded is known when it was waited for"]
pub(crate) struct Write<T>(Receiver<Result<T>>);

impl<T> Write<T> {
    /// Returns when it is on disk. Blocks.
    pub(crate) fn wait(self) -> Result<T> {
        self.0.recv().map_err(|_| DatabaseError::Closed)?
    }
}

/// Connections for reading.
#[derive(Default)]
struct Readers {
    state: Mutex<ReadersState>,
    freed: Condvar,
}

#[derive(Default)]
struct ReadersState {
    kept: Vec<Connection>,
    /// How many are in use.
    used: usize,
}

impl Database {
    /// Opens the database, makes it where there is none, and brings its schema up to date.
    pub(crate) fn open(source: Source) -> Result<Self> {
        let connection = source.open()?;
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new().name("database".to_owned());
        let thread = thread.spawn(move || write_all(connection, &receiver)).map_err(|error| {
            let why = format!("the database cannot start its thread: {error}");
            DatabaseError::Thread(io::Error::new(error.kind(), why))
        })?;
        Ok(Self {
            source,
            writer: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            readers: Readers::default(),
        })
    }

    /// For reading alone, beside a server that may run. Changes nothing.
    pub(crate) fn open_to_read(source: Source) -> Result<Self> {
        source.is_there()?;
        let (writer, thread, readers) = (Mutex::default(), Mutex::default(), Readers::default());
        let database = Self { source, writer, thread, readers };
        if database.read(Connection::version)? == 0 { Err(DatabaseError::NoTables) } else { Ok(database) }
    }

    /// Whether other servers may use it at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        self.source.is_shared()
    }

    /// Which version of the schema it has, and whether it is sound.
    pub(crate) fn check(&self) -> Result<(usize, String)> {
        self.read(|connection| {
            let version = connection.version()?;
            if version > LATEST {
                return Err(DatabaseError::Newer { found: version });
            }
            Ok((version, connection.sound()?))
        })
    }

    /// Copies it, as it is at one moment, to a file that is not there yet, and opens the copy to read.
    pub(crate) fn copy(&self, to: &Path) -> Result<Self> {
        match &self.source {
            Source::File(from) => sqlite::copy(from, to)?,
            // Indexes are made after the transaction, which must not idle.
            #[cfg(feature = "postgres")]
            Source::Postgres(_) => {
                self.read(|connection| transfer::to_file(connection, to))?.finish()?;
            }
        }
        Self::open_to_read(Source::File(to.to_owned()))
    }

    /// Copies a database of this program's version to PostgreSQL, where there is none yet.
    #[cfg(feature = "postgres")]
    pub(crate) fn copy_to_postgres(&self, url: &str) -> Result<()> {
        self.read(|connection| transfer::to_postgres(connection, url))
    }

    /// Has `work` done in a transaction, and returns when that is on disk. Blocks.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.start_write(work)?.wait()
    }

    /// Has `work` done in a transaction, and does not wait for it: writes that are started one after the other are done in that order,
    /// and mostly committed together. Blocks only where very many wait.
    pub(crate) fn start_write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<Write<T>> {
        let (answer, result) = channel();
        let job: Job = Box::new(move |connection| {
            let done = connection.map_or(Err(DatabaseError::Closed), work);
            (done.is_ok(), deliver(done, answer))
        });
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.ok_or(DatabaseError::Closed)?.send(job).map_err(|_| DatabaseError::Closed)?;
        Ok(Write(result))
    }

    /// Has `work` read what was committed, at one moment. Blocks; not within another one's `work`.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let (place, kept) = self.readers.place(self.source.max_open());
        let mut connection = kept.map_or_else(|| self.source.open_to_read(), Ok)?;
        connection.begin_to_read()?;
        let result = work(&connection);
        if connection.roll_back().is_ok() {
            place.keep(connection);
        }
        result
    }

    /// Commits what waits, and ends.
    pub(crate) fn close(&self) {
        drop(self.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.readers.state.lock().unwrap_or_else(PoisonError::into_inner).kept.clear();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Readers {
    /// Waits for a place among so many, with a connection where one is kept.
    fn place(&self, most: usize) -> (ReaderPermit<'_>, Option<Connection>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.freed.wait_while(state, |state| state.used >= most);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.used += 1;
        (ReaderPermit(self), state.kept.pop())
    }
}

/// One of [`Readers`] until this is dropped.
struct ReaderPermit<'r>(&'r Readers);

impl ReaderPermit<'_> {
    /// Keeps a connection for whoever reads next.
    fn keep(&self, connection: Connection) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.kept.len() < MAX_KEPT {
            state.kept.push(connection);
        }
    }
}

impl Drop for ReaderPermit<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).used -= 1;
        self.0.freed.notify_one();
    }
}

fn deliver<T: 'static>(done: Result<T>, answer: Sender<Result<T>>) -> Deliver {
    Box::new(move |failed| {
        let done = match failed {
            Some(why) => Err(DatabaseError::Commit(why)),
            None => done,
        };
        // Who asked may have gone.
        let _ = answer.send(done);
    })
}

/// A text as a pattern of SQL's `LIKE` with `ESCAPE '\'`: no sign of it stands for others.
pub(crate) fn plain_pattern(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

/// Whether the schema is this program's.
pub(crate) fn is_current(connection: &Connection) -> Result<bool> {
    Ok(connection.version()? == LATEST)
}

/// The thread that writes. While it commits, further writes gather, and are the next transaction.
fn write_all(mut connection: Connection, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut together = vec![first];
        together.extend(jobs.try_iter().take(MAX_TOGETHER - 1));
        let (failed, delivers) = transact(&mut connection, together);
        for deliver in delivers {
            deliver(failed.clone());
        }
    }
    connection.finish();
}

fn transact(connection: &mut Connection, jobs: Vec<Job>) -> (Option<String>, Vec<Deliver>) {
    let mut failed = connection.begin().err().map(|error| error.to_string());
    let connection = &*connection;
    let failure = |sql: &str| connection.run(sql).err().map(|error| error.to_string());
    let mut delivers = Vec::with_capacity(jobs.len());
    for job in jobs {
        if failed.is_none() {
            failed = failure("SAVEPOINT one");
        }
        let (succeeded, deliver) = job(failed.is_none().then_some(connection));
        delivers.push(deliver);
        if failed.is_none() {
            failed = if succeeded { None } else { failure("ROLLBACK TO one") };
            failed = failed.or_else(|| failure("RELEASE one"));
        }
    }
    if failed.is_none() {
        failed = failure("COMMIT");
    }
    if failed.is_some() {
        let _ = connection.roll_back();
    }
    (failed, delivers)
}

#[cfg(test)]
pub(crate) mod tests;
