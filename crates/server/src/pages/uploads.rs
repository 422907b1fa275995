//! Reports and symbols from a browser: files are chosen, or dropped on the field, which browsers do without a script.

use super::owner_sources::list;
use super::page::{page, text};
use super::{Refused, ask_to_log_in, check_form, enter, html as response, problem, visit};
use crate::http::blocking;
use crate::intake::{self, KeptReports};
use crate::owner_problems::{self, OwnerProblem};
use crate::owner_sources::{self, Kind, Source};
use crate::projects::{Project, Scope};
use crate::sessions::Session;
use crate::state::{App, State};
use crate::symbol_list::{self, Row};
use crate::symbols::{self, FilesOfForm, Received};
use axum::body::Body;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

/// What became of a file.
struct Uploaded {
    name: String,
    what: What,
}

enum What {
    /// Debug information, of images with these identities and architectures.
    Symbols {
        images: Vec<String>,
        waited: u64,
    },
    /// Reports.
    Reports(KeptReports),
    /// What tells whose code is whose.
    Source(Source),
    Refused(String),
}

pub(super) async fn form(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    visit(&app, headers, uri, project, |visit| {
        let there = there(visit.app, visit.project.id)?;
        Ok(response(shown(&visit.session, &visit.project, &[], &there)))
    })
    .await
}

pub(super) async fn upload(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    take(&app, project, &uri, headers, body).await.unwrap_or_else(|refused| problem(&refused))
}

async fn take(
    app: &App,
    project: String,
    uri: &Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let mut form = FilesOfForm::new(&headers, body)?;
    let entered = blocking(app, move |app| enter(app, &headers, &project)).await?;
    let Some((session, project)) = entered else { return Ok(ask_to_log_in(uri)) };
    if !session.grant.allows(Scope::Member, project.id) {
        return Err(Refused::new(StatusCode::FORBIDDEN, "your token reads only"));
    }
    // The page has the form's key before the files: nothing is taken in for other sites' forms.
    let mut is_ours = false;
    let mut uploads = Vec::new();
    while let Some(field) = form.next(app).await? {
        if field.name() == Some("form_key") {
            let key = symbols::receive(app, field).await?;
            let key = blocking(app, move |_| Ok(key.read()?)).await?;
            check_form(&session, &String::from_utf8_lossy(&key))?;
            is_ours = true;
            continue;
        }
        let Some(name) = field.file_name().map(symbols::shown).filter(|name| !name.is_empty()) else {
            continue;
        };
        if !is_ours {
            check_form(&session, "")?;
        }
        let received = symbols::receive(app, field).await?;
        let place = app.large.clone().acquire_owned().await.ok();
        let project = project.clone();
        let kept = blocking(app, move |app| {
            let _place = place;
            Ok(Uploaded { what: keep(app, &project, &name, &received), name })
        });
        uploads.push(kept.await?);
    }
    if uploads.is_empty() {
        return Err(Refused::bad("expected a file"));
    }
    let id = project.id;
    let there = blocking(app, move |app| there(app, id)).await?;
    Ok(response(shown(&session, &project, &uploads, &there)))
}

/// Files of symbols that are listed.
const LATEST: i64 = 25;

/// What is there of a project.
struct There {
    symbols: Vec<Row>,
    sources: Vec<Source>,
    problems: Vec<OwnerProblem>,
}

fn there(app: &State, project: i64) -> Result<There, Refused> {
    Ok(app.database.read(|connection| {
        let symbols = symbol_list::rows(connection, project, LATEST, 0)?;
        let sources = owner_sources::rows(connection, project)?;
        Ok(There { symbols, sources, problems: owner_problems::rows(connection, project)? })
    })?)
}

/// Keeps a file as what it is.
fn keep(app: &State, project: &Project, name: &str, received: &Received) -> What {
    let refused = |refused: Refused| What::Refused(refused.message().to_owned());
    match Kind::of(name, received) {
        Ok(None) => {}
        Ok(Some(kind)) => {
            return owner_sources::keep(app, project, kind, name, received)
                .map_or_else(refused, What::Source);
        }
        Err(error) => return refused(error.into()),
    }
    let no_symbols = match symbols::keep(app, project, name, received, None) {
        Ok(kept) => return of_symbols(&kept),
        Err(refused) if refused.status() == StatusCode::UNPROCESSABLE_ENTITY => refused,
        Err(refused) => return What::Refused(refused.message().to_owned()),
    };
    if received.size() > app.config.limits.body as u64 {
        return What::Refused(format!(
            "it has no symbols ({}), and is too large for a report",
            no_symbols.message()
        ));
    }
    let bytes = match received.read() {
        Ok(bytes) => bytes,
        Err(error) => return What::Refused(error.to_string()),
    };
    match intake::keep_readable(app, project, name, bytes) {
        Ok(kept) => What::Reports(kept),
        Err(refused) => What::Refused(refused.message().to_owned()),
    }
}

