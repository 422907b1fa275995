//! Whose code the reports of the last days are about: the app, a library in it, the system. What a library's vendor looks at: which
//! of its versions, in which apps, in how many of their sessions.

use crate::database::{Connection, OptionalExtension as _, Result, Row, params};
use crate::health::DAYS;
use crate::time::{day, now};
use backtrail::rates::Rate;
use std::collections::HashMap;

/// Rows that are shown of a list.
const MAX_ROWS: i64 = 200;

/// What a version or an app is called that no report tells.
pub(crate) const UNKNOWN: &str = "unknown";

/// What is counted of a report beside its issue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Part {
    pub(crate) owner: String,
    pub(crate) version: String,
    pub(crate) app: String,
    /// Whether it tells of a crash, not of a hang or of what was caught.
    pub(crate) crashed: bool,
}

/// What was counted of a report that has an issue; `None` where nothing was.
pub(crate) fn of_report(connection: &Connection, report: i64) -> Result<Option<Part>> {
    let part = |row: &Row<'_>| {
        Ok(Part { owner: row.get(0)?, version: row.get(1)?, app: row.get(2)?, crashed: row.get(3)? })
    };
    connection
        .query_row(
            "SELECT owner, owner_version, app, crashed FROM report WHERE id = ?1 AND owner IS NOT NULL",
            params![report],
            part,
        )
        .optional()
}

/// Counts a report of an issue (`n` is 1), or takes it back (-1).
pub(crate) fn count(
    connection: &Connection,
    project: i64,
    day: i64,
    release: &str,
    part: &Part,
    n: i64,
) -> Result<()> {
    let Part { owner, version, app, crashed } = part;
    let crashes = if *crashed { n } else { 0 };
    connection.execute(
        "INSERT INTO owner_day (project, day, owner, owner_version, app, release, n, crashes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (project, day, owner, owner_version, \
         app, release) DO UPDATE SET n = owner_day.n + excluded.n, crashes = owner_day.crashes + excluded.crashes",
        params![project, day, owner, version, app, release, n, crashes],
    )?;
    if n < 0 {
        connection.execute(
            "DELETE FROM owner_day WHERE project = ?1 AND day = ?2 AND owner = ?3 AND owner_version = ?4 \
                 AND app = ?5 AND release = ?6 AND n <= 0",
            params![project, day, owner, version, app, release],
        )?;
    }
    Ok(())
}

/// How many rows of `owner_day` are not what they count.
pub(crate) const FAULTS: &str = "WITH counted AS (SELECT project, day, owner, owner_version, app, release, \
    count(*) AS n, sum(crashed) AS crashes FROM report WHERE issue IS NOT NULL AND owner IS NOT NULL \
    GROUP BY project, day, owner, owner_version, app, release) \
    SELECT (SELECT count(*) FROM (SELECT * FROM counted EXCEPT SELECT * FROM owner_day) AS more) \
    + (SELECT count(*) FROM (SELECT * FROM owner_day EXCEPT SELECT * FROM counted) AS less)";

/// Reports of the last days that have something in common.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Counted {
    /// An owner, a version of one, an app or a release of apps.
    pub(crate) name: String,
    pub(crate) reports: u64,
    pub(crate) crashes: u64,
    /// Crashes of a session; `None` where no client told of sessions.
    pub(crate) rate: Option<Rate>,
    /// Sessions that the rate is of; `None` where no client told of any.
    pub(crate) sessions: Option<u64>,
}

/// One owner.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Owner {
    /// By its versions, as reports or rules tell them; most crashes first, as in the other lists.
    pub(crate) versions: Vec<Counted>,
    pub(crate) apps: Vec<Counted>,
    /// With rates.
    pub(crate) releases: Vec<Counted>,
}

fn counted(row: &Row<'_>) -> Result<Counted> {
    let number = |at: usize| row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or_default());
    Ok(Counted { name: row.get(0)?, reports: number(1)?, crashes: number(2)?, ..Counted::default() })
}

/// Owners of a project, those with the most crashes first. A rate is of those releases that sessions are known of, since crashes of others have
/// nothing to be counted against; whoever crashed in such others alone has none.
pub(crate) fn owners(connection: &Connection, project: i64) -> Result<Vec<Counted>> {
    let first = day(now()) - DAYS + 1;
    let sessions = sessions(connection, project, first)?;
    let total = Some(sessions.values().sum::<u64>()).filter(|total| *total > 0);

    let row = |row: &Row<'_>| {
        let with_sessions = u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default();
        let counted = counted(row)?;
        let is_known = with_sessions > 0 || counted.crashes == 0;
        let rate = total.filter(|_| is_known).and_then(|total| Rate::new(with_sessions, total));
        Ok(Counted { rate, sessions: total, ..counted })
    };
    connection.query_map(
        "SELECT owner, sum(n), sum(crashes), coalesce(sum(crashes) FILTER (WHERE release IN \
         (SELECT release FROM session_day WHERE project = ?1 AND day >= ?2 AND sessions > 0)), 0) \
         FROM owner_day WHERE project = ?1 AND day >= ?2 GROUP BY owner ORDER BY 3 DESC, 2 DESC, 1 LIMIT ?3",
        params![project, first, MAX_ROWS],
        row,
    )
}

/// What is known of an owner; `None` where no report of the last days is of it.
pub(crate) fn owner(connection: &Connection, project: i64, owner: &str) -> Result<Option<Owner>> {
    let first = day(now()) - DAYS + 1;
    let by = |column: &str| -> Result<Vec<Counted>> {
        let sql = format!(
            "SELECT {column}, sum(n), sum(crashes) FROM owner_day WHERE project = ?1 AND day >= ?2 AND owner = ?3 \
             GROUP BY {column} ORDER BY 3 DESC, 2 DESC, 1 LIMIT ?4"
        );

        connection.query_map(&sql, params![project, first, owner, MAX_ROWS], counted)
    };
    let mut found = Owner { versions: by("owner_version")?, apps: by("app")?, releases: by("release")? };
    if found.versions.is_empty() {
        return Ok(None);
    }
    let sessions = sessions(connection, project, first)?;
    for release in &mut found.releases {
        release.sessions = sessions.get(&release.name).copied();
        release.rate = release.sessions.and_then(|sessions| Rate::new(release.crashes, sessions));
    }
    Ok(Some(found))
}

/// Sessions of releases since a day.
fn sessions(connection: &Connection, project: i64, first: i64) -> Result<HashMap<String, u64>> {
    let sessions = connection.query_map(
        "SELECT release, sum(sessions) FROM session_day WHERE project = ?1 AND day >= ?2 AND sessions > 0 \
         GROUP BY release",
        params![project, first],
        |row| Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default())),
    )?;
    Ok(sessions.into_iter().collect())
}
