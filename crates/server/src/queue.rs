//! Reports as rows: how they come in, which of them wait to be worked, and how that ends. A row's state is the queue.

use crate::database::{Connection, OptionalExtension as _, Result, params};
use crate::objects::{self, Object};
use crate::time::now;

/// A report whose bytes are on disk.
#[derive(Clone, Debug)]
pub(crate) struct NewReport {
    pub(crate) project: i64,
    /// Its id, by the client or our own.
    pub(crate) event_id: String,
    /// Whether the client gave the id: then it alone tells whether the report is here already.
    pub(crate) is_clients_id: bool,
    pub(crate) kind: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) object: Object,
    pub(crate) release: Option<String>,
    pub(crate) attachments: Vec<NewAttachment>,
}

impl NewReport {
    /// Bytes of the report and what came along.
    pub(crate) fn size(&self) -> i64 {
        self.objects()
            .fold(0, |size, object| size.saturating_add(i64::try_from(object.size).unwrap_or(i64::MAX)))
    }

    /// Its files.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Object> {
        self.attachments.iter().map(|attachment| &attachment.object).chain([&self.object])
    }
}

/// What comes along with a report.
#[derive(Clone, Debug)]
pub(crate) struct NewAttachment {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) object: Object,
}

/// What became of a [`NewReport`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Added {
    pub(crate) event_id: String,
    pub(crate) is_new: bool,
}

/// Adds a report, unless it is here already: by its client's id, else by its content, in the last `window` milliseconds.
pub(crate) fn add(connection: &Connection, report: &NewReport, window: i64) -> Result<Added> {
    let now = now();
    if !report.is_clients_id {
        let known = connection.query_row(
            "SELECT event_id FROM report WHERE project = ?1 AND blob = ?2 AND received > ?3 LIMIT 1",
            params![report.project, report.object.digest, now - window],
            |row| row.get(0),
        );
        if let Some(event_id) = known.optional()? {
            return Ok(Added { event_id, is_new: false });
        }
    }
    let is_known: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM report WHERE project = ?1 AND event_id = ?2)",
        params![report.project, report.event_id],
        |row| row.get(0),
    )?;
    if is_known {
        return Ok(Added { event_id: report.event_id.clone(), is_new: false });
    }
    objects::need(connection, &report.object)?;
    let NewReport { project, event_id, kind, name, object, release, .. } = report;
    let id: i64 = connection.query_row(
        "INSERT INTO report (project, event_id, kind, name, blob, received, stated_release) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
        params![project, event_id, kind, name, object.digest, now, release],
        |row| row.get(0),
    )?;
    for (attachment, position) in report.attachments.iter().zip(0_i64..) {
        objects::need(connection, &attachment.object)?;
        let NewAttachment { name, kind, object } = attachment;
        connection.execute(
            "INSERT INTO attachment (report, position, name, kind, blob) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![id, position, name, kind, object.digest],
        )?;
    }
    Ok(Added { event_id: report.event_id.clone(), is_new: true })
}

/// How many reports wait or are worked at this moment.
pub(crate) fn waiting(connection: &Connection) -> Result<u64> {
    let count: i64 = connection.query_row(
        "SELECT count(*) FROM report WHERE state IN ('waiting', 'leased')",
        params![],
        |row| row.get(0),
    )?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// A report that somebody works.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    pub(crate) id: i64,
    pub(crate) project: i64,
    pub(crate) blob: String,
    pub(crate) received: i64,
    pub(crate) attempts: i64,
    pub(crate) wanted: i64,
    pub(crate) stated_release: Option<String>,
    /// The last symbols that could be used at that time.
    pub(crate) symbols: i64,
    /// The version of what its project knew of its code at that time.
    pub(crate) sources: i64,
}

/// How often a report is tried.
const MAX_ATTEMPTS: i64 = 3;

