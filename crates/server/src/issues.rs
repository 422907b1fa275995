//! Issues: which one a report belongs to, and what is counted of each. Everything here is part of a transaction, so that
//! counts equal rows at every moment.

use crate::database::{Connection, OptionalExtension as _, Result, params};
use crate::likely;
use crate::owners::{self, Part};
use crate::tables;
use crate::time::{DAY, now};
use crate::webhooks::{self, Event};
use backtrail::Begins;

/// What is known of a report once it was worked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts {
    /// The key that needs no names, the key by names; `None` where nothing tells the bug.
    pub(crate) keys: Option<(String, Option<String>)>,
    pub(crate) title: String,
    pub(crate) kind: String,
    /// Whose code it is, and in which app.
    pub(crate) part: Part,
    pub(crate) why: String,
    /// What else it is found by: functions, files and images of its stack.
    pub(crate) code: String,
    pub(crate) release: String,
    pub(crate) os: String,
    pub(crate) device: Option<String>,
    pub(crate) happened: Option<String>,
    pub(crate) incomplete: bool,
    /// What of its bug shows where a stack is cut.
    pub(crate) begins: Begins,
    /// Images that want symbols: identity, name, architecture.
    pub(crate) missing: Vec<(String, String, Option<String>)>,
    /// The version of what its project knew of its code.
    pub(crate) sources: i64,
}

/// Which report it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Which {
    pub(crate) project: i64,
    pub(crate) id: i64,
    pub(crate) received: i64,
    pub(crate) day: i64,
}

/// Writes down what a report is, and counts it: once, however often it is worked.
pub(crate) fn count(connection: &Connection, which: Which, facts: &Facts) -> Result<()> {
    let earlier = earlier(connection, which.id, facts)?;
    let before = uncount(connection, which.project, which.id)?;
    let stays = before.filter(|_| earlier.are_owners_late);
    let place = match &facts.keys {
        Some((key, symbol_key)) => Some(place(connection, which, key, symbol_key.as_deref(), facts, stays)?),
        None => None,
    };
    let issue = place.map(|place| place.issue);
    let is_known = match (before, place) {
        (Some(before), Some(place)) => {
            before.issue == place.issue
                || follow(connection, which.project, before.issue, place, stays.is_some())?
        }
        _ => false,
    };
    if let (true, Some(issue), Some(owner)) = (is_known, issue, &earlier.owner) {
        connection.execute(
            "UPDATE issue SET owner = ?2 WHERE id = ?1 AND owner = ?3 AND owner <> ?2",
            params![issue, facts.part.owner, owner],
        )?;
    }
    connection.execute(
        "UPDATE report SET issue = ?2, day = ?3, release = ?4, os = ?5, device = ?6, title = ?7, \
         happened = ?8, incomplete = ?9, owner = ?10, owner_version = ?11, app = ?12, crashed = \
         ?13, part = ?14, sources = ?15 WHERE id = ?1",
        params![
            which.id,
            issue,
            which.day,
            facts.release,
            facts.os,
            facts.device,
            facts.title,
            facts.happened,
            facts.incomplete,
            facts.part.owner,
            facts.part.version,
            facts.part.app,
            facts.part.crashed,
            place.and_then(|place| place.part),
            facts.sources
        ],
    )?;
    connection.execute("DELETE FROM missing WHERE report = ?1", params![which.id])?;
    for (image_id, name, arch) in &facts.missing {
        connection.execute(
            "INSERT INTO missing (project, image_id, report, name, arch) VALUES (?1, ?2, ?3, ?4, \
             ?5) ON CONFLICT DO NOTHING",
            params![which.project, image_id, which.id, name, arch],
        )?;
    }
    if let Some(issue) = issue {
        likely::learn(connection, which.project, issue, &facts.begins)?;
        // What is worked again is not new and has not come back.
        if !is_known {
            let returned = regress(connection, issue, &facts.release)?.then_some(Event::Returned);
            let event = if is_empty(connection, issue)? { Some(Event::New) } else { returned };
            if let Some(event) = event {
                webhooks::tell(connection, which.project, issue, event, &facts.release)?;
            }
        }
        add_to_day(connection, issue, which.day, &facts.release, &facts.os, 1)?;
        owners::count(connection, which.project, which.day, &facts.release, &facts.part, 1)?;
        if before.is_none() && spikes(connection, issue, which)? {
            webhooks::tell(connection, which.project, issue, Event::Spike, &facts.release)?;
        }
        connection.execute(
            "UPDATE issue SET count = count + 1, first = min(first, ?2), last = max(last, ?2) WHERE id = ?1",
            params![issue, which.received],
        )?;
        // Issues of earlier versions have none.
        connection.execute(
            "UPDATE issue SET code = ?2 WHERE id = ?1 AND code = '' AND ?2 <> ''",
            params![issue, facts.code],
        )?;
    }
    Ok(())
}

/// What is known of a report that was worked before.
#[derive(Default)]
struct Earlier {
    owner: Option<String>,
    /// Whether its project has learned whose code is where since, by the same rules.
    are_owners_late: bool,
}

