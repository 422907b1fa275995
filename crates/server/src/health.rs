//! How releases fare: sessions of apps, and how many of them crashed.
//!
//! Sentry's clients send an item when a session begins and whenever its state changes, or sums of many sessions:
//! <https://develop.sentry.dev/sdk/telemetry/sessions/>. Days are those on which the server learned of a session, whatever the
//! clocks of phones say. Other programs post their own form (`posted`).

mod posted;

pub(crate) use posted::posted;

use crate::database::{Connection, OptionalExtension as _, Result, Row, params};
use crate::time::{day, now};
use backtrail::rates::Rate;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Releases of one project that are counted apart on a day; further ones are counted together.
const MAX_RELEASES: i64 = 2000;

/// Systems of one release that are counted apart on a day.
const MAX_SYSTEMS: i64 = 200;

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
pub(crate) struct SessionItem {
    release: String,
    os: Option<String>,
    what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    /// One session's state.
    One { sid: String, state: u8 },
    /// Sums of sessions that ended, by their state; with the id of a post that counts once.
    Sums { post: Option<String>, sums: [u32; 4] },
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
pub(crate) fn told(bytes: &[u8]) -> Option<SessionItem> {
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
            What::Sums { post: None, sums }
        }
    };
    Some(SessionItem { release, os: None, what })
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

/// How many sessions were told of for the first time, and how many were known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) new: u64,
    pub(crate) known: u64,
}

/// Counts sessions.
pub(crate) fn count(connection: &Connection, project: i64, told: &[SessionItem]) -> Result<Counted> {
    let today = day(now());
    forget(connection, today)?;
    let mut counted = Counted::default();
    for SessionItem { release, os, what } in told {
        let group = Group { project, day: today, release: release.clone(), os: os.clone() };
        let (count, is_new) = match what {
            What::One { sid, state } => (1, one(connection, group, sid, *state)?),
            What::Sums { post, sums } => {
                let all = sums.iter().copied().map(u64::from).sum();
                let is_new = match post {
                    Some(post) => first_of_post(connection, project, today, post)?,
                    None => true,
                };
                if is_new {
                    let mut change = sums.map(i64::from);
                    if let Some(first) = change.first_mut() {
                        *first = i64::try_from(all).unwrap_or(i64::MAX);
                    }
                    add(connection, &group.within_limits(connection)?, change)?;
                }
                (all, is_new)
            }
        };
        *(if is_new { &mut counted.new } else { &mut counted.known }) += count;
    }
    Ok(counted)
}

/// Sessions that are counted together.
struct Group {
    project: i64,
    day: i64,
    release: String,
    os: Option<String>,
}

/// Whether it is the first time that a post of this id came in the days that it is known for.
fn first_of_post(connection: &Connection, project: i64, day: i64, id: &str) -> Result<bool> {
    Ok(connection.execute(
        "INSERT INTO session_post (project, id, day) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![project, id, day],
    )? == 1)
}

/// Counts one session, and says whether it is new.
fn one(connection: &Connection, group: Group, sid: &str, state: u8) -> Result<bool> {
    let project = group.project;
    let known: Option<(Group, u8)> = connection
        .query_row(
            "SELECT day, release, os, state FROM app_session WHERE project = ?1 AND sid = ?2",
            params![project, sid],
            |row| {
                Ok((Group { project, day: row.get(0)?, release: row.get(1)?, os: row.get(2)? }, row.get(3)?))
            },
        )
        .optional()?;
    let is_new = known.is_none();
    let (group, before) = match known {
        // It does not get better any more.
        Some((_, before)) if before >= state => return Ok(false),
        Some(known) => known,
        None => {
            let group = group.within_limits(connection)?;
            add(connection, &group, [1, 0, 0, 0])?;
            (group, 0)
        }
    };
    let mut change = [0; 4];
    for (state, by) in [(before, -1), (state, 1)] {
        if let Some(column) = change.get_mut(usize::from(state)).filter(|_| state > 0) {
            *column += by;
        }
    }
    add(connection, &group, change)?;
    connection.execute(
        "INSERT INTO app_session (project, sid, day, release, os, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT (project, sid) DO UPDATE SET state = ?6",
        params![project, sid, group.day, group.release, group.os, state],
    )?;
    Ok(is_new)
}

