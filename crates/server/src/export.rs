//! Everything that a server knows, as JSON lines: for other programs, and for whoever wants to leave.

use crate::config::Config;
use crate::database::{Connection, Database, DatabaseError, Result, Row, Source, is_current, params};
use crate::error::ServerError;
use crate::objects::Objects;
use crate::time::{DAY, now, rfc3339};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The format's name and version, in the first line.
const FORMAT: &str = "backtrail-export/1";

/// Rows that are in memory at the same time, of what there may be millions of.
const AT_A_TIME: i64 = 1000;

/// What was exported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Exported {
    /// Reports, with those whose bytes were removed.
    pub reports: u64,
    /// Files of reports that are not there, or are broken, by their SHA-256. Their reports have no `base64`.
    pub missing: Vec<String>,
}

/// Writes everything that the server with its data in this directory knows, as lines of JSON: projects, issues with their counts,
/// reports, sessions, symbol files. The server may run: it is all of one moment. docs/server.md has the members.
///
/// With `bytes` each report has its own and those of what came along with it, as base64; files of symbols never have theirs. Keys,
/// tokens and the secrets of webhooks are not exported.
///
/// # Errors
/// Where there is no database, it is of an earlier program and no server was started since, or it cannot be read; where `out`
/// takes no more.
pub fn export(config: &Config, bytes: bool, out: &mut dyn Write) -> Result<Exported, ServerError> {
    let database = Database::open_to_read(Source::of(config)?)?;
    let objects = Objects::at(config)?;
    let mut writer = Writer { out, objects: bytes.then_some(&objects), exported: Exported::default() };
    database.read(|connection| {
        if !is_current(connection)? {
            let why = "the database is of an earlier program: start a server on it once";
            return Ok(Err(ServerError::files("the export", io::Error::other(why))));
        }
        match writer.all(connection) {
            Ok(()) => Ok(Ok(())),
            Err(Failed::Database(error)) => Err(error),
            Err(Failed::Out(error)) => Ok(Err(ServerError::files("the export", error))),
        }
    })??;
    Ok(writer.exported)
}

/// Why it ended early.
enum Failed {
    Database(DatabaseError),
    Out(io::Error),
}

impl From<DatabaseError> for Failed {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    objects: Option<&'w Objects>,
    exported: Exported,
}

