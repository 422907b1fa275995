//! The pages: made here, without scripts, without anything from elsewhere.

mod administration;
mod lists;
mod owner_sources;
mod owners;
mod page;
mod people;
mod stacks;
mod uploads;

use crate::analyses::{self, analysis};
use crate::api::as_attachment;
use crate::health;
use crate::http::{Refused, blocking};
use crate::icicle::MAX_REPORTS;
use crate::likely;
use crate::projects::{self, Grant, Project, Scope};
use crate::sessions::{self, Session};
use crate::state::{App, State};
use crate::views::{self, Decision, Filter, STATES, Share};
use axum::Router;
use axum::extract::{Form, Path, Query, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use backtrail::groups::Fit;
use lists::WholeReport;
use serde::Deserialize;

/// The paths of pages.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(all_projects))
        .route("/login", get(login).post(log_in))
        .route("/logout", post(log_out))
        .route("/style.css", get(|| async { style(page::STYLE) }))
        // Browsers ask for it whatever pages say.
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/report.css", get(|| async { style(backtrail_render::html::STYLE) }))
        .route("/projects/{project}", get(issues))
        .route("/projects/{project}/issues/{issue}", get(issue).post(decide))
        .route("/projects/{project}/issues/{issue}/stacks", get(stacks))
        .route("/projects/{project}/reports/{report}", get(report))
        .route("/projects/{project}/reports/{report}/raw", get(raw_report))
        .route("/projects/{project}/reports/{report}/attachments/{position}", get(attachment))
        .route("/projects/{project}/hangs", get(hangs))
        .route("/projects/{project}/owners", get(owners::show))
        .route("/projects/{project}/missing", get(missing))
        .route("/projects/{project}/releases", get(releases))
        .route("/projects/{project}/apart", get(apart))
        .route("/projects/{project}/setup", get(setup))
        .route("/projects/{project}/upload", get(uploads::form).post(uploads::upload))
        .route("/projects/{project}/owner-sources/{id}/remove", post(owner_sources::remove))
        .merge(administration::routes())
        .merge(people::routes())
}

fn style(text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "max-age=300")], text)
        .into_response()
}

fn html(page: maud::Markup) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

fn see(path: &str) -> Response {
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}

/// What a page is made from: who asks, and of what project.
struct Visit<'a> {
    app: &'a State,
    session: Session,
    project: Project,
}

/// Makes a page for somebody who logged in; others are asked to.
async fn logged_in(
    app: &App,
    headers: HeaderMap,
    uri: Uri,
    make: impl FnOnce(&State, Session) -> Result<Response, Refused> + Send + 'static,
) -> Response {
    let made = blocking(app, move |app| {
        match app.database.read(|connection| sessions::of(connection, &headers))? {
            Some(session) => make(app, session),
            None => Ok(ask_to_log_in(&uri)),
        }
    });
    made.await.unwrap_or_else(|refused| problem(&refused))
}

