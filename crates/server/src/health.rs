//! How releases fare: sessions of apps, and how many of them crashed.
//!
//! Sentry's clients send an item when a session begins and whenever its state changes, or sums of many sessions:
//! <https://develop.sentry.dev/sdk/telemetry/sessions/>. Days are those on which the server learned of a session, whatever the
//! clocks of phones say.

use crate::database::Result;
use crate::time::{day, now};
use backtrail::rates::Rate;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Releases of one project that are counted apart on a day; further ones are counted together.
const MAX_RELEASES: i64 = 2000;

/// What further ones are counted as.
const OTHERS: &str = "(others)";

/// Days for which a session is known.
const KNOWN_DAYS: i64 = 7;

/// Sessions that are forgotten with each write.
const FORGOTTEN: i64 = 1000;

/// Days that a release's health is told of.
pub(crate) const DAYS: i64 = 30;

/// Sessions of one sum, as no client has more.
const MAX_SUM: u32 = 10_000_000;

/// Characters of a release's name and of a session's id.
const MAX_NAME: usize = 200;

/// What an item says of sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    release: String,
    what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    /// One session's state.
    One { sid: String, state: u8 },
    /// Sums of sessions that ended, by their state.
    Many([u32; 4]),
}

#[derive(Deserialize)]
struct Item {
    sid: Option<String>,
    status: Option<String>,
    #[serde(default)]
    errors: u64,
    #[serde(default)]
    attrs: Attributes,
    #[serde(default)]
    aggregates: Vec<Sum>,
}

#[derive(Default, Deserialize)]
struct Attributes {
    release: Option<String>,
}

#[derive(Deserialize)]
struct Sum {
    #[serde(default)]
    exited: u32,
    #[serde(default)]
    errored: u32,
    #[serde(default)]
    abnormal: u32,
    #[serde(default)]
    crashed: u32,
}

