//! The API of what tells of a project whose code is whose.

use crate::api::{of_project, with_scope};
use crate::http::{self, Refused, blocking};
use crate::owner_sources::{self, Kind};
use crate::projects::Scope;
use crate::state::App;
use crate::symbols::receive;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, put};
use serde_json::{Value, json};

/// The paths of it.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects/{project}/fingerprints/{name}", put(fingerprint))
        .route("/api/v1/projects/{project}/link-maps/{name}", put(link_map))
        .route("/api/v1/projects/{project}/rules", get(rules).put(set_rules).delete(remove_rules))
        .route("/api/v1/projects/{project}/owner-sources", get(list))
        .route("/api/v1/projects/{project}/owner-sources/{id}", delete(remove))
}

async fn fingerprint(
    Shared(app): Shared<App>,
    Path((project, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked = Asked { project, name, query, headers };
    take(&app, asked, Scope::Symbols, Kind::Fingerprint, body).await
}

async fn link_map(
    Shared(app): Shared<App>,
    Path((project, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked = Asked { project, name, query, headers };
    take(&app, asked, Scope::Symbols, Kind::LinkMap, body).await
}

async fn set_rules(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked = Asked { project, name: "rules.toml".to_owned(), query, headers };
    take(&app, asked, Scope::Member, Kind::Rules, body).await
}

struct Asked {
    project: String,
    name: String,
    query: Option<String>,
    headers: HeaderMap,
}

async fn take(app: &App, asked: Asked, scope: Scope, kind: Kind, body: Body) -> Result<Response, Refused> {
    let Asked { project, name, query, headers } = asked;
    let allowed = move |app: &crate::state::State| {
        let token = http::token(&headers, query.as_deref());
        Ok(http::project(&app.database, &project, token.as_deref(), scope)?.0)
    };
    let project = blocking(app, allowed).await?;
    let received = receive(app, body.into_data_stream()).await?;
    let place = app.large.clone().acquire_owned().await.ok();
    let answer = blocking(app, move |app| {
        let _place = place;
        owner_sources::keep(app, &project, kind, &name, &received).map(|row| owner_sources::told(&row))
    });
    Ok(http::json(&answer.await?))
}

async fn list(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, |app, project| {
        let rows = app.database.read(|connection| owner_sources::rows(connection, project.id))?;
        let rows: Vec<Value> = rows.iter().map(owner_sources::told).collect();
        Ok(http::json(&json!({ "owner_sources": rows })))
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