/// Makes a page of a project for somebody who logged in; others are asked to.
async fn visit(
    app: &App,
    headers: HeaderMap,
    uri: Uri,
    project: String,
    make: impl FnOnce(&Visit<'_>) -> Result<Response, Refused> + Send + 'static,
) -> Response {
    let made = blocking(app, move |app| match enter(app, &headers, &project)? {
        Some((session, project)) => make(&Visit { app, session, project }),
        None => Ok(ask_to_log_in(&uri)),
    });
    made.await.unwrap_or_else(|refused| problem(&refused))
}

/// Who asks, and the project, which they may read; `None` where they have not logged in.
fn enter(app: &State, headers: &HeaderMap, project: &str) -> Result<Option<(Session, Project)>, Refused> {
    let (session, project) = app
        .database
        .read(|connection| Ok((sessions::of(connection, headers)?, projects::find(connection, project)?)))?;
    let Some(session) = session else { return Ok(None) };
    let allowed = |project: &Project| session.grant.allows(Scope::Read, project.id);
    let project = project.filter(allowed).ok_or_else(Refused::not_found)?;
    Ok(Some((session, project)))
}

fn problem(refused: &Refused) -> Response {
    let mut response = html(page::problem(refused.message()));
    *response.status_mut() = refused.status();
    response
}

fn ask_to_log_in(uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    see(&format!("/login?next={}", in_query(path)))
}

/// A text as the value of a query.
fn in_query(text: &str) -> String {
    text.bytes().fold(String::new(), |mut value, byte| {
        use std::fmt::Write as _;
        let _ = if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            write!(value, "{}", char::from(byte))
        } else {
            write!(value, "%{byte:02X}")
        };
        value
    })
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

/// Whether an address is a page of this server: browsers take `//` and `/\` for another one's, and leave out blanks of all sorts between
/// the two.
fn is_own_page(address: &str) -> bool {
    let is_odd = |letter: char| letter == '\\' || letter.is_control() || letter.is_whitespace();
    address.starts_with('/') && !address.starts_with("//") && !address.contains(is_odd)
}

async fn login(Query(Next { next }): Query<Next>) -> Response {
    html(page::login(&next, "", false))
}

#[derive(Deserialize)]
struct Login {
    /// Empty for who brings a token.
    #[serde(default)]
    name: String,
    /// A password, or a token.
    token: String,
    #[serde(default)]
    next: String,
}

impl Login {
    fn is_by_token(&self) -> bool {
        self.name.trim().is_empty()
    }
}

/// What whoever logs in may do; `None` where nobody is known by that, or is no person.
fn identify(app: &State, login: &Login) -> Result<Option<Grant>, Refused> {
    let grant = if login.is_by_token() {
        app.database.read(|connection| projects::grant(connection, login.token.trim()))?
    } else {
        let Some(token) = crate::people::identify(app, &login.name, &login.token)? else { return Ok(None) };
        app.database.read(|connection| projects::grant_by_id(connection, token))?
    };
    Ok(grant.filter(|grant| grant.scope.is_for_people()))
}

async fn log_in(Shared(app): Shared<App>, Form(login): Form<Login>) -> Response {
    let turn = match login.is_by_token() {
        true => None,
        false => Some(app.passwords.turn().await),
    };
    if let Some(Err(refused)) = turn {
        return problem(&refused.into());
    }
    let done = blocking(&app, move |app| {
        let Some(grant) = identify(app, &login)? else {
            let mut response = html(page::login(&login.next, &login.name, true));
            *response.status_mut() = StatusCode::FORBIDDEN;
            return Ok(response);
        };
        let is_secure = app.config.url.as_deref().is_some_and(|url| url.starts_with("https://"));
        let cookie =
            app.database.write(move |connection| sessions::begin(connection, grant.token, is_secure))?;
        let mut response = see(if is_own_page(&login.next) { &login.next } else { "/" });
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        Ok(response)
    });
    done.await.unwrap_or_else(|refused| problem(&refused))
}

/// A form that has nothing else.
#[derive(Deserialize)]
struct FormKey {
    form_key: String,
}

async fn log_out(Shared(app): Shared<App>, headers: HeaderMap, Form(form): Form<FormKey>) -> Response {
    let done = blocking(&app, move |app| {
        let session = app.database.read(|connection| sessions::of(connection, &headers))?;
        if let Some(session) = session.filter(|session| session.form_key == form.form_key) {
            app.database.write(move |connection| sessions::end(connection, &session))?;
        }
        let mut response = see("/login");
        if let Ok(cookie) = HeaderValue::from_str(&sessions::no_cookie()) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        Ok(response)
    });
    done.await.unwrap_or_else(|refused| problem(&refused))
}

async fn all_projects(Shared(app): Shared<App>, uri: Uri, headers: HeaderMap) -> Response {
    logged_in(&app, headers, uri, |app, session| {
        let rows = app.database.read(|connection| {
            let all = projects::all(connection)?.into_iter();
            let mine = all.filter(|project| session.grant.allows(Scope::Read, project.id));
            mine.map(|project| Ok((views::states(connection, project.id)?, project)))
                .collect::<Result<Vec<_>, _>>()
        })?;
        Ok(html(lists::projects(&session, &rows)))
    })
    .await
}

/// What a list of issues is asked for.
#[derive(Deserialize)]
struct Asked {
    state: Option<String>,
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
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let Asked { state, text, sort, offset } = asked;
        // Somebody has a report's id from a user or a log.
        let id = text.trim().replace('-', "");
        let report =
            visit.app.database.read(|connection| views::report(connection, visit.project.id, &id))?;
        if let Some(report) = report {
            return Ok(see(&format!("/projects/{}/reports/{}", visit.project.slug, report.event_id)));
        }
        let state = state.unwrap_or_else(|| "open".to_owned());
        let filter = Filter { state, text, sort, offset };
        let rows = visit.app.database.read(|connection| {
            let issues = views::issues(connection, visit.project.id, &filter)?.into_iter();
            issues.map(|issue| Ok((views::days(connection, issue.id)?, issue))).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(html(lists::issues(&visit.session, &visit.project, &filter, &rows)))
    })
    .await
}

async fn issue(
    Shared(app): Shared<App>,
    Path((project, issue)): Path<(String, i64)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let found = visit.app.database.read(|connection| {
            let Some(issue) = views::issue(connection, project, issue)? else { return Ok(None) };
            Ok(Some(lists::WholeIssue {
                days: views::days(connection, issue.id)?,
                releases: views::shares(connection, issue.id, Share::Release)?,
                systems: views::shares(connection, issue.id, Share::System)?,
                reports: views::reports(connection, &issue, 20)?,
                merged: views::parts(connection, issue.id)?,
                issue,
            }))
        })?;
        let whole = found.ok_or_else(Refused::not_found)?;
        let latest = whole.reports.first().and_then(|report| analysis(visit.app, report).ok());
        Ok(html(lists::issue(&visit.session, &visit.project, &whole, latest.as_ref())))
    })
    .await
}