impl Group {
    /// Under the names that it is counted by: further releases, and further systems of a release, are counted together.
    fn within_limits(mut self, connection: &Connection) -> Result<Self> {
        let (count, is_known): (i64, bool) = connection.query_row(
            "SELECT count(*), coalesce(max(CASE WHEN release = ?3 THEN 1 END), 0) FROM session_day \
             WHERE project = ?1 AND day = ?2",
            params![self.project, self.day, self.release],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if !is_known && count >= MAX_RELEASES {
            OTHERS.clone_into(&mut self.release);
        }
        if let Some(os) = &self.os {
            let (count, is_known): (i64, bool) = connection.query_row(
                "SELECT count(*), coalesce(max(CASE WHEN os = ?4 THEN 1 END), 0) FROM session_system_day \
                 WHERE project = ?1 AND day = ?2 AND release = ?3",
                params![self.project, self.day, self.release, os],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            if !is_known && count >= MAX_SYSTEMS {
                self.os = Some(OTHERS.to_owned());
            }
        }
        Ok(self)
    }
}

/// Adds to all sessions, those with errors, that ended abnormally, that crashed.
fn add(connection: &Connection, group: &Group, change: [i64; 4]) -> Result<()> {
    let Group { project, day, release, os } = group;
    let [sessions, errored, abnormal, crashed] = change;
    connection.execute(
        "INSERT INTO session_day (project, day, release, sessions, errored, abnormal, crashed) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (project, day, release) DO UPDATE SET \
         sessions = session_day.sessions + ?4, errored = session_day.errored + ?5, \
         abnormal = session_day.abnormal + ?6, crashed = session_day.crashed + ?7",
        params![project, day, release, sessions, errored, abnormal, crashed],
    )?;
    let Some(os) = os else { return Ok(()) };
    connection.execute(
        "INSERT INTO session_system_day AS known (project, day, release, os, sessions, errored, abnormal, crashed) \
         VALUES (?1, ?2, ?3, ?8, ?4, ?5, ?6, ?7) ON CONFLICT (project, day, release, os) DO UPDATE SET \
         sessions = known.sessions + ?4, errored = known.errored + ?5, \
         abnormal = known.abnormal + ?6, crashed = known.crashed + ?7",
        params![project, day, release, sessions, errored, abnormal, crashed, os],
    )?;
    Ok(())
}

/// Forgets sessions and posts that nothing comes of any more. Their counts stay.
fn forget(connection: &Connection, today: i64) -> Result<()> {
    for sql in [
        "DELETE FROM app_session WHERE (project, sid) IN \
         (SELECT project, sid FROM app_session WHERE day < ?1 LIMIT ?2)",
        "DELETE FROM session_post WHERE (project, id) IN \
         (SELECT project, id FROM session_post WHERE day < ?1 LIMIT ?2)",
    ] {
        connection.execute(sql, params![today - KNOWN_DAYS, FORGOTTEN])?;
    }
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

/// A name with its sums of sessions.
fn sessions_of(row: &Row<'_>) -> Result<Release> {
    let count = |at: usize| row.get::<_, i64>(at).map(|count| u64::try_from(count).unwrap_or_default());
    Ok(Release {
        name: row.get(0)?,
        sessions: count(1)?,
        errored: count(2)?,
        abnormal: count(3)?,
        crashed: count(4)?,
        reports: 0,
        last: row.get(5)?,
    })
}

/// A project's releases of the last days, the latest first.
pub(crate) fn releases(connection: &Connection, project: i64) -> Result<Vec<Release>> {
    let first = day(now()) - DAYS + 1;
    let mut releases: BTreeMap<String, Release> = BTreeMap::new();

    for release in connection.query_map(
        "SELECT release, sum(sessions), sum(errored), sum(abnormal), sum(crashed), max(day) FROM session_day \
         WHERE project = ?1 AND day >= ?2 GROUP BY release",
        params![project, first],
        sessions_of,
    )? {
        releases.insert(release.name.clone(), release);
    }

    let reports = connection.query_map(
        "SELECT release, sum(n), max(day) FROM issue_day WHERE day >= ?2 AND issue IN \
         (SELECT id FROM issue WHERE project = ?1) GROUP BY release",
        params![project, first],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get(2)?)),
    )?;
    for (name, reports, last) in reports {
        let release = releases.entry(name.clone()).or_insert_with(|| Release { name, ..Release::default() });
        release.reports = u64::try_from(reports).unwrap_or_default();
        release.last = release.last.max(last);
    }
    let mut releases: Vec<_> = releases.into_values().collect();
    releases.sort_by_key(|release| std::cmp::Reverse((release.last, release.sessions, release.reports)));
    releases.truncate(500);
    Ok(releases)
}

/// The systems of a release in the last days, where clients told of them, those with the most sessions first; each as a release of
/// its own, without reports.
pub(crate) fn systems(connection: &Connection, project: i64, release: &str) -> Result<Vec<Release>> {
    let first = day(now()) - DAYS + 1;

    connection.query_map(
        "SELECT os, sum(sessions), sum(errored), sum(abnormal), sum(crashed), max(day) FROM \
         session_system_day WHERE project = ?1 AND day >= ?2 AND release = ?3 GROUP BY os ORDER \
         BY 2 DESC, 1 LIMIT 500",
        params![project, first, release],
        sessions_of,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::database::tests::sources;
    use crate::projects;
    use backtrail_testkit::TempDir;

    fn item(text: &str) -> SessionItem {
        told(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_session_is_counted_once_in_its_worst_state() {
        let directory = TempDir::new("server-health");
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
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
            assert!(
                (rate.value - 6.0 / 7.0).abs() < 1e-12 && rate.low < rate.value && rate.value < rate.high
            );
        }
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
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
            let project = projects::first(&database).unwrap().unwrap().project;
            let told = item(r#"{"sid":"a","status":"ok","attrs":{"release":"app@1"}}"#);
            let of_others = item(r#"{"sid":"b","status":"ok","attrs":{"release":"app@1"}}"#);
            let (known, sessions) = database
                .write(move |connection| {
                    count(connection, project, &[told])?;
                    connection.execute("UPDATE app_session SET day = 0", params![])?;
                    count(connection, project, &[of_others])?;
                    let known =
                        connection
                            .query_row("SELECT count(*) FROM app_session", params![], |row| row.get(0))?;
                    Ok((known, releases(connection, project)?.remove(0).sessions))
                })
                .unwrap();
            assert_eq!((known, sessions), (1_i64, 2));
        }
    }
}