impl Writer<'_> {
    fn all(&mut self, connection: &Connection) -> Result<(), Failed> {
        self.line(&json!({ "type": "export", "format": FORMAT, "time": rfc3339(now()) }))?;
        self.rows(connection, PROJECTS, project)?;
        self.issues(connection)?;
        self.reports(connection)?;
        self.rows(connection, SESSIONS, sessions)?;
        self.rows(connection, SYSTEMS, sessions_of_system)?;
        self.rows(connection, SYMBOL_FILES, symbol_file)?;
        self.rows(connection, OWNER_SOURCES, owner_source)?;
        self.rows(connection, WEBHOOKS, webhook)
    }

    fn line(&mut self, value: &Value) -> Result<(), Failed> {
        serde_json::to_writer(&mut *self.out, value)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(Failed::Out)
    }

    fn rows(
        &mut self,
        connection: &Connection,
        sql: &str,
        value: fn(&Row<'_>) -> Result<Value>,
    ) -> Result<(), Failed> {
        let rows = connection.query_map(sql, params![], value)?;
        rows.iter().try_for_each(|row| self.line(row))
    }

    fn issues(&mut self, connection: &Connection) -> Result<(), Failed> {
        let mut last = 0;
        loop {
            let issues = connection.query_map(ISSUES, params![last, AT_A_TIME], |row| {
                Ok((row.get::<_, i64>("id")?, issue(row)?))
            })?;
            let Some((end, _)) = issues.last() else { return Ok(()) };
            last = *end;
            for (id, mut value) in issues {
                let keys = connection.query_map(
                    "SELECT key, by_names, part FROM issue_key WHERE issue = ?1 ORDER BY key",
                    params![id],
                    |row| {
                        Ok(json!({ "key": text(row, "key")?, "by_names": row.get::<_, bool>("by_names")?,
                            "part": number(row, "part")? }))
                    },
                )?;
                let days = connection.query_map(
                    "SELECT day, release, os, n FROM issue_day WHERE issue = ?1 ORDER BY day, release, os",
                    params![id],
                    |row| {
                        Ok(json!({ "day": day_of(row.get("day")?), "release": text(row, "release")?,
                            "os": text(row, "os")?, "reports": number(row, "n")? }))
                    },
                )?;
                crate::api::extend(&mut value, json!({ "keys": keys, "days": days }));
                self.line(&value)?;
            }
        }
    }

    fn reports(&mut self, connection: &Connection) -> Result<(), Failed> {
        let mut last = 0;
        loop {
            let reports = connection.query_map(REPORTS, params![last, AT_A_TIME], |row| {
                let is_removed = row.get::<_, Option<i64>>("dropped")?.is_some();
                let file = json!({ "sha256": text(row, "blob")?, "size": number(row, "size")? });
                Ok((row.get::<_, i64>("id")?, is_removed, report(row)?, file))
            })?;
            let Some((end, ..)) = reports.last() else { return Ok(()) };
            last = *end;
            for (id, is_removed, mut value, mut file) in reports {
                self.add_bytes(connection, &mut file, is_removed);
                let mut attachments = connection.query_map(ATTACHMENTS, params![id], |row| {
                    Ok(json!({ "name": text(row, "name")?, "kind": text(row, "kind")?,
                        "sha256": text(row, "blob")?, "size": number(row, "size")? }))
                })?;
                attachments.iter_mut().for_each(|file| self.add_bytes(connection, file, is_removed));
                crate::api::extend(&mut value, json!({ "file": file, "attachments": attachments }));
                self.line(&value)?;
                self.exported.reports += 1;
            }
        }
    }

    /// Adds a file's bytes, where they are wanted and there.
    fn add_bytes(&mut self, connection: &Connection, file: &mut Value, is_removed: bool) {
        let Some(objects) = self.objects.filter(|_| !is_removed) else { return };
        let digest = file["sha256"].as_str().unwrap_or_default().to_owned();
        match objects.read(connection, &digest) {
            Ok(bytes) => crate::api::extend(file, json!({ "base64": STANDARD.encode(bytes) })),
            Err(_) => self.exported.missing.push(digest),
        }
    }
}

/// The day with that number, as `2026-05-01`.
fn day_of(day: i64) -> String {
    rfc3339(day.saturating_mul(DAY)).split('T').next().unwrap_or_default().to_owned()
}

fn time(row: &Row<'_>, column: &str) -> Result<Option<String>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(rfc3339))
}

fn text(row: &Row<'_>, column: &str) -> Result<Option<String>> {
    row.get(column)
}

fn number(row: &Row<'_>, column: &str) -> Result<Option<i64>> {
    row.get(column)
}

const PROJECTS: &str = "SELECT * FROM project ORDER BY id";

fn project(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "project", "id": number(row, "id")?, "slug": text(row, "slug")?,
        "name": text(row, "name")?, "created": time(row, "created")?,
        "reports_a_day": number(row, "reports_a_day")?, "bytes_a_day": number(row, "bytes_a_day")?,
        "scrubbed": serde_json::from_str::<Value>(&row.get::<_, String>("scrubbed")?).unwrap_or_default() }))
}

const ISSUES: &str = "SELECT * FROM issue WHERE id > ?1 ORDER BY id LIMIT ?2";

fn issue(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "issue", "id": number(row, "id")?, "project": number(row, "project")?,
        "key": text(row, "name")?, "title": text(row, "title")?, "kind": text(row, "kind")?,
        "owner": text(row, "owner")?, "why": text(row, "why")?, "state": text(row, "state")?,
        "assignee": text(row, "assignee")?, "resolved": time(row, "resolved")?,
        "regressed": time(row, "regressed")?, "spiked": time(row, "spiked")?, "first": time(row, "first")?, "last": time(row, "last")?,
        "count": number(row, "count")?, "merged_into": number(row, "merged_into")?,
        "part_of": number(row, "part_of")?, "by_hand": row.get::<_, bool>("by_hand")? }))
}