/// What an item `session` or `sessions` says. `None` where it says nothing of a release, or is no such item.
pub(crate) fn told(bytes: &[u8]) -> Option<Told> {
    let item: Item = serde_json::from_slice(bytes).ok()?;
    let release = shortened(&item.attrs.release.filter(|release| !release.is_empty())?);
    let what = match item.sid.filter(|sid| !sid.is_empty()) {
        Some(sid) => {
            let state = match item.status.as_deref().unwrap_or("ok") {
                "crashed" => 3,
                "abnormal" => 2,
                "errored" | "unhandled" => 1,
                _ if item.errors > 0 => 1,
                _ => 0,
            };
            What::One { sid: shortened(&sid), state }
        }
        None => {
            let mut sums = [0_u32; 4];
            for sum in item.aggregates.iter().take(10_000) {
                let of = [sum.exited, sum.errored, sum.abnormal, sum.crashed];
                for (total, count) in sums.iter_mut().zip(of) {
                    *total = total.saturating_add(count).min(MAX_SUM);
                }
            }
            What::Many(sums)
        }
    };
    Some(Told { release, what })
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

/// Counts sessions.
pub(crate) fn count(connection: &Connection, project: i64, told: &[Told]) -> Result<()> {
    let today = day(now());
    forget(connection, today)?;
    for Told { release, what } in told {
        match what {
            What::One { sid, state } => one(connection, project, today, release, sid, *state)?,
            What::Many(sums) => {
                let mut change = sums.map(i64::from);
                if let Some(all) = change.first_mut() {
                    *all = sums.iter().copied().map(i64::from).sum();
                }
                add(connection, project, today, &counted_as(connection, project, today, release)?, change)?;
            }
        }
    }
    Ok(())
}

fn one(connection: &Connection, project: i64, today: i64, release: &str, sid: &str, state: u8) -> Result<()> {
    let known: Option<(i64, String, u8)> = connection
        .prepare_cached("SELECT day, release, state FROM app_session WHERE project = ?1 AND sid = ?2")?
        .query_row(params![project, sid], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let (day, release, before) = match known {
        // It does not get better any more.
        Some((_, _, before)) if before >= state => return Ok(()),
        Some(known) => known,
        None => {
            let release = counted_as(connection, project, today, release)?;
            add(connection, project, today, &release, [1, 0, 0, 0])?;
            (today, release, 0)
        }
    };
    let mut change = [0; 4];
    for (state, by) in [(before, -1), (state, 1)] {
        if let Some(column) = change.get_mut(usize::from(state)).filter(|_| state > 0) {
            *column += by;
        }
    }
    add(connection, project, day, &release, change)?;
    connection
        .prepare_cached(
            "INSERT INTO app_session (project, sid, day, release, state) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (project, sid) DO UPDATE SET state = ?5",
        )?
        .execute(params![project, sid, day, release, state])?;
    Ok(())
}

/// The name that a release is counted by.
fn counted_as(connection: &Connection, project: i64, day: i64, release: &str) -> Result<String> {
    let (count, is_known): (i64, bool) = connection
        .prepare_cached(
            "SELECT count(*), coalesce(max(release = ?3), 0) FROM session_day WHERE project = ?1 AND day = ?2",
        )?
        .query_row(params![project, day, release], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(if is_known || count < MAX_RELEASES { release.to_owned() } else { OTHERS.to_owned() })
}

/// Adds to all sessions, those with errors, that ended abnormally, that crashed.
fn add(connection: &Connection, project: i64, day: i64, release: &str, change: [i64; 4]) -> Result<()> {
    let [sessions, errored, abnormal, crashed] = change;
    connection
        .prepare_cached(
            "INSERT INTO session_day (project, day, release, sessions, errored, abnormal, crashed) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (project, day, release) DO UPDATE SET \
             sessions = sessions + ?4, errored = errored + ?5, abnormal = abnormal + ?6, crashed = crashed + ?7",
        )?
        .execute(params![project, day, release, sessions, errored, abnormal, crashed])?;
    Ok(())
}

/// Forgets sessions that nothing comes of any more. Their counts stay.
fn forget(connection: &Connection, today: i64) -> Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM app_session WHERE (project, sid) IN \
             (SELECT project, sid FROM app_session WHERE day < ?1 LIMIT ?2)",
        )?
        .execute(params![today - KNOWN_DAYS, FORGOTTEN])?;
    Ok(())
}

/// A release in the last days.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Release {
    pub(crate) name: String,
    pub(crate) sessions: u64,
    pub(crate) errored: u64,
    pub(crate) abnormal: u64,
    pub(crate) crashed: u64,
    /// Reports of issues, of whatever kind.
    pub(crate) reports: u64,
    /// The last day that something came of it.
    pub(crate) last: i64,
}

impl Release {
    /// The part of its sessions that did not crash, with the interval that has it in 95 of 100 cases.
    pub(crate) fn crash_free(&self) -> Option<Rate> {
        let crashes = Rate::new(self.crashed, self.sessions)?;
        Some(Rate { value: 1.0 - crashes.value, low: 1.0 - crashes.high, high: 1.0 - crashes.low })
    }
}

