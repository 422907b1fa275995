//! Projects, issues, reports and missing symbols as pages.

use super::administration::{is_administrator, project_form};
use super::page::{page, text};
use crate::health::{DAYS as DAYS_OF_HEALTH, Release};
use crate::projects::{Project, Scope};
use crate::sessions::Session;
use crate::time::{DAY, shown};
use crate::views::{Attachment, DAYS, Filter, Issue, Missing, PAGE, Report, STATES};
use backtrail::Analysis;
use backtrail::groups::Fit;
use maud::{Markup, PreEscaped, html};

pub(super) fn projects(session: &Session, rows: &[(Vec<(String, i64)>, Project)]) -> Markup {
    page(
        "Projects",
        Some(session),
        None,
        &html! {
            h1.plain { "Projects" }
            ul.issues {
                @for (states, project) in rows {
                    li {
                        p { a href=(format!("/projects/{}", project.slug)) { (text(&project.name)) } }
                        p.faint {
                            @if states.is_empty() {
                                "no reports yet: " a href=(format!("/projects/{}/setup", project.slug)) { "set-up" }
                            }
                            @for (state, count) in states { (count) " " (state) " " }
                        }
                    }
                }
            }
            @if is_administrator(session) {
                (project_form(session))
                p { a href="/people" { "People" } ": who may log in" }
            }
        },
    )
}

pub(super) fn issues(
    session: &Session,
    project: &Project,
    filter: &Filter,
    rows: &[([i64; DAYS], Issue)],
) -> Markup {
    let most = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let base = format!("/projects/{}", project.slug);
    page(
        &project.name,
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Issues of " (text(&project.name)) }
            form.filter method="get" action=(base) {
                label { "State " select name="state" {
                    @for state in STATES { option value=(state) selected[filter.state == state] { (state) } }
                    option value="" selected[filter.state.is_empty()] { "all" }
                } }
                label { "Order " select name="sort" {
                    @for (sort, name) in [("last", "last seen"), ("first", "first seen"), ("count", "most reports")] {
                        option value=(sort) selected[filter.sort == sort] { (name) }
                    }
                } }
                label { "Search " input type="search" name="text" value=(filter.text) aria-describedby="search"; }
                button { "Show" }
            }
            p.faint id="search" {
                "Words of title, owner, functions, files and images; " code { "release:" } ", " code { "os:" } ", "
                code { "owner:" } ", " code { "assignee:" } " with a value, as " code { "release:2.1*" } "; or a report's id."
            }
            @if rows.is_empty() { p { "There are none." } }
            ul.issues {
                @for (days, issue) in rows.iter().take(most) {
                    li {
                        div {
                            p {
                                a href=(format!("{base}/issues/{}", issue.id)) { (text(&issue.title)) }
                                @if issue.regressed { " " span.badge.app { "came back" } }
                                @if issue.spikes { " " span.badge.app { "many more today" } }
                            }
                            p.faint {
                                (text(&issue.owner)) " · last " (shown(issue.last)) " · first " (shown(issue.first))
                                @if issue.state != "open" { " · " (issue.state) }
                                @if let Some(assignee) = &issue.assignee { " · " (text(assignee)) }
                            }
                        }
                        (spark(days))
                        p.count { (issue.count) }
                    }
                }
            }
            @if filter.offset > 0 || rows.len() > most {
                form.filter method="get" action=(base) {
                    input type="hidden" name="state" value=(filter.state);
                    input type="hidden" name="sort" value=(filter.sort);
                    input type="hidden" name="text" value=(filter.text);
                    @if filter.offset > 0 {
                        button name="offset" value=((filter.offset - PAGE).max(0)) { "Newer" }
                    }
                    @if rows.len() > most { button name="offset" value=(filter.offset.max(0) + PAGE) { "Older" } }
                }
            }
        },
    )
}

/// A bar for each day, the highest as high as the picture.
fn spark(days: &[i64; DAYS]) -> Markup {
    let highest = days.iter().copied().max().unwrap_or(0).max(1);
    let total: i64 = days.iter().sum();
    html! {
        svg.spark viewBox=(format!("0 0 {} 20", DAYS * 4)) preserveAspectRatio="none" role="img"
            aria-label=(format!("{total} reports in the last {DAYS} days, {highest} on one day at most")) {
            @for (day, count) in days.iter().enumerate() {
                @if *count > 0 {
                    // What is there is seen, however little.
                    @let height = (count * 20 / highest).max(1);
                    rect x=(day * 4) y=(20 - height) width="3" height=(height) {}
                }
            }
        }
    }
}

