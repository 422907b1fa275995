//! SQLite, in a file of the server's own.

use super::values::Value;
use super::{DatabaseError, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
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
    // The files of a copy have their plain names, wherever they are.
    let copy = Connection::open(to)?;
    if version(&copy)? >= 15 {
        copy.execute("UPDATE blob SET place = NULL WHERE place IS NOT NULL", [])?;
    }
    copy.close().map_err(|(_, error)| error)?;
    std::fs::File::open(to)
        .and_then(|file| file.sync_all())
        .map_err(|error| DatabaseError::NoFile(to.to_owned(), error))
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
    let condition = format!("AND id IN (SELECT rowid FROM issue_text WHERE issue_text MATCH ?{first})");
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
