//! All rows of one database, written to another one: of PostgreSQL to SQLite's file, which is what a backup has, and back.
//!
//! Rows go one by one from an answer that is still being read, so that nothing is in memory but what is on its way. Tables and columns
//! are those of SQLite's steps, which PostgreSQL's have too; what follows from other rows (indexes, texts that are looked for, counts
//! that triggers keep) is not written but made again.

use super::sqlite::{self, Table};
use super::values::{ColumnRef, Value};
use super::{Connection, DatabaseError, Result, postgres};
use rusqlite::params_from_iter;
use std::path::Path;

/// Writes all rows to a new file, as they are at the moment of the transaction that `from` is in. The file is of the same version, and is
/// to be [finished](sqlite::Unfinished::finish) after that transaction.
pub(super) fn to_file(from: &Connection, path: &Path) -> Result<sqlite::Unfinished> {
    from.take_any_time()?;
    let file = sqlite::Unfinished::create(path, from.version()?)?;
    for table in file.tables()? {
        let columns = table.columns.join(", ");
        let numbers: Vec<_> = (1..=table.columns.len()).map(|number| format!("?{number}")).collect();
        let insert = format!("INSERT INTO {} ({columns}) VALUES ({})", table.name, numbers.join(", "));
        let mut insert = file.connection.prepare(&insert)?;
        let copied = each_row(from, &table, |row| {
            insert.execute(params_from_iter(row.iter().map(Value::given)))?;
            Ok(())
        });
        copied.map_err(|error| error.of_table(&table.name))?;
    }
    Ok(file)
}

/// Writes all rows of a file of the latest version to a database in PostgreSQL that has nothing: all of them or, where that fails, none.
pub(super) fn to_postgres(from: &Connection, url: &str) -> Result<()> {
    let to = postgres::open_empty(url)?;
    let tables = sqlite::latest_tables()?;
    for table in &tables {
        let copied = to.copy_in(&table.name, &table.columns, |write| each_row(from, table, write));
        copied.map_err(|error| error.of_table(&table.name))?;
    }
    to.finish_filling(tables.iter().map(|table| table.name.as_str()))
}

fn each_row(from: &Connection, table: &Table, mut write: impl FnMut(&[Value]) -> Result<()>) -> Result<()> {
    let sql = format!("SELECT {} FROM {}", table.columns.join(", "), table.name);
    let mut values = Vec::with_capacity(table.columns.len());
    from.for_each(&sql, |row| {
        values.clear();
        for column in 0..table.columns.len() {
            values.push(row.value(ColumnRef::At(column))?);
        }
        write(&values)
    })
}

impl DatabaseError {
    /// Says in which table it was.
    fn of_table(self, table: &str) -> Self {
        let why = if let Self::Query(error) = &self { error.to_string() } else { self.to_string() };
        Self::Query(format!("table {table}: {why}").into())
    }
}