/// Everything on an issue's page.
pub(super) struct WholeIssue {
    pub(super) issue: Issue,
    pub(super) days: [i64; DAYS],
    pub(super) releases: Vec<(String, i64)>,
    pub(super) systems: Vec<(String, i64)>,
    pub(super) reports: Vec<Report>,
    /// What people merged into it.
    pub(super) merged: Vec<(i64, String)>,
}

pub(super) fn issue(
    session: &Session,
    project: &Project,
    whole: &WholeIssue,
    latest: Option<&Analysis>,
) -> Markup {
    let issue = &whole.issue;
    let base = format!("/projects/{}", project.slug);
    page(
        &issue.title,
        Some(session),
        Some(project),
        &html! {
            p.subject { "Issue #" (issue.id) " · " (issue.state) @if issue.regressed { " · came back in a newer release" } @if issue.spikes { " · many more reports today than on the days before" } }
            h1.plain { (text(&issue.title)) }
            p { (issue.count) @if issue.count == 1 { " report" } @else { " reports" } " · first " (shown(issue.first)) " · last " (shown(issue.last)) " · " (text(&issue.owner)) }
            (spark(&whole.days))
            @if session.grant.allows(Scope::Member, project.id) {
                form.decide method="post" action=(format!("{base}/issues/{}", issue.id)) {
                    input type="hidden" name="form_key" value=(session.form_key);
                    @for (state, verb) in [("open", "Open"), ("resolved", "Resolve"), ("ignored", "Ignore")] {
                        @if issue.state != state { button name="state" value=(state) { (verb) } }
                    }
                }
                form.decide method="post" action=(format!("{base}/issues/{}", issue.id)) {
                    input type="hidden" name="form_key" value=(session.form_key);
                    label { "Assigned to " input name="assignee" value=(issue.assignee.as_deref().unwrap_or_default()); }
                    button { "Assign" }
                }
                form.decide method="post" action=(format!("{base}/issues/{}", issue.id)) {
                    input type="hidden" name="form_key" value=(session.form_key);
                    label { "The same bug as issue " input name="merge_into" inputmode="numeric" size="6"; }
                    button { "Merge" }
                }
                @if !whole.merged.is_empty() {
                    form.decide method="post" action=(format!("{base}/issues/{}", issue.id)) {
                        input type="hidden" name="form_key" value=(session.form_key);
                        p { "Merged into this issue:" }
                        ul {
                            @for (part, title) in &whole.merged {
                                li { "#" (part) " " (text(title)) " " button name="split" value=(part) { "Split off #" (part) } }
                            }
                        }
                    }
                }
            }
            div.two {
                (shares("Releases", &whole.releases))
                (shares("Systems", &whole.systems))
            }
            details {
                summary { "Why these reports are one issue" }
                ul { @for line in issue.why.lines() { li { (text(line)) } } }
                p.faint { "Key " code { (text(&issue.key)) } }
            }
            p { a href=(format!("{base}/issues/{}/stacks", issue.id)) { "All stacks in one picture" } }
            (reports_table(&base, &whole.reports, "Latest reports"))
            @if let Some(latest) = latest {
                section.report aria-label="The latest report" { (body(latest, "h2")) }
            }
        },
    )
}

fn shares(title: &str, rows: &[(String, i64)]) -> Markup {
    html! {
        section {
            h2 { (title) }
            table { @for (name, count) in rows { tr { td { (text(name)) } td.number { (count) } } } }
        }
    }
}

fn reports_table(base: &str, reports: &[Report], title: &str) -> Markup {
    html! {
        h2 { (title) }
        div.scroll { table {
            tr { th { "report" } th { "received" } th { "release" } th { "system" } th { "device" } th { "state" } }
            @for report in reports {
                tr {
                    td { a href=(format!("{base}/reports/{}", report.event_id)) {
                        code { (report.event_id.get(..8).unwrap_or_default()) }
                    } }
                    td { (shown(report.received)) }
                    td { (text(report.release.as_deref().unwrap_or_default())) }
                    td { (text(report.os.as_deref().unwrap_or_default())) }
                    td { (text(report.device.as_deref().unwrap_or_default())) }
                    td { (report.state) @if report.incomplete { ", misses symbols" } }
                }
            }
        } }
    }
}

