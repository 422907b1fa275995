//! PostgreSQL, which several replicas of a server may share.
//!
//! One transaction writes at a time, whichever replica it is of, by a lock of the whole database: what was counted, found or seen
//! missing in a transaction is so until it ends, as with SQLite. Reading waits for nothing.
//!
//! Each replica has a number, and the lock of that number for as long as it is connected: whoever does not see it locked knows that
//! nobody works any more what is leased under it.

mod address;
mod tls;

use super::values::{ColumnRef, Given, Value};
use super::{DatabaseError, Result, plain_pattern};
use address::Address;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Row, Statement};
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::fmt::{self, Write as _};

/// The first version of the schema here: its step makes all that SQLite's steps up to this one do.
const FIRST: usize = 13;

/// What leads to the first version, and from each to the next. A step that was released never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("postgres/0013.sql"),
    include_str!("postgres/0014.sql"),
    include_str!("postgres/0015.sql"),
    include_str!("postgres/0016.sql"),
    include_str!("postgres/0017.sql"),
    include_str!("postgres/0018.sql"),
];

/// Whoever waits for the other transaction longer than `lock_timeout` gives up.
pub(super) const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(1650553707)";

pub(super) const BEGIN_TO_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The first number of the locks that say that a replica is there.
const REPLICAS: i64 = 1_650_553_708;

/// A host that vanished is noticed within half a minute, and so is a transaction that nobody goes on with. Commits wait for the disk.
const SETTINGS: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; \
    SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '60s'; SET client_min_messages = 'warning'; \
    SET default_transaction_isolation = 'read committed'; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Texts of statements that are kept ready.
const MAX_STATEMENTS: usize = 256;

/// A connection.
pub(crate) struct Session {
    address: Address,
    client: RefCell<Client>,
    statements: RefCell<HashMap<String, Statement>>,
    /// 0 where it only reads.
    replica: i64,
}

/// Connects to write, and brings the schema up to date.
pub(super) fn open(url: &str) -> Result<Session> {
    let mut session = open_to_read(url)?;
    session.migrate()?;
    let number = session.query("SELECT nextval('replica')", &[])?;
    session.replica = number.first().map_or(Ok(0), |row| row.try_get(0))?;
    session.announce()?;
    Ok(session)
}

pub(super) fn open_to_read(url: &str) -> Result<Session> {
    let address = Address::parse(url)?;
    let client = RefCell::new(connect(&address)?);
    Ok(Session { address, client, statements: RefCell::default(), replica: 0 })
}

/// Connects to a database that has nothing, and makes its tables in a transaction that [`Session::finish_filling`] commits.
pub(super) fn open_empty(url: &str) -> Result<Session> {
    let mut session = open_to_read(url)?;
    session.begin(BEGIN)?;
    session.take_any_time()?;
    session.expect_empty()?;
    session.migrate_all()?;
    Ok(session)
}

/// Makes sure that there is a database, and nothing of ours in it.
pub(super) fn expect_empty(url: &str) -> Result<()> {
    open_to_read(url)?.expect_empty()
}

fn connect(address: &Address) -> Result<Client> {
    let mut client = address.connect()?;
    client.batch_execute(SETTINGS)?;
    let encoding: String = client.query_one("SHOW server_encoding", &[])?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(DatabaseError::Query(format!("expected a database in UTF8, found {encoding}").into()));
    }
    Ok(client)
}

