//! What is shown of projects, issues and reports: queries, each of one project.

use crate::database::{Connection, Give, OptionalExtension as _, Result, Row, params, plain_pattern};
use crate::time::{day, now};
use std::fmt::Write as _;

/// An issue in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Issue {
    pub(crate) id: i64,
    pub(crate) title: String,
    pub(crate) kind: String,
    pub(crate) owner: String,
    pub(crate) why: String,
    pub(crate) key: String,
    pub(crate) state: String,
    pub(crate) assignee: Option<String>,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) count: i64,
    pub(crate) regressed: bool,
    /// Today it has many more reports than on the days before.
    pub(crate) spikes: bool,
}

const ISSUE: &str =
    "id, title, kind, owner, why, name, state, assignee, first, last, count, regressed IS NOT NULL, spiked";

fn issue_of(row: &Row<'_>) -> Result<Issue> {
    Ok(Issue {
        id: row.get(0)?,
        title: row.get(1)?,
        kind: row.get(2)?,
        owner: row.get(3)?,
        why: row.get(4)?,
        key: row.get(5)?,
        state: row.get(6)?,
        assignee: row.get(7)?,
        first: row.get(8)?,
        last: row.get(9)?,
        count: row.get(10)?,
        regressed: row.get(11)?,
        spikes: row.get::<_, Option<i64>>(12)?.is_some_and(|at| day(at) == day(now())),
    })
}

/// Which issues are shown, and in which order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Filter {
    /// `open`, `resolved`, `ignored`; empty for all.
    pub(crate) state: String,
    /// What is looked for: [`Sought`].
    pub(crate) text: String,
    /// `count`, `first`, or by the last report.
    pub(crate) sort: String,
    pub(crate) offset: i64,
}

/// Issues that are shown at a time.
pub(crate) const PAGE: i64 = 50;

/// The issues of a project, one more than are shown at a time where there are more.
pub(crate) fn issues(connection: &Connection, project: i64, filter: &Filter) -> Result<Vec<Issue>> {
    let order = match filter.sort.as_str() {
        "count" => "count DESC, id DESC",
        "first" => "first DESC, id DESC",
        _ => "last DESC, id DESC",
    };
    let sought = Sought::new(&filter.text);
    let (mut found, mut values) = connection.search(&sought.words, 6);
    for (condition, pattern) in sought.values {
        values.push(pattern);
        let _ = write!(found, " AND {}", condition.replace('#', &format!("lower(?{})", 5 + values.len())));
    }
    let sql = format!(
        "SELECT {ISSUE} FROM issue WHERE project = ?1 AND merged_into IS NULL AND count > 0 \
         AND (?2 = '' OR state = ?2) \
         AND (?3 = '' OR instr(lower(title), lower(?3)) > 0) {found} \
         ORDER BY {order} LIMIT ?4 OFFSET ?5"
    );
    let offset = filter.offset.max(0);
    let mut given = params![project, filter.state, sought.short, PAGE + 1, offset].to_vec();
    given.extend(values.iter().map(Give::given));
    connection.query_map(&sql, &given, issue_of)
}

/// Words that are looked for.
const MAX_WORDS: usize = 16;
/// Letters of one of them.
const MAX_WORD: usize = 100;

/// What a search may name, and the condition: `#` stands for its value.
const FIELDS: [(&str, &str); 4] = [
    (
        "release:",
        "EXISTS (SELECT 1 FROM issue_day WHERE issue_day.issue = issue.id AND lower(release) LIKE # ESCAPE '\\')",
    ),
    (
        "os:",
        "EXISTS (SELECT 1 FROM issue_day WHERE issue_day.issue = issue.id AND lower(os) LIKE # ESCAPE '\\')",
    ),
    ("owner:", "lower(owner) LIKE # ESCAPE '\\'"),
    ("assignee:", "lower(coalesce(assignee, '')) LIKE # ESCAPE '\\'"),
];