/// Takes reports to work until then: those that wait, and those whose worker did not end in time. What was tried too often is set
/// apart. What was tried before is taken alone, and only one of these is worked at a time: a report that ends the server again and again
/// would else have others tried as often as itself, and set apart with it.
pub(crate) fn lease(connection: &Connection, count: usize, until: i64) -> Result<Vec<Leased>> {
    let now = now();
    connection.execute(
        "UPDATE report SET state = 'quarantined', lease_until = NULL, \
         problem = coalesce(problem, 'working it ended the server or took too long') \
         WHERE state IN ('waiting', 'leased') AND attempts > 0 AND attempts >= ?2 \
         AND (lease_until IS NULL OR lease_until < ?1)",
        params![now, MAX_ATTEMPTS],
    )?;
    let symbols = last_symbols(connection)?;
    let tried = first_tried(connection, now)?;
    let Some(tried) = tried else { return Ok(Vec::new()) };
    let count = if tried == 0 { i64::try_from(count).unwrap_or(1) } else { 1 };
    connection.query_map(
        "UPDATE report SET state = 'leased', lease_until = ?2, attempts = attempts + 1, worker = ?5 WHERE id IN \
         (SELECT id FROM report WHERE state IN ('waiting', 'leased') AND attempts = ?4 \
         AND (lease_until IS NULL OR lease_until < ?1) ORDER BY lease_until NULLS FIRST, id LIMIT ?3) \
         RETURNING id, project, blob, received, attempts, wanted, stated_release, \
         (SELECT project.sources FROM project WHERE project.id = report.project)",
        params![now, until, count, tried, connection.replica()],
        |row| {
            Ok(Leased {
                id: row.get(0)?,
                project: row.get(1)?,
                blob: row.get(2)?,
                received: row.get(3)?,
                attempts: row.get(4)?,
                wanted: row.get(5)?,
                stated_release: row.get(6)?,
                symbols,
                sources: row.get(7)?,
            })
        },
    )
}

/// Gives back what a lease up to `until` took, where it is not known what: the connection broke before the answer came.
pub(crate) fn give_back(connection: &Connection, until: i64) -> Result<()> {
    connection.execute(
        "UPDATE report SET state = 'waiting', attempts = attempts - 1, lease_until = NULL \
         WHERE state = 'leased' AND worker = ?1 AND lease_until = ?2",
        params![connection.replica(), until],
    )?;
    Ok(())
}

fn last_symbols(connection: &Connection) -> Result<i64> {
    connection.query_row("SELECT coalesce(max(usable), 0) FROM symbol_file", params![], |row| row.get(0))
}

/// Has a report worked once more, where symbols of an image that it still misses came while it was worked: nothing said then
/// that it waits for them.
pub(crate) fn want_again<'i>(
    connection: &Connection,
    report: &Leased,
    missing: impl Iterator<Item = &'i str>,
) -> Result<()> {
    if last_symbols(connection)? == report.symbols {
        return Ok(());
    }
    for image_id in missing {
        let is_there: bool = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM symbol_file WHERE project = ?1 AND image_id = ?2 AND usable > ?3)",
            params![report.project, image_id, report.symbols],
            |row| row.get(0),
        )?;
        if is_there {
            connection.execute("UPDATE report SET wanted = wanted + 1 WHERE id = ?1", params![report.id])?;
            break;
        }
    }
    Ok(())
}

/// How often the next report was tried; `None` where none waits. While one is worked that was tried before, no further one of these is
/// next.
fn first_tried(connection: &Connection, now: i64) -> Result<Option<i64>> {
    let sql = "SELECT attempts FROM report WHERE state IN ('waiting', 'leased') \
        AND (lease_until IS NULL OR lease_until < ?1) AND (attempts = 0 OR NOT EXISTS \
        (SELECT 1 FROM report WHERE state = 'leased' AND attempts > 1 AND lease_until >= ?1)) \
        ORDER BY lease_until NULLS FIRST, id LIMIT 1";
    connection.query_row(sql, params![now], |row| row.get(0)).optional()
}

/// Servers that are not there any more have no reports and make no tables: a start, and whenever another replica may have ended. Says
/// how much there is to take.
pub(crate) fn release(connection: &Connection) -> Result<usize> {
    let is_gone = connection.is_gone("worker");
    let sql = format!(
        "UPDATE report SET state = 'waiting', lease_until = NULL WHERE state = 'leased' AND {is_gone}"
    );
    let reports = connection.execute(&sql, params![])?;
    let sql = format!("UPDATE symbol_conversion SET worker = NULL WHERE worker IS NOT NULL AND {is_gone}");
    Ok(reports + connection.execute(&sql, params![])?)
}

