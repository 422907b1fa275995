//! One way to ask either database: texts of SQL, parameters, rows and errors are the same.
//!
//! Parameters are `?1`, `?2`. Texts keep to what both know: `ON CONFLICT`, `RETURNING`, names of tables before columns that an
//! upsert changes, names for selections in `FROM`. What they do differently has a function here.

#[cfg(feature = "postgres")]
use super::postgres;
use super::sqlite;
use super::values::{Column, ColumnRef, FromValue, Given, Value};
use super::{DatabaseError, Result};

/// A connection to the database.
pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::Session>),
}

impl Connection {
    /// Changes rows, and says how many.
    pub(crate) fn execute(&self, sql: &str, values: &[Given<'_>]) -> Result<usize> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                Ok(statement.execute(rusqlite::params_from_iter(values))?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.execute(sql, values),
        }
    }

    /// All rows of an answer.
    pub(crate) fn query_map<T>(
        &self,
        sql: &str,
        values: &[Given<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                let mut all = Vec::new();
                while let Some(row) = rows.next()? {
                    all.push(read(&Row::Sqlite(row))?);
                }
                Ok(all)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => {
                session.query(sql, values)?.iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        }
    }

    /// Has `read` each row of an answer that may have more of them than there is memory for. `read` asks nothing by this connection.
    #[cfg(feature = "postgres")]
    pub(super) fn for_each(&self, sql: &str, mut read: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    read(&Row::Sqlite(row))?;
                }
                Ok(())
            }
            Self::Postgres(session) => session.for_each(sql, |row| read(&Row::Postgres(row))),
        }
    }

    /// What is asked in this transaction may take as long as it takes, whatever the database's settings are.
    #[cfg(feature = "postgres")]
    pub(super) fn take_any_time(&self) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(session) => session.take_any_time(),
        }
    }

    /// The first row of an answer; [`DatabaseError::NoRow`] where there is none.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        values: &[Given<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                read(&Row::Sqlite(rows.next()?.ok_or(DatabaseError::NoRow)?))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => {
                let rows = session.query(sql, values)?;
                read(&Row::Postgres(rows.first().ok_or(DatabaseError::NoRow)?))
            }
        }
    }

    /// Begins a transaction that writes. Until it ends nobody else has one: everything that is read in it stays as it is.
    pub(super) fn begin(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.run("BEGIN IMMEDIATE"),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.begin(postgres::BEGIN),
        }
    }

    /// Begins a transaction that reads, all of it what was committed at one moment.
    pub(super) fn begin_to_read(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.run("BEGIN"),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.begin(postgres::BEGIN_TO_READ),
        }
    }

    /// Runs a statement about transactions.
    pub(super) fn run(&self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(connection) => {
                connection.prepare_cached(sql)?.execute([])?;
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.run(sql),
        }
    }

    /// Ends a transaction without its changes, if there is one.
    pub(super) fn roll_back(&self) -> Result<()> {
        match self {
            Self::Sqlite(connection) if connection.is_autocommit() => Ok(()),
            _ => self.run("ROLLBACK"),
        }
    }

    /// Nobody writes any more.
    pub(super) fn finish(&self) {
        match self {
            Self::Sqlite(connection) => sqlite::checkpoint(connection),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => {}
        }
    }

    /// The number of this replica among those of one database; 0 where there is no other.
    pub(crate) fn replica(&self) -> i64 {
        match self {
            Self::Sqlite(_) => 0,
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.replica(),
        }
    }

    /// A condition that holds for numbers of replicas in `column` that are not there any more.
    pub(crate) fn is_gone(&self, column: &str) -> String {
        match self {
            // There is one, and whoever asks has just started.
            Self::Sqlite(_) => format!("coalesce({column}, 0) = 0"),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => postgres::is_gone(column),
        }
    }

    /// Further conditions of a query of issues: title, owner or functions have each of the words, of three letters or more, in them,
    /// in letters of any size. With their parameters, which are numbered from `first` on.
    pub(crate) fn search(&self, words: &[String], first: usize) -> (String, Vec<String>) {
        match self {
            Self::Sqlite(_) => sqlite::search(words, first),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => postgres::search(words, first),
        }
    }

    /// Whether what is deleted from now on is overwritten in the database's files at once.
    pub(crate) fn overwrite_deleted(&self, whether: bool) -> Result<()> {
        match self {
            Self::Sqlite(connection) => sqlite::overwrite_deleted(connection, whether),
            // Its files keep remnants until they are vacuumed.
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Which version of the schema there is; 0 where there is none.
    pub(crate) fn version(&self) -> Result<usize> {
        match self {
            Self::Sqlite(connection) => sqlite::version(connection),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.version(),
        }
    }

    /// Whether no server is connected to write.
    pub(crate) fn is_unused(&self) -> Result<bool> {
        match self {
            // Who has the lock of its directory says that.
            Self::Sqlite(_) => Ok(true),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.is_unused(),
        }
    }

    /// What the database itself says of its soundness, where it can be asked: else `ok`.
    pub(super) fn sound(&self) -> Result<String> {
        match self {
            Self::Sqlite(connection) => sqlite::sound(connection),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok("ok".to_owned()),
        }
    }
}

/// A row of an answer.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "postgres")]
    Postgres(&'a ::postgres::Row),
}

impl Row<'_> {
    /// What is in a column, by its number or its name.
    pub(crate) fn get<C: Column, T: FromValue>(&self, column: C) -> Result<T> {
        let place = column.place();
        T::from_value(self.value(place)?)
            .ok_or_else(|| DatabaseError::Query(format!("unexpected value in {place:?}").into()))
    }

    /// The same as it is.
    pub(super) fn value(&self, place: ColumnRef<'_>) -> Result<Value> {
        match (self, place) {
            (Self::Sqlite(row), ColumnRef::At(number)) => sqlite::value(row.get_ref(number)?),
            (Self::Sqlite(row), ColumnRef::Named(name)) => sqlite::value(row.get_ref(name)?),
            #[cfg(feature = "postgres")]
            (Self::Postgres(row), place) => postgres::value(row, place),
        }
    }
}
