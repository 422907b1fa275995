//! Pages of an administrator: new projects, and the keys and tokens of a project.

use super::page::{page, text};
use super::{FormKey, Visit, check_form, html as response, problem, see, visit};
use crate::admin;
use crate::http::{Refused, blocking};
use crate::projects::{self, Project, Scope, Token};
use crate::sessions::{self, Session};
use crate::state::App;
use crate::time::shown;
use axum::Router;
use axum::extract::{Form, Path, State as Shared};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/projects", post(new_project))
        .route("/projects/{project}/tokens", get(tokens).post(new_token))
        .route("/projects/{project}/tokens/{token}/revoke", post(revoke))
}

/// Whether somebody may see these pages.
pub(super) fn is_administrator(session: &Session) -> bool {
    session.grant.scope == Scope::Admin
}

pub(super) fn check(session: &Session, form_key: &str) -> Result<(), Refused> {
    check_form(session, form_key)?;
    if !is_administrator(session) {
        return Err(Refused::new(StatusCode::FORBIDDEN, admin::NOT_ALLOWED));
    }
    Ok(())
}

#[derive(Deserialize)]
struct NewProject {
    form_key: String,
    slug: String,
    name: String,
}

async fn new_project(Shared(app): Shared<App>, headers: HeaderMap, Form(form): Form<NewProject>) -> Response {
    let made = blocking(&app, move |app| {
        let Some(session) = app.database.read(|connection| sessions::of(connection, &headers))? else {
            return Ok(see("/login"));
        };
        check(&session, &form.form_key)?;
        let name = Some(form.name.trim()).filter(|name| !name.is_empty());
        let made = admin::make_project(app, form.slug.trim().to_owned(), name)?;
        Ok(see(&format!("/projects/{}/setup", made.slug)))
    });
    made.await.unwrap_or_else(|refused| problem(&refused))
}

/// The form for a new project.
pub(super) fn project_form(session: &Session) -> Markup {
    html! {
        h2 { "New project" }
        form.login method="post" action="/projects" {
            input type="hidden" name="form_key" value=(session.form_key);
            label for="slug" { "Short name, for addresses" }
            input #slug name="slug" required pattern="[a-z][a-z0-9\\-]*" maxlength="64" placeholder="weather" autocomplete="off";
            label for="name" { "Name" }
            input #name name="name" maxlength="100" placeholder="Weather" autocomplete="off";
            button { "Make it" }
        }
    }
}

async fn tokens(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, |visit| {
        if !is_administrator(&visit.session) {
            return Err(Refused::not_found());
        }
        list(visit, None)
    })
    .await
}

fn list(visit: &Visit<'_>, made: Option<&admin::MadeToken>) -> Result<Response, Refused> {
    let rows = visit.app.database.read(|connection| projects::tokens(connection, visit.project.id))?;
    Ok(response(token_list(&visit.session, &visit.project, &rows, made)))
}

#[derive(Deserialize)]
struct NewToken {
    form_key: String,
    scope: String,
    note: String,
}

async fn new_token(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<NewToken>,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        check(&visit.session, &form.form_key)?;
        let made = admin::make_token(visit.app, visit.project.id, &form.scope, form.note.trim())?;
        // Not by a redirect: what it is is shown in this answer alone.
        list(visit, Some(&made))
    })
    .await
}

async fn revoke(
    Shared(app): Shared<App>,
    Path((project, token)): Path<(String, i64)>,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<FormKey>,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        check(&visit.session, &form.form_key)?;
        let project = visit.project.id;
        if !visit.app.database.write(move |connection| projects::revoke(connection, project, token))? {
            return Err(Refused::not_found());
        }
        Ok(see(&format!("/projects/{}/tokens", visit.project.slug)))
    })
    .await
}

/// What a scope is good for, as the form says it.
const SCOPES: [(&str, &str); 4] = [
    ("report", "a key for apps: adds reports, reads nothing"),
    ("symbols", "for builds: adds symbols"),
    ("read", "for people: reads everything of this project"),
    ("member", "for people: reads, decides about issues and whose code it is, adds symbols"),
];

fn token_list(
    session: &Session,
    project: &Project,
    rows: &[Token],
    made: Option<&admin::MadeToken>,
) -> Markup {
    let base = format!("/projects/{}/tokens", project.slug);
    page(
        "Keys and tokens",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Keys and tokens of " (text(&project.name)) }
            @if let Some(made) = made {
                p role="status" { "Made. It is shown this once: " code { (made.token) } }
            }
            @if rows.is_empty() { p { "There are none." } }
            ul.issues.rows {
                @for row in rows {
                    li {
                        p {
                            strong { (row.scope) } " " (text(&row.note))
                            @if let Some(key) = &row.key { " " code { (key) } }
                        }
                        p.faint {
                            "made " (shown(row.created))
                            @if let Some(revoked) = row.revoked { " · revoked " (shown(revoked)) }
                        }
                        @if row.revoked.is_none() {
                            form.decide method="post" action=(format!("{base}/{}/revoke", row.id)) {
                                input type="hidden" name="form_key" value=(session.form_key);
                                button aria-label=(format!("Revoke {} {}", row.scope, row.note)) { "Revoke" }
                            }
                        }
                    }
                }
            }
            h2 { "New key or token" }
            form.login method="post" action=(base) {
                input type="hidden" name="form_key" value=(session.form_key);
                label for="scope" { "Good for" }
                select #scope name="scope" {
                    @for (scope, what) in SCOPES { option value=(scope) { (scope) ": " (what) } }
                }
                label for="note" { "Whose it is" }
                input #note name="note" maxlength="100" placeholder="CI, Anna, the Android app" autocomplete="off";
                button { "Make it" }
            }
        },
    )
}