fn earlier(connection: &Connection, report: i64, facts: &Facts) -> Result<Earlier> {
    // Projects that know nothing of their code need not be asked.
    if facts.sources == 0 {
        return Ok(Earlier::default());
    }
    connection.query_row(
        "SELECT owner, report.sources < ?2 AND rules_since <= report.sources FROM report \
         JOIN project ON project.id = report.project WHERE report.id = ?1",
        params![report, facts.sources],
        |row| Ok(Earlier { owner: row.get(0)?, are_owners_late: row.get(1)? }),
    )
}

/// A report of a capture has other frames once its images are here, since they say how to unwind, and so another key without
/// names. An issue without names that lost its last report so goes on in the one where that is now; what people decided goes
/// along to one that was made for it.
///
/// So does any that lost its last report since its project learned whose code is where.
fn follow(
    connection: &Connection,
    project: i64,
    before: i64,
    place: Place,
    are_owners_late: bool,
) -> Result<bool> {
    let is_left: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM issue WHERE id = ?1 AND count = 0 AND (has_names = 0 OR ?2 = 1) AND \
         merged_into IS NULL)",
        params![before, are_owners_late],
        |row| row.get(0),
    )?;
    if !is_left {
        return Ok(false);
    }
    connection.execute(
        "UPDATE issue SET assignee = coalesce(assignee, (SELECT assignee FROM issue WHERE id = \
         ?1)), resolved = CASE state WHEN 'open' THEN (SELECT resolved FROM issue WHERE id = ?1) \
         ELSE resolved END, state = CASE state WHEN 'open' THEN (SELECT state FROM issue WHERE id \
         = ?1) ELSE state END WHERE id = ?2 AND id > ?1",
        params![before, place.issue],
    )?;
    join(connection, project, before, place)
}

/// Takes back what was counted of a report, and returns where it was.
fn uncount(connection: &Connection, project: i64, report: i64) -> Result<Option<Place>> {
    let counted: Option<(Place, i64, String, String)> = connection
        .query_row(
            "SELECT issue, part, day, release, os FROM report WHERE id = ?1 AND issue IS NOT NULL",
            params![report],
            |row| {
                let place = Place { issue: row.get(0)?, part: row.get(1)? };
                Ok((place, row.get(2)?, row.get(3)?, row.get(4)?))
            },
        )
        .optional()?;
    let Some((place, day, release, os)) = counted else { return Ok(None) };
    let issue = place.issue;
    add_to_day(connection, issue, day, &release, &os, -1)?;
    if let Some(part) = owners::of_report(connection, report)? {
        owners::count(connection, project, day, &release, &part, -1)?;
    }
    connection.execute("UPDATE issue SET count = count - 1 WHERE id = ?1", params![issue])?;
    connection.execute("UPDATE report SET issue = NULL, part = NULL WHERE id = ?1", params![report])?;
    Ok(Some(place))
}

fn add_to_day(connection: &Connection, issue: i64, day: i64, release: &str, os: &str, n: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO issue_day (issue, day, release, os, n) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (issue, day, release, os) DO UPDATE SET n = issue_day.n + excluded.n",
        params![issue, day, release, os, n],
    )?;
    if n < 0 {
        connection.execute(
            "DELETE FROM issue_day WHERE issue = ?1 AND day = ?2 AND release = ?3 AND os = ?4 AND n <= 0",
            params![issue, day, release, os],
        )?;
    }
    Ok(())
}

/// Reports of a day that make a spike, where no day before had a third as many.
const SPIKE: i64 = 20;
const SPIKE_FACTOR: i64 = 3;
/// Days that are looked back at.
const SPIKE_DAYS: i64 = 14;

/// Whether an issue that is older than a day has now, for the first time on that day, so many more reports than on any of the days before.
/// Looked at with each tenth report, to spare the others the sums.
fn spikes(connection: &Connection, issue: i64, which: Which) -> Result<bool> {
    let begun = which.day.saturating_mul(DAY);
    let is_due: bool = connection.query_row(
        "SELECT count + 1 >= ?3 AND (count + 1) % 10 = 0 AND first < ?2 AND coalesce(spiked, 0) < \
         ?2 FROM issue WHERE id = ?1",
        params![issue, begun, SPIKE],
        |row| row.get(0),
    )?;
    if !is_due {
        return Ok(false);
    }

    let first = which.day.saturating_sub(SPIKE_DAYS);
    let days: Vec<(i64, i64)> = connection.query_map(
        "SELECT day, sum(n) FROM issue_day WHERE issue = ?1 AND day BETWEEN ?2 AND ?3 GROUP BY day",
        params![issue, first, which.day],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (mut today, mut most) = (0, 0);
    for (day, reports) in days {
        if day == which.day { today = reports } else { most = most.max(reports) }
    }
    if today < SPIKE || today < most.saturating_mul(SPIKE_FACTOR) {
        return Ok(false);
    }
    connection.execute("UPDATE issue SET spiked = ?2 WHERE id = ?1", params![issue, which.received])?;
    Ok(true)
}

/// Whether no report is of an issue.
fn is_empty(connection: &Connection, issue: i64) -> Result<bool> {
    connection.query_row("SELECT count = 0 FROM issue WHERE id = ?1", params![issue], |row| row.get(0))
}

/// An issue that was resolved is open again once a release has it that had not: older ones are still in use. Whether it is so.
fn regress(connection: &Connection, issue: i64, release: &str) -> Result<bool> {
    let changed = connection.execute(
        "UPDATE issue SET state = 'open', regressed = ?3 WHERE id = ?1 AND state = 'resolved' \
             AND NOT EXISTS (SELECT 1 FROM issue_day WHERE issue = ?1 AND release = ?2)",
        params![issue, release, now()],
    )?;
    Ok(changed > 0)
}

/// Where a report belongs: an issue, and the one that people merged into it through which it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    issue: i64,
    part: Option<i64>,
}

