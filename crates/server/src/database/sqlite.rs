//! SQLite, in a file of the server's own.

use super::values::Value;
use super::{DatabaseError, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
#[cfg(feature = "postgres")]
use std::collections::HashSet;
use std::path::Path;
#[cfg(feature = "postgres")]
use std::path::PathBuf;
use std::time::Duration;

/// What leads from each version of the schema to the next. A step that was released never changes.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("0001.sql"),
    include_str!("0002.sql"),
    include_str!("0003.sql"),
    include_str!("0004.sql"),
    include_str!("0005.sql"),
    include_str!("0006.sql"),
    include_str!("0007.sql"),
    include_str!("0008.sql"),
    include_str!("0009.sql"),
    include_str!("0010.sql"),
    include_str!("0011.sql"),
    include_str!("0012.sql"),
    include_str!("0013.sql"),
    include_str!("0014.sql"),
    include_str!("0015.sql"),
    include_str!("0016.sql"),
    include_str!("0017.sql"),
    include_str!("0018.sql"),
];

/// Bytes of a page.
const PAGE_SIZE: i64 = 8192;

/// Bytes that the write-ahead log may have before it goes into the file. A page that changes with each report goes there once.
const LOG_SIZE: i64 = 32 << 20;

/// Opens the database to write, makes it where there is none, and brings its schema up to date.
pub(super) fn open(path: &Path) -> Result<Connection> {
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
    Ok(connection)
}

pub(super) fn open_to_read(path: &Path) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    // A database that somebody else wrote into must not run what stands in its schema.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// Copies a database, as it is at one moment, to a file that is not there yet.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let path = to.to_str().ok_or_else(|| rusqlite::Error::InvalidPath(to.to_owned()))?;
    open_to_read(from)?.execute("VACUUM INTO ?1", [path])?;
    let copy = Connection::open(to)?;
    settle(&copy)?;
    close(copy, to)
}

/// The files of a copy have their plain names, wherever they are; and nobody has leased anything in it, whichever replicas there are
/// where it will be used: none has the number 0.
fn settle(copy: &Connection) -> Result<()> {
    let version = version(copy)?;
    let since = |first: usize, sql: &str| if version < first { Ok(0) } else { copy.execute(sql, []) };
    since(15, "UPDATE blob SET place = NULL WHERE place IS NOT NULL")?;
    since(13, "UPDATE report SET worker = 0 WHERE state = 'leased' AND worker <> 0")?;
    since(13, "UPDATE symbol_conversion SET worker = 0 WHERE worker <> 0")?;
    Ok(())
}

/// Makes sure that everything is on disk.
fn close(connection: Connection, path: &Path) -> Result<()> {
    connection.close().map_err(|(_, error)| error)?;
    std::fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| DatabaseError::NoFile(path.to_owned(), error))
}

/// A table and its columns, as SQL has them.
#[cfg(feature = "postgres")]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
}

/// The tables of the latest version, each after those that it refers to.
#[cfg(feature = "postgres")]
pub(super) fn latest_tables() -> Result<Vec<Table>> {
    let connection = Connection::open_in_memory()?;
    MIGRATIONS.iter().try_for_each(|step| connection.execute_batch(step))?;
    tables(&connection)
}

#[cfg(feature = "postgres")]
fn tables(connection: &Connection) -> Result<Vec<Table>> {
    let texts = |sql: &str, of: &[&str]| -> Result<Vec<String>> {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(of), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let quoted = |name: &String| format!("\"{name}\"");
    let mut left = texts(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
        &[],
    )?;
    let (mut tables, mut known) = (Vec::new(), HashSet::new());
    while !left.is_empty() {
        let (mut later, before) = (Vec::new(), known.len());
        for name in left.drain(..) {
            let needed = texts("SELECT \"table\" FROM pragma_foreign_key_list(?1)", &[&name])?;
            if needed.iter().all(|other| *other == name || known.contains(other)) {
                let columns = texts("SELECT name FROM pragma_table_info(?1) ORDER BY cid", &[&name])?;
                let columns = columns.iter().map(quoted).collect();
                tables.push(Table { name: quoted(&name), columns });
                known.insert(name);
            } else {
                later.push(name);
            }
        }
        if known.len() == before {
            return Err(DatabaseError::Query("tables that refer to each other".into()));
        }
        left = later;
    }
    Ok(tables)
}

/// A database that is being filled, and that nobody opens before it is finished: nothing of it is undone, and what follows from its rows
/// is made at the end.
#[cfg(feature = "postgres")]
pub(super) struct Unfinished {
    pub(super) connection: Connection,
    path: PathBuf,
    /// Texts that make indexes and triggers.
    later: Vec<String>,
}

#[cfg(feature = "postgres")]
impl Unfinished {
    /// One of that version, which knows texts to look for, where no file is yet.
    pub(super) fn create(path: &Path, version: usize) -> Result<Self> {
        let steps = MIGRATIONS.get(..version).ok_or(DatabaseError::Newer { found: version })?;
        let connection = Connection::open(path)?;
        prepare(&connection)?;
        connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        connection.pragma_update(None, "journal_mode", "OFF")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.execute_batch("BEGIN")?;
        steps.iter().try_for_each(|step| connection.execute_batch(step))?;
        connection.pragma_update(None, "user_version", i64::try_from(version).unwrap_or(i64::MAX))?;
        let made: Vec<(String, String)> = connection
            .prepare(
                "SELECT 'DROP ' || type || ' ' || name, sql FROM sqlite_schema \
                 WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY rowid",
            )?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        made.iter().try_for_each(|(drop, _)| connection.execute_batch(drop))?;
        let later = made.into_iter().map(|(_, make)| make).collect();
        Ok(Self { connection, path: path.to_owned(), later })
    }

    pub(super) fn tables(&self) -> Result<Vec<Table>> {
        tables(&self.connection)
    }

    /// Makes what follows from the rows, and has all of it on disk.
    pub(super) fn finish(self) -> Result<()> {
        self.later.iter().try_for_each(|make| self.connection.execute_batch(make))?;
        self.connection.execute_batch("INSERT INTO issue_text (issue_text) VALUES ('rebuild')")?;
        settle(&self.connection)?;
        self.connection.execute_batch("COMMIT")?;
        close(self.connection, &self.path)
    }
}

pub(super) fn version(connection: &Connection) -> Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
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

/// Whether the pages are sound.
pub(super) fn sound(connection: &Connection) -> Result<String> {
    Ok(connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?)
}

/// What is in the write-ahead log goes into the file; if it does not, the next start does it.
pub(super) fn checkpoint(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

pub(super) fn overwrite_deleted(connection: &Connection, whether: bool) -> Result<()> {
    // `FAST` overwrites what is on a page that is written anyway.
    connection.pragma_update(None, "secure_delete", if whether { "ON" } else { "FAST" })?;
    Ok(())
}

/// By the full-text search, in which quoted text is no operator.
pub(super) fn search(words: &[String], first: usize) -> (String, Vec<String>) {
    if words.is_empty() {
        return (String::new(), Vec::new());
    }
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
    // What was merged into an issue is found by its own words, too.
    let condition = format!(
        "AND id IN (SELECT coalesce(part.merged_into, part.id) FROM issue_text \
         JOIN issue AS part ON part.id = issue_text.rowid WHERE issue_text MATCH ?{first})"
    );
    (condition, vec![quoted.join(" ")])
}

pub(super) fn value(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|error| DatabaseError::Query(error.into()))?;
            Value::Text(text.to_owned())
        }
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(DatabaseError::Query("unexpected fraction".into())),
    })
}
