//! Who works out whose code is where, and has reports worked again after a change.

use super::child::Request;
use super::{Asked, ask};
use crate::database::{Connection, Result, params};
use crate::error::eprint_problem;
use crate::known_owners::Job;
use crate::objects::is_passing;
use crate::owner_problems;
use crate::queue;
use crate::state::{App, State};
use crate::time::{DAY, now};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often is looked for what nobody rang for, and how soon for more of what there is.
const PATROL: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_millis(100);

/// Reports, of all projects, among which those of one are looked for at a time; and how many may wait meanwhile: new ones go first.
const TOGETHER: i64 = 1_000;
const MAX_WAITING: u64 = 500;

/// How old a report may be that is worked again: pages of owners show as many days.
const OLDEST: i64 = 30 * DAY;

/// How often a build is tried whose process somebody killed.
const MAX_KILLED: u32 = 3;

/// Starts who does it. It ends when its bell is closed.
pub(crate) fn start(app: &App) -> io::Result<JoinHandle<()>> {
    let app = Arc::clone(app);
    // Where there is no process for it, binaries are compared here.
    let builder = std::thread::Builder::new().name("owners".to_owned()).stack_size(16 << 20);
    builder.spawn(move || {
        let bell = &app.owners.known.bell;
        let mut last = 0;
        while !bell.is_closed() {
            let seen = bell.times();
            let longest = turn(&app, &mut last).unwrap_or_else(|error| {
                eprint_problem(&error.to_string());
                PATROL
            });
            bell.wait(seen, longest);
        }
    })
}

/// Does what there is to do, and says when to look again. `last` is the project some of whose reports were last worked again.
fn turn(app: &State, last: &mut i64) -> Result<Duration> {
    while let Some(mut job) = app.owners.known.next() {
        if app.owners.known.bell.is_closed() {
            return Ok(PATROL);
        }
        match one(app, &job) {
            Ok(None) => {}
            Ok(Some(killed)) => {
                eprint_problem(&format!("whose code is where in {} is tried again: {killed}", job.id()));
                job.killed += 1;
                app.owners.known.put_back(job);
                return Ok(PATROL);
            }
            Err(error) => {
                eprint_problem(&format!("whose code is where cannot be worked out: {error}"));
                app.owners.known.put_back(job);
                return Ok(PATROL);
            }
        }
    }
    if app.counters.waiting.load(Ordering::Relaxed) > MAX_WAITING {
        return Ok(SOON);
    }
    let again = app.database.read(|connection| next_again(connection, *last))?;
    let Some(project) = again else { return Ok(PATROL) };
    *last = project;
    let count = app.database.write(move |connection| work_again(connection, project))?;
    if count > 0 {
        app.counters.waiting.fetch_add(count, Ordering::Relaxed);
        app.bell.ring();
    }
    Ok(if count > 0 { SOON } else { Duration::ZERO })
}

/// Works out one build. Where the process that does it was killed, it says so, and the build is to be tried again. The error may go better
/// another time, too, and counts for nothing.
fn one(app: &State, job: &Job) -> io::Result<Option<String>> {
    let local = |digest: &str| app.objects.local(&app.database, digest);
    let request = match job.build(local) {
        Ok(build) => Request::Build(build),
        Err(error) if is_passing(&error) => return Err(error),
        Err(error) => return end(app, job, &Err(error.to_string())).map(|()| None),
    };
    let size = job.size(local);
    let asked = catch_unwind(AssertUnwindSafe(|| ask(app, &request, size)));
    let answer = match asked.unwrap_or_else(|_| Ok(Asked::Refused("a fault of the server".to_owned())))? {
        Asked::Killed(why) if job.killed + 1 < MAX_KILLED => return Ok(Some(why)),
        Asked::Killed(why) | Asked::Refused(why) => Err(why),
        Asked::Answer(answer) => Ok(answer),
    };
    end(app, job, &answer).map(|()| None)
}

