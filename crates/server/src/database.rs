//! The database: one thread writes, many read.
//!
//! Writes that wait are committed together, each in a savepoint of its own: what fails takes nothing else along. A write
//! returns when its transaction is on disk (`synchronous=FULL`), not before.

use rusqlite::{Connection, OpenFlags};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What leads from each version of the schema to the next. A step that was released never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("database/0001.sql"),
    include_str!("database/0002.sql"),
    include_str!("database/0003.sql"),
    include_str!("database/0004.sql"),
    include_str!("database/0005.sql"),
    include_str!("database/0006.sql"),
    include_str!("database/0007.sql"),
    include_str!("database/0008.sql"),
    include_str!("database/0009.sql"),
    include_str!("database/0010.sql"),
    include_str!("database/0011.sql"),
    include_str!("database/0012.sql"),
];

/// Bytes of a page.
const PAGE_SIZE: i64 = 8192;

/// Bytes that the write-ahead log may have before it goes into the file. A page that changes with each report goes there once.
const LOG_SIZE: i64 = 32 << 20;

/// Writes that are committed together.
const MAX_TOGETHER: usize = 256;

/// Writes that may wait; further ones wait for a place.
const MAX_WAITING: usize = 1024;

/// Connections for reading that are kept.
const MAX_KEPT: usize = 8;

/// Why the database does not answer.
#[derive(Debug)]
pub(crate) enum DatabaseError {
    /// SQLite's own word.
    Sqlite(rusqlite::Error),
    /// The transaction that the write was part of could not be committed.
    Commit(String),
    /// A later program made it.
    Newer { found: usize },
    /// The server is about to end.
    Closed,
    /// The thread that writes could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "the database: {error}"),
            Self::Commit(why) => write!(f, "the database cannot commit: {why}"),
            Self::Newer { found } => write!(
                f,
                "the database has version {found}, and this program knows {} at most: use a later program",
                MIGRATIONS.len()
            ),
            Self::Closed => f.write_str("the database is closed"),
            Self::Thread(error) => write!(f, "the database cannot start its thread: {error}"),
        }
    }
}

impl std::error::Error for DatabaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Sqlite(error) => Some(error),
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(crate) type Result<T, E = DatabaseError> = std::result::Result<T, E>;

/// Hands a write's result to who waits for it, once it is known whether the transaction was committed.
type Deliver = Box<dyn FnOnce(Option<String>)>;

/// One write, which says whether it succeeded. Where there is no transaction for it, it gets no connection and does nothing.
type Job = Box<dyn FnOnce(Option<&Connection>) -> (bool, Deliver) + Send>;

/// The database of one server.
pub(crate) struct Database {
    path: PathBuf,
    writer: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Mutex<Vec<Connection>>,
}