/// What is looked for in issues: words, which title, owner or code have in them, each somewhere; and fields with a value, in which `*`
/// stands for anything. What has blanks in it stands in quotation marks.
#[derive(PartialEq, Eq, Debug, Default)]
struct Sought {
    words: Vec<String>,
    /// The first word that is too short for that: it is looked for in titles.
    short: String,
    /// Conditions of [`FIELDS`], each with the pattern of its value.
    values: Vec<(&'static str, String)>,
}

impl Sought {
    fn new(text: &str) -> Self {
        const SHORTEST: usize = 3;
        let mut sought = Self::default();
        let mut rest = text.trim_start();
        for _ in 0..MAX_WORDS {
            if rest.is_empty() {
                break;
            }
            let named = |(name, _): &&(&str, &str)| {
                rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
            };
            let field = FIELDS.iter().find(named);
            let value = field.map_or(rest, |(name, _)| rest.get(name.len()..).unwrap_or_default());
            let quoted = value.strip_prefix('"').and_then(|value| value.split_once('"'));
            let (word, behind) = quoted
                .unwrap_or_else(|| value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())));
            rest = behind.trim_start();
            let word: String = word.chars().filter(|letter| !letter.is_control()).take(MAX_WORD).collect();
            match field {
                _ if word.is_empty() => {}
                Some((_, condition)) => sought.values.push((condition, pattern(&word))),
                None if word.chars().count() >= SHORTEST => sought.words.push(word),
                None if sought.short.is_empty() => sought.short = word,
                None => {}
            }
        }
        sought
    }
}

/// A value as a pattern of SQL's `LIKE`.
fn pattern(value: &str) -> String {
    plain_pattern(value).replace('*', "%")
}

/// An issue; one that was merged leads to that which it is a part of.
pub(crate) fn issue(connection: &Connection, project: i64, id: i64) -> Result<Option<Issue>> {
    let sql = format!(
        "SELECT {ISSUE} FROM issue WHERE project = ?1 AND id = coalesce(\
         (SELECT merged_into FROM issue WHERE id = ?2 AND project = ?1), ?2)"
    );

    connection.query_row(&sql, params![project, id], issue_of).optional()
}

/// Issues that people merged into one, and can divide from it again: at most a hundred, with their titles.
pub(crate) fn parts(connection: &Connection, issue: i64) -> Result<Vec<(i64, String)>> {
    connection.query_map(
        "SELECT id, title FROM issue WHERE part_of = ?1 AND by_hand = 1 ORDER BY id LIMIT 100",
        params![issue],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Days of a spark line.
pub(crate) const DAYS: usize = 30;

/// How many reports each of the last days had, the oldest first.
pub(crate) fn days(connection: &Connection, issue: i64) -> Result<[i64; DAYS]> {
    let today = day(now());
    let first = today - DAYS as i64 + 1;

    let rows = connection.query_map(
        "SELECT day, sum(n) FROM issue_day WHERE issue = ?1 AND day >= ?2 GROUP BY day",
        params![issue, first],
        |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)),
    )?;
    let mut days = [0; DAYS];
    for (day, count) in rows {
        if let Some(slot) = usize::try_from(day - first).ok().and_then(|at| days.get_mut(at)) {
            *slot = count;
        }
    }
    Ok(days)
}

/// How often an issue was seen in each release, or on each system: the most frequent first.
pub(crate) fn shares(connection: &Connection, issue: i64, column: Share) -> Result<Vec<(String, i64)>> {
    let column = match column {
        Share::Release => "release",
        Share::System => "os",
    };
    let sql = format!(
        "SELECT {column}, sum(n) FROM issue_day WHERE issue = ?1 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20"
    );

    connection.query_map(&sql, params![issue], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// What reports of an issue are told apart by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    Release,
    System,
}

/// A report in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    pub(crate) event_id: String,
    pub(crate) project: i64,
    pub(crate) state: String,
    pub(crate) problem: Option<String>,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) blob: String,
    pub(crate) received: i64,
    pub(crate) issue: Option<i64>,
    pub(crate) title: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) device: Option<String>,
    pub(crate) happened: Option<String>,
    pub(crate) incomplete: bool,
    /// Whether its bytes were removed.
    pub(crate) dropped: bool,
}

const REPORT: &str = "event_id, project, state, problem, kind, name, blob, received, issue, title, \
coalesce(release, stated_release), os, device, happened, incomplete, \
dropped IS NOT NULL";

fn report_of(row: &Row<'_>) -> Result<Report> {
    Ok(Report {
        event_id: row.get(0)?,
        project: row.get(1)?,
        state: row.get(2)?,
        problem: row.get(3)?,
        kind: row.get(4)?,
        name: row.get(5)?,
        blob: row.get(6)?,
        received: row.get(7)?,
        issue: row.get(8)?,
        title: row.get(9)?,
        release: row.get(10)?,
        os: row.get(11)?,
        device: row.get(12)?,
        happened: row.get(13)?,
        incomplete: row.get(14)?,
        dropped: row.get(15)?,
    })
}