impl Place {
    /// The issue that its keys are of, whatever people merged.
    fn own(self) -> i64 {
        self.part.unwrap_or(self.issue)
    }
}

/// The issue of a report's keys, by the rules of `backtrail::Groups`: a key by names decides; a key without names leads to an issue
/// that has none yet, and never joins two that have. `stays` is the issue of a report whose keys are others now only because it is known whose
/// code is where: what nobody knows yet is that issue's.
fn place(
    connection: &Connection,
    which: Which,
    key: &str,
    symbol_key: Option<&str>,
    facts: &Facts,
    stays: Option<Place>,
) -> Result<Place> {
    let project = which.project;
    let by_key = find(connection, project, key, false)?;
    let Some(symbol_key) = symbol_key else {
        return match (by_key, stays) {
            (Some((place, _)), _) => Ok(place),
            (None, Some(place)) => lead(connection, project, key, false, place).map(|()| place),
            (None, None) => make(connection, which, key, None, facts),
        };
    };
    let by_names = find(connection, project, symbol_key, true)?;
    let nameless = by_key.filter(|(_, has_names)| !has_names);
    match (by_names, nameless) {
        (Some((place, _)), Some((from, _))) => {
            // What people have merged already stays where they want it.
            if from.part.is_none() {
                join(connection, project, from.issue, place)?;
            }
            Ok(place)
        }
        (Some((place, _)), None) => {
            lead(connection, project, key, false, place)?;
            Ok(place)
        }
        (None, Some((place, _))) => {
            lead(connection, project, symbol_key, true, place)?;
            connection.execute(
                "UPDATE issue SET has_names = 1, name = ?2, title = ?3, kind = ?4, owner = ?5, \
                 why = ?6, code = ?7 WHERE id = ?1",
                params![
                    place.own(),
                    symbol_key,
                    facts.title,
                    facts.kind,
                    facts.part.owner,
                    facts.why,
                    facts.code
                ],
            )?;
            Ok(place)
        }
        (None, None) => match stays {
            Some(place) => {
                lead(connection, project, key, false, place)?;
                lead(connection, project, symbol_key, true, place)?;
                Ok(place)
            }
            None => make(connection, which, key, Some(symbol_key), facts),
        },
    }
}

/// Where a key leads, and whether the issue that it is of has names.
fn find(connection: &Connection, project: i64, key: &str, by_names: bool) -> Result<Option<(Place, bool)>> {
    connection
        .query_row(
            "SELECT issue_key.issue, issue_key.part, issue.has_names FROM issue_key JOIN issue \
             ON issue.id = coalesce(issue_key.part, issue_key.issue) \
             WHERE issue_key.project = ?1 AND issue_key.key = ?2 AND issue_key.by_names = ?3",
            params![project, key, by_names],
            |row| Ok((Place { issue: row.get(0)?, part: row.get(1)? }, row.get(2)?)),
        )
        .optional()
}

fn lead(connection: &Connection, project: i64, key: &str, by_names: bool, place: Place) -> Result<()> {
    connection.execute(
        "INSERT INTO issue_key (project, key, by_names, issue, part) VALUES (?1, ?2, ?3, ?4, ?5) ON \
         CONFLICT DO NOTHING",
        params![project, key, by_names, place.issue, place.part],
    )?;
    Ok(())
}

fn make(
    connection: &Connection,
    which: Which,
    key: &str,
    symbol_key: Option<&str>,
    facts: &Facts,
) -> Result<Place> {
    let issue = connection.query_row(
        "INSERT INTO issue (project, name, title, kind, owner, why, has_names, first, last, code) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9) RETURNING id",
        params![
            which.project,
            symbol_key.unwrap_or(key),
            facts.title,
            facts.kind,
            facts.part.owner,
            facts.why,
            symbol_key.is_some(),
            which.received,
            facts.code
        ],
        |row| row.get(0),
    )?;
    let place = Place { issue, part: None };
    lead(connection, which.project, key, false, place)?;
    if let Some(symbol_key) = symbol_key {
        lead(connection, which.project, symbol_key, true, place)?;
    }
    Ok(place)
}

