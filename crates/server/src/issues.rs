//! Issues: which one a report belongs to, and what is counted of each. Everything here is part of a transaction, so that
//! counts equal rows at every moment.

use crate::database::{Connection, OptionalExtension as _, Result, params};
use crate::owners::{self, Part};
use crate::tables;
use crate::time::{DAY, now};
use crate::webhooks::{self, Event};

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
    let issue = match &facts.keys {
        Some((key, symbol_key)) => Some(place(connection, which, key, symbol_key.as_deref(), facts, stays)?),
        None => None,
    };
    let is_known = match (before, issue) {
        (Some(before), Some(issue)) => {
            before == issue || follow(connection, which.project, before, issue, stays.is_some())?
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
         ?13, sources = ?14 WHERE id = ?1",
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
    issue: i64,
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
        params![before, issue],
    )?;
    merge(connection, project, before, issue)
}

/// Takes back what was counted of a report, and returns the issue that it was of.
fn uncount(connection: &Connection, project: i64, report: i64) -> Result<Option<i64>> {
    let counted: Option<(i64, i64, String, String)> = connection
        .query_row(
            "SELECT issue, day, release, os FROM report WHERE id = ?1 AND issue IS NOT NULL",
            params![report],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .optional()?;
    let Some((issue, day, release, os)) = counted else { return Ok(None) };
    add_to_day(connection, issue, day, &release, &os, -1)?;
    if let Some(part) = owners::of_report(connection, report)? {
        owners::count(connection, project, day, &release, &part, -1)?;
    }
    connection.execute("UPDATE issue SET count = count - 1 WHERE id = ?1", params![issue])?;
    connection.execute("UPDATE report SET issue = NULL WHERE id = ?1", params![report])?;
    Ok(Some(issue))
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

/// The issue of a report's keys, by the rules of `backtrail::Groups`: a key by names decides; a key without names leads to an issue
/// that has none yet, and never joins two that have. `stays` is the issue of a report whose keys are others now only because it is known whose
/// code is where: what nobody knows yet is that issue's.
fn place(
    connection: &Connection,
    which: Which,
    key: &str,
    symbol_key: Option<&str>,
    facts: &Facts,
    stays: Option<i64>,
) -> Result<i64> {
    let project = which.project;
    let by_key = find(connection, project, key, false)?;
    let Some(symbol_key) = symbol_key else {
        return match (by_key, stays) {
            (Some((issue, _)), _) => Ok(issue),
            (None, Some(issue)) => lead(connection, project, key, false, issue).map(|()| issue),
            (None, None) => make(connection, which, key, None, facts),
        };
    };
    let by_names = find(connection, project, symbol_key, true)?;
    let nameless = by_key.filter(|(_, has_names)| !has_names);
    match (by_names, nameless) {
        (Some((issue, _)), Some((from, _))) => {
            merge(connection, project, from, issue)?;
            Ok(issue)
        }
        (Some((issue, _)), None) => {
            lead(connection, project, key, false, issue)?;
            Ok(issue)
        }
        (None, Some((issue, _))) => {
            lead(connection, project, symbol_key, true, issue)?;
            connection.execute(
                "UPDATE issue SET has_names = 1, name = ?2, title = ?3, kind = ?4, owner = ?5, \
                 why = ?6, code = ?7 WHERE id = ?1",
                params![issue, symbol_key, facts.title, facts.kind, facts.part.owner, facts.why, facts.code],
            )?;
            Ok(issue)
        }
        (None, None) => match stays {
            Some(issue) => {
                lead(connection, project, key, false, issue)?;
                lead(connection, project, symbol_key, true, issue)?;
                Ok(issue)
            }
            None => make(connection, which, key, Some(symbol_key), facts),
        },
    }
}

/// The issue that a key leads to, and whether it has names.
fn find(connection: &Connection, project: i64, key: &str, by_names: bool) -> Result<Option<(i64, bool)>> {
    connection
        .query_row(
            "SELECT issue.id, issue.has_names FROM issue_key JOIN issue ON issue.id = issue_key.issue \
         WHERE issue_key.project = ?1 AND issue_key.key = ?2 AND issue_key.by_names = ?3",
            params![project, key, by_names],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
}

fn lead(connection: &Connection, project: i64, key: &str, by_names: bool, issue: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO issue_key (project, key, by_names, issue) VALUES (?1, ?2, ?3, ?4) ON \
         CONFLICT DO NOTHING",
        params![project, key, by_names, issue],
    )?;
    Ok(())
}

fn make(
    connection: &Connection,
    which: Which,
    key: &str,
    symbol_key: Option<&str>,
    facts: &Facts,
) -> Result<i64> {
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
    lead(connection, which.project, key, false, issue)?;
    if let Some(symbol_key) = symbol_key {
        lead(connection, which.project, symbol_key, true, issue)?;
    }
    Ok(issue)
}

/// Makes two issues of a project one: what leads to `from` leads to `into` from now on. `false` where one of them is not there.
pub(crate) fn merge(connection: &Connection, project: i64, from: i64, into: i64) -> Result<bool> {
    let known: i64 = connection.query_row(
        "SELECT count(*) FROM issue WHERE project = ?1 AND id IN (?2, ?3) AND merged_into IS NULL",
        params![project, from, into],
        |row| row.get(0),
    )?;
    if from == into || known != 2 {
        return Ok(false);
    }
    for sql in [
        "UPDATE issue_key SET issue = ?2 WHERE issue = ?1",
        "UPDATE report SET issue = ?2 WHERE issue = ?1",
        "INSERT INTO issue_day (issue, day, release, os, n) \
         SELECT ?2, day, release, os, n FROM issue_day WHERE issue = ?1 \
         ON CONFLICT (issue, day, release, os) DO UPDATE SET n = issue_day.n + excluded.n",
        "UPDATE issue SET count = count + (SELECT count FROM issue WHERE id = ?1), \
         first = min(first, (SELECT first FROM issue WHERE id = ?1)), \
         last = max(last, (SELECT last FROM issue WHERE id = ?1)), \
         has_names = max(has_names, (SELECT has_names FROM issue WHERE id = ?1)) WHERE id = ?2",
        // Links to it lead on.
        "UPDATE issue SET merged_into = ?2 WHERE id = ?1 OR merged_into = ?1",
    ] {
        connection.execute(sql, params![from, into])?;
    }
    connection.execute("DELETE FROM issue_day WHERE issue = ?1", params![from])?;
    connection.execute("UPDATE issue SET count = 0 WHERE id = ?1", params![from])?;
    Ok(true)
}

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
}
