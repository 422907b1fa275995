//! The stacks of an issue as a picture: boxes as wide as the share of reports that have them.

use super::lists::issue_table;
use super::page::{page, text};
use crate::icicle::{Icicle, Node};
use crate::projects::Project;
use crate::sessions::Session;
use crate::views::Issue;
use maud::{Markup, html};

/// The page.
pub(super) fn stacks(session: &Session, project: &Project, issue: &Issue, icicle: &Icicle) -> Markup {
    let base = format!("/projects/{}/issues/{}", project.slug, issue.id);
    let title = format!("Stacks of issue #{}", issue.id);
    page(
        &title,
        Some(session),
        Some(project),
        &html! {
            p.subject { a href=(base) { "Issue #" (issue.id) } }
            h1.plain { "Stacks of " (text(&issue.title)) }
            @if icicle.reports == 0 {
                p { "No report of it that is kept has a stack." }
            } @else {
                p {
                    "Where it happened is on top, who called is below. "
                    @if icicle.reports == 1 { "One report has been read." }
                    @else { "The latest " (icicle.reports) " of " (issue.count) " reports have been read." }
                    " A box is as wide as the share of these reports that have it."
                    @if icicle.is_cut { " Stacks are cut where they are deep, or differ too much." }
                }
                div.scroll { (boxes(&icicle.roots, icicle.reports, "icicle")) }
            }
        },
    )
}

/// The page of all hangs: where main threads stood, whichever the issue.
pub(super) fn hangs(session: &Session, project: &Project, issues: &[Issue], icicle: &Icicle) -> Markup {
    let base = format!("/projects/{}", project.slug);
    page(
        "Hangs",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Hangs of " (text(&project.name)) }
            @if issues.is_empty() {
                p { "There are none: no report says that an app did not answer." }
            } @else {
                (issue_table(&base, issues))
                h2 { "Where they stood" }
                @if icicle.reports == 0 {
                    p { "No report of them that is kept has a stack." }
                } @else {
                    p {
                        "Where the main thread stood is on top, who called is below. "
                        @if icicle.reports == 1 { "One report has been read." }
                        @else { "The latest " (icicle.reports) " reports of all hangs have been read." }
                        " A box is as wide as the share of these reports that have it."
                        @if icicle.is_cut { " Stacks are cut where they are deep, or differ too much." }
                    }
                    div.scroll { (boxes(&icicle.roots, icicle.reports, "icicle")) }
                }
            }
        },
    )
}

fn boxes(nodes: &[Node], of: u64, class: &str) -> Markup {
    let rest = of.saturating_sub(nodes.iter().map(|node| node.count).sum());
    html! {
        ul class=[Some(class).filter(|class| !class.is_empty())] {
            @for node in nodes {
                li style=(format!("flex-grow:{}", node.count)) {
                    p title=(text(&node.name)) { b { (node.count) } " " (text(&node.name)) }
                    @if !node.callers.is_empty() { (boxes(&node.callers, node.count, "")) }
                }
            }
            // Those whose stacks end here keep their width.
            @if rest > 0 { li.rest style=(format!("flex-grow:{rest}")) aria-hidden="true" {} }
        }
    }
}
