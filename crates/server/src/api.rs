//! The JSON API: small, documented in docs/server.md, stable.

use crate::analyses::{self, analysis};
use crate::health::{self, Release};
use crate::http::{self, Refused, blocking};
use crate::icicle::MAX_REPORTS;
use crate::likely;
use crate::owners::{self, Counted};
use crate::projects::{self, Project, Scope};
use crate::state::{App, State};
use crate::time::{DAY, rfc3339};
use crate::views::{self, Decision, Filter, Issue, Report, STATES, Share};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, RawQuery, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use backtrail::groups::Fit;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// The paths of the API.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects", get(all_projects))
        .route("/api/v1/projects/{project}/issues", get(issues))
        .route("/api/v1/projects/{project}/issues/{issue}", get(issue).post(decide))
        .route("/api/v1/projects/{project}/issues/{issue}/stacks", get(stacks))
        .route("/api/v1/projects/{project}/reports/{report}", get(report))
        .route("/api/v1/projects/{project}/reports/{report}/raw", get(raw_report))
        .route("/api/v1/projects/{project}/reports/{report}/attachments/{position}", get(attachment))
        .route("/api/v1/projects/{project}/missing", get(missing))
        .route("/api/v1/projects/{project}/releases", get(releases))
        .route("/api/v1/projects/{project}/owners", get(all_owners))
        .route("/metrics", get(metrics))
}

/// Does what a request asks of a project that it may read.
pub(crate) async fn of_project(
    app: &App,
    project: String,
    headers: HeaderMap,
    query: Option<String>,
    work: impl FnOnce(&State, &Project) -> Result<Response, Refused> + Send + 'static,
) -> Result<Response, Refused> {
    with_scope(app, project, headers, query, Scope::Read, work).await
}

pub(crate) async fn with_scope(
    app: &App,
    project: String,
    headers: HeaderMap,
    query: Option<String>,
    scope: Scope,
    work: impl FnOnce(&State, &Project) -> Result<Response, Refused> + Send + 'static,
) -> Result<Response, Refused> {
    blocking(app, move |app| {
        let token = http::token(&headers, query.as_deref());
        let (project, _) = http::project(&app.database, &project, token.as_deref(), scope)?;
        work(app, &project)
    })
    .await
}

async fn all_projects(Shared(app): Shared<App>, headers: HeaderMap) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let grant = http::grant(&app.database, http::token(&headers, None).as_deref())?;
        let all = app.database.read(projects::all)?.into_iter();
        let mine = all.filter(|project| grant.allows(Scope::Read, project.id));
        let rows: Vec<_> = mine
            .map(|project| json!({ "id": project.id, "slug": project.slug, "name": project.name }))
            .collect();
        Ok(http::json(&json!({ "projects": rows })))
    })
    .await
}

/// What a list of issues is asked for.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    state: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    sort: String,
    #[serde(default)]
    offset: i64,
}

async fn issues(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    Query(asked): Query<Asked>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let Asked { state, text, sort, offset } = asked;
        let filter = Filter { state, text, sort, offset };
        let mut issues = app.database.read(|connection| views::issues(connection, project.id, &filter))?;
        let most = usize::try_from(views::PAGE).unwrap_or(usize::MAX);
        let next = (issues.len() > most).then_some(filter.offset.max(0) + views::PAGE);
        issues.truncate(most);
        let issues: Vec<_> = issues.iter().map(issue_json).collect();
        Ok(http::json(&json!({ "issues": issues, "next_offset": next })))
    })
    .await
}

async fn issue(
    Shared(app): Shared<App>,
    Path((project, issue)): Path<(String, i64)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let found = app.database.read(|connection| whole_issue(connection, project.id, issue))?;
        Ok(http::json(&found.ok_or_else(Refused::not_found)?))
    })
    .await
}

async fn stacks(
    Shared(app): Shared<App>,
    Path((project, issue)): Path<(String, i64)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let found = app.database.read(|connection| {
            let issue = views::issue(connection, project.id, issue)?;
            issue.map(|issue| views::reports(connection, &issue, MAX_REPORTS)).transpose()
        })?;
        let icicle = analyses::stacks(app, &found.ok_or_else(Refused::not_found)?);
        let nodes: Vec<_> = icicle
            .rows()
            .into_iter()
            .map(|(depth, node)| json!({ "depth": depth, "name": node.name, "count": node.count }))
            .collect();
        Ok(http::json(&json!({ "reports": icicle.reports, "cut": icicle.is_cut, "nodes": nodes })))
    })
    .await
}