fn of_symbols(kept: &Value) -> What {
    let files = kept.get("files").and_then(Value::as_array);
    let text =
        |file: &Value, name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let image = |file: &Value| format!("{} {} {}", text(file, "name"), text(file, "arch"), text(file, "id"));
    let waited = |file: &Value| file.get("waited").and_then(Value::as_u64).unwrap_or_default();
    What::Symbols {
        images: files.into_iter().flatten().map(image).collect(),
        waited: files.into_iter().flatten().map(waited).sum(),
    }
}

/// Images of one file that are listed.
const MAX_LISTED: usize = 20;

fn shown(session: &Session, project: &Project, uploads: &[Uploaded], there: &There) -> Markup {
    let base = format!("/projects/{}", project.slug);
    page(
        "Upload",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Upload" }
            @if !uploads.is_empty() {
                ul role="status" {
                    @for upload in uploads {
                        li { b { (text(&upload.name)) } ": " (became(&base, &upload.what)) }
                    }
                }
            }
            @if session.grant.allows(Scope::Member, project.id) {
                form.login method="post" action=(format!("{base}/upload")) enctype="multipart/form-data" {
                    input type="hidden" name="form_key" value=(session.form_key);
                    label for="files" { "Reports and symbols: choose files, or drop them on the field" }
                    input #files.drop type="file" name="files" multiple required;
                    button { "Upload" }
                }
                p.faint {
                    "Crash reports of any kind, minidumps, binaries, debug files, tables, and zip files of a dSYM or an \
                     .xcarchive. A dSYM is a folder: drop it as a zip file. "
                    "Fingerprints of libraries (.btsdk), linkers' maps and rules (.toml) say whose code is whose. "
                    "Folders as a whole go by " code { "backtrail upload" } ", which sends only what is not here yet."
                }
            } @else {
                p { "Your token reads only." }
            }
            @if !there.sources.is_empty() { (list(session, project, &there.sources, &there.problems)) }
            @if !there.symbols.is_empty() { (files(&there.symbols)) }
        },
    )
}

fn files(rows: &[Row]) -> Markup {
    html! {
        h2 { "The latest symbols" }
        div.scroll { table {
            tr { th { "file" } th { "identity" } th { "architecture" } th { "lacks" } th { "table" } }
            @for row in rows {
                tr {
                    td { (text(&row.name)) }
                    td { code { (text(&row.id)) } }
                    td { (text(row.arch.as_deref().unwrap_or_default())) }
                    td { (text(row.lacks.as_deref().unwrap_or_default())) }
                    td {
                        @match (row.table.as_str(), &row.problem) {
                            ("waiting", _) => { "is being made" }
                            ("refused", Some(why)) => { span.problem { "no table: " (text(why)) ". The file is not used for names." } }
                            ("none", Some(why)) => { span.problem { "no table: " (text(why)) ". The file is used as it is." } }
                            ("none", None) => { "none is needed" }
                            (_, Some(why)) => { span.problem { "not of all images: " (text(why)) } }
                            (_, None) => { "made" }
                        }
                    }
                }
            }
        } }
    }
}

fn became(base: &str, what: &What) -> Markup {
    html! {
        @match what {
            What::Symbols { images, waited } => {
                "symbols"
                @if *waited > 0 { ", which " (waited) @if *waited == 1 { " report waited for" } @else { " reports waited for" } }
                ul { @for image in images.iter().take(MAX_LISTED) { li { code { (text(image)) } } } }
                @if images.len() > MAX_LISTED { p { "and " (images.len() - MAX_LISTED) " more" } }
            }
            What::Reports(KeptReports { ids, problems }) => {
                @if let [_] = ids.as_slice() { "a report: " } @else { (ids.len()) " reports: " }
                @for id in ids.iter().take(MAX_LISTED) {
                    a href=(format!("{base}/reports/{id}")) { code { (id.get(..8).unwrap_or_default()) } } " "
                }
                @if !problems.is_empty() {
                    ul { @for problem in problems.iter().take(MAX_LISTED) { li.problem { (text(problem)) } } }
                }
            }
            What::Source(source) => {
                (source.kind) " " (text(&source.name))
                @if let Some(version) = &source.version { " " (text(version)) }
                ": reports of the last 30 days are worked again with it"
            }
            What::Refused(why) => { span.problem { (text(why)) } }
        }
    }
}
