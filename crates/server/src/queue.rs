//! Which reports wait to be worked: the state of their rows is the queue.

use crate::database::Result;
use rusqlite::{Connection, params};

/// Symbols of these images came: reports that missed one are worked again. Returns how many.
pub(crate) fn work_again(connection: &Connection, project: i64, image_ids: &[String]) -> Result<usize> {
    // A worker that has one of them at this moment began before the symbols came: `wanted` tells it that it is not the last.
    let mut statement = connection.prepare_cached(
        "UPDATE report SET wanted = wanted + 1, attempts = 0, \
         state = CASE state WHEN 'leased' THEN 'leased' ELSE 'waiting' END, \
         lease_until = CASE state WHEN 'leased' THEN lease_until ELSE NULL END \
         WHERE project = ?1 AND id IN (SELECT report FROM missing WHERE project = ?1 AND image_id = ?2)",
    )?;
    let mut count = 0;
    for image_id in image_ids {
        count += statement.execute(params![project, image_id])?;
    }
    Ok(count)
}