/// A project's releases of the last days, the latest first.
pub(crate) fn releases(connection: &Connection, project: i64) -> Result<Vec<Release>> {
    let first = day(now()) - DAYS + 1;
    let mut releases: BTreeMap<String, Release> = BTreeMap::new();
    let mut statement = connection.prepare_cached(
        "SELECT release, sum(sessions), sum(errored), sum(abnormal), sum(crashed), max(day) FROM session_day \
         WHERE project = ?1 AND day >= ?2 GROUP BY release",
    )?;
    let mut rows = statement.query(params![project, first])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let count = |at: usize| row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or_default());
        let (sessions, errored, abnormal, crashed) = (count(1)?, count(2)?, count(3)?, count(4)?);
        let release = Release {
            name: name.clone(),
            sessions,
            errored,
            abnormal,
            crashed,
            reports: 0,
            last: row.get(5)?,
        };
        releases.insert(name, release);
    }
    let mut statement = connection.prepare_cached(
        "SELECT release, sum(n), max(day) FROM issue_day WHERE day >= ?2 AND issue IN \
         (SELECT id FROM issue WHERE project = ?1) GROUP BY release",
    )?;
    let mut rows = statement.query(params![project, first])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let release = releases.entry(name.clone()).or_insert_with(|| Release { name, ..Release::default() });
        release.reports = u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default();
        release.last = release.last.max(row.get(2)?);
    }
    let mut releases: Vec<_> = releases.into_values().collect();
    releases.sort_by_key(|release| std::cmp::Reverse((release.last, release.sessions, release.reports)));
    releases.truncate(500);
    Ok(releases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::projects;
    use backtrail_testkit::TempDir;

    fn item(text: &str) -> Told {
        told(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_session_is_counted_once_in_its_worst_state() {
        let directory = TempDir::new("server-health");
        let database = Database::open(&directory.join("db")).unwrap();
        let project = projects::first(&database).unwrap().unwrap().project;
        let items = [
            r#"{"sid":"a","init":true,"status":"ok","errors":0,"attrs":{"release":"app@1"}}"#,
            r#"{"sid":"a","status":"ok","errors":2,"attrs":{"release":"app@1"}}"#,
            r#"{"sid":"a","status":"crashed","errors":3,"attrs":{"release":"app@1"}}"#,
            r#"{"sid":"a","status":"exited","attrs":{"release":"app@1"}}"#,
            r#"{"sid":"b","init":true,"status":"exited","attrs":{"release":"app@1"}}"#,
            r#"{"sid":"c","init":true,"status":"abnormal","attrs":{"release":"app@1"}}"#,
            r#"{"aggregates":[{"started":"2020-01-01T00:00:00Z","exited":5,"crashed":1},{"errored":1}],"attrs":{"release":"app@2"}}"#,
        ];
        for text in items {
            let told = item(text);
            database.write(move |connection| count(connection, project, &[told])).unwrap();
        }
        let releases = database.read(|connection| releases(connection, project)).unwrap();
        let of = |name: &str| {
            let release = releases.iter().find(|release| release.name == name).unwrap();
            [release.sessions, release.errored, release.abnormal, release.crashed]
        };
        assert_eq!((of("app@1"), of("app@2")), ([3, 0, 1, 1], [7, 1, 0, 1]));
        let rate = releases.iter().find(|it| it.name == "app@2").unwrap().crash_free().unwrap();
        assert!((rate.value - 6.0 / 7.0).abs() < 1e-12 && rate.low < rate.value && rate.value < rate.high);
    }

    #[test]
    fn what_says_nothing_is_not_counted() {
        for text in ["", "[]", "{}", r#"{"sid":"a"}"#, r#"{"sid":"a","attrs":{"release":""}}"#] {
            assert_eq!(told(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn old_sessions_are_forgotten_and_their_counts_stay() {
        let directory = TempDir::new("server-forget");
        let database = Database::open(&directory.join("db")).unwrap();
        let project = projects::first(&database).unwrap().unwrap().project;
        let told = item(r#"{"sid":"a","status":"ok","attrs":{"release":"app@1"}}"#);
        let of_others = item(r#"{"sid":"b","status":"ok","attrs":{"release":"app@1"}}"#);
        let (known, sessions) = database
            .write(move |connection| {
                count(connection, project, &[told])?;
                connection.execute("UPDATE app_session SET day = 0", [])?;
                count(connection, project, &[of_others])?;
                let known = connection.query_row("SELECT count(*) FROM app_session", [], |row| row.get(0))?;
                Ok((known, releases(connection, project)?.remove(0).sessions))
            })
            .unwrap();
        assert_eq!((known, sessions), (1_i64, 2));
    }
}
