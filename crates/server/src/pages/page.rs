//! What all pages have.

use crate::projects::Project;
use crate::sessions::Session;
use backtrail_render::escape::escaped;
use maud::{DOCTYPE, Markup, html};
use std::borrow::Cow;

/// The style of lists and forms; that of reports is theirs.
pub(super) const STYLE: &str = include_str!("style.css");

/// Text of strangers on a page: `maud` escapes markup, this what hides or turns text.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    escaped(text)
}

/// A page of a project, or of none.
pub(super) fn page(
    title: &str,
    session: Option<&Session>,
    project: Option<&Project>,
    body: &Markup,
) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (text(title)) " · backtrail" }
                link rel="stylesheet" href="/report.css";
                link rel="stylesheet" href="/style.css";
            }
            body {
                nav aria-label="Pages" {
                    a href="/" { "backtrail" }
                    @if let Some(project) = project {
                        @let base = format!("/projects/{}", project.slug);
                        a href=(base) { (text(&project.name)) }
                        a href=(format!("{base}/releases")) { "Releases" }
                        a href=(format!("{base}/owners")) { "Owners" }
                        a href=(format!("{base}/hangs")) { "Hangs" }
                        a href=(format!("{base}/missing")) { "Missing symbols" }
                        a href=(format!("{base}/apart")) { "Without an issue" }
                        a href=(format!("{base}/upload")) { "Upload" }
                        a href=(format!("{base}/setup")) { "Set-up" }
                    }
                    @if let Some(session) = session {
                        form method="post" action="/logout" {
                            input type="hidden" name="form_key" value=(session.form_key);
                            @if let Some(name) = &session.person {
                                a href="/account" { (text(name)) } " "
                            }
                            button { "Log out" }
                        }
                    }
                }
                main { (body) }
            }
        }
    }
}

/// The page to log in.
pub(super) fn login(next: &str, name: &str, failed: bool) -> Markup {
    page(
        "Log in",
        None,
        None,
        &html! {
            h1.plain { "Log in" }
            @if failed { p.problem role="alert" { "Nobody is known by that, or the token is not good for pages." } }
            form.login method="post" action="/login" {
                input type="hidden" name="next" value=(next);
                label for="name" { "Name, or nothing to log in with a token" }
                input #name name="name" value=(name) maxlength="64" autofocus autocomplete="username";
                label for="token" { "Password or token" }
                input #token type="password" name="token" required autocomplete="current-password";
                button { "Log in" }
            }
            p.faint { "The first start of the server printed a token." }
        },
    )
}

/// The page of what went wrong.
pub(super) fn problem(message: &str) -> Markup {
    page(
        "Problem",
        None,
        None,
        &html! {
            h1.plain { "This did not work" }
            p { (text(message)) }
            p { a href="/" { "To the projects" } }
        },
    )
}