/// Makes two issues of a project one, since people say that they are: what leads to `from` leads to `into` from now on. `false` where one
/// of them is not there.
pub(crate) fn merge(connection: &Connection, project: i64, from: i64, into: i64) -> Result<bool> {
    let place = Place { issue: into, part: Some(from) };
    if !move_to(connection, project, from, place)? {
        return Ok(false);
    }
    connection.execute("UPDATE issue SET part_of = ?2, by_hand = 1 WHERE id = ?1", params![from, into])?;
    Ok(true)
}

/// The same of one that names show to be of the other.
fn join(connection: &Connection, project: i64, from: i64, place: Place) -> Result<bool> {
    if !move_to(connection, project, from, place)? {
        return Ok(false);
    }
    connection
        .execute("UPDATE issue SET part_of = ?2 WHERE id = ?1 OR part_of = ?1", params![from, place.own()])?;
    Ok(true)
}

/// Gives what is of one issue to another. What people merged into it before stays a part of its own.
fn move_to(connection: &Connection, project: i64, from: i64, place: Place) -> Result<bool> {
    let into = place.issue;
    let known: i64 = connection.query_row(
        "SELECT count(*) FROM issue WHERE project = ?1 AND id IN (?2, ?3) AND merged_into IS NULL",
        params![project, from, into],
        |row| row.get(0),
    )?;
    if from == into || known != 2 {
        return Ok(false);
    }
    for sql in [
        "UPDATE issue_key SET issue = ?2, part = coalesce(part, ?3) WHERE issue = ?1",
        "UPDATE report SET issue = ?2, part = coalesce(part, ?3) WHERE issue = ?1",
    ] {
        connection.execute(sql, params![from, into, place.part])?;
    }
    for sql in [
        "INSERT INTO issue_day (issue, day, release, os, n) \
         SELECT ?2, day, release, os, n FROM issue_day WHERE issue = ?1 \
         ON CONFLICT (issue, day, release, os) DO UPDATE SET n = issue_day.n + excluded.n",
        "UPDATE issue SET count = count + (SELECT count FROM issue WHERE id = ?1), \
         first = min(first, (SELECT first FROM issue WHERE id = ?1)), \
         last = max(last, (SELECT last FROM issue WHERE id = ?1)) WHERE id = ?2",
        // Links to it lead on.
        "UPDATE issue SET merged_into = ?2 WHERE id = ?1 OR merged_into = ?1",
    ] {
        connection.execute(sql, params![from, into])?;
    }
    likely::merge(connection, from, into)?;
    connection.execute("DELETE FROM issue_day WHERE issue = ?1", params![from])?;
    connection.execute("UPDATE issue SET count = 0 WHERE id = ?1", params![from])?;
    Ok(true)
}

/// Makes an issue of its own again of one that people merged into another: with what came by its keys before and since. `false` where it is
/// no such part.
pub(crate) fn split(connection: &Connection, project: i64, issue: i64, part: i64) -> Result<bool> {
    let is_part: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM issue WHERE project = ?1 AND id = ?2 AND part_of = ?3 AND by_hand = 1 \
         AND merged_into = ?3)",
        params![project, part, issue],
        |row| row.get(0),
    )?;
    if !is_part {
        return Ok(false);
    }
    // It and what was merged into it before.
    let parts: Vec<i64> = connection.query_map(
        "WITH RECURSIVE parts (id) AS (SELECT CAST(?1 AS BIGINT) UNION \
         SELECT issue.id FROM issue JOIN parts ON issue.part_of = parts.id) SELECT id FROM parts",
        params![part],
        |row| row.get(0),
    )?;
    for of in parts {
        let inner = Some(of).filter(|of| *of != part);
        for sql in [
            "UPDATE issue_key SET issue = ?3, part = ?4 WHERE issue = ?1 AND part = ?2",
            "UPDATE report SET issue = ?3, part = ?4 WHERE issue = ?1 AND part = ?2",
        ] {
            connection.execute(sql, params![issue, of, part, inner])?;
        }
        connection
            .execute("UPDATE issue SET merged_into = ?2 WHERE id = ?1", params![of, inner.map(|_| part)])?;
    }
    for sql in [
        "UPDATE issue SET part_of = NULL, by_hand = 0 WHERE id = ?1",
        "INSERT INTO issue_day (issue, day, release, os, n) \
         SELECT issue, day, release, os, count(*) FROM report WHERE issue = ?1 GROUP BY issue, day, release, os",
        COUNT_AGAIN,
    ] {
        connection.execute(sql, params![part])?;
    }
    connection.execute(
        "UPDATE issue_day SET n = n - coalesce((SELECT n FROM issue_day AS other WHERE other.issue = ?2 \
         AND other.day = issue_day.day AND other.release = issue_day.release AND other.os = issue_day.os), 0) \
         WHERE issue = ?1",
        params![issue, part],
    )?;
    connection.execute("DELETE FROM issue_day WHERE issue = ?1 AND n <= 0", params![issue])?;
    connection.execute(COUNT_AGAIN, params![issue])?;
    likely::forget(connection, issue)?;
    Ok(true)
}