impl Database {
    /// Opens the database, makes it where there is none, and brings its schema up to date.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut connection = Connection::open(path)?;
        prepare(&connection)?;
        // Only a database that is being made takes it. Packed reports fill several pages.
        connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_SIZE / PAGE_SIZE)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // What a savepoint would put back is more than SQLite keeps in memory otherwise: a file made and removed each time.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        // Rows that move leave no copy behind in their pages: what is deleted later (`deletion`) must be gone.
        connection.pragma_update(None, "secure_delete", "FAST")?;
        migrate(&mut connection)?;
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new().name("database".to_owned());
        let thread =
            thread.spawn(move || write_all(&connection, &receiver)).map_err(DatabaseError::Thread)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            readers: Mutex::default(),
        })
    }

    /// For reading alone, beside a server that may run.
    pub(crate) fn open_to_read(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            writer: Mutex::default(),
            thread: Mutex::default(),
            readers: Mutex::default(),
        }
    }

    /// Which version of the schema a database has, and whether its pages are sound. Changes nothing.
    pub(crate) fn check(path: &Path) -> Result<(usize, String)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version = version(&connection)?;
        if version > MIGRATIONS.len() {
            return Err(DatabaseError::Newer { found: version });
        }
        let sound = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        Ok((version, sound))
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

    /// Has `work` read what was committed, at one moment. Blocks.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => {
                let connection = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                prepare(&connection)?;
                connection
            }
        };
        let transaction = connection.unchecked_transaction()?;
        let result = work(&transaction);
        drop(transaction);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < MAX_KEPT {
            readers.push(connection);
        }
        result
    }

    /// Commits what waits, and ends.
    pub(crate) fn close(&self) {
        drop(self.writer.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
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

fn prepare(connection: &Connection) -> Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    // A database that somebody else wrote into must not run what stands in its schema.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(())
}

fn version(connection: &Connection) -> Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Whether the schema is this program's.
pub(crate) fn is_current(connection: &Connection) -> Result<bool> {
    Ok(version(connection)? == MIGRATIONS.len())
}

fn migrate(connection: &mut Connection) -> Result<()> {
    let found = version(connection)?;
    let steps = MIGRATIONS.get(found..).ok_or(DatabaseError::Newer { found })?;
    for (step, number) in steps.iter().zip(found + 1..) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", i64::try_from(number).unwrap_or(i64::MAX))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The thread that writes. While it commits, further writes gather, and are the next transaction.
fn write_all(connection: &Connection, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut together = vec![first];
        together.extend(jobs.try_iter().take(MAX_TOGETHER - 1));
        let (failed, delivers) = transact(connection, together);
        for deliver in delivers {
            deliver(failed.clone());
        }
    }
    // What is in the write-ahead log goes into the file; if it does not, the next start does it.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

fn transact(connection: &Connection, jobs: Vec<Job>) -> (Option<String>, Vec<Deliver>) {
    let run = |sql: &str| connection.prepare_cached(sql)?.execute([]);
    let failure = |sql: &str| run(sql).err().map(|error| error.to_string());
    let mut failed = failure("BEGIN IMMEDIATE");
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
    if failed.is_some() && !connection.is_autocommit() {
        let _ = run("ROLLBACK");
    }
    (failed, delivers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    fn projects(database: &Database) -> i64 {
        let count = |connection: &Connection| {
            Ok(connection.query_row("SELECT count(*) FROM project", [], |row| row.get(0))?)
        };
        database.read(count).unwrap()
    }

    fn insert(slug: &str) -> impl FnOnce(&Connection) -> Result<usize> + Send + use<> {
        let slug = slug.to_owned();
        move |connection| {
            Ok(connection.execute("INSERT INTO project (slug, name, created) VALUES (?1, ?1, 0)", [slug])?)
        }
    }

    #[test]
    fn what_fails_takes_nothing_else_along() {
        let directory = TempDir::new("server-database");
        let database = Database::open(&directory.join("db")).unwrap();
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

    #[test]
    fn a_database_of_a_later_program_is_left_alone() {
        let directory = TempDir::new("server-newer");
        let path = directory.join("db");
        Database::open(&path).unwrap().close();
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(Database::open(&path), Err(DatabaseError::Newer { found: 99 })));
        assert!(matches!(Database::check(&path), Err(DatabaseError::Newer { found: 99 })));
    }

    /// The steps never change, so that the first of them make what earlier programs made.
    #[test]
    fn a_database_of_an_earlier_program_keeps_what_it_has() {
        let directory = TempDir::new("server-older");
        for earlier in 1..MIGRATIONS.len() {
            let path = directory.join(format!("db-{earlier}"));
            let connection = Connection::open(&path).unwrap();
            for step in &MIGRATIONS[..earlier] {
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
            let database = Database::open(&path).unwrap();
            assert_eq!(projects(&database), 1);
            let kept = |connection: &Connection| {
                let sql = "SELECT count(*) FROM report WHERE received = 5 AND dropped IS NULL";
                Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
            };
            assert_eq!(database.read(kept).unwrap(), 1);
            let missing = |connection: &Connection| {
                let sql = "SELECT reports = 1 AND last = 5 AND name = 'Demo' FROM missing_image";
                Ok(connection.query_row(sql, [], |row| row.get::<_, bool>(0))?)
            };
            assert!(database.read(missing).unwrap());
            // As `backtrail::debug_id` has them; later programs wrote them themselves.
            let ids = |connection: &Connection| {
                let mut statement =
                    connection.prepare("SELECT coalesce(debug_id, '') FROM symbol_file ORDER BY id")?;
                Ok(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?)
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
            database.close();
            assert_eq!(Database::check(&path).unwrap(), (MIGRATIONS.len(), "ok".to_owned()));
        }
    }

    #[test]
    fn an_empty_database_is_sound() {
        let directory = TempDir::new("server-check");
        let path = directory.join("db");
        Database::open(&path).unwrap().close();
        assert_eq!(Database::check(&path).unwrap(), (MIGRATIONS.len(), "ok".to_owned()));
    }
}