/// The report as the program writes it, which escapes everything itself.
fn body(analysis: &Analysis, heading: &str) -> Markup {
    let mut out = Vec::new();
    match backtrail_render::html::write_body(&mut out, analysis, heading) {
        Ok(()) => PreEscaped(String::from_utf8_lossy(&out).into_owned()),
        Err(_) => html! { p.problem { "The report cannot be shown." } },
    }
}

/// Everything on a report's page.
pub(super) struct WholeReport<'a> {
    pub(super) report: &'a Report,
    pub(super) attachments: &'a [Attachment],
    pub(super) analysis: Option<&'a Analysis>,
    /// Which issues it fits that it is not of.
    pub(super) fit: Fit<i64>,
}

pub(super) fn report(session: &Session, project: &Project, whole: &WholeReport<'_>) -> Markup {
    let WholeReport { report, attachments, analysis, fit } = whole;
    let base = format!("/projects/{}", project.slug);
    let title = report.title.as_deref().unwrap_or("Report");
    page(
        title,
        Some(session),
        Some(project),
        &html! {
            p.subject {
                "Report " code { (report.event_id) } " · " (report.state) " · received " (shown(report.received))
                @if let Some(issue) = report.issue {
                    " · " a href=(format!("{base}/issues/{issue}")) { "issue #" (issue) }
                }
                @if !report.dropped {
                    " · " a href=(format!("{base}/reports/{}/raw", report.event_id)) { "as it came" }
                }
            }
            @if !attachments.is_empty() {
                p.subject {
                    "Attachments: "
                    @for (number, it) in attachments.iter().enumerate() {
                        @if number > 0 { ", " }
                        @let name = if it.name.is_empty() { &it.kind } else { &it.name };
                        a href=(format!("{base}/reports/{}/attachments/{}", report.event_id, it.position)) {
                            (text(name))
                        }
                        " (" (it.size) " bytes)"
                    }
                }
            }
            @if let Some(problem) = &report.problem { p.problem { (text(problem)) } }
            @match fit {
                Fit::None => {},
                Fit::One(issue, by) => p {
                    "Cut short, likely of " a href=(format!("{base}/issues/{issue}")) { "issue #" (issue) }
                    ": all that it shows is of that issue, which has " (by) " reports, and of no other."
                },
                Fit::Several(issues) => p {
                    "Cut short, perhaps of "
                    @for (number, issue) in issues.iter().take(2).enumerate() {
                        @if number > 0 { " or of " }
                        a href=(format!("{base}/issues/{issue}")) { "issue #" (issue) }
                    }
                    ": reports of " @if issues.len() > 2 { (issues.len()) " issues" } @else { "both" } " show the same."
                },
            }
            @match analysis {
                Some(analysis) => (body(analysis, "h1")),
                None if report.dropped => p { "Its bytes were removed: it is older than this server keeps them." },
                None => p { "It cannot be read." },
            }
        },
    )
}

/// Issues with their counts.
pub(super) fn issue_table(base: &str, issues: &[Issue]) -> Markup {
    html! {
        table {
            tr { th { "issue" } th { "reports" } }
            @for issue in issues {
                tr {
                    td { a href=(format!("{base}/issues/{}", issue.id)) { (text(&issue.title)) } }
                    td.number { (issue.count) }
                }
            }
        }
    }
}

/// Per cent with as many digits as tell good releases apart.
pub(super) fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

pub(super) fn releases(session: &Session, project: &Project, rows: &[Release]) -> Markup {
    page(
        "Releases",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Releases" }
            @if rows.is_empty() { p { "Nothing came in the last " (DAYS_OF_HEALTH) " days." } }
            @else {
                p {
                    "The last " (DAYS_OF_HEALTH) " days. Without crashes: the part of the sessions that clients told of, and where it \
                     is in 95 of 100 cases."
                }
                div.scroll { table {
                    tr {
                        th { "release" } th { "sessions" } th { "without crashes" } th { "95 %" } th { "with errors" }
                        th { "ended abnormally" } th { "crashed" } th { "reports" } th { "last" }
                    }
                    @for row in rows {
                        @let rate = row.crash_free();
                        tr {
                            td { (text(&row.name)) }
                            td.number { (row.sessions) }
                            td.number { @if let Some(rate) = rate { (percent(rate.value)) } }
                            td.number { @if let Some(rate) = rate { (percent(rate.low)) " to " (percent(rate.high)) } }
                            td.number { (row.errored) }
                            td.number { (row.abnormal) }
                            td.number { (row.crashed) }
                            td.number { (row.reports) }
                            td { (shown(row.last * DAY).split(' ').next().unwrap_or_default()) }
                        }
                    }
                } }
            }
        },
    )
}