const COUNT_AGAIN: &str = "UPDATE issue SET count = (SELECT count(*) FROM report WHERE issue = ?1), \
     first = coalesce((SELECT min(received) FROM report WHERE issue = ?1), first), \
     last = coalesce((SELECT max(received) FROM report WHERE issue = ?1), last) WHERE id = ?1";

/// What is wrong with the counts, if anything: each equals the rows that it counts.
pub(crate) fn faults(connection: &Connection) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (sql, what) in [
        (
            "SELECT count(*) FROM issue WHERE count <> (SELECT count(*) FROM report WHERE report.issue = issue.id)",
            "issues whose count is not that of their reports",
        ),
        (
            "SELECT count(*) FROM issue WHERE count <> \
             (SELECT coalesce(sum(n), 0) FROM issue_day WHERE issue_day.issue = issue.id)",
            "issues whose count is not that of their days",
        ),
        (
            "SELECT count(*) FROM (SELECT issue, part FROM report UNION ALL SELECT issue, part FROM issue_key) AS placed \
             JOIN issue ON issue.id = placed.part WHERE issue.merged_into IS NULL OR issue.merged_into <> placed.issue",
            "reports and keys of a part that is not merged into their issue",
        ),
        (
            // At once: one file after the other goes through all reports each time.
            "SELECT count(*) FROM blob LEFT JOIN (SELECT digest AS needed, count(*) AS n FROM \
             (SELECT blob AS digest FROM report WHERE dropped IS NULL UNION ALL SELECT blob FROM attachment \
             UNION ALL SELECT blob FROM symbol_file UNION ALL SELECT blob FROM symbol_table \
             UNION ALL SELECT blob FROM owner_source) AS rows_of GROUP BY digest) \
             AS counted ON needed = blob.digest WHERE refs <> coalesce(n, 0)",
            "files that other numbers of rows need than is counted",
        ),
        (
            "SELECT (SELECT count(*) FROM missing_image WHERE reports <> (SELECT count(*) FROM missing \
             WHERE missing.project = missing_image.project AND missing.image_id = missing_image.image_id)) \
             + (SELECT count(*) FROM missing WHERE NOT EXISTS (SELECT 1 FROM missing_image \
             WHERE missing.project = missing_image.project AND missing.image_id = missing_image.image_id))",
            "images that other numbers of reports wait for than is counted",
        ),
        (owners::FAULTS, "counts of owners that are not those of their reports"),
        (
            "SELECT count(*) FROM blob WHERE packed IS NOT NULL \
             AND (refs = 0 OR NOT EXISTS (SELECT 1 FROM packed WHERE packed.id = blob.packed))",
            "files that are packed and not there, or not needed",
        ),
        (
            "SELECT count(*) FROM packed WHERE id NOT IN (SELECT packed FROM blob WHERE packed IS NOT NULL)",
            "packed files that nothing names",
        ),
    ]
    .into_iter()
    .chain(tables::FAULTS)
    {
        let count: i64 = connection.query_row(sql, params![], |row| row.get(0))?;
        if count > 0 {
            faults.push(format!("{count} {what}"));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::database::tests::sources;
    use crate::objects::Object;
    use crate::projects;
    use crate::queue::{self, NewReport};
    use backtrail::groups::Fit;
    use backtrail::{Beginning, Shown, ShownSort};
    use backtrail_testkit::TempDir;

    fn facts(key: &str, names: Option<&str>, release: &str) -> Facts {
        let keys = Some((key.to_owned(), names.map(str::to_owned)));
        let title = names.unwrap_or(key).to_owned();
        Facts { keys, title, release: release.to_owned(), ..Facts::default() }
    }

    fn with_reports(count: i64, test: impl Fn(&Connection) + Copy + Send + 'static) {
        let directory = TempDir::new("server-issues");
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
            projects::first(&database).unwrap();
            database
                .write(move |connection| {
                    for number in 1..=count {
                        let report = NewReport {
                            project: 1,
                            event_id: number.to_string(),
                            is_clients_id: true,
                            kind: "report",
                            name: None,
                            object: Object {
                                digest: number.to_string(),
                                size: 1,
                                packed: None,
                                placed: None,
                            },
                            release: None,
                            attachments: Vec::new(),
                        };
                        queue::add(connection, &report, 0)?;
                    }
                    test(connection);
                    assert_eq!(faults(connection).unwrap(), Vec::<String>::new());
                    Ok(())
                })
                .unwrap();
        }
    }

    fn counted(connection: &Connection, report: i64, facts: &Facts) {
        count(connection, Which { project: 1, id: report, received: report, day: 1 }, facts).unwrap();
    }

    fn issue_of(connection: &Connection, report: i64) -> i64 {
        connection
            .query_row("SELECT issue FROM report WHERE id = ?1", params![report], |row| row.get(0))
            .unwrap()
    }

    fn count_of(connection: &Connection, issue: i64) -> i64 {
        connection
            .query_row("SELECT count FROM issue WHERE id = ?1", params![issue], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn owners_that_come_late_split_nothing() {
        with_reports(4, |connection| {
            let learn = |column: &str, value: i64| {
                let sql = format!("UPDATE project SET {column} = ?1");
                connection.execute(&sql, params![value]).unwrap();
            };
            let of = |owner: &str, key: &str, sources: i64| {
                let part = Part { owner: owner.to_owned(), ..Part::default() };
                Facts { part, sources, ..facts(key, Some(key), "1") }
            };
            counted(connection, 1, &of("app", "k", 0));
            counted(connection, 2, &of("app", "k", 0));
            let issue = issue_of(connection, 1);
            connection
                .execute(
                    "UPDATE issue SET state = 'resolved', assignee = 'anna' WHERE id = ?1",
                    params![issue],
                )
                .unwrap();
            learn("sources", 1);
            // Another key, since frames of a library count now.
            counted(connection, 1, &of("sdk", "l", 1));
            assert_eq!(issue_of(connection, 1), issue, "the same issue");
            counted(connection, 3, &of("sdk", "l", 1));
            counted(connection, 2, &of("sdk", "l", 1));
            assert_eq!([issue_of(connection, 2), issue_of(connection, 3)], [issue, issue]);
            let text = |column: &str, issue: i64| -> String {
                let sql = format!("SELECT {column} FROM issue WHERE id = ?1");
                connection.query_row(&sql, params![issue], |row| row.get(0)).unwrap()
            };
            assert_eq!(
                (text("owner", issue), text("assignee", issue)),
                ("sdk".to_owned(), "anna".to_owned())
            );
            assert_eq!(count_of(connection, issue), 3);
            // A new report was faster than those that came before: they are one issue at the end.
            learn("sources", 2);
            counted(connection, 4, &of("sdk", "m", 2));
            let newer = issue_of(connection, 4);
            assert_ne!(newer, issue);
            for report in [1, 2, 3] {
                counted(connection, report, &of("sdk", "m", 2));
            }
            assert_eq!([1, 2, 3, 4].map(|report| issue_of(connection, report)), [newer; 4]);
            assert_eq!((count_of(connection, newer), text("assignee", newer)), (4, "anna".to_owned()));
            // Rules may say that they are two: then they are.
            learn("sources", 3);
            learn("rules_since", 3);
            counted(connection, 1, &of("app", "n", 3));
            assert_ne!(issue_of(connection, 1), newer);
        });
    }

    #[test]
    fn names_that_come_late_split_nothing() {
        with_reports(3, |connection| {
            counted(connection, 1, &facts("k", None, "1"));
            counted(connection, 2, &facts("k", None, "1"));
            assert_eq!(count_of(connection, issue_of(connection, 1)), 2);
            counted(connection, 1, &facts("k", Some("names"), "1"));
            // Another build of the same bug.
            counted(connection, 3, &facts("other", Some("names"), "2"));
            counted(connection, 2, &facts("k", Some("names"), "1"));
            let issue = issue_of(connection, 1);
            assert_eq!([issue_of(connection, 2), issue_of(connection, 3)], [issue, issue]);
            assert_eq!(count_of(connection, issue), 3);
            let title: String = connection
                .query_row("SELECT title FROM issue WHERE id = ?1", params![issue], |row| row.get(0))
                .unwrap();
            assert_eq!(title, "names");
        });
    }

    /// As with captures: with the images the stacks are others, and so is the key.
    #[test]
    fn another_key_with_the_names_is_the_same_issue() {
        with_reports(3, |connection| {
            counted(connection, 1, &facts("k", None, "1"));
            counted(connection, 2, &facts("k", None, "1"));
            let first = issue_of(connection, 1);
            let decide = "UPDATE issue SET assignee = 'ann', state = 'resolved', resolved = 5";
            connection.execute(decide, params![]).unwrap();
            counted(connection, 1, &facts("longer", Some("names"), "1"));
            assert_eq!(count_of(connection, first), 1, "the other one is not worked yet");
            counted(connection, 2, &facts("longer", Some("names"), "1"));
            let issue = issue_of(connection, 1);
            assert_eq!((issue_of(connection, 2), count_of(connection, issue)), (issue, 2));
            let leads_to: i64 = connection
                .query_row("SELECT merged_into FROM issue WHERE id = ?1", params![first], |row| row.get(0))
                .unwrap();
            assert_eq!(leads_to, issue);
            let sql = "SELECT state = 'resolved' AND assignee = 'ann' FROM issue WHERE id = ?1";
            assert!(connection.query_row(sql, params![issue], |row| row.get::<_, bool>(0)).unwrap());
            // One that comes without names still finds it.
            counted(connection, 3, &facts("k", None, "1"));
            assert_eq!(issue_of(connection, 3), issue);
        });
        with_reports(1, |connection| {
            counted(connection, 1, &facts("k", None, "1"));
            let decide = "UPDATE issue SET assignee = 'ann', state = 'resolved', resolved = 5";
            connection.execute(decide, params![]).unwrap();
            counted(connection, 1, &facts("longer", Some("names"), "1"));
            let decided: (String, String) = connection
                .query_row(
                    "SELECT assignee, state FROM issue WHERE id = ?1",
                    params![issue_of(connection, 1)],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert_eq!(decided, ("ann".to_owned(), "resolved".to_owned()), "it has not come back");
        });
    }

    #[test]
    fn two_that_turn_out_to_be_one_are_merged() {
        with_reports(3, |connection| {
            counted(connection, 1, &facts("a", Some("names"), "1"));
            counted(connection, 2, &facts("b", None, "1"));
            assert_ne!(issue_of(connection, 1), issue_of(connection, 2));
            counted(connection, 3, &facts("b", Some("names"), "1"));
            assert_eq!(issue_of(connection, 2), issue_of(connection, 1));
            assert_eq!(count_of(connection, issue_of(connection, 1)), 3);
            // Worked again, whatever for, it counts once.
            counted(connection, 3, &facts("b", Some("names"), "1"));
            assert_eq!(count_of(connection, issue_of(connection, 1)), 3);
        });
    }

    #[test]
    fn a_new_release_brings_a_resolved_issue_back() {
        with_reports(3, |connection| {
            counted(connection, 1, &facts("a", None, "1"));
            connection.execute("UPDATE issue SET state = 'resolved'", params![]).unwrap();
            let state = || -> String {
                connection.query_row("SELECT state FROM issue", params![], |row| row.get(0)).unwrap()
            };
            counted(connection, 2, &facts("a", None, "1"));
            assert_eq!(state(), "resolved", "the old release is still in use");
            counted(connection, 3, &facts("a", None, "2"));
            assert_eq!(state(), "open");
        });
    }

    #[test]
    fn only_a_projects_own_issues_are_merged() {
        with_reports(2, |connection| {
            counted(connection, 1, &facts("a", None, "1"));
            counted(connection, 2, &facts("b", None, "1"));
            let (one, two) = (issue_of(connection, 1), issue_of(connection, 2));
            assert!(!merge(connection, 2, one, two).unwrap(), "another project");
            assert!(!merge(connection, 1, one, one).unwrap());
            assert!(merge(connection, 1, one, two).unwrap());
            assert!(!merge(connection, 1, one, two).unwrap(), "it is no more");
            assert_eq!(count_of(connection, two), 2);
            counted(connection, 1, &facts("a", None, "1"));
            assert_eq!(issue_of(connection, 1), two, "its key leads on");
        });
    }

    #[test]
    fn what_people_merged_can_be_divided() {
        with_reports(6, |connection| {
            connection.execute("UPDATE report SET received = id", params![]).unwrap();
            counted(connection, 1, &facts("a", Some("A"), "1"));
            counted(connection, 2, &facts("b", Some("B"), "1"));
            counted(connection, 3, &facts("c", None, "2"));
            let [one, two, three] = [1, 2, 3].map(|report| issue_of(connection, report));
            assert!(merge(connection, 1, three, two).unwrap());
            assert!(merge(connection, 1, two, one).unwrap());
            // Since then: by keys of the merged ones, by a new build, by names that came late.
            counted(connection, 4, &facts("b-2", Some("B"), "2"));
            counted(connection, 5, &facts("c", Some("C"), "2"));
            counted(connection, 6, &facts("a", Some("A"), "3"));
            assert_eq!((1..=6).map(|report| issue_of(connection, report)).collect::<Vec<_>>(), [one; 6]);
            assert_eq!(count_of(connection, one), 6);

            assert!(!split(connection, 2, one, two).unwrap(), "another project");
            assert!(!split(connection, 1, one, three).unwrap(), "it is a part of a part");
            assert!(split(connection, 1, one, two).unwrap());
            assert!(!split(connection, 1, one, two).unwrap(), "it is no part any more");
            let now = || (1..=6).map(|report| issue_of(connection, report)).collect::<Vec<_>>();
            assert_eq!(now(), [one, two, two, two, two, one]);
            assert_eq!((count_of(connection, one), count_of(connection, two)), (2, 4));
            let seen: (i64, i64) = connection
                .query_row("SELECT first, last FROM issue WHERE id = ?1", params![two], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            assert_eq!(seen, (2, 5));
            assert_eq!(faults(connection).unwrap(), Vec::<String>::new());

            assert!(split(connection, 1, two, three).unwrap());
            assert_eq!(now(), [one, two, three, two, three, one]);
            // What comes later goes where its key does.
            counted(connection, 5, &facts("c-2", Some("C"), "3"));
            counted(connection, 1, &facts("a", None, "1"));
            assert_eq!(now(), [one, two, three, two, three, one]);
        });
    }

    #[test]
    fn names_that_come_late_go_where_people_merged_it() {
        with_reports(4, |connection| {
            counted(connection, 1, &facts("a", None, "1"));
            counted(connection, 2, &facts("b", Some("B"), "1"));
            let (one, two) = (issue_of(connection, 1), issue_of(connection, 2));
            assert!(merge(connection, 1, one, two).unwrap());
            counted(connection, 1, &facts("a", Some("A"), "1"));
            counted(connection, 3, &facts("a-2", Some("A"), "2"));
            assert_eq!([1, 3].map(|report| issue_of(connection, report)), [two; 2]);
            // An issue without names that turns out to be the merged one's goes with it.
            counted(connection, 4, &facts("d", None, "1"));
            counted(connection, 4, &facts("d", Some("A"), "1"));
            assert_eq!(issue_of(connection, 4), two);
            assert!(split(connection, 1, two, one).unwrap());
            assert_eq!([1, 2, 3, 4].map(|report| issue_of(connection, report)), [one, two, one, one]);
            let title = |issue: i64| -> String {
                connection
                    .query_row("SELECT title FROM issue WHERE id = ?1", params![issue], |row| row.get(0))
                    .unwrap()
            };
            assert_eq!([title(one), title(two)], ["A", "B"]);
        });
    }

    fn beginning(number: u64) -> Beginning {
        format!("{number:x}").parse().unwrap()
    }

    fn begun(key: &str, begins: &[u64], words: u64) -> Facts {
        let begins = Begins {
            kind: "abort".to_owned(),
            of_group: begins.iter().map(|it| beginning(*it)).collect(),
            words: Some(beginning(words)),
            shown: Vec::new(),
        };
        Facts { begins, kind: "abort".to_owned(), ..facts(key, Some(key), "1") }
    }

    fn fit_of(connection: &Connection, project: i64, shown: &[(ShownSort, u64)]) -> Fit<i64> {
        let shown = shown.iter().map(|(sort, it)| Shown {
            beginning: beginning(*it),
            sort: *sort,
            what: String::new(),
        });
        let begins = Begins { kind: "abort".to_owned(), shown: shown.collect(), ..Begins::default() };
        likely::issues(connection, project, None, &begins).unwrap()
    }

    #[test]
    fn what_was_cut_is_likely_of_the_one_issue_that_begins_so() {
        with_reports(60, |connection| {
            for report in 1..=20 {
                counted(connection, report, &begun("a", &[1, 2], 7));
                counted(connection, 20 + report, &begun("b", &[1, 3], 8));
            }
            counted(connection, 41, &begun("c", &[4], 9));
            let (a, b) = (issue_of(connection, 1), issue_of(connection, 21));
            let functions = |it| [(ShownSort::Functions, it)];
            let fit = |shown: &[(ShownSort, u64)]| fit_of(connection, 1, shown);
            assert_eq!(fit(&functions(2)), Fit::One(a, 20));
            assert_eq!(fit(&functions(1)), Fit::Several(vec![a, b]));
            assert_eq!(fit(&[(ShownSort::Functions, 1), (ShownSort::Words, 8)]), Fit::One(b, 20));
            assert_eq!(fit(&functions(4)), Fit::None, "one report is too few");
            assert_eq!(fit(&[(ShownSort::Functions, 5), (ShownSort::Words, 7)]), Fit::None);
            assert_eq!(fit_of(connection, 2, &functions(2)), Fit::None, "another project's");
            // Places without and with names are the issue's when they come.
            counted(connection, 1, &begun("a", &[1, 2, 6], 7));
            assert_eq!(fit(&functions(6)), Fit::One(a, 20));
            assert!(merge(connection, 1, a, b).unwrap());
            assert_eq!(fit(&functions(1)), Fit::One(b, 40));
            assert_eq!(fit(&functions(2)), Fit::One(b, 40));
            assert!(split(connection, 1, b, a).unwrap());
            assert_eq!(fit(&functions(2)), Fit::None, "it is not known whose it was");
            for report in 1..=20 {
                counted(connection, report, &begun("a", &[1, 2], 7));
            }
            assert_eq!(fit(&functions(2)), Fit::One(a, 20));
        });
    }

    #[test]
    fn words_of_an_issue_are_bounded() {
        with_reports(200, |connection| {
            for report in 1..=20 {
                counted(connection, report, &begun("a", &[1], 7));
            }
            let (a, words) = (issue_of(connection, 1), [(ShownSort::Words, 7)]);
            assert_eq!(fit_of(connection, 1, &words), Fit::One(a, 20));
            for report in 21..=200_u32 {
                counted(connection, report.into(), &begun("b", &[2], 1000 + u64::from(report)));
            }
            let kept: i64 = connection
                .query_row("SELECT count(*) FROM beginning WHERE is_words = 1", params![], |row| row.get(0))
                .unwrap();
            assert_eq!(kept, 1 + 128 + 1);
            // One of the words that were not kept may be these.
            assert!(matches!(fit_of(connection, 1, &words), Fit::Several(_)));
        });
    }
}
