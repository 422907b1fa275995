//! Old reports lose their bytes. Their rows, and whatever was counted, stay.

use crate::database::{Connection, Result, params};
use crate::objects;
use crate::state::State;
use crate::time::now;
use std::collections::HashSet;
use std::time::Duration;

/// The first and the last reports of an issue that keep their bytes, of each so many.
const OF_AN_ISSUE: i64 = 3;

/// Reports that are removed in one transaction.
const TOGETHER: i64 = 100;

/// How often is looked for what is to go.
pub(crate) const PATROL: Duration = Duration::from_secs(600);

/// What stays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// What is not older.
    pub(crate) age: Option<Duration>,
    /// As many bytes of reports.
    pub(crate) bytes: Option<u64>,
}

/// Removes the bytes of what does not stay, until it is told to stop.
pub(crate) fn run(app: &State, keep: Keep, stopped: impl Fn() -> bool) -> Result<()> {
    if let Some(age) = keep.age {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        remove_until(app, now().saturating_sub(age), i64::MAX, &stopped)?;
    }
    if let Some(bytes) = keep.bytes {
        let too_many = app.database.read(kept)?.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        remove_until(app, i64::MAX, too_many, &stopped)?;
    }
    Ok(())
}

/// Bytes of reports, and of what came along with them, as they came.
fn kept(connection: &Connection) -> Result<i64> {
    let sql = "SELECT coalesce(sum(size), 0) FROM blob WHERE refs > 0 \
               AND digest NOT IN (SELECT blob FROM symbol_file UNION SELECT blob FROM symbol_table UNION SELECT blob FROM owner_source)";
    connection.query_row(sql, params![], |row| row.get(0))
}

/// Removes what was received before that, the oldest first, until so many bytes are gone.
fn remove_until(app: &State, until: i64, bytes: i64, stopped: &impl Fn() -> bool) -> Result<()> {
    let (mut gone, mut from) = (0_i64, i64::MIN);
    while gone < bytes && !stopped() {
        let Dropped { last, digests } =
            app.database.write(move |connection| drop_some(connection, from, until))?;
        let Some(last) = last else { break };
        // What stays need not be looked at for each batch again.
        from = last;
        // Only now is it certain that no row needs them.
        gone = gone.saturating_add(app.objects.remove_unneeded(&app.database, digests)?);
    }
    Ok(())
}

/// Reports whose bytes were taken from them.
struct Dropped {
    /// When the last of them was received.
    last: Option<i64>,
    /// Files that may be needed no more.
    digests: HashSet<String>,
}

/// Takes some reports' bytes from them, of those that were received between two times.
fn drop_some(connection: &Connection, from: i64, until: i64) -> Result<Dropped> {
    let reports: Vec<(i64, i64)> = connection.query_map(
        "SELECT id, received FROM report WHERE dropped IS NULL AND received >= ?4 AND received < ?1 \
         AND state NOT IN ('waiting', 'leased') AND (issue IS NULL OR ( \
         ?3 <= (SELECT count(*) FROM (SELECT 1 FROM report AS other \
         WHERE other.issue = report.issue AND other.id < report.id LIMIT ?3) AS earlier) AND \
         ?3 <= (SELECT count(*) FROM (SELECT 1 FROM report AS other \
         WHERE other.issue = report.issue AND other.id > report.id LIMIT ?3) AS later))) ORDER BY received LIMIT ?2",
        params![until, TOGETHER, OF_AN_ISSUE, from],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let mut digests = HashSet::new();
    for (id, _) in &reports {
        drop_one(connection, *id, &mut digests)?;
    }
    Ok(Dropped { last: reports.last().map(|(_, received)| *received), digests })
}

/// Takes a report's bytes from it, and what came along with it. Adds the files that may be needed no more.
pub(crate) fn drop_one(connection: &Connection, id: i64, digests: &mut HashSet<String>) -> Result<()> {
    let files: Vec<String> = connection.query_map(
        "SELECT blob FROM report WHERE id = ?1 UNION ALL SELECT blob FROM attachment WHERE report = ?1",
        params![id],
        |row| row.get(0),
    )?;
    for digest in files {
        objects::need_no_more(connection, &digest)?;
        digests.insert(digest);
    }
    connection.execute("DELETE FROM attachment WHERE report = ?1", params![id])?;
    // Nothing of it is left that symbols could name.
    connection.execute("DELETE FROM missing WHERE report = ?1", params![id])?;
    connection.execute("UPDATE report SET dropped = ?2 WHERE id = ?1", params![id, now()])?;
    Ok(())
}