/// Ends the work on a report: with that state, or waiting again where there is a newer reason to work it. `false` where somebody
/// else has it meanwhile, so that nothing of this work may count.
pub(crate) fn end(
    connection: &Connection,
    report: &Leased,
    state: &str,
    problem: Option<&str>,
) -> Result<bool> {
    Ok(connection.execute(
        "UPDATE report SET state = CASE WHEN wanted = ?3 THEN ?4 ELSE 'waiting' END, lease_until = NULL, \
         attempts = 0, problem = ?5 WHERE id = ?1 AND state = 'leased' AND attempts = ?2",
        params![report.id, report.attempts, report.wanted, state, problem],
    )? == 1)
}

/// The work on a report failed: it is tried later, or set apart after the last attempt.
pub(crate) fn fail(connection: &Connection, report: &Leased, problem: &str, again_at: i64) -> Result<()> {
    let is_last = report.attempts >= MAX_ATTEMPTS;
    let (state, until) = if is_last { ("quarantined", None) } else { ("waiting", Some(again_at)) };
    connection.execute(
        "UPDATE report SET state = ?3, lease_until = ?4, problem = ?5 \
         WHERE id = ?1 AND state = 'leased' AND attempts = ?2",
        params![report.id, report.attempts, state, until, problem],
    )?;
    Ok(())
}

/// It is tried again later, and this attempt does not count: what it needs is not to be had at present.
pub(crate) fn put_off(connection: &Connection, report: &Leased, problem: &str, again_at: i64) -> Result<()> {
    connection.execute(
        "UPDATE report SET state = 'waiting', attempts = attempts - 1, lease_until = ?3, problem = ?4 \
         WHERE id = ?1 AND state = 'leased' AND attempts = ?2",
        params![report.id, report.attempts, again_at, problem],
    )?;
    Ok(())
}

/// Why a report is put off that waits for it to be worked out whose code is where.
pub(crate) const WAITS_FOR_OWNERS: &str = "whose code is where is being worked out";

/// Reports of a project that were put off for that are worked now.
pub(crate) fn go_on(connection: &Connection, project: i64) -> Result<()> {
    let sql = "UPDATE report SET lease_until = NULL WHERE project = ?1 AND state = 'waiting' \
               AND lease_until IS NOT NULL AND problem = ?2";
    connection.execute(sql, params![project, WAITS_FOR_OWNERS])?;
    Ok(())
}

/// Has reports of a project with these numbers worked again that were worked before it knew what it knows of its code, but for those that
/// are older. Says how many.
pub(crate) fn work_sources_again(
    connection: &Connection,
    project: i64,
    after: i64,
    until: i64,
    sources: i64,
    oldest: i64,
) -> Result<usize> {
    // A worker that has one of them may have begun before: `wanted` tells it that it is not the last.
    let sql = "UPDATE report SET wanted = wanted + 1, \
        attempts = CASE state WHEN 'leased' THEN attempts ELSE 0 END, \
        state = CASE state WHEN 'leased' THEN 'leased' ELSE 'waiting' END, \
        lease_until = CASE state WHEN 'leased' THEN lease_until ELSE NULL END \
        WHERE project = ?1 AND id > ?2 AND id <= ?3 AND sources < ?4 AND received >= ?5 AND dropped IS NULL \
        AND state IN ('done', 'leased')";
    connection.execute(sql, params![project, after, until, sources, oldest])
}