/// A report by its id, or by the first 16 digits of it, which minidumps' clients get.
pub(crate) fn report(connection: &Connection, project: i64, event_id: &str) -> Result<Option<Report>> {
    let sql = format!(
        "SELECT {REPORT} FROM report WHERE project = ?1 AND event_id >= ?2 AND event_id < ?3 LIMIT 2"
    );
    let is_id = matches!(event_id.len(), 16 | 32) && event_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        return Ok(None);
    }
    let event_id = event_id.to_ascii_lowercase();
    let mut found =
        connection.query_map(&sql, params![project, event_id, format!("{event_id}g")], report_of)?;
    // Two that begin alike: which one is meant is not known.
    Ok(found.pop().filter(|_| found.is_empty()))
}

/// An attachment of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attachment {
    pub(crate) position: i64,
    /// What the client called it; may be empty.
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) size: i64,
    pub(crate) blob: String,
}

/// The attachments of a report, in the client's order. Where its bytes are dropped, they are, too.
pub(crate) fn attachments(connection: &Connection, report: &Report) -> Result<Vec<Attachment>> {
    connection.query_map(
        "SELECT position, attachment.name, attachment.kind, size, attachment.blob FROM report \
         JOIN attachment ON attachment.report = report.id JOIN blob ON blob.digest = attachment.blob \
         WHERE project = ?1 AND event_id = ?2 ORDER BY position",
        params![report.project, report.event_id],
        |row| {
            Ok(Attachment {
                position: row.get(0)?,
                name: row.get(1)?,
                kind: row.get(2)?,
                size: row.get(3)?,
                blob: row.get(4)?,
            })
        },
    )
}

/// An issue's reports, the latest first.
pub(crate) fn reports(connection: &Connection, issue: &Issue, count: i64) -> Result<Vec<Report>> {
    reports_of(connection, issue.id, count)
}

fn reports_of(connection: &Connection, issue: i64, count: i64) -> Result<Vec<Report>> {
    let sql = format!("SELECT {REPORT} FROM report WHERE issue = ?1 ORDER BY id DESC LIMIT ?2");

    connection.query_map(&sql, params![issue, count], report_of)
}

/// Issues of a project that are hangs, by `backtrail::group`'s sort of event.
const HANGS: &str =
    "project = ?1 AND merged_into IS NULL AND count > 0 AND (kind = 'hang' OR kind LIKE 'hang %')";

/// Issues with the most reports that are shown of one sort.
const MOST: i64 = 20;

/// The issues of a project that are hangs, those with the most reports first.
pub(crate) fn hangs(connection: &Connection, project: i64) -> Result<Vec<Issue>> {
    let sql = format!("SELECT {ISSUE} FROM issue WHERE {HANGS} ORDER BY count DESC, id DESC LIMIT ?2");

    connection.query_map(&sql, params![project, MOST], issue_of)
}

/// The issues of an owner, those with the most reports first.
pub(crate) fn issues_of_owner(connection: &Connection, project: i64, owner: &str) -> Result<Vec<Issue>> {
    let sql = format!(
        "SELECT {ISSUE} FROM issue WHERE project = ?1 AND merged_into IS NULL AND count > 0 AND owner = ?2 \
         ORDER BY count DESC, id DESC LIMIT ?3"
    );

    connection.query_map(&sql, params![project, owner, MOST], issue_of)
}

/// The latest reports of hangs that were seen last.
pub(crate) fn reports_of_hangs(connection: &Connection, project: i64, count: i64) -> Result<Vec<Report>> {
    // Of each issue no more are looked at than are wanted: there may be a million.
    let sql = format!("SELECT id FROM issue WHERE {HANGS} ORDER BY last DESC LIMIT ?2");
    let issues = connection.query_map(&sql, params![project, count], |row| row.get::<_, i64>(0))?;
    let mut latest = Vec::new();
    for issue in issues {
        latest.extend(reports_of(connection, issue, count)?);
    }
    latest.sort_by(|one, other| {
        other.received.cmp(&one.received).then_with(|| other.event_id.cmp(&one.event_id))
    });
    latest.truncate(usize::try_from(count).unwrap_or_default());
    Ok(latest)
}