/// Keeps what came of it; reports that waited for it go on.
fn end(app: &State, job: &Job, answer: &std::result::Result<Vec<u8>, String>) -> io::Result<()> {
    let (is_known, map) = app.owners.known.finish(job, answer.as_deref().ok());
    // Somebody put another program in the place of the one that runs.
    let other_program = "the answer is in another form than expected: start the server again";
    let problem = (!is_known).then(|| answer.as_ref().err().map_or(other_program, String::as_str).to_owned());
    if let Some(why) = &problem {
        eprint_problem(&format!("whose code is where in {} is not known: {why}", job.id()));
    }
    let (project, id, used) = (job.project(), job.id(), job.sources());
    // Where files are on this machine is nobody's matter.
    let problem = problem.map(|why| {
        let why = used.iter().fold(why, |why, digest| {
            let name = format!("file {}", digest.get(..8).unwrap_or_default());
            why.replace(&app.objects.path(digest).display().to_string(), &name)
        });
        why.replace(&format!("{}/", app.config.data.display()), "")
    });
    let written = app.database.write(move |connection| {
        let sql = "SELECT blob FROM owner_source WHERE project = ?1 AND kind <> 'rules'";
        let present: Vec<String> = connection.query_map(sql, params![project], |row| row.get(0))?;
        let is_current = present.len() == used.len() && present.iter().all(|digest| used.contains(digest));
        match &problem {
            Some(why) if is_current => owner_problems::add(connection, project, &id, why)?,
            // It was the files that went, or others came: the build is looked at again when somebody asks.
            Some(_) => {}
            None => owner_problems::remove(connection, project, &id)?,
        }
        if let Some(digest) = map {
            let sql = "UPDATE owner_source SET image_id = ?3 WHERE project = ?1 AND kind = 'link map' AND blob = ?2";
            connection.execute(sql, params![project, digest, id])?;
        }
        queue::go_on(connection, project)
    });
    app.bell.ring();
    written.map_err(io::Error::other)
}

/// A project that has reports to be worked again. All take turns: one that changes all the time holds no other up.
fn next_again(connection: &Connection, last: i64) -> Result<Option<i64>> {
    let sql =
        "SELECT id FROM project WHERE again > 0 ORDER BY CASE WHEN id > ?1 THEN 0 ELSE 1 END, id LIMIT 1";
    Ok(connection.query_map(sql, params![last], |row| row.get(0))?.into_iter().next())
}

/// Has some reports of a project worked again, the latest first.
fn work_again(connection: &Connection, project: i64) -> Result<u64> {
    let (last, sources): (i64, i64) = connection.query_row(
        "SELECT again, sources FROM project WHERE id = ?1",
        params![project],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (first, oldest) = (last - TOGETHER, now() - OLDEST);
    let count = queue::work_sources_again(connection, project, first, last, sources, oldest)?;
    let is_more: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM report WHERE id <= ?1 AND received >= ?2)",
        params![first, oldest],
        |row| row.get(0),
    )?;
    let next = if is_more { first.max(0) } else { 0 };
    connection.execute("UPDATE project SET again = ?2 WHERE id = ?1", params![project, next])?;
    Ok(u64::try_from(count).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::database::tests::sources;
    use backtrail_testkit::TempDir;

    #[test]
    fn projects_take_turns() {
        let directory = TempDir::new("server-turns");
        for source in sources(&directory) {
            let database = Database::open(source).unwrap();
            let insert = |connection: &Connection| {
                let sql = "INSERT INTO project (slug, name, created, again) VALUES ('a', 'a', 0, 9), ('b', 'b', 0, 0), ('c', 'c', 0, 9)";
                connection.execute(sql, params![])
            };
            database.write(insert).unwrap();
            let next = |last| database.read(|connection| next_again(connection, last)).unwrap();
            assert_eq!([next(0), next(1), next(2), next(3)], [Some(1), Some(3), Some(3), Some(1)]);
            database
                .write(|connection| connection.execute("UPDATE project SET again = 0", params![]))
                .unwrap();
            assert_eq!(next(1), None);
        }
    }
}