fn whole_issue(
    connection: &crate::database::Connection,
    project: i64,
    id: i64,
) -> crate::database::Result<Option<Value>> {
    let Some(issue) = views::issue(connection, project, id)? else { return Ok(None) };
    let shares = |column| -> crate::database::Result<Vec<Value>> {
        let rows = views::shares(connection, issue.id, column)?.into_iter();
        Ok(rows.map(|(name, count)| json!({ "name": name, "count": count })).collect())
    };
    let reports: Vec<_> = views::reports(connection, &issue, 20)?.iter().map(report_json).collect();
    let merged = views::parts(connection, issue.id)?.into_iter();
    let merged: Vec<_> = merged.map(|(id, title)| json!({ "id": id, "title": title })).collect();
    let mut value = issue_json(&issue);
    let further = json!({
        "releases": shares(Share::Release)?,
        "systems": shares(Share::System)?,
        "days": views::days(connection, issue.id)?.to_vec(),
        "merged": merged,
        "reports": reports,
    });
    extend(&mut value, further);
    Ok(Some(value))
}

/// Adds what one object has to another.
pub(crate) fn extend(object: &mut Value, further: Value) {
    if let (Value::Object(object), Value::Object(further)) = (object, further) {
        object.extend(further);
    }
}

fn issue_json(issue: &Issue) -> Value {
    json!({
        "id": issue.id,
        "title": issue.title,
        "kind": issue.kind,
        "owner": issue.owner,
        "key": issue.key,
        "why": issue.why.lines().collect::<Vec<_>>(),
        "state": issue.state,
        "regressed": issue.regressed,
        "spikes": issue.spikes,
        "assignee": issue.assignee,
        "first": rfc3339(issue.first),
        "last": rfc3339(issue.last),
        "count": issue.count,
    })
}

fn report_json(report: &Report) -> Value {
    json!({
        "id": report.event_id,
        "state": report.state,
        "problem": report.problem,
        "kind": report.kind,
        "received": rfc3339(report.received),
        "happened": report.happened,
        "issue": report.issue,
        "title": report.title,
        "release": report.release,
        "os": report.os,
        "device": report.device,
        "incomplete": report.incomplete,
        "removed": report.dropped,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    state: Option<String>,
    assignee: Option<String>,
    merge_into: Option<i64>,
    split: Option<i64>,
}

/// Resolves, ignores, opens, assigns, merges, splits.
async fn decide(
    Shared(app): Shared<App>,
    Path((project, issue)): Path<(String, i64)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let (bytes, _place) = http::body(&app, &headers, body).await?.into_parts();
    with_scope(&app, project, headers, query, Scope::Member, move |app, project| {
        let decided: Decided =
            serde_json::from_slice(&bytes).map_err(|error| Refused::bad(error.to_string()))?;
        if decided.state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
            return Err(Refused::bad("expected a state of open, resolved or ignored"));
        }
        let Decided { state, assignee, merge_into, split } = decided;
        let assignee = assignee.map(|name| name.chars().take(100).collect());
        let decision = Decision { state, assignee, merge_into, split };
        let project = project.id;
        let done = app.database.write(move |connection| {
            if !views::decide(connection, project, issue, &decision)? {
                return Ok(None);
            }
            whole_issue(connection, project, issue)
        })?;
        let nothing = || {
            let message = "there is no such issue, no other to merge it into, or none to split from it";
            Refused::new(StatusCode::NOT_FOUND, message)
        };
        Ok(http::json(&done.ok_or_else(nothing)?))
    })
    .await
}

async fn report(
    Shared(app): Shared<App>,
    Path((project, report)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let found = analyses::report(app, project.id, &report)?;
        let mut value = report_json(&found);
        let attachments = app.database.read(|connection| views::attachments(connection, &found))?;
        let attachments: Vec<_> = attachments
            .iter()
            .map(|it| json!({ "position": it.position, "name": it.name, "kind": it.kind, "size": it.size }))
            .collect();
        extend(&mut value, json!({ "attachments": attachments }));
        if found.state == "done" && !found.dropped {
            let analysis = analysis(app, &found)?;
            let mut whole = Vec::new();
            backtrail::json::write_report(&mut whole, &analysis, backtrail::json::Origin::default())?;
            let whole: Value = serde_json::from_slice(&whole).unwrap_or_default();
            extend(&mut value, json!({ "report": whole }));
            let fit = app
                .database
                .read(|connection| likely::issues(connection, project.id, found.issue, &analysis.begins))?;
            extend(&mut value, likely_json(&fit));
        }
        Ok(http::json(&value))
    })
    .await
}

/// Which issue a report is likely of that was cut short, and how many reports say so; or two that it may be of.
fn likely_json(fit: &Fit<i64>) -> Value {
    match fit {
        Fit::None => json!({}),
        Fit::One(issue, by) => json!({ "likely_of": issue, "likely_by": by }),
        Fit::Several(issues) => json!({ "either_of": issues.iter().take(2).collect::<Vec<_>>() }),
    }
}

