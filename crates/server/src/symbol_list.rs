//! The files of symbols that a project has, what became of their tables, and how they are removed.

use crate::admin;
use crate::api::of_project;
use crate::database::{Connection, DatabaseError, Result, params};
use crate::http::{self, Refused, blocking};
use crate::objects;
use crate::state::App;
use crate::tables;
use crate::time::rfc3339;
use axum::Router;
use axum::extract::{Path, Query, RawQuery, State as Shared};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{delete, get};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The paths of the list.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects/{project}/symbols", get(list))
        .route("/api/v1/projects/{project}/symbols/{name}", delete(remove))
}

/// Rows of one answer.
const AT_A_TIME: i64 = 100;

/// A row: what a file says about one image.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) arch: Option<String>,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) size: i64,
    pub(crate) lacks: Option<String>,
    pub(crate) uploaded: i64,
    /// The state of its table: `waiting`, `made`, `none` or `refused`.
    pub(crate) table: String,
    pub(crate) problem: Option<String>,
}

/// A project's files, the latest first.
pub(crate) fn rows(connection: &Connection, project: i64, count: i64, offset: i64) -> Result<Vec<Row>> {
    connection.query_map(
        "SELECT image_id, arch, kind, name, symbol_file.blob, size, lacks, uploaded, state, \
         problem FROM symbol_file JOIN blob ON digest = symbol_file.blob JOIN symbol_conversion \
         ON symbol_conversion.blob = digest WHERE project = ?1 ORDER BY symbol_file.id DESC LIMIT \
         ?2 OFFSET ?3",
        params![project, count, offset],
        |row| {
            Ok(Row {
                id: row.get(0)?,
                arch: row.get(1)?,
                kind: row.get(2)?,
                name: row.get(3)?,
                digest: row.get(4)?,
                size: row.get(5)?,
                lacks: row.get(6)?,
                uploaded: row.get(7)?,
                table: row.get(8)?,
                problem: row.get(9)?,
            })
        },
    )
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    offset: u32,
}

async fn list(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    Query(asked): Query<Asked>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> std::result::Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let offset = i64::from(asked.offset);
        let mut rows = app.database.read(|connection| rows(connection, project.id, AT_A_TIME + 1, offset))?;
        let most = usize::try_from(AT_A_TIME).unwrap_or_default();
        let next = (rows.len() > most).then_some(offset + AT_A_TIME);
        rows.truncate(most);
        let rows: Vec<Value> = rows.iter().map(told).collect();
        Ok(http::json(&json!({ "symbols": rows, "next_offset": next })))
    })
    .await
}

fn told(row: &Row) -> Value {
    json!({
        "id": row.id, "arch": row.arch, "kind": row.kind, "name": row.name, "sha256": row.digest,
        "size": row.size, "lacks": row.lacks, "uploaded": rfc3339(row.uploaded), "table": row.table,
        "problem": row.problem,
    })
}

/// Removes a file from a project, with its tables once no other project has it.
async fn remove(
    Shared(app): Shared<App>,
    Path((project, digest)): Path<(String, String)>,
    headers: HeaderMap,
) -> std::result::Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = admin::project(app, &project, &headers)?.id;
        let (symbols, name) = (Arc::clone(&app.symbols), digest.clone());
        let gone = app.database.write(move |connection| {
            let gone = take(connection, project, &name)?;
            for link in &gone.links {
                symbols.remove(project, link).map_err(DatabaseError::Thread)?;
            }
            symbols.changed(project);
            Ok(gone)
        })?;
        if !gone.was_there {
            return Err(Refused::not_found());
        }
        // Only now is it certain that no row needs the files.
        app.objects.remove_unneeded(&app.database, gone.files.into_iter().collect())?;
        Ok(http::json(&json!({ "sha256": digest, "removed": true })))
    })
    .await
}

/// What goes with a file.
struct Gone {
    was_there: bool,
    /// What of the project's files goes.
    links: BTreeSet<String>,
    /// What may be needed no more.
    files: Vec<String>,
}

fn take(connection: &Connection, project: i64, digest: &str) -> Result<Gone> {
    let taken = connection
        .execute("DELETE FROM symbol_file WHERE project = ?1 AND blob = ?2", params![project, digest])?;
    let mut gone = Gone { was_there: taken > 0, links: BTreeSet::new(), files: Vec::new() };
    if taken == 0 {
        return Ok(gone);
    }
    for _ in 0..taken {
        objects::need_no_more(connection, digest)?;
    }
    gone.links.extend(tables::linked(connection, digest)?);
    // What the project has by another file, too, stays.
    let sql = "SELECT blob FROM symbol_file WHERE project = ?1 UNION SELECT symbol_table.blob FROM symbol_file \
        JOIN symbol_table ON source = symbol_file.blob WHERE project = ?1";
    for still in connection.query_map(sql, params![project], |row| row.get::<_, String>(0))? {
        gone.links.remove(&still);
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM symbol_file WHERE blob = ?1)";
    if !connection.query_row(sql, params![digest], |row| row.get::<_, bool>(0))? {
        gone.files = tables::remove(connection, digest)?;
        gone.files.push(digest.to_owned());
    }
    Ok(gone)
}