/// Reports of a project that belong to no issue: nothing tells their bug, nobody can read them, or they still wait.
pub(crate) fn apart(connection: &Connection, project: i64, count: i64) -> Result<Vec<Report>> {
    let sql =
        format!("SELECT {REPORT} FROM report WHERE project = ?1 AND issue IS NULL ORDER BY id DESC LIMIT ?2");

    connection.query_map(&sql, params![project, count], report_of)
}

/// An image whose symbols reports wait for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    pub(crate) image_id: String,
    pub(crate) name: String,
    pub(crate) arch: Option<String>,
    pub(crate) reports: i64,
    pub(crate) last: i64,
}

/// Missing symbols, those that most reports wait for first.
pub(crate) fn missing(connection: &Connection, project: i64) -> Result<Vec<Missing>> {
    connection.query_map(
        "SELECT image_id, name, arch, reports, last FROM missing_image WHERE project = ?1 \
         ORDER BY reports DESC, last DESC LIMIT 200",
        params![project],
        |row| {
            Ok(Missing {
                image_id: row.get(0)?,
                name: row.get(1)?,
                arch: row.get(2)?,
                reports: row.get(3)?,
                last: row.get(4)?,
            })
        },
    )
}

/// How many reports a project has in each state.
pub(crate) fn states(connection: &Connection, project: i64) -> Result<Vec<(String, i64)>> {
    connection.query_map(
        "SELECT state, count(*) FROM report WHERE project = ?1 GROUP BY state ORDER BY state",
        params![project],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// What people decide about an issue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Decision {
    pub(crate) state: Option<String>,
    /// Empty for nobody.
    pub(crate) assignee: Option<String>,
    pub(crate) merge_into: Option<i64>,
    /// An issue that was merged into it, and is to be one of its own again.
    pub(crate) split: Option<i64>,
}

/// The states that an issue may have.
pub(crate) const STATES: [&str; 3] = ["open", "resolved", "ignored"];

/// Does what people decided. `false` where there is no such issue, or what is to be merged is not there.
pub(crate) fn decide(connection: &Connection, project: i64, issue: i64, decision: &Decision) -> Result<bool> {
    let is_there = |id: i64| -> Result<bool> {
        connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM issue WHERE id = ?1 AND project = ?2 AND merged_into IS NULL)",
            params![id, project],
            |row| row.get(0),
        )
    };
    // All of it or nothing.
    let into = decision.merge_into;
    if !is_there(issue)? || into == Some(issue) || !into.map_or(Ok(true), is_there)? {
        return Ok(false);
    }
    if let Some(state) = &decision.state {
        connection.execute(
            "UPDATE issue SET state = ?2, regressed = NULL, \
                 resolved = CASE ?2 WHEN 'resolved' THEN ?3 ELSE NULL END WHERE id = ?1",
            params![issue, state, now()],
        )?;
    }
    if let Some(assignee) = &decision.assignee {
        connection
            .execute("UPDATE issue SET assignee = nullif(?2, '') WHERE id = ?1", params![issue, assignee])?;
    }
    if let Some(part) = decision.split
        && !crate::issues::split(connection, project, issue, part)?
    {
        return Ok(false);
    }
    match decision.merge_into {
        Some(into) => crate::issues::merge(connection, project, issue, into),
        None => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_words_and_fields() {
        let sought = |text: &str| {
            let Sought { words, short, values } = Sought::new(text);
            let values: Vec<_> = values.into_iter().map(|(_, pattern)| pattern).collect();
            (words.join("|"), short, values.join("|"))
        };
        let is =
            |words: &str, short: &str, values: &str| (words.to_owned(), short.to_owned(), values.to_owned());
        assert_eq!(sought("null  ab pointer cd"), is("null|pointer", "ab", ""));
        assert_eq!(sought("\"two words\" third"), is("two words|third", "", ""));
        assert_eq!(sought("os:\"iPhone OS 16*\" Release:1.2 x_y%:"), is("x_y%:", "", "iPhone OS 16%|1.2"));
        assert_eq!(sought("owner:a_b%\\"), is("", "", "a\\_b\\%\\\\"));
        assert_eq!(sought("os: title:null \"open"), is("title:null|\"open", "", ""));
        assert_eq!(sought("\"\" \"\"\" \u{1}"), is("", "\"", ""));
    }
}