impl Session {
    pub(super) fn execute(&self, sql: &str, values: &[Given<'_>]) -> Result<usize> {
        let statement = self.prepared(sql, values)?;
        let count = self.client.borrow_mut().execute(&statement, &parameters(values))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(super) fn query(&self, sql: &str, values: &[Given<'_>]) -> Result<Vec<Row>> {
        let statement = self.prepared(sql, values)?;
        Ok(self.client.borrow_mut().query(&statement, &parameters(values))?)
    }

    /// Has `read` each row while further ones come: what is not read yet waits at the server. Where `read` fails none comes any more.
    pub(super) fn for_each(&self, sql: &str, mut read: impl FnMut(&Row) -> Result<()>) -> Result<()> {
        let mut client = self.client.borrow_mut();
        let own: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.try_get(0)?;
        let mut rows = client.query_raw(sql, std::iter::empty::<&dyn ToSql>())?;
        while let Some(row) = rows.next()? {
            if let Err(error) = read(&row) {
                // Else whatever comes next by this connection waits until all of them have come.
                if let Ok(mut other) = self.address.connect() {
                    let _ = other.execute("SELECT pg_cancel_backend($1)", &[&own]);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fills a table with the rows that `fill` writes. What triggers would do is not done.
    pub(super) fn copy_in(
        &self,
        table: &str,
        columns: &[String],
        fill: impl FnOnce(&mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let names = columns.join(", ");
        self.run(&format!("ALTER TABLE {table} DISABLE TRIGGER USER"))?;
        let mut client = self.client.borrow_mut();
        let statement = client.prepare(&format!("SELECT {names} FROM {table}"))?;
        let types: Vec<_> = statement.columns().iter().map(|column| column.type_().clone()).collect();
        let out = client.copy_in(&format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)"))?;
        let mut out = BinaryCopyInWriter::new(out, &types);
        fill(&mut |row| {
            for ((value, kind), column) in row.iter().zip(&types).zip(columns) {
                if !matches!(value, Value::Null) && type_of(&value.given()) != *kind {
                    return Err(DatabaseError::Query(format!("unexpected value in {column}").into()));
                }
            }
            Ok(out.write_raw(row.iter().map(Value::given))?)
        })?;
        out.finish()?;
        drop(client);
        self.run(&format!("ALTER TABLE {table} ENABLE TRIGGER USER"))
    }

    /// Commits what was filled: new rows get numbers that no row has.
    pub(super) fn finish_filling<'t>(&self, tables: impl Iterator<Item = &'t str>) -> Result<()> {
        let numbered = self.query(
            "SELECT table_name::text FROM information_schema.columns \
             WHERE table_schema = current_schema() AND column_name = 'id' AND is_identity = 'YES'",
            &[],
        )?;
        for row in &numbered {
            let table: String = row.try_get(0)?;
            self.run(&format!(
                "SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table} HAVING max(id) IS NOT NULL"
            ))?;
        }
        self.run("COMMIT")?;
        // Else the first questions are answered by going through whole tables.
        let tables: Vec<_> = tables.collect();
        self.run(&format!("ANALYZE {}", tables.join(", ")))
    }

    /// Not longer than the transaction.
    pub(super) fn take_any_time(&self) -> Result<()> {
        self.run(
            "SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')",
        )
    }

    fn expect_empty(&self) -> Result<()> {
        let found = self.query(
            "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace \
             AND relname IN ('schema_version', 'project', 'token', 'report', 'issue', 'blob') LIMIT 1",
            &[],
        )?;
        let Some(found) = found.first() else { return Ok(()) };
        let found: String = found.try_get(0)?;
        Err(DatabaseError::NotEmpty(found))
    }

    fn prepared(&self, sql: &str, values: &[Given<'_>]) -> Result<Statement> {
        let mut statements = self.statements.borrow_mut();
        if let Some(statement) = statements.get(sql) {
            return Ok(statement.clone());
        }
        // The types are those of the parameters: else it would guess them by what they are compared with.
        let types: Vec<_> = values.iter().map(type_of).collect();
        let statement = self.client.borrow_mut().prepare_typed(&sql.replace('?', "$"), &types)?;
        if statements.len() >= MAX_STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn run(&self, sql: &str) -> Result<()> {
        Ok(self.client.borrow_mut().batch_execute(sql)?)
    }

    /// Begins a transaction; by another connection where this one broke.
    pub(super) fn begin(&mut self, sql: &str) -> Result<()> {
        match self.run(sql) {
            Err(error) if is_last(&error) || self.client.get_mut().is_closed() => {
                *self.client.get_mut() = connect(&self.address)?;
                self.statements.get_mut().clear();
                if self.replica != 0 {
                    self.announce()?;
                }
                self.run(sql)
            }
            begun => begun,
        }
    }

    pub(super) fn replica(&self) -> i64 {
        self.replica
    }

    /// Says that this replica is there. Its own connection that broke may not be noticed yet: that ends soon.
    fn announce(&self) -> Result<()> {
        self.run(&format!("SELECT pg_advisory_lock({REPLICAS}, {})", self.replica))
    }

    pub(super) fn is_unused(&self) -> Result<bool> {
        Ok(self.query(&replicas(), &[])?.is_empty())
    }

    pub(super) fn version(&self) -> Result<usize> {
        let is_there = self.query("SELECT to_regclass('schema_version') IS NOT NULL", &[])?;
        if !is_there.first().map_or(Ok(false), |row| row.try_get(0))? {
            return Ok(0);
        }
        let version = self.query("SELECT version FROM schema_version", &[])?;
        let version: i64 = version.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(usize::try_from(version).unwrap_or(usize::MAX))
    }

    fn migrate(&mut self) -> Result<()> {
        self.begin(BEGIN)?;
        let migrated = self.migrate_all();
        self.run(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        migrated
    }

    fn migrate_all(&self) -> Result<()> {
        let found = self.version()?;
        let done = if found == 0 { 0 } else { (found + 1).saturating_sub(FIRST) };
        let steps = MIGRATIONS.get(done..).ok_or(DatabaseError::Newer { found })?;
        for (step, number) in steps.iter().zip(FIRST + done..) {
            self.run(step)?;
            self.run(&format!("UPDATE schema_version SET version = {number}"))?;
        }
        Ok(())
    }
}

/// Whether the server said this and closed the connection, as when an administrator ends it: that it is closed is noticed later.
fn is_last(error: &DatabaseError) -> bool {
    let DatabaseError::Query(error) = error else { return false };
    let said = error.downcast_ref().and_then(|Said(error)| error.as_db_error());
    said.is_some_and(|said| said.severity() == "FATAL")
}

/// The numbers of replicas that are there.
fn replicas() -> String {
    format!(
        "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = {REPLICAS} AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
}

pub(super) fn is_gone(column: &str) -> String {
    format!("{column} IS NOT NULL AND {column} NOT IN ({})", replicas())
}

/// No sign of a word stands for others.
pub(super) fn search(words: &[String], first: usize) -> (String, Vec<String>) {
    let plain = |word: &String| format!("%{}%", plain_pattern(&word.to_lowercase()));
    if words.is_empty() {
        return (String::new(), Vec::new());
    }
    // What was merged into an issue is found by its own words, too.
    let parts = "AND id IN (SELECT coalesce(merged_into, id) FROM issue AS part WHERE true";
    let mut condition = (first..).take(words.len()).fold(parts.to_owned(), |mut condition, number| {
        let _ = write!(condition, " AND part.words LIKE ?{number}");
        condition
    });
    condition.push(')');
    (condition, words.iter().map(plain).collect())
}

fn type_of(value: &Given<'_>) -> Type {
    match value {
        Given::Integer(_) => Type::INT8,
        Given::Text(_) => Type::TEXT,
        Given::Bytes(_) => Type::BYTEA,
    }
}

fn parameters<'v>(values: &'v [Given<'_>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Given<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *self {
            Self::Integer(Some(number)) => number.to_sql(kind, out),
            // The one character that it does not keep.
            Self::Text(Some(text)) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Self::Text(Some(text)) => text.to_sql(kind, out),
            Self::Bytes(Some(bytes)) => bytes.to_sql(kind, out),
            Self::Integer(None) | Self::Text(None) | Self::Bytes(None) => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// What is in a column.
pub(super) fn value(row: &Row, place: ColumnRef<'_>) -> Result<Value> {
    let found: Any = match place {
        ColumnRef::At(number) => row.try_get(number)?,
        ColumnRef::Named(name) => row.try_get(name)?,
    };
    Ok(found.0)
}

struct Any(Value);

impl FromSql<'_> for Any {
    fn from_sql(kind: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::INT4 => Value::Integer(i64::from(i32::from_sql(kind, raw)?)),
            Type::BOOL => Value::Integer(i64::from(bool::from_sql(kind, raw)?)),
            Type::NUMERIC => Value::Integer(whole(raw).ok_or("expected a whole number")?),
            Type::BYTEA => Value::Bytes(raw.to_vec()),
            _ => Value::Text(String::from_sql(kind, raw)?),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A sum: four numbers (how many digits of base 10,000, the weight of the first one, the sign, digits behind the point), and these
/// digits. `None` where it is no whole number.
fn whole(raw: &[u8]) -> Option<i64> {
    let numbers = raw.as_chunks::<2>().0.iter().map(|two| i16::from_be_bytes(*two));
    let numbers: Vec<_> = numbers.map(i64::from).collect();
    let [count, weight, sign, _, digits @ ..] = numbers.as_slice() else { return None };
    let mut sum = 0_i64;
    for position in 0..=(*weight).min(8) {
        let digit = usize::try_from(position).ok().and_then(|at| digits.get(at)).unwrap_or(&0);
        sum = sum.checked_mul(10_000)?.checked_add(*digit)?;
    }
    let is_whole = *count <= weight + 1 && *weight <= 4;
    match (is_whole, sign) {
        (true, 0) => Some(sum),
        (true, 0x4000) => Some(-sum),
        _ => None,
    }
}

impl From<postgres::Error> for DatabaseError {
    fn from(error: postgres::Error) -> Self {
        Self::Query(Box::new(Said(error)))
    }
}

/// An error with what the server said of it, which the driver's does not have in its text.
#[derive(Debug)]
struct Said(postgres::Error);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_db_error(), self.0.source()) {
            (Some(said), _) => write!(f, "{} ({})", said.message(), said.code().code()),
            (None, Some(source)) => write!(f, "{}: {source}", self.0),
            (None, None) => self.0.fmt(f),
        }
    }
}

impl Error for Said {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read() {
        let raw =
            |numbers: &[u16]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
        assert_eq!(whole(&raw(&[0, 0, 0, 0])), Some(0));
        assert_eq!(whole(&raw(&[1, 0, 0, 0, 42])), Some(42));
        assert_eq!(whole(&raw(&[1, 0, 0x4000, 0, 42])), Some(-42));
        assert_eq!(whole(&raw(&[1, 1, 0, 0, 7])), Some(70_000), "zeros at the end are not there");
        assert_eq!(whole(&raw(&[3, 2, 0, 0, 1, 2, 3])), Some(100_020_003));
        assert_eq!(whole(&raw(&[5, 4, 0, 0, 922, 3372, 368, 5477, 5807])), Some(i64::MAX));
        for none in [&[][..], &[1, 0], &[2, 0, 0, 1, 4, 5000], &[1, 0, 0xC000, 0], &[1, 9, 0, 0, 1]] {
            assert_eq!(whole(&raw(none)), None, "{none:?}");
        }
    }

    #[test]
    fn what_is_not_read_to_its_end_holds_nothing_up() {
        let Some(url) = backtrail_testkit::postgres() else { return };
        let session = open_to_read(&url).unwrap();
        let mut count = 0;
        // More than anybody would wait for.
        let read = session.for_each("SELECT generate_series(1, 100000000000)", |_| {
            count += 1;
            if count < 1000 { Ok(()) } else { Err(DatabaseError::Closed) }
        });
        assert!(matches!(read, Err(DatabaseError::Closed)), "{read:?}");
        assert_eq!(session.version().unwrap(), 0);
    }

    /// What an administrator ended says so, where the connection is not seen to be closed.
    #[test]
    fn a_last_word_is_known_as_one() {
        let Some(url) = backtrail_testkit::postgres() else { return };
        let session = open_to_read(&url).unwrap();
        let ended = session.run("SELECT pg_terminate_backend(pg_backend_pid())").unwrap_err();
        assert!(is_last(&ended) || session.client.borrow().is_closed(), "{ended}");
        let other = open_to_read(&url).unwrap().run("SELECT 1 / 0").unwrap_err();
        assert!(!is_last(&other) && other.to_string().contains("division by zero"), "{other}");
    }

    #[test]
    fn nothing_that_is_sought_stands_for_something_else() {
        let (condition, values) = search(&[r"A_b%c\d".to_owned(), "two".to_owned()], 6);
        assert_eq!(
            condition,
            "AND id IN (SELECT coalesce(merged_into, id) FROM issue AS part WHERE true \
             AND part.words LIKE ?6 AND part.words LIKE ?7)"
        );
        assert_eq!(values, [r"%a\_b\%c\\d%", "%two%"]);
    }
}
