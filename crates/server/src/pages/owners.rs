//! Whose code crashes: all owners of a project, and one of them, which is what a library's vendor looks at.

use super::lists::{issue_table, percent};
use super::page::{page, text};
use super::{html as response, in_query, visit};
use crate::health::DAYS;
use crate::http::Refused;
use crate::owners::{self, Counted, Owner, UNKNOWN};
use crate::projects::Project;
use crate::sessions::Session;
use crate::state::App;
use crate::views::{self, Issue};
use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Asked {
    /// One owner; all where it is not said.
    owner: Option<String>,
}

pub(super) async fn show(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    Query(asked): Query<Asked>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let (session, project) = (&visit.session, &visit.project);
        let markup = visit.app.database.read(|connection| {
            let Some(name) = &asked.owner else {
                return Ok(Some(all(session, project, &owners::owners(connection, project.id)?)));
            };
            let Some(owner) = owners::owner(connection, project.id, name)? else { return Ok(None) };
            let issues = views::issues_of_owner(connection, project.id, name)?;
            Ok(Some(one(session, project, name, &owner, &issues)))
        });
        Ok(response(markup?.ok_or_else(Refused::not_found)?))
    })
    .await
}

fn all(session: &Session, project: &Project, rows: &[Counted]) -> Markup {
    let base = format!("/projects/{}", project.slug);
    let sessions = rows.first().and_then(|row| row.sessions);
    page(
        "Owners",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Whose code crashes" }
            @if rows.is_empty() { p { "No report of an issue came in the last " (DAYS) " days." } }
            @else {
                p {
                    "Reports of issues of the last " (DAYS) " days, by whose code they are about. "
                    @match sessions {
                        Some(sessions) => { (explain_rate(sessions)) }
                        None => { "No client told of sessions, so that there are no rates." }
                    }
                }
                div.scroll { table {
                    tr { th { "owner" } (numbers(sessions.is_some())) }
                    @for row in rows {
                        tr {
                            td { a href=(format!("{base}/owners?owner={}", in_query(&row.name))) { (text(&row.name)) } }
                            (cells(row, sessions.is_some()))
                        }
                    }
                } }
            }
        },
    )
}

fn one(session: &Session, project: &Project, name: &str, owner: &Owner, issues: &[Issue]) -> Markup {
    let base = format!("/projects/{}", project.slug);
    page(
        name,
        Some(session),
        Some(project),
        &html! {
            p.subject { a href=(format!("{base}/owners")) { "All owners" } " · the last " (DAYS) " days" }
            h1.plain { (text(name)) }
            div.two {
                // Of an app the releases tell it, of the system nothing.
                @if owner.versions.iter().any(|version| version.name != UNKNOWN) {
                    (list("Its versions", "version", &owner.versions, false))
                }
                (list("In which apps", "app", &owner.apps, false))
            }
            (list("In which releases of them", "release", &owner.releases, true))
            h2 { "Issues" }
            @if issues.is_empty() { p { "No issue has it as its owner: its reports are in issues of other owners." } }
            @else { (issue_table(&base, issues)) }
        },
    )
}

fn explain_rate(sessions: u64) -> Markup {
    html! {
        "A rate is crashes per session, of the " (sessions) " sessions that clients reported, with its interval of 95 %. Crashes of \
         releases without sessions are not counted in it."
    }
}

fn list(title: &str, of: &str, rows: &[Counted], has_rates: bool) -> Markup {
    let sessions = has_rates && rows.iter().any(|row| row.sessions.is_some());
    html! {
        section {
            h2 { (title) }
            div.scroll { table {
                tr {
                    th { (of) } @if sessions { th { "sessions" } } (numbers(sessions))
                }
                @for row in rows {
                    tr {
                        td { (text(&row.name)) }
                        @if sessions { td.number { @if let Some(sessions) = row.sessions { (sessions) } } }
                        (cells(row, sessions))
                    }
                }
            } }
        }
    }
}

fn numbers(has_rates: bool) -> Markup {
    html! {
        th { "crashes" } @if has_rates { th { "per session" } th { "95 %" } } th { "reports" }
    }
}

fn cells(row: &Counted, has_rates: bool) -> Markup {
    html! {
        td.number { (row.crashes) }
        @if has_rates {
            td.number { @if let Some(rate) = row.rate { (percent(rate.value)) } }
            td.number { @if let Some(rate) = row.rate { (percent(rate.low)) " to " (percent(rate.high)) } }
        }
        td.number { (row.reports) }
    }
}
