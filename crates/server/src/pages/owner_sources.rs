//! What tells whose code is whose, on the page where symbols are uploaded: the list, and what removes from it.

use super::page::text;
use super::{FormKey, check_form, see, visit};
use crate::http::Refused;
use crate::owner_problems::OwnerProblem;
use crate::owner_sources::{self, Source};
use crate::projects::{Project, Scope};
use crate::sessions::Session;
use crate::state::App;
use crate::time::shown;
use axum::extract::{Form, Path, State as Shared};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use maud::{Markup, html};

/// Sources that are listed.
const MAX_LISTED: usize = 100;

pub(super) async fn remove(
    Shared(app): Shared<App>,
    Path((project, id)): Path<(String, i64)>,
    uri: Uri,
    headers: HeaderMap,
    Form(form): Form<FormKey>,
) -> Response {
    visit(&app, headers, uri, project, move |visit| {
        check_form(&visit.session, &form.form_key)?;
        if !visit.session.grant.allows(Scope::Member, visit.project.id) {
            return Err(Refused::new(StatusCode::FORBIDDEN, "your token reads only"));
        }
        if !owner_sources::remove(visit.app, visit.project.id, Some(id))? {
            return Err(Refused::not_found());
        }
        Ok(see(&format!("/projects/{}/upload", visit.project.slug)))
    })
    .await
}

pub(super) fn list(
    session: &Session,
    project: &Project,
    rows: &[Source],
    problems: &[OwnerProblem],
) -> Markup {
    let may_remove = session.grant.allows(Scope::Member, project.id);
    html! {
        h2 { "Whose code is whose" }
        div.scroll { table {
            tr { th { "kind" } th { "of" } th { "version" } th { "app" } th { "build" } th { "uploaded" } @if may_remove { th {} } }
            @for row in rows.iter().take(MAX_LISTED) {
                tr {
                    td { (row.kind) }
                    td { (text(&row.name)) }
                    td { (text(row.version.as_deref().unwrap_or_default())) }
                    td { (text(row.app.as_deref().unwrap_or_default())) }
                    td { code { (text(row.image.as_deref().unwrap_or_default())) } }
                    td { (shown(row.uploaded)) }
                    @if may_remove {
                        td {
                            form method="post" action=(format!("/projects/{}/owner-sources/{}/remove", project.slug, row.id)) {
                                input type="hidden" name="form_key" value=(session.form_key);
                                button aria-label=(format!("Remove {} {}", row.kind, text(&row.name))) { "Remove" }
                            }
                        }
                    }
                }
            }
        } }
        @if rows.len() > MAX_LISTED { p.faint { "and " (rows.len() - MAX_LISTED) " more, which the API lists" } }
        @if !problems.is_empty() {
            p.problem { "Builds that could not be compared with these. Their reports go on without; upload or remove a fingerprint or a map to have them tried again." }
            ul {
                @for problem in problems {
                    li { code { (text(&problem.image)) } " " span.problem { (text(&problem.why)) } " " span.faint { (shown(problem.happened)) } }
                }
            }
        }
    }
}
