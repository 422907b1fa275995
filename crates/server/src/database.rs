//! The database: one thread writes, many read.
//!
//! Writes that wait are committed together, each in a savepoint of its own: what fails takes nothing else along. A write
//! returns when its transaction is on disk, not before.

mod connection;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
mod values;

pub(crate) use connection::{Connection, Row};
pub(crate) use values::{Give, Given, OptionalExtension, params};

use crate::config::Config;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
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
const LATEST: usize = sqlite::MIGRATIONS.len();

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

/// Where a database is.
#[derive(Clone, Debug)]
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

    fn max_open(&self) -> usize {
        match self {
            Self::File(_) => usize::MAX,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => MAX_OPEN,
        }
    }

    /// Makes sure that there is one, where that can be told without making it.
    pub(crate) fn is_there(&self) -> Result<()> {
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
        Ok(Self { source, writer: Mutex::default(), thread: Mutex::default(), readers: Readers::default() })
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

    /// Copies it, as it is at one moment, to where no database is yet, and opens the copy to read.
    pub(crate) fn copy(&self, to: Source) -> Result<Self> {
        match (&self.source, &to) {
            (Source::File(from), Source::File(path)) => sqlite::copy(from, path)?,
            #[cfg(feature = "postgres")]
            _ => {
                return Err(DatabaseError::Address(
                    "a database in PostgreSQL is copied by `pg_dump`".to_owned(),
                ));
            }
        }
        Self::open_to_read(to)
    }

    /// Has `work` done in a transaction, and returns when that is on disk. Blocks.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, result) = channel();
        let job: Job = Box::new(move |connection| {
            let done = connection.map_or(Err(DatabaseError::Closed), work);
            (done.is_ok(), deliver(done, answer))
        });
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        writer.ok_or(DatabaseError::Closed)?.send(job).map_err(|_| DatabaseError::Closed)?;
        result.recv().map_err(|_| DatabaseError::Closed)?
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
pub(crate) mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    /// A database of each sort, new.
    pub(crate) fn sources(directory: &TempDir) -> Vec<Source> {
        let postgres = backtrail_testkit::postgres().map(Source::Postgres);
        std::iter::once(Source::File(directory.join("db"))).chain(postgres).collect()
    }

    fn projects(database: &Database) -> i64 {
        let count = |connection: &Connection| {
            connection.query_row("SELECT count(*) FROM project", params![], |row| row.get(0))
        };
        database.read(count).unwrap()
    }

    fn insert(slug: &str) -> impl FnOnce(&Connection) -> Result<usize> + Send + use<> {
        let slug = slug.to_owned();
        move |connection| {
            connection.execute("INSERT INTO project (slug, name, created) VALUES (?1, ?1, 0)", params![slug])
        }
    }

    #[test]
    fn what_fails_takes_nothing_else_along() {
        let directory = TempDir::new("server-database");
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
            std::thread::scope(|scope| {
                for number in 0..40 {
                    let database = &database;
                    scope.spawn(move || {
                        let result = database.write(move |connection| {
                            let done = insert(&format!("p{number}"))(connection);
                            if number % 4 == 0 { Err(DatabaseError::Closed) } else { done }
                        });
                        assert_eq!(result.is_ok(), number % 4 != 0);
                    });
                }
            });
            assert_eq!(projects(&database), 30);
            assert!(database.write(insert("p1")).is_err(), "unique");
            assert_eq!(projects(&database), 30);
            database.close();
            assert!(matches!(database.write(insert("late")), Err(DatabaseError::Closed)));
        }
    }

    #[test]
    fn a_database_of_a_later_program_is_left_alone() {
        let directory = TempDir::new("server-newer");
        for source in sources(&directory) {
            Database::open(source.clone()).unwrap().close();
            match &source {
                Source::File(path) => {
                    let connection = rusqlite::Connection::open(path).unwrap();
                    connection.pragma_update(None, "user_version", 99).unwrap();
                }
                Source::Postgres(url) => {
                    backtrail_testkit::psql(url, "UPDATE schema_version SET version = 99").unwrap();
                }
            }
            assert!(matches!(Database::open(source.clone()), Err(DatabaseError::Newer { found: 99 })));
            let read = Database::open_to_read(source).unwrap();
            assert!(matches!(read.check(), Err(DatabaseError::Newer { found: 99 })));
        }
    }

    /// What writes sees nothing change, whichever replica else writes: else counts would not be those of rows.
    #[test]
    fn replicas_write_one_after_the_other() {
        let Some(url) = backtrail_testkit::postgres() else { return };
        let replicas = [(); 3].map(|()| Database::open(Source::Postgres(url.clone())).unwrap());
        let number = |connection: &Connection| {
            let all: i64 =
                connection.query_row("SELECT count(*) FROM project", params![], |row| row.get(0))?;
            insert(&format!("p{all}"))(connection)
        };
        std::thread::scope(|scope| {
            for replica in replicas.iter().cycle().take(24) {
                scope.spawn(move || replica.write(number).unwrap());
            }
        });
        assert!(replicas.iter().all(|replica| projects(replica) == 24));
        let numbers: Vec<i64> = replicas
            .iter()
            .map(|replica| replica.write(|connection| Ok(connection.replica())).unwrap())
            .collect();
        assert!(
            numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2],
            "{numbers:?}"
        );
        // Those that ended are seen to be gone, others not.
        replicas[0].close();
        let gone = |number: i64| {
            let is_gone = |connection: &Connection| {
                let sql = format!("SELECT {} FROM (SELECT ?1 AS n) AS one", connection.is_gone("n"));
                connection.query_row(&sql, params![number], |row| row.get::<_, bool>(0))
            };
            replicas[1].read(is_gone).unwrap()
        };
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !gone(numbers[0]) {
            assert!(std::time::Instant::now() < until, "it is not there any more");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!gone(numbers[1]) && !gone(numbers[2]));
    }

    /// A connection that breaks is made anew, and a replica keeps its number.
    #[test]
    fn a_broken_connection_is_replaced() {
        let Some(url) = backtrail_testkit::postgres() else { return };
        let database = Database::open(Source::Postgres(url.clone())).unwrap();
        assert_eq!(projects(&database), 0);
        let number = || database.write(|connection| Ok(connection.replica()));
        let before = number().unwrap();
        let end = "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = 'backtrail' \
                   AND datname = current_database()";
        backtrail_testkit::psql(&url, end).unwrap();
        database.write(insert("after")).unwrap();
        assert_eq!((projects(&database), number().unwrap()), (1, before));
    }

    /// Both sorts have the same tables and columns, so that texts of SQL mean the same.
    #[test]
    fn both_schemas_have_the_same_columns() {
        let directory = TempDir::new("server-schemas");
        let columns = |source: &Source| {
            let sql = match source {
                Source::File(_) => {
                    "SELECT tables.name, columns.name FROM sqlite_schema AS tables \
                     JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' \
                     AND tables.name NOT LIKE 'issue_text%'"
                }
                Source::Postgres(_) => {
                    "SELECT table_name::text, column_name::text FROM information_schema.columns \
                     WHERE table_schema = 'public' AND table_name <> 'schema_version' AND column_name <> 'words'"
                }
            };
            let database = Database::open(source.clone()).unwrap();
            let mut columns = database
                .read(|connection| connection.query_map(sql, params![], |row| Ok((row.get(0)?, row.get(1)?))))
                .unwrap();
            columns.sort();
            columns
        };
        let all: Vec<Vec<(String, String)>> = sources(&directory).iter().map(columns).collect();
        assert!(all[0].len() > 100 && all.iter().all(|columns| *columns == all[0]), "{all:#?}");
    }

    /// The steps never change, so that the first of them make what earlier programs made.
    #[test]
    fn a_database_of_an_earlier_program_keeps_what_it_has() {
        let directory = TempDir::new("server-older");
        for earlier in 1..LATEST {
            let path = directory.join(format!("db-{earlier}"));
            let connection = rusqlite::Connection::open(&path).unwrap();
            for step in &sqlite::MIGRATIONS[..earlier] {
                connection.execute_batch(step).unwrap();
            }
            connection.pragma_update(None, "user_version", i64::try_from(earlier).unwrap()).unwrap();
            connection
                .execute_batch(
                    "INSERT INTO project (slug, name, created) VALUES ('old', 'Old', 0); \
                     INSERT INTO blob (digest, size, refs) VALUES ('d', 1, 1); \
                     INSERT INTO report (project, event_id, kind, blob, received, state) \
                     VALUES (1, 'e', 'report', 'd', 5, 'done'); \
                     INSERT INTO symbol_file (project, image_id, kind, name, blob, uploaded) VALUES \
                     (1, '180a373d6afbabf0eb1f09be1bc45bd796a71085', 'library', 'l', 'd', 0), (1, '0102', 'l', 'l', 'd', 0), \
                     (1, '8b10ba6c-1111-2222-3333-44444444444A', 'library', 'm', 'd', 0); \
                     INSERT INTO missing (project, image_id, report, name) VALUES (1, 'id', 1, 'Demo');",
                )
                .unwrap();
            drop(connection);
            let database = Database::open(Source::File(path)).unwrap();
            assert_eq!(projects(&database), 1);
            let kept = |connection: &Connection| {
                let sql = "SELECT count(*) FROM report WHERE received = 5 AND dropped IS NULL";
                connection.query_row(sql, params![], |row| row.get::<_, i64>(0))
            };
            assert_eq!(database.read(kept).unwrap(), 1);
            let missing = |connection: &Connection| {
                let sql = "SELECT reports = 1 AND last = 5 AND name = 'Demo' FROM missing_image";
                connection.query_row(sql, params![], |row| row.get::<_, bool>(0))
            };
            assert!(database.read(missing).unwrap());
            // As `backtrail::debug_id` has them; later programs wrote them themselves.
            let ids = |connection: &Connection| {
                let sql = "SELECT coalesce(debug_id, '') FROM symbol_file ORDER BY id";
                connection.query_map(sql, params![], |row| row.get::<_, String>(0))
            };
            assert!(
                earlier >= 4
                    || database.read(ids).unwrap()
                        == [
                            "3D370A18FB6AF0ABEB1F09BE1BC45BD70",
                            "000002010000000000000000000000000",
                            "8B10BA6C11112222333344444444444A0"
                        ]
            );
            assert_eq!(database.check().unwrap(), (LATEST, "ok".to_owned()));
            database.close();
        }
    }

    #[test]
    fn an_empty_database_is_sound() {
        let directory = TempDir::new("server-check");
        for source in sources(&directory) {
            Database::open(source.clone()).unwrap().close();
            let read = Database::open_to_read(source).unwrap();
            assert_eq!(read.check().unwrap(), (LATEST, "ok".to_owned()));
        }
        assert!(Database::open_to_read(Source::File(directory.join("none"))).is_err());
    }
}
