//! Pages of people: who may log in, and one's own password.

use super::administration::{check, is_administrator};
use super::page::{page, text};
use super::{FormKey, check_form, html as response, logged_in, problem, see};
use crate::http::Refused;
use crate::people::{self, NewPerson, Person};
use crate::projects::{self, Project};
use crate::sessions::Session;
use crate::state::App;
use crate::time::shown;
use axum::Router;
use axum::extract::{Form, Path, State as Shared};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/people", get(list).post(add))
        .route("/people/{person}/remove", post(remove))
        .route("/account", get(account).post(change_password))
}

async fn list(Shared(app): Shared<App>, uri: Uri, headers: HeaderMap) -> Response {
    logged_in(&app, headers, uri, |app, session| {
        if !is_administrator(&session) {
            return Err(Refused::not_found());
        }
        let (people, projects) =
            app.database.read(|connection| Ok((people::all(connection)?, projects::all(connection)?)))?;
        Ok(response(everybody(&session, &people, &projects)))
    })
    .await
}

#[derive(Deserialize)]
struct Added {
    form_key: String,
    name: String,
    password: String,
    scope: String,
    #[serde(default)]
    project: String,
}

async fn add(Shared(app): Shared<App>, uri: Uri, headers: HeaderMap, Form(form): Form<Added>) -> Response {
    let _turn = match app.passwords.turn().await {
        Ok(turn) => turn,
        Err(refused) => return problem(&refused.into()),
    };
    logged_in(&app, headers, uri, move |app, session| {
        check(&session, &form.form_key)?;
        let project = Some(form.project.as_str()).filter(|project| !project.is_empty());
        people::add(
            app,
            &NewPerson { name: &form.name, password: &form.password, scope: &form.scope, project },
        )?;
        Ok(see("/people"))
    })
    .await
}

async fn remove(
    Shared(app): Shared<App>,
    Path(person): Path<i64>,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<FormKey>,
) -> Response {
    logged_in(&app, headers, uri, move |app, session| {
        check(&session, &form.form_key)?;
        if !app.database.write(move |connection| people::remove(connection, person))? {
            return Err(Refused::not_found());
        }
        Ok(see("/people"))
    })
    .await
}

async fn account(Shared(app): Shared<App>, uri: Uri, headers: HeaderMap) -> Response {
    logged_in(&app, headers, uri, |_, session| Ok(response(own(&session)))).await
}

#[derive(Deserialize)]
struct Changed {
    form_key: String,
    old: String,
    new: String,
}

async fn change_password(
    Shared(app): Shared<App>,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<Changed>,
) -> Response {
    let _turn = match app.passwords.turn().await {
        Ok(turn) => turn,
        Err(refused) => return problem(&refused.into()),
    };
    logged_in(&app, headers, uri, move |app, session| {
        check_form(&session, &form.form_key)?;
        people::change_password(app, session.grant.token, &form.old, &form.new)?;
        Ok(see("/login"))
    })
    .await
}

/// What people may do, as the form says it.
const SCOPES: [(&str, &str); 3] = [
    ("member", "reads, decides about issues and whose code it is, adds symbols"),
    ("read", "reads everything"),
    ("admin", "may do everything, in all projects"),
];

fn everybody(session: &Session, people: &[Person], projects: &[Project]) -> Markup {
    page(
        "People",
        Some(session),
        None,
        &html! {
            h1.plain { "People" }
            @if people.is_empty() { p { "Nobody logs in by a name yet." } }
            ul.issues.rows {
                @for person in people {
                    li {
                        p { strong { (text(&person.name)) } " " (person.scope) }
                        p.faint {
                            @match &person.project { Some(slug) => { "of " (text(slug)) } None => { "of all projects" } }
                            " · since " (shown(person.created))
                        }
                        form.decide method="post" action=(format!("/people/{}/remove", person.id)) {
                            input type="hidden" name="form_key" value=(session.form_key);
                            button aria-label=(format!("Remove {}", person.name)) { "Remove" }
                        }
                    }
                }
            }
            h2 { "Somebody new" }
            form.login method="post" action="/people" {
                input type="hidden" name="form_key" value=(session.form_key);
                label for="name" { "Name" }
                input #name name="name" required maxlength="64" placeholder="anna" autocomplete="off";
                label for="password" { "Password, at least 10 characters; they change it themselves" }
                input #password type="password" name="password" required minlength="10" maxlength="200" autocomplete="new-password";
                label for="scope" { "May" }
                select #scope name="scope" {
                    @for (scope, what) in SCOPES { option value=(scope) { (scope) ": " (what) } }
                }
                label for="project" { "Project" }
                select #project name="project" {
                    option value="" { "all" }
                    @for project in projects { option value=(project.slug) { (text(&project.name)) } }
                }
                button { "Add" }
            }
        },
    )
}

fn own(session: &Session) -> Markup {
    page(
        "Account",
        Some(session),
        None,
        &html! {
            h1.plain { "Account" }
            @match &session.person {
                None => { p { "You logged in with a token, which has no password." } }
                Some(name) => {
                    p { "You are " strong { (text(name)) } "." }
                    form.login method="post" action="/account" {
                        input type="hidden" name="form_key" value=(session.form_key);
                        input type="hidden" name="username" value=(name) autocomplete="username";
                        label for="old" { "Password" }
                        input #old type="password" name="old" required autocomplete="current-password";
                        label for="new" { "New password, at least 10 characters" }
                        input #new type="password" name="new" required minlength="10" maxlength="200" autocomplete="new-password";
                        button { "Change it" }
                    }
                    p.faint { "You will be logged out everywhere." }
                }
            }
        },
    )
}