const REPORTS: &str = "SELECT report.*, blob.size FROM report LEFT JOIN blob ON blob.digest = report.blob \
    WHERE report.id > ?1 ORDER BY report.id LIMIT ?2";
const ATTACHMENTS: &str = "SELECT name, kind, blob, size FROM attachment \
    LEFT JOIN blob ON blob.digest = attachment.blob WHERE report = ?1 ORDER BY position";

fn report(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "report", "id": text(row, "event_id")?, "project": number(row, "project")?,
        "kind": text(row, "kind")?, "name": text(row, "name")?, "received": time(row, "received")?,
        "state": text(row, "state")?, "problem": text(row, "problem")?, "issue": number(row, "issue")?,
        "part": number(row, "part")?,
        "stated_release": text(row, "stated_release")?, "release": text(row, "release")?,
        "os": text(row, "os")?, "device": text(row, "device")?, "title": text(row, "title")?,
        "happened": text(row, "happened")?, "owner": text(row, "owner")?,
        "owner_version": text(row, "owner_version")?, "app": text(row, "app")?,
        "crashed": row.get::<_, Option<bool>>("crashed")?, "incomplete": row.get::<_, bool>("incomplete")?,
        "removed": time(row, "dropped")? }))
}

const SESSIONS: &str = "SELECT * FROM session_day ORDER BY project, day, release";

fn sessions(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "sessions", "project": number(row, "project")?, "day": day_of(row.get("day")?),
        "release": text(row, "release")?, "sessions": number(row, "sessions")?,
        "errored": number(row, "errored")?, "abnormal": number(row, "abnormal")?,
        "crashed": number(row, "crashed")? }))
}

const SYSTEMS: &str = "SELECT * FROM session_system_day ORDER BY project, day, release, os";

fn sessions_of_system(row: &Row<'_>) -> Result<Value> {
    let mut value = sessions(row)?;
    crate::api::extend(&mut value, json!({ "type": "sessions_of_system", "os": text(row, "os")? }));
    Ok(value)
}

const SYMBOL_FILES: &str = "SELECT symbol_file.*, blob.size, state, problem FROM symbol_file \
    LEFT JOIN blob ON blob.digest = symbol_file.blob LEFT JOIN symbol_conversion USING (blob) ORDER BY symbol_file.id";

fn symbol_file(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "symbol_file", "project": number(row, "project")?, "id": text(row, "image_id")?,
        "arch": text(row, "arch")?, "kind": text(row, "kind")?, "name": text(row, "name")?,
        "sha256": text(row, "blob")?, "size": number(row, "size")?, "lacks": text(row, "lacks")?,
        "uploaded": time(row, "uploaded")?, "table": text(row, "state")?, "problem": text(row, "problem")? }))
}

const OWNER_SOURCES: &str = "SELECT owner_source.*, blob.size FROM owner_source \
    LEFT JOIN blob ON blob.digest = owner_source.blob ORDER BY owner_source.id";

fn owner_source(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "owner_source", "project": number(row, "project")?, "kind": text(row, "kind")?,
        "name": text(row, "name")?, "version": text(row, "version")?, "app": text(row, "app")?,
        "image": text(row, "image_id")?, "sha256": text(row, "blob")?, "size": number(row, "size")?,
        "uploaded": time(row, "uploaded")? }))
}

const WEBHOOKS: &str = "SELECT * FROM webhook ORDER BY id";

fn webhook(row: &Row<'_>) -> Result<Value> {
    Ok(json!({ "type": "webhook", "project": number(row, "project")?, "url": text(row, "url")?,
        "created": time(row, "created")? }))
}