/// The bytes as they came, for saving: browsers must not show what strangers wrote.
async fn raw_report(
    Shared(app): Shared<App>,
    Path((project, report)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let found = analyses::report(app, project.id, &report)?;
        Ok(as_attachment(&format!("report-{}", found.event_id), analyses::bytes(app, &found)?))
    })
    .await
}

/// An attachment of a report, in the same way.
async fn attachment(
    Shared(app): Shared<App>,
    Path((project, report, position)): Path<(String, String, i64)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let found = analyses::report(app, project.id, &report)?;
        let (name, bytes) = analyses::attachment(app, &found, position)?;
        Ok(as_attachment(&name, bytes))
    })
    .await
}

/// What strangers sent, for saving, by a name of letters that headers and file systems take.
pub(crate) fn as_attachment(name: &str, bytes: Vec<u8>) -> Response {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let name: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let name = name.trim_start_matches('.');
    let name = format!("attachment; filename=\"{}\"", if name.is_empty() { "attachment" } else { name });
    let name = HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment"));
    let kind = HeaderValue::from_static("application/octet-stream");
    ([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], bytes).into_response()
}

async fn missing(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let rows = app.database.read(|connection| views::missing(connection, project.id))?.into_iter();
        let rows = rows.map(|row| {
            json!({ "id": row.image_id, "name": row.name, "arch": row.arch,
                "reports": row.reports, "last": rfc3339(row.last) })
        });
        Ok(http::json(&json!({ "missing": rows.collect::<Vec<_>>() })))
    })
    .await
}

#[derive(Deserialize)]
struct AskedRelease {
    release: Option<String>,
}

async fn releases(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    Query(asked): Query<AskedRelease>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let told = |of: &str, row: &Release| {
            json!({
                (of): row.name, "sessions": row.sessions, "errored": row.errored, "abnormal": row.abnormal,
                "crashed": row.crashed, "crash_free": row.crash_free(), "last": rfc3339(row.last * DAY),
            })
        };
        if let Some(name) = &asked.release {
            let rows = app.database.read(|connection| health::systems(connection, project.id, name))?;
            let systems: Vec<_> = rows.iter().map(|row| told("os", row)).collect();
            return Ok(http::json(&json!({ "days": health::DAYS, "release": name, "systems": systems })));
        }
        let rows = app.database.read(|connection| health::releases(connection, project.id))?;
        let rows = rows.iter().map(|row| {
            let mut value = told("release", row);
            extend(&mut value, json!({ "reports": row.reports }));
            value
        });
        Ok(http::json(&json!({ "days": health::DAYS, "releases": rows.collect::<Vec<_>>() })))
    })
    .await
}

#[derive(Deserialize)]
struct AskedOwner {
    owner: Option<String>,
}

async fn all_owners(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    Query(asked): Query<AskedOwner>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    of_project(&app, project, headers, query, move |app, project| {
        let list = |of: &str, rows: &[Counted]| -> Vec<Value> {
            let row = |row: &Counted| {
                json!({ (of): row.name, "crashes": row.crashes, "reports": row.reports,
                    "sessions": row.sessions, "rate": row.rate })
            };
            rows.iter().map(row).collect()
        };
        let Some(name) = &asked.owner else {
            let rows = app.database.read(|connection| owners::owners(connection, project.id))?;
            return Ok(http::json(&json!({ "days": health::DAYS, "owners": list("owner", &rows) })));
        };
        let found = app.database.read(|connection| {
            let Some(owner) = owners::owner(connection, project.id, name)? else { return Ok(None) };
            Ok(Some((owner, views::issues_of_owner(connection, project.id, name)?)))
        })?;
        let (owner, issues) = found.ok_or_else(Refused::not_found)?;
        Ok(http::json(&json!({
            "days": health::DAYS, "owner": name, "versions": list("version", &owner.versions),
            "apps": list("app", &owner.apps), "releases": list("release", &owner.releases),
            "issues": issues.iter().map(issue_json).collect::<Vec<_>>(),
        })))
    })
    .await
}

/// For Prometheus: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
async fn metrics(Shared(app): Shared<App>, headers: HeaderMap) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        let grant = http::grant(&app.database, http::token(&headers, None).as_deref())?;
        if grant.scope != Scope::Admin {
            return Err(Refused::not_found());
        }
        let counters = &app.counters;
        let mut text = String::new();
        for (name, kind, counter) in [
            ("requests_total", "counter", &counters.requests),
            ("requests_refused_total", "counter", &counters.refused),
            ("reports_accepted_total", "counter", &counters.accepted),
            ("reports_worked_total", "counter", &counters.worked),
            ("reports_waiting", "gauge", &counters.waiting),
        ] {
            let value = counter.load(Ordering::Relaxed);
            let _ = writeln!(text, "# TYPE backtrail_{name} {kind}\nbacktrail_{name} {value}");
        }
        Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
    })
    .await
}