pub(super) fn missing(session: &Session, project: &Project, rows: &[Missing]) -> Markup {
    page(
        "Missing symbols",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Missing symbols" }
            @if rows.is_empty() { p { "No report waits for any." } }
            @else {
                p { "Once these are uploaded, the reports that wait for them are worked again by themselves." }
                div.scroll { table {
                    tr { th { "image" } th { "identity" } th { "architecture" } th { "reports that wait" } th { "last" } }
                    @for row in rows {
                        tr {
                            td { (text(&row.name)) }
                            td { code { (text(&row.image_id)) } }
                            td { (text(row.arch.as_deref().unwrap_or_default())) }
                            td.number { (row.reports) }
                            td { (shown(row.last)) }
                        }
                    }
                } }
            }
        },
    )
}

pub(super) fn apart(session: &Session, project: &Project, rows: &[Report]) -> Markup {
    page(
        "Reports without an issue",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Reports without an issue" }
            p { "They wait to be worked, nobody can read them, or nothing tells which bug they are of." }
            @for report in rows.iter().filter(|report| report.problem.is_some()).take(5) {
                p.problem { (text(report.problem.as_deref().unwrap_or_default())) }
            }
            (reports_table(&format!("/projects/{}", project.slug), rows, "The latest"))
        },
    )
}

pub(super) fn setup(session: &Session, project: &Project, url: &str) -> Markup {
    let key = project.key.as_deref().unwrap_or("KEY");
    let (scheme, host) = url.split_once("://").unwrap_or(("http", url));
    let dsn = format!("{scheme}://{key}@{host}/{}", project.id);
    let api = format!("{scheme}://{key}@{host}/api/{}", project.id);
    let query = format!("{url}/api/{}/minidump/?sentry_key={key}", project.id);
    let snippets = [
        ("Any report, by curl", format!("curl --data-binary @REPORT {api}/reports/")),
        ("A program on Linux as it is", format!("backtrail watch --upload {api}/reports/ -- PROGRAM")),
        ("Sentry's clients, Python", format!("import sentry_sdk\nsentry_sdk.init(\"{dsn}\")")),
        (
            "Sentry's clients, Node.js",
            format!("const Sentry = require(\"@sentry/node\");\nSentry.init({{ dsn: \"{dsn}\" }});"),
        ),
        ("Sentry's clients, others", format!("DSN: {dsn}")),
        ("Crashpad", format!("--url={query}")),
        ("Breakpad, a minidump by curl", format!("curl -F upload_file_minidump=@FILE.dmp '{query}'")),
        (
            "Symbols, with a token for them",
            format!("BACKTRAIL_TOKEN=TOKEN backtrail upload --to {url} --project {} PATH", project.slug),
        ),
        (
            "Symbols, by sentry-cli",
            format!(
                "sentry-cli --url {url} --auth-token TOKEN debug-files upload -o any -p {} PATH",
                project.slug
            ),
        ),
    ];
    page(
        "Set-up",
        Some(session),
        Some(project),
        &html! {
            h1.plain { "Set-up of " (text(&project.name)) }
            p {
                "The key in these lines adds reports and reads nothing: it may be in an app."
                @if is_administrator(session) {
                    " " a href=(format!("/projects/{}/tokens", project.slug)) { "Keys and tokens" } " for others are made on a page of their own."
                }
            }
            @for (title, snippet) in &snippets {
                h2 { (title) }
                pre { (text_lines(snippet)) }
            }
        },
    )
}

/// Lines of ours with an address of the request in them.
fn text_lines(lines: &str) -> String {
    lines.lines().map(text).collect::<Vec<_>>().join("\n")
}
