//! Projects, keys and tokens, made and revoked by who may do everything.

use crate::http::{self, Refused, blocking};
use crate::people;
use crate::projects::{self, Project, Quota, Scope};
use crate::scrubbing::Scrubber;
use crate::secret;
use crate::state::{App, State};
use crate::time::{day, now, rfc3339};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{delete, get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Projects of one server: all of them are read to find one.
const MAX_PROJECTS: usize = 1000;

/// The paths of what only an administrator does.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects", post(new_project))
        .route("/api/v1/projects/{project}/quota", get(quota).post(set_quota))
        .route("/api/v1/projects/{project}/scrubbing", get(scrubbing).post(set_scrubbing))
        .route("/api/v1/projects/{project}/tokens", get(tokens).post(new_token))
        .route("/api/v1/projects/{project}/tokens/{token}", delete(revoke))
        .route("/api/v1/people", get(all_people).post(new_person))
        .route("/api/v1/people/{person}", delete(remove_person))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewProject {
    slug: String,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    scope: String,
    #[serde(default)]
    note: String,
}

/// What is said to who may not do everything.
pub(crate) const NOT_ALLOWED: &str = "this needs an administrator, or the token that the first start printed";

/// Makes sure that who asks may do everything.
fn administrator(app: &State, headers: &HeaderMap) -> Result<(), Refused> {
    let grant = http::grant(&app.database, http::token(headers, None).as_deref())?;
    if grant.scope == Scope::Admin {
        return Ok(());
    }
    Err(Refused::new(StatusCode::FORBIDDEN, NOT_ALLOWED))
}

/// The project that a path names, for an administrator.
pub(crate) fn project(app: &State, name: &str, headers: &HeaderMap) -> Result<Project, Refused> {
    administrator(app, headers)?;
    app.database.read(|connection| projects::find(connection, name))?.ok_or_else(Refused::not_found)
}

pub(crate) async fn read<T: DeserializeOwned>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Refused> {
    let (bytes, _place) = http::body(app, headers, body).await?.into_parts();
    serde_json::from_slice(&bytes).map_err(|error| Refused::bad(error.to_string()))
}

/// A short name stands in addresses, where a number means the project of that number.
fn is_slug(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// A project that was made, and the key of its clients.
pub(crate) struct MadeProject {
    id: i64,
    pub(crate) slug: String,
    name: String,
    key: String,
}

/// Makes a project, for who is known to be an administrator. Without a name it has its short one.
pub(crate) fn make_project(app: &State, slug: String, name: Option<&str>) -> Result<MadeProject, Refused> {
    if !is_slug(&slug) {
        return Err(Refused::bad(
            "expected a slug of at most 64 letters a to z, digits and dashes, with a letter in front",
        ));
    }
    let name: String = name.unwrap_or(&slug).chars().take(100).collect();
    let key = secret::key()?;
    let (with_slug, with_name, with_key) = (slug.clone(), name.clone(), key.clone());
    let made = app.database.write(move |connection| {
        let there = projects::all(connection)?;
        if there.len() >= MAX_PROJECTS || there.iter().any(|project| project.slug == with_slug) {
            return Ok(None);
        }
        projects::create(connection, &with_slug, &with_name, &with_key).map(Some)
    })?;
    let taken = || Refused::new(StatusCode::CONFLICT, "there is such a project, or there are 1000 of them");
    Ok(MadeProject { id: made.ok_or_else(taken)?, slug, name, key })
}

async fn new_project(Shared(app): Shared<App>, headers: HeaderMap, body: Body) -> Result<Response, Refused> {
    let asked: NewProject = read(&app, &headers, body).await?;
    blocking(&app, move |app| {
        administrator(app, &headers)?;
        let MadeProject { id, slug, name, key } = make_project(app, asked.slug, asked.name.as_deref())?;
        Ok(http::json(&json!({ "id": id, "slug": slug, "name": name, "key": key })))
    })
    .await
}

/// What a project may be sent in a day; what is not named has no limit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewQuota {
    reports_a_day: Option<i64>,
    bytes_a_day: Option<i64>,
}

async fn quota(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?;
        shown_quota(app, &project)
    })
    .await
}

async fn set_quota(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked: NewQuota = read(&app, &headers, body).await?;
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?;
        let quota = Quota { reports: asked.reports_a_day, bytes: asked.bytes_a_day };
        if [quota.reports, quota.bytes].into_iter().flatten().any(|most| most < 0) {
            return Err(Refused::bad("expected numbers that are not negative, or null"));
        }
        let id = project.id;
        app.database.write(move |connection| projects::set_quota(connection, id, quota))?;
        shown_quota(app, &Project { quota, ..project })
    })
    .await
}

fn shown_quota(app: &State, project: &Project) -> Result<Response, Refused> {
    let used = app.database.read(|connection| projects::used(connection, project.id, day(now())))?;
    Ok(http::json(&json!({
        "reports_a_day": project.quota.reports,
        "bytes_a_day": project.quota.bytes,
        "today": { "reports": used.reports, "bytes": used.bytes, "refused": used.refused },
    })))
}