/// How many reports miss an image.
pub(crate) fn waiting_for(connection: &Connection, project: i64, image_id: &str) -> Result<usize> {
    let sql = "SELECT count(*) FROM missing WHERE project = ?1 AND image_id = ?2";
    let count: i64 = connection.query_row(sql, params![project, image_id], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Symbols of these images came: reports that missed one are worked again. Returns how many.
pub(crate) fn work_again(connection: &Connection, project: i64, image_ids: &[String]) -> Result<usize> {
    // A worker that has one of them at this moment began before the symbols came: `wanted` tells it that it is not the last.
    let sql = "UPDATE report SET wanted = wanted + 1, \
        attempts = CASE state WHEN 'leased' THEN attempts ELSE 0 END, \
        state = CASE state WHEN 'leased' THEN 'leased' ELSE 'waiting' END, \
        lease_until = CASE state WHEN 'leased' THEN lease_until ELSE NULL END \
        WHERE project = ?1 AND id IN (SELECT report FROM missing WHERE project = ?1 AND image_id = ?2)";
    let mut count = 0;
    for image_id in image_ids {
        count += connection.execute(sql, params![project, image_id])?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::database::tests::sources;
    use crate::projects;
    use backtrail_testkit::TempDir;

    fn report(event_id: &str, is_clients_id: bool, content: &str) -> NewReport {
        NewReport {
            project: 1,
            event_id: event_id.to_owned(),
            is_clients_id,
            kind: "report",
            name: None,
            object: Object { digest: content.to_owned(), size: 1, packed: None, placed: None },
            release: None,
            attachments: Vec::new(),
        }
    }

    fn with_database(test: impl Fn(&Connection) + Copy + Send + 'static) {
        let directory = TempDir::new("server-queue");
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
            projects::first(&database).unwrap();
            database
                .write(move |connection| {
                    test(connection);
                    Ok(())
                })
                .unwrap();
        }
    }

    #[test]
    fn a_report_that_is_sent_again_is_one() {
        with_database(|connection| {
            let add = |report: &NewReport| add(connection, report, 1000).unwrap();
            assert!(add(&report("a", true, "x")).is_new);
            assert!(!add(&report("a", true, "y")).is_new, "the client's id tells");
            assert!(add(&report("b", true, "x")).is_new, "the client says that it is another");
            let again = add(&report("c", false, "x"));
            assert!(!again.is_new && again.event_id != "c", "the content tells");
            connection.execute("UPDATE report SET received = 0", params![]).unwrap();
            assert!(add(&report("c", false, "x")).is_new, "much later it is another");
            let refs: i64 = connection
                .query_row("SELECT refs FROM blob WHERE digest = 'x'", params![], |row| row.get(0))
                .unwrap();
            assert_eq!((refs, waiting(connection).unwrap()), (3, 3));
        });
    }

    #[test]
    fn what_fails_three_times_is_set_apart() {
        with_database(|connection| {
            add(connection, &report("a", true, "x"), 0).unwrap();
            for attempt in 1..=3 {
                let leased = lease(connection, 10, now() + 60_000).unwrap();
                assert_eq!(leased.len(), 1, "attempt {attempt}");
                assert!(lease(connection, 10, now() + 60_000).unwrap().is_empty(), "somebody has it");
                fail(connection, &leased[0], "no luck", now() - 1).unwrap();
            }
            assert!(lease(connection, 10, now() + 60_000).unwrap().is_empty());
            let state: String =
                connection.query_row("SELECT state FROM report", params![], |row| row.get(0)).unwrap();
            assert_eq!(state, "quarantined");
        });
    }

    #[test]
    fn a_report_that_ends_the_server_takes_no_others_along() {
        with_database(|connection| {
            let add = |content| add(connection, &report(content, true, content), 0).unwrap();
            let some = || lease(connection, 10, now() + 60_000).unwrap();
            let names =
                |leased: &[Leased]| leased.iter().map(|report| report.blob.clone()).collect::<Vec<_>>();
            // A replica that is there, as that of this test, has its own: as if it were gone.
            let ended = "UPDATE report SET state = 'waiting', lease_until = NULL WHERE state = 'leased'";
            add("ends it");
            add("good");
            assert_eq!(some().len(), 2);
            for attempt in 2..=3 {
                connection.execute(ended, params![]).unwrap();
                assert_eq!(names(&some()), ["ends it"], "attempt {attempt}");
                assert!(some().is_empty(), "the other one waits until it is known what becomes of this one");
                add(["new", "newer"][attempt - 2]);
                assert_eq!(some().len(), 1, "what was not tried yet need not wait");
            }
            connection.execute(ended, params![]).unwrap();
            let mut worked = Vec::new();
            while let [report] = some().as_slice() {
                worked.push(report.blob.clone());
                assert!(end(connection, report, "done", None).unwrap());
            }
            worked.sort();
            assert_eq!(worked, ["good", "new", "newer"]);
            let apart = "SELECT blob FROM report WHERE state = 'quarantined'";
            let apart: Vec<String> = connection.query_map(apart, params![], |row| row.get(0)).unwrap();
            assert_eq!(apart, ["ends it"]);
        });
    }

    #[test]
    fn a_worker_that_is_late_does_not_count() {
        with_database(|connection| {
            add(connection, &report("a", true, "x"), 0).unwrap();
            let late = lease(connection, 1, now() - 1).unwrap().remove(0);
            let other = lease(connection, 1, now() + 60_000).unwrap().remove(0);
            assert!(!end(connection, &late, "done", None).unwrap());
            assert!(end(connection, &other, "done", None).unwrap());
            assert_eq!(waiting(connection).unwrap(), 0);
        });
    }

    #[test]
    fn a_lease_whose_answer_was_lost_is_given_back() {
        with_database(|connection| {
            for id in ["a", "b"] {
                add(connection, &report(id, true, id), 0).unwrap();
            }
            let until = now() + 60_000;
            assert_eq!(lease(connection, 1, until).unwrap().len(), 1);
            let other = lease(connection, 1, until + 1).unwrap();
            assert!(lease(connection, 2, until + 2).unwrap().is_empty());
            give_back(connection, until).unwrap();
            let again = lease(connection, 2, until + 3).unwrap();
            assert_eq!(again.iter().map(|report| (report.id, report.attempts)).collect::<Vec<_>>(), [(1, 1)]);
            assert!(end(connection, &other[0], "done", None).unwrap(), "others keep theirs");
        });
    }

    #[test]
    fn symbols_that_come_while_a_report_is_first_worked_are_looked_at() {
        with_database(|connection| {
            add(connection, &report("a", true, "x"), 0).unwrap();
            let lease = || lease(connection, 1, now() + 60_000).unwrap().remove(0);
            let leased = lease();
            let sql = "INSERT INTO symbol_file (project, image_id, kind, name, blob, uploaded, usable) \
                       VALUES (1, 'id', 'debug file', 'Demo', 'x', 0, 1)";
            connection.execute(sql, params![]).unwrap();
            assert_eq!(work_again(connection, 1, &["id".to_owned()]).unwrap(), 0, "nobody knows yet");
            want_again(connection, &leased, ["other", "id"].into_iter()).unwrap();
            assert!(end(connection, &leased, "done", None).unwrap());
            assert_eq!(waiting(connection).unwrap(), 1);
            // What these symbols do not complete does not wait for them for ever.
            let again = lease();
            want_again(connection, &again, ["id"].into_iter()).unwrap();
            assert!(end(connection, &again, "done", None).unwrap());
            assert_eq!(waiting(connection).unwrap(), 0);
        });
    }

    #[test]
    fn symbols_that_come_meanwhile_are_looked_at() {
        with_database(|connection| {
            add(connection, &report("a", true, "x"), 0).unwrap();
            let sql = "INSERT INTO missing (project, image_id, report, name) VALUES (1, 'id', 1, 'Demo')";
            connection.execute(sql, params![]).unwrap();
            let leased = lease(connection, 1, now() + 60_000).unwrap().remove(0);
            assert_eq!(work_again(connection, 1, &["id".to_owned()]).unwrap(), 1);
            assert_eq!(work_again(connection, 2, &["id".to_owned()]).unwrap(), 0, "another project's");
            assert!(end(connection, &leased, "done", None).unwrap());
            assert_eq!(waiting(connection).unwrap(), 1);
            let again = lease(connection, 1, now() + 60_000).unwrap().remove(0);
            assert!(end(connection, &again, "done", None).unwrap());
            assert_eq!(waiting(connection).unwrap(), 0);
            work_again(connection, 1, &["id".to_owned()]).unwrap();
            assert_eq!(waiting(connection).unwrap(), 1);
        });
    }
}
