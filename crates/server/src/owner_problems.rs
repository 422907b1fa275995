//! Builds of projects of which it could not be worked out whose code is where: reports of them go on without, and people are told.

use crate::database::{Connection, Result, params};
use crate::time::{now, rfc3339};
use serde_json::{Value, json};

/// Of one project; the oldest go.
const MAX_PROBLEMS: i64 = 100;

/// Characters of why.
const MAX_WHY: usize = 500;

/// A row.
pub(crate) struct OwnerProblem {
    pub(crate) image: String,
    pub(crate) why: String,
    pub(crate) happened: i64,
}

/// A project's, the latest first.
pub(crate) fn rows(connection: &Connection, project: i64) -> Result<Vec<OwnerProblem>> {
    let sql = "SELECT image_id, why, happened FROM owner_problem WHERE project = ?1 ORDER BY happened DESC, image_id";
    connection.query_map(sql, params![project], |row| {
        Ok(OwnerProblem { image: row.get(0)?, why: row.get(1)?, happened: row.get(2)? })
    })
}

pub(crate) fn told(row: &OwnerProblem) -> Value {
    json!({ "image": row.image, "why": row.why, "happened": rfc3339(row.happened) })
}

/// It failed for a build.
pub(crate) fn add(connection: &Connection, project: i64, image: &str, why: &str) -> Result<()> {
    let why: String = why.chars().take(MAX_WHY).collect();
    connection.execute(
        "INSERT INTO owner_problem (project, image_id, why, happened) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (project, image_id) DO UPDATE SET why = excluded.why, happened = excluded.happened",
        params![project, image, why, now()],
    )?;
    connection.execute(
        "DELETE FROM owner_problem WHERE project = ?1 AND image_id NOT IN \
         (SELECT image_id FROM owner_problem WHERE project = ?1 ORDER BY happened DESC, image_id LIMIT ?2)",
        params![project, MAX_PROBLEMS],
    )?;
    Ok(())
}

/// It went well for a build.
pub(crate) fn remove(connection: &Connection, project: i64, image: &str) -> Result<()> {
    let sql = "DELETE FROM owner_problem WHERE project = ?1 AND image_id = ?2";
    connection.execute(sql, params![project, image]).map(drop)
}

/// A project knows something else of its code: all builds are looked at anew.
pub(crate) fn remove_all(connection: &Connection, project: i64) -> Result<()> {
    connection.execute("DELETE FROM owner_problem WHERE project = ?1", params![project]).map(drop)
}
