//! Deletion of reports that somebody asks for: of one by its id, or of all that have a text in them, a user's or a device's id say.
//!
//! Bytes go, and what was read from them; the row stays with its release, system, day, app and owner, so that counts stay what they were.

use crate::admin;
use crate::analyses;
use crate::database::{Connection, OptionalExtension as _, Result, Row, params};
use crate::http::{self, Refused, blocking};
use crate::retention;
use crate::state::{App, State};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{delete, post};
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;

/// The paths of what deletes. Only an administrator does.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects/{project}/reports/{report}", delete(one))
        .route("/api/v1/projects/{project}/deletions", post(containing))
}

/// Reports that one request looks at.
const AT_A_TIME: i64 = 500;

/// Bytes of them that it looks at, about.
const MAX_BYTES: usize = 256 << 20;

/// A shorter text is in reports of others, too.
const SHORTEST: usize = 6;
const LONGEST: usize = 1000;

async fn one(
    Shared(app): Shared<App>,
    Path((name, report)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = admin::project(app, &name, &headers)?;
        let found = analyses::report(app, project.id, &report)?;
        let event_id = found.event_id.clone();
        let candidate = app.database.read(move |connection| candidate(connection, project.id, &event_id))?;
        let removed = remove(app, candidate.into_iter().map(|candidate| candidate.id).collect())?;
        if !found.dropped && removed == 0 {
            return Err(Refused::new(StatusCode::CONFLICT, "the report is being worked: ask again"));
        }
        Ok(http::json(&json!({ "id": found.event_id, "removed": true })))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Containing {
    containing: String,
    /// What the answer before said to go on with.
    #[serde(default)]
    after: i64,
}

async fn containing(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked: Containing = admin::read(&app, &headers, body).await?;
    if !(SHORTEST..=LONGEST).contains(&asked.containing.len()) {
        return Err(Refused::bad(format!("expected a text of {SHORTEST} to {LONGEST} bytes")));
    }
    blocking(&app, move |app| {
        let project = admin::project(app, &name, &headers)?;
        let candidates = app.database.read(|connection| candidates(connection, project.id, asked.after))?;
        let text = Text::new(&asked.containing);
        let (mut looked_at, mut bytes, mut last, mut waiting) = (0_usize, 0_usize, asked.after, 0_usize);
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        for candidate in &candidates {
            if bytes > MAX_BYTES {
                break;
            }
            looked_at += 1;
            last = candidate.id;
            let mut is_in = false;
            for digest in &candidate.files {
                match app.objects.get(&app.database, digest) {
                    Ok(file) => {
                        bytes = bytes.saturating_add(file.len());
                        is_in |= text.is_in(&file);
                    }
                    // Whether it has the text is not known: it is said, and nothing is removed on a guess.
                    Err(_) => unread.push(candidate.event_id.clone()),
                }
            }
            if is_in && candidate.is_in_work {
                waiting += 1;
            } else if is_in {
                found.push(candidate.id);
            }
        }
        let is_all = looked_at == candidates.len() && (candidates.len() as i64) < AT_A_TIME;
        let removed = remove(app, found)?;
        Ok(http::json(&json!({ "looked_at": looked_at, "removed": removed, "waiting": waiting,
            "unread": unread, "next": (!is_all).then_some(last) })))
    })
    .await
}

/// The text that is looked for, as it may stand in a report.
struct Text {
    plain: Finder<'static>,
    /// As strings of Windows have it in minidumps (UTF-16, little-endian).
    wide: Finder<'static>,
}

impl Text {
    fn new(text: &str) -> Self {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        Self { plain: Finder::new(text.as_bytes()).into_owned(), wide: Finder::new(&wide).into_owned() }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        self.plain.find(bytes).is_some() || self.wide.find(bytes).is_some()
    }
}

/// A report that may be deleted.
struct Candidate {
    id: i64,
    event_id: String,
    is_in_work: bool,
    /// Its bytes and those of what came along with it.
    files: Vec<String>,
}

const CANDIDATE: &str = "SELECT id, event_id, state IN ('waiting', 'leased'), blob FROM report \
    WHERE project = ?1 AND dropped IS NULL AND";

fn candidates(connection: &Connection, project: i64, after: i64) -> Result<Vec<Candidate>> {
    let mut candidates = connection.query_map(
        &format!("{CANDIDATE} id > ?2 ORDER BY id LIMIT {AT_A_TIME}"),
        params![project, after],
        candidate_of,
    )?;
    for candidate in &mut candidates {
        let sql = "SELECT blob FROM attachment WHERE report = ?1";
        candidate
            .files
            .extend(connection.query_map(sql, params![candidate.id], |row| row.get::<_, String>(0))?);
    }
    Ok(candidates)
}

fn candidate(connection: &Connection, project: i64, event_id: &str) -> Result<Option<Candidate>> {
    let sql = format!("{CANDIDATE} event_id = ?2");
    connection.query_row(&sql, params![project, event_id], candidate_of).optional()
}

fn candidate_of(row: &Row<'_>) -> Result<Candidate> {
    Ok(Candidate {
        id: row.get(0)?,
        event_id: row.get(1)?,
        is_in_work: row.get(2)?,
        files: vec![row.get(3)?],
    })
}

/// Takes reports' bytes from them, and what was read from these; how many. Those that are being worked meanwhile stay.
fn remove(app: &State, reports: Vec<i64>) -> Result<usize> {
    let (removed, digests) = app.database.write(move |connection| {
        // Else the bytes would stay in pages that are free.
        connection.overwrite_deleted(true)?;
        let (mut removed, mut digests) = (0, HashSet::new());
        for id in reports {
            let may_go = connection.execute(
                "UPDATE report SET title = NULL, name = NULL, device = NULL, happened = NULL, problem = NULL \
                     WHERE id = ?1 AND dropped IS NULL AND state NOT IN ('waiting', 'leased')",
                params![id],
            )?;
            if may_go == 1 {
                retention::drop_one(connection, id, &mut digests)?;
                removed += 1;
            }
        }
        connection.overwrite_deleted(false)?;
        Ok((removed, digests))
    })?;
    // Only now is it certain that no row needs the files.
    app.objects.remove_unneeded(&app.database, digests)?;
    Ok(removed)
}