/// What is masked in a project's reports from now on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewScrubbing {
    patterns: Vec<String>,
}

async fn scrubbing(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?;
        let patterns: Vec<String> = serde_json::from_str(&project.scrubbed).unwrap_or_default();
        Ok(http::json(&json!({ "patterns": patterns })))
    })
    .await
}

async fn set_scrubbing(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked: NewScrubbing = read(&app, &headers, body).await?;
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?;
        Scrubber::new(&asked.patterns).map_err(Refused::bad)?;
        let patterns = json!(asked.patterns);
        let (id, text) = (project.id, patterns.to_string());
        app.database.write(move |connection| projects::set_scrubbed(connection, id, &text))?;
        Ok(http::json(&json!({ "patterns": patterns })))
    })
    .await
}

async fn tokens(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?;
        let tokens = app.database.read(|connection| projects::tokens(connection, project.id))?;
        let rows = tokens.iter().map(|token| {
            json!({
                "id": token.id, "scope": token.scope, "key": token.key, "note": token.note,
                "created": rfc3339(token.created), "revoked": token.revoked.map(rfc3339),
            })
        });
        Ok(http::json(&json!({ "tokens": rows.collect::<Vec<_>>() })))
    })
    .await
}

/// A key or token that was made: what it is is known at this moment alone.
pub(crate) struct MadeToken {
    id: i64,
    scope: Scope,
    pub(crate) token: String,
}

/// Makes a key or a token of a project, for who is known to be an administrator.
pub(crate) fn make_token(app: &State, project: i64, scope: &str, note: &str) -> Result<MadeToken, Refused> {
    let scope = Scope::parse(scope).filter(|scope| *scope != Scope::Admin);
    let scope = scope.ok_or_else(|| Refused::bad("expected a scope of report, symbols, read or member"))?;
    let note: String = note.chars().take(100).collect();
    let token = if scope == Scope::Report { secret::key()? } else { secret::token()? };
    let kept = token.clone();
    let id = app.database.write(move |connection| match scope {
        Scope::Report => projects::add_key(connection, project, &kept, &note),
        scope => projects::add_token(connection, Some(project), scope, &kept, &note),
    })?;
    Ok(MadeToken { id, scope, token })
}

async fn new_token(
    Shared(app): Shared<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let asked: NewToken = read(&app, &headers, body).await?;
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?.id;
        let MadeToken { id, scope, token } = make_token(app, project, &asked.scope, &asked.note)?;
        let what = if scope == Scope::Report { "key" } else { "token" };
        Ok(http::json(&json!({ "id": id, "scope": scope.as_str(), what: token })))
    })
    .await
}

async fn revoke(
    Shared(app): Shared<App>,
    Path((name, token)): Path<(String, i64)>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let project = project(app, &name, &headers)?.id;
        if !app.database.write(move |connection| projects::revoke(connection, project, token))? {
            return Err(Refused::not_found());
        }
        Ok(http::json(&json!({ "id": token, "revoked": true })))
    })
    .await
}

async fn all_people(Shared(app): Shared<App>, headers: HeaderMap) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        administrator(app, &headers)?;
        let people = app.database.read(people::all)?;
        let rows = people.iter().map(|person| {
            json!({
                "id": person.id, "name": person.name, "scope": person.scope, "project": person.project,
                "created": rfc3339(person.created),
            })
        });
        Ok(http::json(&json!({ "people": rows.collect::<Vec<_>>() })))
    })
    .await
}

/// Somebody who is to log in by a name; without a project, to all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPerson {
    name: String,
    password: String,
    scope: String,
    project: Option<String>,
}

async fn new_person(Shared(app): Shared<App>, headers: HeaderMap, body: Body) -> Result<Response, Refused> {
    let asked: NewPerson = read(&app, &headers, body).await?;
    let _turn = app.passwords.turn().await?;
    blocking(&app, move |app| {
        administrator(app, &headers)?;
        let NewPerson { name, password, scope, project } = &asked;
        let project = project.as_deref();
        let id = people::add(app, &people::NewPerson { name, password, scope, project })?;
        Ok(http::json(&json!({ "id": id })))
    })
    .await
}

async fn remove_person(
    Shared(app): Shared<App>,
    Path(person): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        administrator(app, &headers)?;
        if !app.database.write(move |connection| people::remove(connection, person))? {
            return Err(Refused::not_found());
        }
        Ok(http::json(&json!({ "id": person, "removed": true })))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_no_numbers_and_no_paths() {
        assert!(is_slug("weather") && is_slug("w-2"));
        for bad in ["", "2", "-a", "a/b", "..", "Weather", "a b", &"a".repeat(65)] {
            assert!(!is_slug(bad), "{bad}");
        }
    }
}