async fn stacks(
    Shared(app): Shared<App>,
    Path((project, issue)): Path<(String, i64)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let found = visit.app.database.read(|connection| {
            let Some(issue) = views::issue(connection, project, issue)? else { return Ok(None) };
            Ok(Some((views::reports(connection, &issue, MAX_REPORTS)?, issue)))
        })?;
        let (reports, issue) = found.ok_or_else(Refused::not_found)?;
        let icicle = analyses::stacks(visit.app, &reports);
        Ok(html(stacks::stacks(&visit.session, &visit.project, &issue, &icicle)))
    })
    .await
}

async fn hangs(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let (issues, reports) = visit.app.database.read(|connection| {
            Ok((
                views::hangs(connection, project)?,
                views::reports_of_hangs(connection, project, MAX_REPORTS)?,
            ))
        })?;
        let icicle = analyses::stacks(visit.app, &reports);
        Ok(html(stacks::hangs(&visit.session, &visit.project, &issues, &icicle)))
    })
    .await
}

#[derive(Deserialize)]
struct Decided {
    form_key: String,
    state: Option<String>,
    assignee: Option<String>,
    merge_into: Option<String>,
    split: Option<i64>,
}

/// Makes sure that a form is of a page of ours: other sites can send one, too.
fn check_form(session: &Session, form_key: &str) -> Result<(), Refused> {
    if session.form_key == form_key {
        return Ok(());
    }
    Err(Refused::new(StatusCode::FORBIDDEN, "the form is not of this server's pages, load it again"))
}

async fn decide(
    Shared(app): Shared<App>,
    Path((project, issue)): Path<(String, i64)>,
    uri: Uri,
    headers: HeaderMap,
    Form(decided): Form<Decided>,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        check_form(&visit.session, &decided.form_key)?;
        if !visit.session.grant.allows(Scope::Member, visit.project.id) {
            return Err(Refused::new(StatusCode::FORBIDDEN, "your token reads only"));
        }
        if decided.state.as_deref().is_some_and(|state| !STATES.contains(&state)) {
            return Err(Refused::bad("expected a state of open, resolved or ignored"));
        }
        let merge_into = match decided.merge_into.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            Some(number) => Some(
                number
                    .trim_start_matches('#')
                    .parse()
                    .map_err(|_| Refused::bad("expected an issue's number"))?,
            ),
            None => None,
        };
        let assignee = decided.assignee.map(|name| name.trim().chars().take(100).collect());
        let decision = Decision { state: decided.state, assignee, merge_into, split: decided.split };
        let project = visit.project.id;
        let done = visit
            .app
            .database
            .write(move |connection| views::decide(connection, project, issue, &decision))?;
        if !done {
            return Err(Refused::not_found());
        }
        Ok(see(&format!("/projects/{}/issues/{issue}", visit.project.slug)))
    })
    .await
}

async fn report(
    Shared(app): Shared<App>,
    Path((project, report)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let found = analyses::report(visit.app, project, &report)?;
        let analysis = if found.state == "unreadable" { None } else { analysis(visit.app, &found).ok() };
        let attachments = visit.app.database.read(|connection| views::attachments(connection, &found))?;
        let fit = match &analysis {
            Some(analysis) => visit
                .app
                .database
                .read(|connection| likely::issues(connection, project, found.issue, &analysis.begins))?,
            None => Fit::None,
        };
        let whole =
            WholeReport { report: &found, attachments: &attachments, analysis: analysis.as_ref(), fit };
        Ok(html(lists::report(&visit.session, &visit.project, &whole)))
    })
    .await
}

async fn raw_report(
    Shared(app): Shared<App>,
    Path((project, report)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let found = analyses::report(visit.app, project, &report)?;
        let name = format!("report-{}", found.event_id);
        Ok(as_attachment(&name, analyses::bytes(visit.app, &found)?))
    })
    .await
}

async fn attachment(
    Shared(app): Shared<App>,
    Path((project, report, position)): Path<(String, String, i64)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let found = analyses::report(visit.app, project, &report)?;
        let (name, bytes) = analyses::attachment(visit.app, &found, position)?;
        Ok(as_attachment(&name, bytes))
    })
    .await
}

async fn missing(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let rows = visit.app.database.read(|connection| views::missing(connection, project))?;
        Ok(html(lists::missing(&visit.session, &visit.project, &rows)))
    })
    .await
}

async fn releases(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let rows = visit.app.database.read(|connection| health::releases(connection, project))?;
        Ok(html(lists::releases(&visit.session, &visit.project, &rows)))
    })
    .await
}

async fn apart(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        let project = visit.project.id;
        let rows = visit.app.database.read(|connection| views::apart(connection, project, 100))?;
        Ok(html(lists::apart(&visit.session, &visit.project, &rows)))
    })
    .await
}

async fn setup(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    visit(&app, headers, uri, project, move |visit| {
        let url = match (&visit.app.config.url, host) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => format!("http://{}", visit.app.config.listen),
        };
        Ok(html(lists::setup(&visit.session, &visit.project, &url)))
    })
    .await
}
