//! Which issue a report is likely of whose stack was cut, by `backtrail::groups::fit`: the one issue whose whole reports show the same.
//!
//! Nothing is moved. What whole reports show is written down with them, in their transaction; what a cut one shows is compared
//! when somebody looks at it. Issues that got no report since the server knows of this are not compared.

use crate::database::{Connection, Result, params};
use backtrail::groups::{Fit, MAX_WORDS, fit};
use backtrail::{Begins, ShownSort};

/// In the place of a digest: the issue has more words.
const MORE_WORDS: &str = "*";

/// Writes down what an issue's whole report shows. What is known already costs one look.
pub(crate) fn learn(connection: &Connection, project: i64, issue: i64, begins: &Begins) -> Result<()> {
    let all: Vec<String> = begins.of_group.iter().map(ToString::to_string).collect();
    // The first is the innermost function's or place's, the last the whole place's: the rest came with them.
    if let (Some(first), Some(last)) = (all.first(), all.last()) {
        let known: i64 = connection.query_row(
            "SELECT count(*) FROM beginning WHERE project = ?1 AND issue = ?2 AND digest IN (?3, ?4)",
            params![project, issue, first, last],
            |row| row.get(0),
        )?;
        if known < if first == last { 1 } else { 2 } {
            for digest in &all {
                insert(connection, project, digest, false, issue)?;
            }
        }
    }
    if let Some(words) = begins.words {
        let words = words.to_string();
        let (known, kept): (bool, i64) = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM beginning WHERE project = ?1 AND digest = ?2 AND issue = ?3), \
             (SELECT count(*) FROM beginning WHERE issue = ?3 AND is_words = 1)",
            params![project, words, issue],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let kept = usize::try_from(kept).unwrap_or_default();
        if !known && kept <= MAX_WORDS {
            let digest = if kept < MAX_WORDS { words.as_str() } else { MORE_WORDS };
            insert(connection, project, digest, true, issue)?;
        }
    }
    Ok(())
}

fn insert(connection: &Connection, project: i64, digest: &str, is_words: bool, issue: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO beginning (project, digest, is_words, issue) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        params![project, digest, is_words, issue],
    )?;
    Ok(())
}

/// What one issue's reports show is another's from now on.
pub(crate) fn merge(connection: &Connection, from: i64, into: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO beginning (project, digest, is_words, issue) SELECT project, digest, is_words, ?2 FROM \
         beginning WHERE issue = ?1 ON CONFLICT DO NOTHING",
        params![from, into],
    )?;
    connection.execute("DELETE FROM beginning WHERE issue = ?1", params![from])?;
    Ok(())
}

/// Of an issue that is divided nobody knows which part showed what: it is learnt again, by what comes.
pub(crate) fn forget(connection: &Connection, issue: i64) -> Result<()> {
    connection.execute("DELETE FROM beginning WHERE issue = ?1", params![issue])?;
    Ok(())
}

/// Which issues a report fits, other than its own.
pub(crate) fn issues(
    connection: &Connection,
    project: i64,
    own: Option<i64>,
    begins: &Begins,
) -> Result<Fit<i64>> {
    let shown = begins.shown.iter().map(|shown| (shown.sort, shown.beginning));
    fit(shown, |sort, beginning| {
        let more = if sort == ShownSort::Words { MORE_WORDS } else { "" };
        let rows = connection.query_map(
            "SELECT DISTINCT issue.id, issue.count FROM beginning JOIN issue ON issue.id = beginning.issue WHERE \
             beginning.project = ?1 AND (digest = ?2 OR (digest = ?3 AND replace(issue.kind, ?4, '') <> issue.kind)) AND \
             merged_into IS NULL AND count > 0 LIMIT 1000",
            params![project, beginning.to_string(), more, begins.kind],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let rows = rows.into_iter().map(|(issue, count): (i64, i64)| (issue, count.unsigned_abs()));
        Ok(rows.filter(|(issue, _)| Some(*issue) != own).collect())
    })
}
