//! The API of what tells of a project whose code is whose.

use crate::api::{of_project, with_scope};
use crate::http::{self, Refused, blocking};
use crate::owner_problems;
use crate::owner_sources::{self, Kind};
use crate::projects::Scope;
use crate::state::{App, State};
use crate::symbols::receive;
use axum::Router;
use axum::extract::{Path, RawQuery, Request, State as Shared};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, delete, get, put};
use serde_json::{Value, json};

/// The paths of it.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects/{project}/fingerprints/{name}", named(Kind::Fingerprint))
        .route("/api/v1/projects/{project}/link-maps/{name}", named(Kind::LinkMap))
        .route("/api/v1/projects/{project}/rules", get(rules).put(set_rules).delete(remove_rules))
        .route("/api/v1/projects/{project}/owner-sources", get(list))
        .route("/api/v1/projects/{project}/owner-sources/{id}", delete(remove))
}

/// Keeps a file of that kind. Rules, of which there is one file, have no name in the path.
async fn take(
    app: App,
    kind: Kind,
    project: String,
    name: String,
    request: Request,
) -> Result<Response, Refused> {
    let (head, body) = request.into_parts();
    let allowed = move |app: &State| {
        let token = http::token(&head.headers, head.uri.query());
        Ok(http::project(&app.database, &project, token.as_deref(), kind.scope())?.0)
    };
    let project = blocking(&app, allowed).await?;
    let received = receive(&app, body.into_data_stream()).await?;
    let place = app.large.clone().acquire_owned().await.ok();
    let answer = blocking(&app, move |app| {
        let _place = place;
        owner_sources::keep(app, &project, kind, &name, &received).map(|row| owner_sources::told(&row))
    });
    Ok(http::json(&answer.await?))
}

/// What takes files of a kind that have a name in the path.
fn named(kind: Kind) -> MethodRouter<App> {
    put(move |Shared(app): Shared<App>, Path((project, name)): Path<(String, String)>, request: Request| {
        take(app, kind, project, name, request)
    })
}

async fn set_rules(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    take(app, Kind::Rules, project, "rules.toml".to_owned(), request).await
}

async fn list(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, |app, project| {
        let (rows, problems) = app.database.read(|connection| {
            Ok((owner_sources::rows(connection, project.id)?, owner_problems::rows(connection, project.id)?))
        })?;
        let rows: Vec<Value> = rows.iter().map(owner_sources::told).collect();
        let problems: Vec<Value> = problems.iter().map(owner_problems::told).collect();
        Ok(http::json(&json!({ "owner_sources": rows, "problems": problems })))
    })
    .await
}

/// The rules as they came.
async fn rules(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, |app, project| {
        let bytes = owner_sources::rules(app, project.id)?.ok_or_else(Refused::not_found)?;
        Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response())
    })
    .await
}

async fn remove_rules(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    gone(&app, project, None, query, headers).await
}

async fn remove(
    Shared(app): Shared<App>,
    Path((project, id)): Path<(String, i64)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    gone(&app, project, Some(id), query, headers).await
}

async fn gone(
    app: &App,
    project: String,
    id: Option<i64>,
    query: Option<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    with_scope(app, project, headers, query, Scope::Member, move |app, project| {
        if !owner_sources::remove(app, project.id, id)? {
            return Err(Refused::not_found());
        }
        Ok(http::json(&json!({ "id": id, "removed": true })))
    })
    .await
}
